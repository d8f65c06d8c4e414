"""The broker of ``kwire.testing``: access rules are kept and found as Kafka does it."""

from __future__ import annotations

from typing import Any

import pytest
from broker_talk import Bench, Client

from kwire import messages
from kwire.protocol.error_codes import ErrorCode

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, GROUP, CLUSTER = 2, 3, 4
READ, WRITE = 3, 4
DENY, ALLOW = 2, 3


def rule(name: str, pattern: int = LITERAL, **other: Any) -> Any:
    given: dict[str, Any] = {
        "resource_type": TOPIC,
        "principal": "User:ann",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return messages.CreateAclsRequest.AclCreation(
        resource_name=name, resource_pattern_type=pattern, **{**given, **other}
    )


def wanted(name: str | None, pattern: int = ANY, **other: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "resource_type_filter": TOPIC,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return {"resource_name_filter": name, "pattern_type_filter": pattern, **given, **other}


def create(client: Client, *rules: Any) -> list[int]:
    answer = client.ask(messages.CreateAclsRequest(creations=list(rules)), 3)
    return [one.error_code for one in answer.results]


def found(client: Client, version: int = 3, **filter_: Any) -> list[tuple[str, int]]:
    answer = client.ask(messages.DescribeAclsRequest(**filter_), version)
    assert answer.error_code == 0
    return [(one.resource_name, one.pattern_type) for one in answer.resources for _ in one.acls]


@pytest.fixture
def client() -> Client:
    made = Bench().client()
    rules = [rule("orders"), rule("*"), rule("ord", PREFIXED), rule("orders", PREFIXED), rule("payments")]
    assert create(made, *rules) == [0] * 5
    return made


@pytest.mark.parametrize(
    ("name", "pattern", "names"),
    [
        ("orders", LITERAL, [("orders", LITERAL)]),
        ("orders", PREFIXED, [("orders", PREFIXED)]),
        ("orders", ANY, [("orders", LITERAL), ("orders", PREFIXED)]),
        ("orders", MATCH, [("orders", LITERAL), ("*", LITERAL), ("ord", PREFIXED), ("orders", PREFIXED)]),
        ("orders-eu", MATCH, [("*", LITERAL), ("ord", PREFIXED), ("orders", PREFIXED)]),
        ("or", MATCH, [("*", LITERAL)]),
        ("*", LITERAL, [("*", LITERAL)]),
        (None, PREFIXED, [("ord", PREFIXED), ("orders", PREFIXED)]),
        (None, MATCH, 5),
        (None, ANY, 5),
    ],
)
def test_a_filter_finds_what_kafka_finds(client: Client, name: str | None, pattern: int, names: Any) -> None:
    got = found(client, **wanted(name, pattern))
    assert (len(got) if isinstance(names, int) else got) == names


def test_a_filter_is_for_principal_host_operation_and_permission_too(client: Client) -> None:
    assert create(client, rule("orders", principal="User:bob", host="10.0.0.1", operation=WRITE, permission_type=DENY))
    for field, value in (
        ("principal_filter", "User:bob"),
        ("host_filter", "10.0.0.1"),
        ("operation", WRITE),
        ("permission_type", DENY),
    ):
        assert found(client, **wanted(None, **{field: value})) == [("orders", LITERAL)]
    assert found(client, **wanted(None, resource_type_filter=GROUP)) == []
    assert len(found(client, **wanted(None, resource_type_filter=ANY))) == 6


def test_version_1_is_the_first_that_knows_patterns() -> None:
    client = Bench("2.8").client()
    create_v0 = messages.CreateAclsRequest(creations=[rule("orders")])
    assert [one.error_code for one in client.ask(create_v0, 0).results] == [0]
    filter_ = wanted("orders")
    del filter_["pattern_type_filter"]
    answer = client.ask(messages.DescribeAclsRequest(**filter_), 0)
    assert [one.resource_name for one in answer.resources] == ["orders"]


def test_the_same_rule_is_kept_once(client: Client) -> None:
    assert create(client, rule("orders")) == [0]
    assert len(found(client, **wanted(None))) == 5


def test_what_filters_find_is_deleted_and_named(client: Client) -> None:
    filters = [messages.DeleteAclsRequest.DeleteAclsFilter(**wanted(*one)) for one in (("orders", MATCH), (None, 77))]
    first, second = client.ask(messages.DeleteAclsRequest(filters=filters), 3).filter_results
    assert [(one.resource_name, one.pattern_type) for one in first.matching_acls] == [
        ("orders", LITERAL),
        ("*", LITERAL),
        ("ord", PREFIXED),
        ("orders", PREFIXED),
    ]
    assert {one.principal for one in first.matching_acls} == {"User:ann"}
    assert second.error_code == ErrorCode.INVALID_REQUEST
    assert found(client, **wanted(None)) == [("payments", LITERAL)]


@pytest.mark.parametrize(
    "wrong",
    [
        rule(""),
        rule("orders", MATCH),
        rule("orders", ANY),
        rule("orders", resource_type=1),
        rule("orders", operation=1),
        rule("orders", permission_type=1),
        rule("orders", principal="ann"),
        rule("other-name", resource_type=CLUSTER),
    ],
)
def test_a_rule_that_kafka_refuses_is_refused_alone(wrong: Any) -> None:
    client = Bench().client()
    assert create(client, rule("orders"), wrong) == [0, ErrorCode.INVALID_REQUEST]
    assert len(found(client, **wanted(None, resource_type_filter=ANY))) == 1


def test_rules_take_bounded_memory() -> None:
    client = Bench().client()
    codes = create(client, *[rule(f"{number:0>30000}") for number in range(200)])
    assert codes.count(0) == 139  # 4 MiB of text
    assert set(codes) == {0, ErrorCode.INVALID_REQUEST}
