"""What administrators ask for: topics and partitions made and deleted, records deleted, configurations shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.apis.leading import leader_error
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.logs import RefusedError

__all__ = [
    "alter_configs",
    "create_partitions",
    "create_topics",
    "delete_records",
    "delete_topics",
    "describe_configs",
    "incremental_alter_configs",
]

_TOPIC: Final = 2
"""The resource type of topics."""
_GROUP: Final = 32
"""The resource type of groups."""
Configs = dict[str, str | None]
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
"""Operations of IncrementalAlterConfigs (KIP-339)."""
_MOST_CONFIGS: Final = 16 << 10
"""Characters of the configuration of a topic."""
_BY_STATE_SINCE: Final = 6
"""The version from which DeleteTopics takes ids."""


def create_topics(ask: Ask) -> WireMessage:
    """New topics; with ``validate_only`` they are only checked."""
    kind, made = messages.CreateTopicsResponse, []
    for one in ask.body.topics:
        result = kind.CreatableTopicResult(name=one.name, error_code=ask.refused(one.name))
        made.append(result)
        if result.error_code:
            continue
        count, copies = one.num_partitions, one.replication_factor
        if one.assignments:
            count, copies = len(one.assignments), len(one.assignments[0].broker_ids)
        if sum(len(e.name) + len(e.value or "") for e in one.configs) > _MOST_CONFIGS:
            result.error_code, result.error_message = ErrorCode.INVALID_CONFIG, "the configuration is too long"
            continue
        try:
            topic = ask.cluster.create_topic(one.name, count, copies, {e.name: e.value for e in one.configs})
        except RefusedError as error:
            result.error_code, result.error_message = error.code, error.why
            continue
        result.topic_id, result.num_partitions = topic.id, len(topic.logs)
        result.replication_factor = len(topic.logs[0].replicas)
        if ask.body.validate_only:
            ask.cluster.delete_topic(topic)
    return kind(topics=made)


def delete_topics(ask: Ask) -> WireMessage:
    """Topics go, with their records."""
    kind, made, cluster = messages.DeleteTopicsResponse, [], ask.cluster
    for one in ask.body.topics if ask.version >= _BY_STATE_SINCE else ask.body.topic_names:
        if isinstance(one, str):
            name, topic = one, cluster.topics.get(one)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            name = one.name
            topic = cluster.by_id.get(one.topic_id) if name is None else cluster.topics.get(name)
            missing = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        code = ask.refused(name if topic is None else topic.name)
        result = kind.DeletableTopicResult(name=name, error_code=code or (missing if topic is None else 0))
        if topic is not None:
            result.name, result.topic_id = topic.name, topic.id
            if not code:
                cluster.delete_topic(topic)
        made.append(result)
    return kind(responses=made)


def create_partitions(ask: Ask) -> WireMessage:
    """More partitions of topics."""
    kind, made, cluster = messages.CreatePartitionsResponse, [], ask.cluster
    for one in ask.body.topics:
        topic = cluster.topics.get(one.name)
        code = ask.refused(one.name) or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else 0)
        if not code and topic is not None:
            more = one.count - len(topic.logs)
            if more <= 0 or cluster.partitions + more > cluster.settings.max_partitions:
                code = ErrorCode.INVALID_PARTITIONS
            elif not ask.body.validate_only:
                cluster.add_partitions(topic, one.count, len(topic.logs[0].replicas))
        made.append(kind.CreatePartitionsTopicResult(name=one.name, error_code=code))
    return kind(results=made)


def delete_records(ask: Ask) -> WireMessage:
    """Records before an offset go; -1 stands for all."""
    kind, topics, cluster = messages.DeleteRecordsResponse, [], ask.cluster
    for one in ask.body.topics:
        answers = []
        for part in one.partitions:
            log = cluster.log(cluster.topics.get(one.name), part.partition_index)
            code = ask.refused(one.name, part.partition_index)
            code = code or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if log is None else leader_error(log, ask.node))
            answer = kind.DeleteRecordsPartitionResult(
                partition_index=part.partition_index, low_watermark=-1, error_code=code
            )
            if not code and log is not None:
                offset = log.end if part.offset == -1 else part.offset
                if log.start <= offset <= log.end:
                    before = log.size
                    log.cut(offset)
                    cluster.size += log.size - before
                    answer.low_watermark = log.start
                else:
                    answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            answers.append(answer)
        topics.append(kind.DeleteRecordsTopicResult(name=one.name, partitions=answers))
    return kind(topics=topics)


def describe_configs(ask: Ask) -> WireMessage:
    """The configurations that topics were made with; nodes have none."""
    kind, made = messages.DescribeConfigsResponse, []
    for one in ask.body.resources:
        result = kind.DescribeConfigsResult(resource_type=one.resource_type, resource_name=one.resource_name)
        made.append(result)
        if one.resource_type != _TOPIC:
            continue
        topic = ask.cluster.topics.get(one.resource_name)
        result.error_code = ask.refused(one.resource_name)
        if topic is None:
            result.error_code = result.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        result.configs = [
            kind.DescribeConfigsResourceResult(name=name, value=value, config_source=1, synonyms=[])
            for name, value in topic.configs.items()
            if one.configuration_keys is None or name in one.configuration_keys
        ]
    return kind(results=made)


def alter_configs(ask: Ask) -> WireMessage:
    """Topics get another configuration in place of theirs."""
    kind = messages.AlterConfigsResponse

    def changed(one: Any, before: Configs) -> Configs:
        return {entry.name: entry.value for entry in one.configs}

    return kind(responses=_altered(ask, kind.AlterConfigsResourceResponse, changed))


def incremental_alter_configs(ask: Ask) -> WireMessage:
    """Single entries of the configuration of topics are set, deleted, or get more or fewer words."""
    kind = messages.IncrementalAlterConfigsResponse

    def changed(one: Any, before: Configs) -> Configs:
        made = dict(before)
        for entry in one.configs:
            words = [word for word in (made.get(entry.name) or "").split(",") if word]
            given = (entry.value or "").split(",")
            if entry.config_operation == _SET:
                made[entry.name] = entry.value
            elif entry.config_operation == _DELETE:
                made.pop(entry.name, None)
            elif entry.config_operation == _APPEND:
                made[entry.name] = ",".join([*words, *(word for word in given if word not in words)])
            elif entry.config_operation == _SUBTRACT:
                made[entry.name] = ",".join(word for word in words if word not in given)
            else:
                raise RefusedError(ErrorCode.INVALID_REQUEST, f"there is no operation {entry.config_operation}")
        return made

    return kind(responses=_altered(ask, kind.AlterConfigsResourceResponse, changed))


def _altered(ask: Ask, kind: Callable[..., Any], changed: Callable[[Any, Configs], Configs]) -> list[Any]:
    """What became of each resource; nodes take every change, and forget it."""
    made = []
    for one in ask.body.resources:
        answer = kind(resource_type=one.resource_type, resource_name=one.resource_name, error_message=None)
        made.append(answer)
        of_topic = one.resource_type == _TOPIC
        topic = ask.cluster.topics.get(one.resource_name) if of_topic else None
        answer.error_code = ask.refused(one.resource_name if of_topic else None)
        if of_topic and topic is None:
            answer.error_code = answer.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if answer.error_code or (topic is None and one.resource_type != _GROUP):
            continue
        groups = ask.cluster.group_configs
        try:
            if topic is None and len(groups) >= ask.cluster.settings.max_groups:
                raise RefusedError(ErrorCode.INVALID_CONFIG, "too many groups have a configuration")
            configs = changed(one, groups.get(one.resource_name, {}) if topic is None else topic.configs)
            if sum(len(name) + len(value or "") for name, value in configs.items()) > _MOST_CONFIGS:
                raise RefusedError(ErrorCode.INVALID_CONFIG, "the configuration is too long")
        except RefusedError as error:
            answer.error_code, answer.error_message = error.code, error.why
            continue
        if ask.body.validate_only:
            continue
        if topic is None:
            groups[one.resource_name] = configs
        else:
            topic.configs = configs
    return made
