"""CreateAcls, DescribeAcls, DeleteAcls: access rules (KIP-140, KIP-290)."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.testing.broker.acls import Acl, AclFilter
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.logs import RefusedError

__all__ = ["create", "delete", "describe"]


def create(ask: Ask) -> WireMessage:
    """New rules."""
    kind, made = messages.CreateAclsResponse, []
    for one in ask.body.creations:
        result = kind.AclCreationResult(error_code=ask.refused(), error_message=None)
        made.append(result)
        if result.error_code:
            continue
        rule = Acl(
            one.resource_type,
            one.resource_name,
            one.resource_pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        try:
            ask.cluster.acls.add(rule)
        except RefusedError as error:
            result.error_code, result.error_message = error.code, error.why
    return kind(results=made)


def _filter(one: Any) -> AclFilter:
    return AclFilter(
        one.resource_type_filter,
        one.resource_name_filter,
        one.pattern_type_filter,
        one.principal_filter,
        one.host_filter,
        one.operation,
        one.permission_type,
    )


def describe(ask: Ask) -> WireMessage:
    """The rules that a filter finds, those of a resource together."""
    kind, code = messages.DescribeAclsResponse, ask.refused()
    if code:
        return kind(error_code=code, error_message=None)
    resources: dict[tuple[int, str, int], Any] = {}
    try:
        for one in ask.cluster.acls.found(_filter(ask.body)):
            place = one.resource_type, one.resource_name, one.pattern_type
            if place not in resources:
                resources[place] = kind.DescribeAclsResource(
                    resource_type=one.resource_type, resource_name=one.resource_name, pattern_type=one.pattern_type
                )
            resources[place].acls.append(
                kind.AclDescription(
                    principal=one.principal,
                    host=one.host,
                    operation=one.operation,
                    permission_type=one.permission_type,
                )
            )
    except RefusedError as error:
        return kind(error_code=error.code, error_message=error.why)
    return kind(error_message=None, resources=list(resources.values()))


def delete(ask: Ask) -> WireMessage:
    """The rules that filters find go, and are named."""
    kind, made, acls = messages.DeleteAclsResponse, [], ask.cluster.acls
    for one in ask.body.filters:
        result = kind.DeleteAclsFilterResult(error_code=ask.refused(), error_message=None)
        made.append(result)
        if result.error_code:
            continue
        try:
            found = list(acls.found(_filter(one)))
        except RefusedError as error:
            result.error_code, result.error_message = error.code, error.why
            continue
        for rule in found:
            acls.remove(rule)
            result.matching_acls.append(kind.DeleteAclsMatchingAcl(error_message=None, **rule._asdict()))
    return kind(filter_results=made)
