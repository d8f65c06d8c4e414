"""Types of the message classes. Generated from schemas/ by ``python -m kwire.codec.stubs``: do not edit."""
# ruff: noqa: A002 - fields have Kafka's names

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from kwire.codec.objects import WireMessage, WireStruct
from kwire.schema.model import Message

class AbortTransactionRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    reason: str | None
    def __init__(
        self,
        *,
        reason: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AbortedTxn(WireMessage):
    SCHEMA: ClassVar[Message]
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        first_offset: int = ...,
        last_offset: int = ...,
        last_stable_offset: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AccessControlEntryRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    id: UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        id: UUID = ...,
        resource_type: int = ...,
        resource_name: str = ...,
        pattern_type: int = ...,
        principal: str = ...,
        host: str = ...,
        operation: int = ...,
        permission_type: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AddOffsetsToTxnRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AddOffsetsToTxnResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AddPartitionsToTxnRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class AddPartitionsToTxnTransaction(WireStruct):
        transactional_id: str
        producer_id: int
        producer_epoch: int
        verify_only: bool
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
        def __init__(
            self,
            *,
            transactional_id: str = ...,
            producer_id: int = ...,
            producer_epoch: int = ...,
            verify_only: bool = ...,
            topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AddPartitionsToTxnTopic(WireStruct):
        name: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction]
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...,
        v3_and_below_transactional_id: str = ...,
        v3_and_below_producer_id: int = ...,
        v3_and_below_producer_epoch: int = ...,
        v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AddPartitionsToTxnResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class AddPartitionsToTxnResult(WireStruct):
        transactional_id: str
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
        def __init__(
            self,
            *,
            transactional_id: str = ...,
            topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AddPartitionsToTxnTopicResult(WireStruct):
        name: str
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]
        def __init__(
            self,
            *,
            name: str = ...,
            results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AddPartitionsToTxnPartitionResult(WireStruct):
        partition_index: int
        partition_error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            partition_error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult]
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ...,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AddRaftVoterRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class Listener(WireStruct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: UUID
    listeners: list[AddRaftVoterRequest.Listener]
    ack_when_committed: bool
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        timeout_ms: int = ...,
        voter_id: int = ...,
        voter_directory_id: UUID = ...,
        listeners: list[AddRaftVoterRequest.Listener] = ...,
        ack_when_committed: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AddRaftVoterResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AllocateProducerIdsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AllocateProducerIdsResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    producer_id_start: int
    producer_id_len: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        producer_id_start: int = ...,
        producer_id_len: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterClientQuotasRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class EntryData(WireStruct):
        entity: list[AlterClientQuotasRequest.EntityData]
        ops: list[AlterClientQuotasRequest.OpData]
        def __init__(
            self,
            *,
            entity: list[AlterClientQuotasRequest.EntityData] = ...,
            ops: list[AlterClientQuotasRequest.OpData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class EntityData(WireStruct):
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = ...,
            entity_name: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OpData(WireStruct):
        key: str
        value: float
        remove: bool
        def __init__(
            self,
            *,
            key: str = ...,
            value: float = ...,
            remove: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    entries: list[AlterClientQuotasRequest.EntryData]
    validate_only: bool
    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequest.EntryData] = ...,
        validate_only: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterClientQuotasResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class EntryData(WireStruct):
        error_code: int
        error_message: str | None
        entity: list[AlterClientQuotasResponse.EntityData]
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            entity: list[AlterClientQuotasResponse.EntityData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class EntityData(WireStruct):
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = ...,
            entity_name: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    entries: list[AlterClientQuotasResponse.EntryData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        entries: list[AlterClientQuotasResponse.EntryData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterConfigsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterConfigsResource(WireStruct):
        resource_type: int
        resource_name: str
        configs: list[AlterConfigsRequest.AlterableConfig]
        def __init__(
            self,
            *,
            resource_type: int = ...,
            resource_name: str = ...,
            configs: list[AlterConfigsRequest.AlterableConfig] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AlterableConfig(WireStruct):
        name: str
        value: str | None
        def __init__(
            self,
            *,
            name: str = ...,
            value: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    resources: list[AlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    def __init__(
        self,
        *,
        resources: list[AlterConfigsRequest.AlterConfigsResource] = ...,
        validate_only: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterConfigsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterConfigsResourceResponse(WireStruct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            resource_type: int = ...,
            resource_name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterPartitionReassignmentsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class ReassignableTopic(WireStruct):
        name: str
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ReassignablePartition(WireStruct):
        partition_index: int
        replicas: Sequence[int] | None
        def __init__(
            self,
            *,
            partition_index: int = ...,
            replicas: Sequence[int] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    timeout_ms: int
    allow_replication_factor_change: bool
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic]
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        allow_replication_factor_change: bool = ...,
        topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterPartitionReassignmentsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ReassignableTopicResponse(WireStruct):
        name: str
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ReassignablePartitionResponse(WireStruct):
        partition_index: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        allow_replication_factor_change: bool = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterPartitionRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        topic_id: UUID
        partitions: list[AlterPartitionRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            topic_id: UUID = ...,
            partitions: list[AlterPartitionRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        leader_epoch: int
        new_isr: Sequence[int]
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState]
        leader_recovery_state: int
        partition_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            leader_epoch: int = ...,
            new_isr: Sequence[int] = ...,
            new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = ...,
            leader_recovery_state: int = ...,
            partition_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class BrokerState(WireStruct):
        broker_id: int
        broker_epoch: int
        def __init__(
            self,
            *,
            broker_id: int = ...,
            broker_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    broker_id: int
    broker_epoch: int
    topics: list[AlterPartitionRequest.TopicData]
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        topics: list[AlterPartitionRequest.TopicData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterPartitionResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        topic_id: UUID
        partitions: list[AlterPartitionResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            topic_id: UUID = ...,
            partitions: list[AlterPartitionResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        isr: Sequence[int]
        leader_recovery_state: int
        partition_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            isr: Sequence[int] = ...,
            leader_recovery_state: int = ...,
            partition_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    topics: list[AlterPartitionResponse.TopicData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        topics: list[AlterPartitionResponse.TopicData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterReplicaLogDirsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterReplicaLogDir(WireStruct):
        path: str
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic]
        def __init__(
            self,
            *,
            path: str = ...,
            topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AlterReplicaLogDirTopic(WireStruct):
        name: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir]
    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterReplicaLogDirsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterReplicaLogDirTopicResult(WireStruct):
        topic_name: str
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AlterReplicaLogDirPartitionResult(WireStruct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterShareGroupOffsetsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterShareGroupOffsetsRequestTopic(WireStruct):
        topic_name: str
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AlterShareGroupOffsetsRequestPartition(WireStruct):
        partition_index: int
        start_offset: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            start_offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterShareGroupOffsetsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterShareGroupOffsetsResponseTopic(WireStruct):
        topic_name: str
        topic_id: UUID
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            topic_id: UUID = ...,
            partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AlterShareGroupOffsetsResponsePartition(WireStruct):
        partition_index: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterUserScramCredentialsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class ScramCredentialDeletion(WireStruct):
        name: str
        mechanism: int
        def __init__(
            self,
            *,
            name: str = ...,
            mechanism: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ScramCredentialUpsertion(WireStruct):
        name: str
        mechanism: int
        iterations: int
        salt: bytes
        salted_password: bytes
        def __init__(
            self,
            *,
            name: str = ...,
            mechanism: int = ...,
            iterations: int = ...,
            salt: bytes = ...,
            salted_password: bytes = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion]
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion]
    def __init__(
        self,
        *,
        deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ...,
        upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AlterUserScramCredentialsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterUserScramCredentialsResult(WireStruct):
        user: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            user: str = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ApiVersionsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    client_software_name: str
    client_software_version: str
    cluster_id: str | None
    node_id: int
    def __init__(
        self,
        *,
        client_software_name: str = ...,
        client_software_version: str = ...,
        cluster_id: str | None = ...,
        node_id: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ApiVersionsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ApiVersion(WireStruct):
        api_key: int
        min_version: int
        max_version: int
        def __init__(
            self,
            *,
            api_key: int = ...,
            min_version: int = ...,
            max_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class SupportedFeatureKey(WireStruct):
        name: str
        min_version: int
        max_version: int
        def __init__(
            self,
            *,
            name: str = ...,
            min_version: int = ...,
            max_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class FinalizedFeatureKey(WireStruct):
        name: str
        max_version_level: int
        min_version_level: int
        def __init__(
            self,
            *,
            name: str = ...,
            max_version_level: int = ...,
            min_version_level: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    api_keys: list[ApiVersionsResponse.ApiVersion]
    throttle_time_ms: int
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey]
    zk_migration_ready: bool
    def __init__(
        self,
        *,
        error_code: int = ...,
        api_keys: list[ApiVersionsResponse.ApiVersion] = ...,
        throttle_time_ms: int = ...,
        supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = ...,
        finalized_features_epoch: int = ...,
        finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = ...,
        zk_migration_ready: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AssignReplicasToDirsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DirectoryData(WireStruct):
        id: UUID
        topics: list[AssignReplicasToDirsRequest.TopicData]
        def __init__(
            self,
            *,
            id: UUID = ...,
            topics: list[AssignReplicasToDirsRequest.TopicData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicData(WireStruct):
        topic_id: UUID
        partitions: list[AssignReplicasToDirsRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[AssignReplicasToDirsRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    broker_id: int
    broker_epoch: int
    directories: list[AssignReplicasToDirsRequest.DirectoryData]
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        directories: list[AssignReplicasToDirsRequest.DirectoryData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AssignReplicasToDirsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DirectoryData(WireStruct):
        id: UUID
        topics: list[AssignReplicasToDirsResponse.TopicData]
        def __init__(
            self,
            *,
            id: UUID = ...,
            topics: list[AssignReplicasToDirsResponse.TopicData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicData(WireStruct):
        topic_id: UUID
        partitions: list[AssignReplicasToDirsResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[AssignReplicasToDirsResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    directories: list[AssignReplicasToDirsResponse.DirectoryData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        directories: list[AssignReplicasToDirsResponse.DirectoryData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class AssignmentInfoData(WireMessage):
    SCHEMA: ClassVar[Message]

    class TaskId(WireStruct):
        subtopology: int
        partition: int
        named_topology: Sequence[int]
        def __init__(
            self,
            *,
            subtopology: int = ...,
            partition: int = ...,
            named_topology: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class StandbyTask(WireStruct):
        subtopology: int
        partition: int
        named_topology: Sequence[int]
        partitions: list[AssignmentInfoData.TopicPartition]
        def __init__(
            self,
            *,
            subtopology: int = ...,
            partition: int = ...,
            named_topology: Sequence[int] = ...,
            partitions: list[AssignmentInfoData.TopicPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicPartition(WireStruct):
        topic: str
        partition: int
        def __init__(
            self,
            *,
            topic: str = ...,
            partition: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Host(WireStruct):
        host: str
        port: int
        partitions: list[AssignmentInfoData.TopicPartition]
        def __init__(
            self,
            *,
            host: str = ...,
            port: int = ...,
            partitions: list[AssignmentInfoData.TopicPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Topic(WireStruct):
        number: int
        name: str
        def __init__(
            self,
            *,
            number: int = ...,
            name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NumberedHost(WireStruct):
        host: str
        port: int
        partitions: list[AssignmentInfoData.NumberedPartition]
        def __init__(
            self,
            *,
            host: str = ...,
            port: int = ...,
            partitions: list[AssignmentInfoData.NumberedPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NumberedPartition(WireStruct):
        topic: int
        partition: int
        def __init__(
            self,
            *,
            topic: int = ...,
            partition: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    version: int
    commonly_supported_version: int
    active_tasks: list[AssignmentInfoData.TaskId]
    standby_tasks: list[AssignmentInfoData.StandbyTask]
    partitions_by_host: list[AssignmentInfoData.Host]
    topics: list[AssignmentInfoData.Topic]
    active_by_host: list[AssignmentInfoData.NumberedHost]
    standby_by_host: list[AssignmentInfoData.NumberedHost]
    assignor_error: int
    next_rebalance_ms: int
    def __init__(
        self,
        *,
        version: int = ...,
        commonly_supported_version: int = ...,
        active_tasks: list[AssignmentInfoData.TaskId] = ...,
        standby_tasks: list[AssignmentInfoData.StandbyTask] = ...,
        partitions_by_host: list[AssignmentInfoData.Host] = ...,
        topics: list[AssignmentInfoData.Topic] = ...,
        active_by_host: list[AssignmentInfoData.NumberedHost] = ...,
        standby_by_host: list[AssignmentInfoData.NumberedHost] = ...,
        assignor_error: int = ...,
        next_rebalance_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class BeginQuorumEpochRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        partitions: list[BeginQuorumEpochRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[BeginQuorumEpochRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        voter_directory_id: UUID
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            voter_directory_id: UUID = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderEndpoint(WireStruct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    cluster_id: str | None
    voter_id: int
    topics: list[BeginQuorumEpochRequest.TopicData]
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint]
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        voter_id: int = ...,
        topics: list[BeginQuorumEpochRequest.TopicData] = ...,
        leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class BeginQuorumEpochResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        partitions: list[BeginQuorumEpochResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[BeginQuorumEpochResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NodeEndpoint(WireStruct):
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    topics: list[BeginQuorumEpochResponse.TopicData]
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = ...,
        topics: list[BeginQuorumEpochResponse.TopicData] = ...,
        node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class BeginTransactionRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    name: str | None
    def __init__(
        self,
        *,
        name: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class BrokerHeartbeatRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: list[UUID]
    cordoned_log_dirs: list[UUID] | None
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        current_metadata_offset: int = ...,
        want_fence: bool = ...,
        want_shut_down: bool = ...,
        offline_log_dirs: list[UUID] = ...,
        cordoned_log_dirs: list[UUID] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class BrokerHeartbeatResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        is_caught_up: bool = ...,
        is_fenced: bool = ...,
        should_shut_down: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class BrokerRegistrationChangeRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    broker_id: int
    broker_epoch: int
    fenced: int
    in_controlled_shutdown: int
    log_dirs: list[UUID]
    cordoned_log_dirs: list[UUID] | None
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        fenced: int = ...,
        in_controlled_shutdown: int = ...,
        log_dirs: list[UUID] = ...,
        cordoned_log_dirs: list[UUID] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class BrokerRegistrationRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class Listener(WireStruct):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            security_protocol: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Feature(WireStruct):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = ...,
            min_supported_version: int = ...,
            max_supported_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    listeners: list[BrokerRegistrationRequest.Listener]
    features: list[BrokerRegistrationRequest.Feature]
    rack: str | None
    is_migrating_zk_broker: bool
    log_dirs: list[UUID]
    previous_broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        cluster_id: str = ...,
        incarnation_id: UUID = ...,
        listeners: list[BrokerRegistrationRequest.Listener] = ...,
        features: list[BrokerRegistrationRequest.Feature] = ...,
        rack: str | None = ...,
        is_migrating_zk_broker: bool = ...,
        log_dirs: list[UUID] = ...,
        previous_broker_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class BrokerRegistrationResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    broker_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        broker_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ClearElrRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    topic_name: str
    def __init__(
        self,
        *,
        topic_name: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ClientQuotaRecord(WireMessage):
    SCHEMA: ClassVar[Message]

    class EntityData(WireStruct):
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = ...,
            entity_name: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    entity: list[ClientQuotaRecord.EntityData]
    key: str
    value: float
    remove: bool
    def __init__(
        self,
        *,
        entity: list[ClientQuotaRecord.EntityData] = ...,
        key: str = ...,
        value: float = ...,
        remove: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConfigRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    resource_type: int
    resource_name: str
    name: str
    value: str | None
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        name: str = ...,
        value: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConnectAssignment(WireMessage):
    SCHEMA: ClassVar[Message]

    class Connector(WireStruct):
        connector: str
        tasks: Sequence[int]
        def __init__(
            self,
            *,
            connector: str = ...,
            tasks: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error: int
    leader: str
    leader_url: str
    config_offset: int
    assignment: list[ConnectAssignment.Connector] | None
    revoked: list[ConnectAssignment.Connector] | None
    delay: int
    def __init__(
        self,
        *,
        error: int = ...,
        leader: str = ...,
        leader_url: str = ...,
        config_offset: int = ...,
        assignment: list[ConnectAssignment.Connector] | None = ...,
        revoked: list[ConnectAssignment.Connector] | None = ...,
        delay: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConnectWorkerState(WireMessage):
    SCHEMA: ClassVar[Message]
    url: str
    config_offset: int
    allocation: bytes | None
    def __init__(
        self,
        *,
        url: str = ...,
        config_offset: int = ...,
        allocation: bytes | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupCurrentMemberAssignmentKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupCurrentMemberAssignmentValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartitions(WireStruct):
        topic_id: UUID
        partitions: Sequence[int]
        assignment_epochs: Sequence[int] | None
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            assignment_epochs: Sequence[int] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    def __init__(
        self,
        *,
        member_epoch: int = ...,
        previous_member_epoch: int = ...,
        state: int = ...,
        assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
        partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupDescribeRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupDescribeResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribedGroup(WireStruct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ConsumerGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            group_id: str = ...,
            group_state: str = ...,
            group_epoch: int = ...,
            assignment_epoch: int = ...,
            assignor_name: str = ...,
            members: list[ConsumerGroupDescribeResponse.Member] = ...,
            authorized_operations: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Member(WireStruct):
        member_id: str
        instance_id: str | None
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        subscribed_topic_regex: str | None
        assignment: ConsumerGroupDescribeResponse.Assignment
        target_assignment: ConsumerGroupDescribeResponse.Assignment
        member_type: int
        def __init__(
            self,
            *,
            member_id: str = ...,
            instance_id: str | None = ...,
            rack_id: str | None = ...,
            member_epoch: int = ...,
            client_id: str = ...,
            client_host: str = ...,
            subscribed_topic_names: list[str] = ...,
            subscribed_topic_regex: str | None = ...,
            assignment: ConsumerGroupDescribeResponse.Assignment = ...,
            target_assignment: ConsumerGroupDescribeResponse.Assignment = ...,
            member_type: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Assignment(WireStruct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicPartitions(WireStruct):
        topic_id: UUID
        topic_name: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupHeartbeatRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartitions(WireStruct):
        topic_id: UUID
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        rebalance_timeout_ms: int = ...,
        subscribed_topic_names: list[str] | None = ...,
        subscribed_topic_regex: str | None = ...,
        server_assignor: str | None = ...,
        topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupHeartbeatResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class Assignment(WireStruct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicPartitions(WireStruct):
        topic_id: UUID
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        member_id: str | None = ...,
        member_epoch: int = ...,
        heartbeat_interval_ms: int = ...,
        assignment: ConsumerGroupHeartbeatResponse.Assignment | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupMemberMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupMemberMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class ClassicMemberMetadata(WireStruct):
        session_timeout_ms: int
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol]
        def __init__(
            self,
            *,
            session_timeout_ms: int = ...,
            supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ClassicProtocol(WireStruct):
        name: str
        metadata: bytes
        def __init__(
            self,
            *,
            name: str = ...,
            metadata: bytes = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None
    def __init__(
        self,
        *,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        subscribed_topic_names: list[str] = ...,
        subscribed_topic_regex: str | None = ...,
        rebalance_timeout_ms: int = ...,
        server_assignor: str | None = ...,
        classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]
    epoch: int
    metadata_hash: int
    def __init__(
        self,
        *,
        epoch: int = ...,
        metadata_hash: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupPartitionMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupPartitionMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicMetadata(WireStruct):
        topic_id: UUID
        topic_name: str
        num_partitions: int
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = ...,
            num_partitions: int = ...,
            partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionMetadata(WireStruct):
        partition: int
        racks: list[str]
        def __init__(
            self,
            *,
            partition: int = ...,
            racks: list[str] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata]
    def __init__(
        self,
        *,
        topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupRegularExpressionKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    regular_expression: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        regular_expression: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupRegularExpressionValue(WireMessage):
    SCHEMA: ClassVar[Message]
    topics: list[str]
    version: int
    timestamp: int
    def __init__(
        self,
        *,
        topics: list[str] = ...,
        version: int = ...,
        timestamp: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMemberKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMemberValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartition(WireStruct):
        topic_id: UUID
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition]
    def __init__(
        self,
        *,
        topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = ...,
        assignment_timestamp: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerProtocolAssignment(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartition(WireStruct):
        topic: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition]
    user_data: bytes | None
    def __init__(
        self,
        *,
        assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = ...,
        user_data: bytes | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ConsumerProtocolSubscription(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartition(WireStruct):
        topic: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition]
    generation_id: int
    rack_id: str | None
    def __init__(
        self,
        *,
        topics: list[str] = ...,
        user_data: bytes | None = ...,
        owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = ...,
        generation_id: int = ...,
        rack_id: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ControlRecordTypeSchema(WireMessage):
    SCHEMA: ClassVar[Message]
    type: int
    def __init__(
        self,
        *,
        type: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ControlledShutdownRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ControlledShutdownResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class RemainingPartition(WireStruct):
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_index: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    remaining_partitions: list[ControlledShutdownResponse.RemainingPartition]
    def __init__(
        self,
        *,
        error_code: int = ...,
        remaining_partitions: list[ControlledShutdownResponse.RemainingPartition] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ControllerRegistrationRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class Listener(WireStruct):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            security_protocol: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Feature(WireStruct):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = ...,
            min_supported_version: int = ...,
            max_supported_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool
    listeners: list[ControllerRegistrationRequest.Listener]
    features: list[ControllerRegistrationRequest.Feature]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        incarnation_id: UUID = ...,
        zk_migration_ready: bool = ...,
        listeners: list[ControllerRegistrationRequest.Listener] = ...,
        features: list[ControllerRegistrationRequest.Feature] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ControllerRegistrationResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CooperativeStickyUserData(WireMessage):
    SCHEMA: ClassVar[Message]
    generation: int
    def __init__(
        self,
        *,
        generation: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CreateAclsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class AclCreation(WireStruct):
        resource_type: int
        resource_name: str
        resource_pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            resource_type: int = ...,
            resource_name: str = ...,
            resource_pattern_type: int = ...,
            principal: str = ...,
            host: str = ...,
            operation: int = ...,
            permission_type: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    creations: list[CreateAclsRequest.AclCreation]
    def __init__(
        self,
        *,
        creations: list[CreateAclsRequest.AclCreation] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CreateAclsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class AclCreationResult(WireStruct):
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    results: list[CreateAclsResponse.AclCreationResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[CreateAclsResponse.AclCreationResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CreateDelegationTokenRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class CreatableRenewers(WireStruct):
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = ...,
            principal_name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    owner_principal_type: str | None
    owner_principal_name: str | None
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers]
    max_lifetime_ms: int
    def __init__(
        self,
        *,
        owner_principal_type: str | None = ...,
        owner_principal_name: str | None = ...,
        renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = ...,
        max_lifetime_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CreateDelegationTokenResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    error_code: int
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    token_id: str
    hmac: bytes
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        principal_type: str = ...,
        principal_name: str = ...,
        token_requester_principal_type: str = ...,
        token_requester_principal_name: str = ...,
        issue_timestamp_ms: int = ...,
        expiry_timestamp_ms: int = ...,
        max_timestamp_ms: int = ...,
        token_id: str = ...,
        hmac: bytes = ...,
        throttle_time_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CreatePartitionsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class CreatePartitionsTopic(WireStruct):
        name: str
        count: int
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None
        def __init__(
            self,
            *,
            name: str = ...,
            count: int = ...,
            assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class CreatePartitionsAssignment(WireStruct):
        broker_ids: Sequence[int]
        def __init__(
            self,
            *,
            broker_ids: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[CreatePartitionsRequest.CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(
        self,
        *,
        topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = ...,
        timeout_ms: int = ...,
        validate_only: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CreatePartitionsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class CreatePartitionsTopicResult(WireStruct):
        name: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            name: str = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CreateTopicsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class CreatableTopic(WireStruct):
        name: str
        num_partitions: int
        replication_factor: int
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment]
        configs: list[CreateTopicsRequest.CreatableTopicConfig]
        def __init__(
            self,
            *,
            name: str = ...,
            num_partitions: int = ...,
            replication_factor: int = ...,
            assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = ...,
            configs: list[CreateTopicsRequest.CreatableTopicConfig] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class CreatableReplicaAssignment(WireStruct):
        partition_index: int
        broker_ids: Sequence[int]
        def __init__(
            self,
            *,
            partition_index: int = ...,
            broker_ids: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class CreatableTopicConfig(WireStruct):
        name: str
        value: str | None
        def __init__(
            self,
            *,
            name: str = ...,
            value: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[CreateTopicsRequest.CreatableTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(
        self,
        *,
        topics: list[CreateTopicsRequest.CreatableTopic] = ...,
        timeout_ms: int = ...,
        validate_only: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class CreateTopicsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class CreatableTopicResult(WireStruct):
        name: str
        topic_id: UUID
        error_code: int
        error_message: str | None
        topic_config_error_code: int
        num_partitions: int
        replication_factor: int
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            topic_config_error_code: int = ...,
            num_partitions: int = ...,
            replication_factor: int = ...,
            configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class CreatableTopicConfigs(WireStruct):
        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool
        def __init__(
            self,
            *,
            name: str = ...,
            value: str | None = ...,
            read_only: bool = ...,
            config_source: int = ...,
            is_sensitive: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[CreateTopicsResponse.CreatableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[CreateTopicsResponse.CreatableTopicResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DefaultPrincipalData(WireMessage):
    SCHEMA: ClassVar[Message]
    type: str
    name: str
    token_authenticated: bool
    def __init__(
        self,
        *,
        type: str = ...,
        name: str = ...,
        token_authenticated: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DelegationTokenRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str
    def __init__(
        self,
        *,
        owner: str = ...,
        requester: str = ...,
        renewers: list[str] = ...,
        issue_timestamp: int = ...,
        max_timestamp: int = ...,
        expiration_timestamp: int = ...,
        token_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteAclsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteAclsFilter(WireStruct):
        resource_type_filter: int
        resource_name_filter: str | None
        pattern_type_filter: int
        principal_filter: str | None
        host_filter: str | None
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            resource_type_filter: int = ...,
            resource_name_filter: str | None = ...,
            pattern_type_filter: int = ...,
            principal_filter: str | None = ...,
            host_filter: str | None = ...,
            operation: int = ...,
            permission_type: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    filters: list[DeleteAclsRequest.DeleteAclsFilter]
    def __init__(
        self,
        *,
        filters: list[DeleteAclsRequest.DeleteAclsFilter] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteAclsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteAclsFilterResult(WireStruct):
        error_code: int
        error_message: str | None
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl]
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DeleteAclsMatchingAcl(WireStruct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            resource_type: int = ...,
            resource_name: str = ...,
            pattern_type: int = ...,
            principal: str = ...,
            host: str = ...,
            operation: int = ...,
            permission_type: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteGroupsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    groups_names: list[str]
    def __init__(
        self,
        *,
        groups_names: list[str] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteGroupsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeletableGroupResult(WireStruct):
        group_id: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            group_id: str = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    results: list[DeleteGroupsResponse.DeletableGroupResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[DeleteGroupsResponse.DeletableGroupResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteRecordsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteRecordsTopic(WireStruct):
        name: str
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DeleteRecordsPartition(WireStruct):
        partition_index: int
        offset: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[DeleteRecordsRequest.DeleteRecordsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = ...,
        timeout_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteRecordsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteRecordsTopicResult(WireStruct):
        name: str
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DeleteRecordsPartitionResult(WireStruct):
        partition_index: int
        low_watermark: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            low_watermark: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteShareGroupOffsetsRequestTopic(WireStruct):
        topic_name: str
        def __init__(
            self,
            *,
            topic_name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteShareGroupOffsetsResponseTopic(WireStruct):
        topic_name: str
        topic_id: UUID
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            topic_name: str = ...,
            topic_id: UUID = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteShareGroupStateRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteStateData(WireStruct):
        topic_id: UUID
        partitions: list[DeleteShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[DeleteShareGroupStateRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition: int
        def __init__(
            self,
            *,
            partition: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[DeleteShareGroupStateRequest.DeleteStateData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[DeleteShareGroupStateRequest.DeleteStateData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteShareGroupStateResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteStateResult(WireStruct):
        topic_id: UUID
        partitions: list[DeleteShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[DeleteShareGroupStateResponse.PartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionResult(WireStruct):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    results: list[DeleteShareGroupStateResponse.DeleteStateResult]
    def __init__(
        self,
        *,
        results: list[DeleteShareGroupStateResponse.DeleteStateResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteTopicsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeleteTopicState(WireStruct):
        name: str | None
        topic_id: UUID
        def __init__(
            self,
            *,
            name: str | None = ...,
            topic_id: UUID = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[DeleteTopicsRequest.DeleteTopicState]
    topic_names: list[str]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: list[DeleteTopicsRequest.DeleteTopicState] = ...,
        topic_names: list[str] = ...,
        timeout_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DeleteTopicsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DeletableTopicResult(WireStruct):
        name: str | None
        topic_id: UUID
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            name: str | None = ...,
            topic_id: UUID = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    responses: list[DeleteTopicsResponse.DeletableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        responses: list[DeleteTopicsResponse.DeletableTopicResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeAclsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type_filter: int = ...,
        resource_name_filter: str | None = ...,
        pattern_type_filter: int = ...,
        principal_filter: str | None = ...,
        host_filter: str | None = ...,
        operation: int = ...,
        permission_type: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeAclsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeAclsResource(WireStruct):
        resource_type: int
        resource_name: str
        pattern_type: int
        acls: list[DescribeAclsResponse.AclDescription]
        def __init__(
            self,
            *,
            resource_type: int = ...,
            resource_name: str = ...,
            pattern_type: int = ...,
            acls: list[DescribeAclsResponse.AclDescription] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AclDescription(WireStruct):
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            principal: str = ...,
            host: str = ...,
            operation: int = ...,
            permission_type: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResponse.DescribeAclsResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        resources: list[DescribeAclsResponse.DescribeAclsResource] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeClientQuotasRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class ComponentData(WireStruct):
        entity_type: str
        match_type: int
        match: str | None
        def __init__(
            self,
            *,
            entity_type: str = ...,
            match_type: int = ...,
            match: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    components: list[DescribeClientQuotasRequest.ComponentData]
    strict: bool
    def __init__(
        self,
        *,
        components: list[DescribeClientQuotasRequest.ComponentData] = ...,
        strict: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeClientQuotasResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class EntryData(WireStruct):
        entity: list[DescribeClientQuotasResponse.EntityData]
        values: list[DescribeClientQuotasResponse.ValueData]
        def __init__(
            self,
            *,
            entity: list[DescribeClientQuotasResponse.EntityData] = ...,
            values: list[DescribeClientQuotasResponse.ValueData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class EntityData(WireStruct):
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = ...,
            entity_name: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ValueData(WireStruct):
        key: str
        value: float
        def __init__(
            self,
            *,
            key: str = ...,
            value: float = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[DescribeClientQuotasResponse.EntryData] | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        entries: list[DescribeClientQuotasResponse.EntryData] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeClusterRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool
    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = ...,
        endpoint_type: int = ...,
        include_fenced_brokers: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeClusterResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeClusterBroker(WireStruct):
        broker_id: int
        host: str
        port: int
        rack: str | None
        is_fenced: bool
        def __init__(
            self,
            *,
            broker_id: int = ...,
            host: str = ...,
            port: int = ...,
            rack: str | None = ...,
            is_fenced: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: list[DescribeClusterResponse.DescribeClusterBroker]
    cluster_authorized_operations: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        endpoint_type: int = ...,
        cluster_id: str = ...,
        controller_id: int = ...,
        brokers: list[DescribeClusterResponse.DescribeClusterBroker] = ...,
        cluster_authorized_operations: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeConfigsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeConfigsResource(WireStruct):
        resource_type: int
        resource_name: str
        configuration_keys: list[str] | None
        def __init__(
            self,
            *,
            resource_type: int = ...,
            resource_name: str = ...,
            configuration_keys: list[str] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    resources: list[DescribeConfigsRequest.DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool
    def __init__(
        self,
        *,
        resources: list[DescribeConfigsRequest.DescribeConfigsResource] = ...,
        include_synonyms: bool = ...,
        include_documentation: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeConfigsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeConfigsResult(WireStruct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult]
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            resource_type: int = ...,
            resource_name: str = ...,
            configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribeConfigsResourceResult(WireStruct):
        name: str
        value: str | None
        read_only: bool
        is_default: bool
        config_source: int
        is_sensitive: bool
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym]
        config_type: int
        documentation: str | None
        def __init__(
            self,
            *,
            name: str = ...,
            value: str | None = ...,
            read_only: bool = ...,
            is_default: bool = ...,
            config_source: int = ...,
            is_sensitive: bool = ...,
            synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = ...,
            config_type: int = ...,
            documentation: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribeConfigsSynonym(WireStruct):
        name: str
        value: str | None
        source: int
        def __init__(
            self,
            *,
            name: str = ...,
            value: str | None = ...,
            source: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    results: list[DescribeConfigsResponse.DescribeConfigsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[DescribeConfigsResponse.DescribeConfigsResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeDelegationTokenRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeDelegationTokenOwner(WireStruct):
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = ...,
            principal_name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None
    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeDelegationTokenResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribedDelegationToken(WireStruct):
        principal_type: str
        principal_name: str
        token_requester_principal_type: str
        token_requester_principal_name: str
        issue_timestamp: int
        expiry_timestamp: int
        max_timestamp: int
        token_id: str
        hmac: bytes
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer]
        def __init__(
            self,
            *,
            principal_type: str = ...,
            principal_name: str = ...,
            token_requester_principal_type: str = ...,
            token_requester_principal_name: str = ...,
            issue_timestamp: int = ...,
            expiry_timestamp: int = ...,
            max_timestamp: int = ...,
            token_id: str = ...,
            hmac: bytes = ...,
            renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribedDelegationTokenRenewer(WireStruct):
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = ...,
            principal_name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken]
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = ...,
        throttle_time_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeGroupsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    groups: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        groups: list[str] = ...,
        include_authorized_operations: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeGroupsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribedGroup(WireStruct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        protocol_type: str
        protocol_data: str
        members: list[DescribeGroupsResponse.DescribedGroupMember]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            group_id: str = ...,
            group_state: str = ...,
            protocol_type: str = ...,
            protocol_data: str = ...,
            members: list[DescribeGroupsResponse.DescribedGroupMember] = ...,
            authorized_operations: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribedGroupMember(WireStruct):
        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        member_metadata: bytes
        member_assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = ...,
            group_instance_id: str | None = ...,
            client_id: str = ...,
            client_host: str = ...,
            member_metadata: bytes = ...,
            member_assignment: bytes = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[DescribeGroupsResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        groups: list[DescribeGroupsResponse.DescribedGroup] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeLogDirsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribableLogDirTopic(WireStruct):
        topic: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None
    def __init__(
        self,
        *,
        topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeLogDirsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeLogDirsResult(WireStruct):
        error_code: int
        log_dir: str
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic]
        total_bytes: int
        usable_bytes: int
        is_cordoned: bool
        def __init__(
            self,
            *,
            error_code: int = ...,
            log_dir: str = ...,
            topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = ...,
            total_bytes: int = ...,
            usable_bytes: int = ...,
            is_cordoned: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribeLogDirsTopic(WireStruct):
        name: str
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribeLogDirsPartition(WireStruct):
        partition_index: int
        partition_size: int
        offset_lag: int
        is_future_key: bool
        def __init__(
            self,
            *,
            partition_index: int = ...,
            partition_size: int = ...,
            offset_lag: int = ...,
            is_future_key: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeProducersRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicRequest(WireStruct):
        name: str
        partition_indexes: Sequence[int]
        def __init__(
            self,
            *,
            name: str = ...,
            partition_indexes: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[DescribeProducersRequest.TopicRequest]
    def __init__(
        self,
        *,
        topics: list[DescribeProducersRequest.TopicRequest] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeProducersResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicResponse(WireStruct):
        name: str
        partitions: list[DescribeProducersResponse.PartitionResponse]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[DescribeProducersResponse.PartitionResponse] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionResponse(WireStruct):
        partition_index: int
        error_code: int
        error_message: str | None
        active_producers: list[DescribeProducersResponse.ProducerState]
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            active_producers: list[DescribeProducersResponse.ProducerState] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ProducerState(WireStruct):
        producer_id: int
        producer_epoch: int
        last_sequence: int
        last_timestamp: int
        coordinator_epoch: int
        current_txn_start_offset: int
        def __init__(
            self,
            *,
            producer_id: int = ...,
            producer_epoch: int = ...,
            last_sequence: int = ...,
            last_timestamp: int = ...,
            coordinator_epoch: int = ...,
            current_txn_start_offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[DescribeProducersResponse.TopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[DescribeProducersResponse.TopicResponse] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeQuorumRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        partitions: list[DescribeQuorumRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[DescribeQuorumRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[DescribeQuorumRequest.TopicData]
    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequest.TopicData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeQuorumResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        partitions: list[DescribeQuorumResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[DescribeQuorumResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        error_message: str | None
        leader_id: int
        leader_epoch: int
        high_watermark: int
        current_voters: list[DescribeQuorumResponse.ReplicaState]
        observers: list[DescribeQuorumResponse.ReplicaState]
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            high_watermark: int = ...,
            current_voters: list[DescribeQuorumResponse.ReplicaState] = ...,
            observers: list[DescribeQuorumResponse.ReplicaState] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ReplicaState(WireStruct):
        replica_id: int
        replica_directory_id: UUID
        log_end_offset: int
        last_fetch_timestamp: int
        last_caught_up_timestamp: int
        def __init__(
            self,
            *,
            replica_id: int = ...,
            replica_directory_id: UUID = ...,
            log_end_offset: int = ...,
            last_fetch_timestamp: int = ...,
            last_caught_up_timestamp: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Node(WireStruct):
        node_id: int
        listeners: list[DescribeQuorumResponse.Listener]
        def __init__(
            self,
            *,
            node_id: int = ...,
            listeners: list[DescribeQuorumResponse.Listener] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Listener(WireStruct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    error_message: str | None
    topics: list[DescribeQuorumResponse.TopicData]
    nodes: list[DescribeQuorumResponse.Node]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        topics: list[DescribeQuorumResponse.TopicData] = ...,
        nodes: list[DescribeQuorumResponse.Node] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeShareGroupOffsetsRequestGroup(WireStruct):
        group_id: str
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None
        def __init__(
            self,
            *,
            group_id: str = ...,
            topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribeShareGroupOffsetsRequestTopic(WireStruct):
        topic_name: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup]
    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeShareGroupOffsetsResponseGroup(WireStruct):
        group_id: str
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic]
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            group_id: str = ...,
            topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribeShareGroupOffsetsResponseTopic(WireStruct):
        topic_name: str
        topic_id: UUID
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            topic_id: UUID = ...,
            partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribeShareGroupOffsetsResponsePartition(WireStruct):
        partition_index: int
        start_offset: int
        leader_epoch: int
        lag: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = ...,
            start_offset: int = ...,
            leader_epoch: int = ...,
            lag: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeTopicPartitionsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicRequest(WireStruct):
        name: str
        def __init__(
            self,
            *,
            name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Cursor(WireStruct):
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_index: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[DescribeTopicPartitionsRequest.TopicRequest]
    response_partition_limit: int
    cursor: DescribeTopicPartitionsRequest.Cursor | None
    def __init__(
        self,
        *,
        topics: list[DescribeTopicPartitionsRequest.TopicRequest] = ...,
        response_partition_limit: int = ...,
        cursor: DescribeTopicPartitionsRequest.Cursor | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeTopicPartitionsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeTopicPartitionsResponseTopic(WireStruct):
        error_code: int
        name: str | None
        topic_id: UUID
        is_internal: bool
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition]
        topic_authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = ...,
            name: str | None = ...,
            topic_id: UUID = ...,
            is_internal: bool = ...,
            partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = ...,
            topic_authorized_operations: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class DescribeTopicPartitionsResponsePartition(WireStruct):
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: Sequence[int]
        isr_nodes: Sequence[int]
        eligible_leader_replicas: Sequence[int] | None
        last_known_elr: Sequence[int] | None
        offline_replicas: Sequence[int]
        def __init__(
            self,
            *,
            error_code: int = ...,
            partition_index: int = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            replica_nodes: Sequence[int] = ...,
            isr_nodes: Sequence[int] = ...,
            eligible_leader_replicas: Sequence[int] | None = ...,
            last_known_elr: Sequence[int] | None = ...,
            offline_replicas: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Cursor(WireStruct):
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_index: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ...,
        next_cursor: DescribeTopicPartitionsResponse.Cursor | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeTransactionsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    transactional_ids: list[str]
    def __init__(
        self,
        *,
        transactional_ids: list[str] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeTransactionsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TransactionState(WireStruct):
        error_code: int
        transactional_id: str
        transaction_state: str
        transaction_timeout_ms: int
        transaction_start_time_ms: int
        producer_id: int
        producer_epoch: int
        topics: list[DescribeTransactionsResponse.TopicData]
        def __init__(
            self,
            *,
            error_code: int = ...,
            transactional_id: str = ...,
            transaction_state: str = ...,
            transaction_timeout_ms: int = ...,
            transaction_start_time_ms: int = ...,
            producer_id: int = ...,
            producer_epoch: int = ...,
            topics: list[DescribeTransactionsResponse.TopicData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicData(WireStruct):
        topic: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    transaction_states: list[DescribeTransactionsResponse.TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        transaction_states: list[DescribeTransactionsResponse.TransactionState] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeUserScramCredentialsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class UserName(WireStruct):
        name: str
        def __init__(
            self,
            *,
            name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    users: list[DescribeUserScramCredentialsRequest.UserName] | None
    def __init__(
        self,
        *,
        users: list[DescribeUserScramCredentialsRequest.UserName] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class DescribeUserScramCredentialsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribeUserScramCredentialsResult(WireStruct):
        user: str
        error_code: int
        error_message: str | None
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo]
        def __init__(
            self,
            *,
            user: str = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class CredentialInfo(WireStruct):
        mechanism: int
        iterations: int
        def __init__(
            self,
            *,
            mechanism: int = ...,
            iterations: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ElectLeadersRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartitions(WireStruct):
        topic: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    election_type: int
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None
    timeout_ms: int
    def __init__(
        self,
        *,
        election_type: int = ...,
        topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = ...,
        timeout_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ElectLeadersResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ReplicaElectionResult(WireStruct):
        topic: str
        partition_result: list[ElectLeadersResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic: str = ...,
            partition_result: list[ElectLeadersResponse.PartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionResult(WireStruct):
        partition_id: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_id: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class EndQuorumEpochRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        partitions: list[EndQuorumEpochRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[EndQuorumEpochRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        leader_id: int
        leader_epoch: int
        preferred_successors: Sequence[int]
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo]
        def __init__(
            self,
            *,
            partition_index: int = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            preferred_successors: Sequence[int] = ...,
            preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ReplicaInfo(WireStruct):
        candidate_id: int
        candidate_directory_id: UUID
        def __init__(
            self,
            *,
            candidate_id: int = ...,
            candidate_directory_id: UUID = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderEndpoint(WireStruct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    cluster_id: str | None
    topics: list[EndQuorumEpochRequest.TopicData]
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint]
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        topics: list[EndQuorumEpochRequest.TopicData] = ...,
        leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class EndQuorumEpochResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        partitions: list[EndQuorumEpochResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[EndQuorumEpochResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NodeEndpoint(WireStruct):
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    topics: list[EndQuorumEpochResponse.TopicData]
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = ...,
        topics: list[EndQuorumEpochResponse.TopicData] = ...,
        node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class EndTransactionRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    def __init__(
        self,
        *,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class EndTxnMarker(WireMessage):
    SCHEMA: ClassVar[Message]
    coordinator_epoch: int
    def __init__(
        self,
        *,
        coordinator_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class EndTxnRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        committed: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class EndTxnResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class EnvelopeRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    request_data: bytes
    request_principal: bytes | None
    client_host_address: bytes
    def __init__(
        self,
        *,
        request_data: bytes = ...,
        request_principal: bytes | None = ...,
        client_host_address: bytes = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class EnvelopeResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    response_data: bytes | None
    error_code: int
    def __init__(
        self,
        *,
        response_data: bytes | None = ...,
        error_code: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ExpireDelegationTokenRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    hmac: bytes
    expiry_time_period_ms: int
    def __init__(
        self,
        *,
        hmac: bytes = ...,
        expiry_time_period_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ExpireDelegationTokenResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        expiry_timestamp_ms: int = ...,
        throttle_time_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class FeatureLevelRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    name: str
    feature_level: int
    def __init__(
        self,
        *,
        name: str = ...,
        feature_level: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class FenceBrokerRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    id: int
    epoch: int
    def __init__(
        self,
        *,
        id: int = ...,
        epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class FetchRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class ReplicaState(WireStruct):
        replica_id: int
        replica_epoch: int
        def __init__(
            self,
            *,
            replica_id: int = ...,
            replica_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class FetchTopic(WireStruct):
        topic: str
        topic_id: UUID
        partitions: list[FetchRequest.FetchPartition]
        def __init__(
            self,
            *,
            topic: str = ...,
            topic_id: UUID = ...,
            partitions: list[FetchRequest.FetchPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class FetchPartition(WireStruct):
        partition: int
        current_leader_epoch: int
        fetch_offset: int
        last_fetched_epoch: int
        log_start_offset: int
        partition_max_bytes: int
        replica_directory_id: UUID
        high_watermark: int
        def __init__(
            self,
            *,
            partition: int = ...,
            current_leader_epoch: int = ...,
            fetch_offset: int = ...,
            last_fetched_epoch: int = ...,
            log_start_offset: int = ...,
            partition_max_bytes: int = ...,
            replica_directory_id: UUID = ...,
            high_watermark: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ForgottenTopic(WireStruct):
        topic: str
        topic_id: UUID
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    cluster_id: str | None
    replica_id: int
    replica_state: FetchRequest.ReplicaState
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchRequest.FetchTopic]
    forgotten_topics_data: list[FetchRequest.ForgottenTopic]
    rack_id: str
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        replica_id: int = ...,
        replica_state: FetchRequest.ReplicaState = ...,
        max_wait_ms: int = ...,
        min_bytes: int = ...,
        max_bytes: int = ...,
        isolation_level: int = ...,
        session_id: int = ...,
        session_epoch: int = ...,
        topics: list[FetchRequest.FetchTopic] = ...,
        forgotten_topics_data: list[FetchRequest.ForgottenTopic] = ...,
        rack_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class FetchResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class FetchableTopicResponse(WireStruct):
        topic: str
        topic_id: UUID
        partitions: list[FetchResponse.PartitionData]
        def __init__(
            self,
            *,
            topic: str = ...,
            topic_id: UUID = ...,
            partitions: list[FetchResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        high_watermark: int
        last_stable_offset: int
        log_start_offset: int
        diverging_epoch: FetchResponse.EpochEndOffset
        current_leader: FetchResponse.LeaderIdAndEpoch
        snapshot_id: FetchResponse.SnapshotId
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None
        preferred_read_replica: int
        records: bytes | memoryview | None
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            high_watermark: int = ...,
            last_stable_offset: int = ...,
            log_start_offset: int = ...,
            diverging_epoch: FetchResponse.EpochEndOffset = ...,
            current_leader: FetchResponse.LeaderIdAndEpoch = ...,
            snapshot_id: FetchResponse.SnapshotId = ...,
            aborted_transactions: list[FetchResponse.AbortedTransaction] | None = ...,
            preferred_read_replica: int = ...,
            records: bytes | memoryview | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class EpochEndOffset(WireStruct):
        epoch: int
        end_offset: int
        def __init__(
            self,
            *,
            epoch: int = ...,
            end_offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(WireStruct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class SnapshotId(WireStruct):
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = ...,
            epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AbortedTransaction(WireStruct):
        producer_id: int
        first_offset: int
        def __init__(
            self,
            *,
            producer_id: int = ...,
            first_offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NodeEndpoint(WireStruct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            rack: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: list[FetchResponse.FetchableTopicResponse]
    node_endpoints: list[FetchResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        session_id: int = ...,
        responses: list[FetchResponse.FetchableTopicResponse] = ...,
        node_endpoints: list[FetchResponse.NodeEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class FetchSnapshotRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicSnapshot(WireStruct):
        name: str
        partitions: list[FetchSnapshotRequest.PartitionSnapshot]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[FetchSnapshotRequest.PartitionSnapshot] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionSnapshot(WireStruct):
        partition: int
        current_leader_epoch: int
        snapshot_id: FetchSnapshotRequest.SnapshotId
        position: int
        replica_directory_id: UUID
        def __init__(
            self,
            *,
            partition: int = ...,
            current_leader_epoch: int = ...,
            snapshot_id: FetchSnapshotRequest.SnapshotId = ...,
            position: int = ...,
            replica_directory_id: UUID = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class SnapshotId(WireStruct):
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = ...,
            epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    cluster_id: str | None
    replica_id: int
    max_bytes: int
    topics: list[FetchSnapshotRequest.TopicSnapshot]
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        replica_id: int = ...,
        max_bytes: int = ...,
        topics: list[FetchSnapshotRequest.TopicSnapshot] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class FetchSnapshotResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicSnapshot(WireStruct):
        name: str
        partitions: list[FetchSnapshotResponse.PartitionSnapshot]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[FetchSnapshotResponse.PartitionSnapshot] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionSnapshot(WireStruct):
        index: int
        error_code: int
        snapshot_id: FetchSnapshotResponse.SnapshotId
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch
        size: int
        position: int
        unaligned_records: bytes | memoryview
        def __init__(
            self,
            *,
            index: int = ...,
            error_code: int = ...,
            snapshot_id: FetchSnapshotResponse.SnapshotId = ...,
            current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = ...,
            size: int = ...,
            position: int = ...,
            unaligned_records: bytes | memoryview = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class SnapshotId(WireStruct):
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = ...,
            epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(WireStruct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NodeEndpoint(WireStruct):
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    topics: list[FetchSnapshotResponse.TopicSnapshot]
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        topics: list[FetchSnapshotResponse.TopicSnapshot] = ...,
        node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class FindCoordinatorRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    key: str
    key_type: int
    coordinator_keys: list[str]
    def __init__(
        self,
        *,
        key: str = ...,
        key_type: int = ...,
        coordinator_keys: list[str] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class FindCoordinatorResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class Coordinator(WireStruct):
        key: str
        node_id: int
        host: str
        port: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            key: str = ...,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int
    coordinators: list[FindCoordinatorResponse.Coordinator]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        node_id: int = ...,
        host: str = ...,
        port: int = ...,
        coordinators: list[FindCoordinatorResponse.Coordinator] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class GetTelemetrySubscriptionsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    client_instance_id: UUID
    def __init__(
        self,
        *,
        client_instance_id: UUID = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class GetTelemetrySubscriptionsResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    client_instance_id: UUID
    subscription_id: int
    accepted_compression_types: Sequence[int]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        client_instance_id: UUID = ...,
        subscription_id: int = ...,
        accepted_compression_types: Sequence[int] = ...,
        push_interval_ms: int = ...,
        telemetry_max_bytes: int = ...,
        delta_temporality: bool = ...,
        requested_metrics: list[str] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class GroupMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group: str
    def __init__(
        self,
        *,
        group: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class GroupMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class MemberMetadata(WireStruct):
        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        rebalance_timeout: int
        session_timeout: int
        subscription: bytes
        assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = ...,
            group_instance_id: str | None = ...,
            client_id: str = ...,
            client_host: str = ...,
            rebalance_timeout: int = ...,
            session_timeout: int = ...,
            subscription: bytes = ...,
            assignment: bytes = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: list[GroupMetadataValue.MemberMetadata]
    def __init__(
        self,
        *,
        protocol_type: str = ...,
        generation: int = ...,
        protocol: str | None = ...,
        leader: str | None = ...,
        current_state_timestamp: int = ...,
        members: list[GroupMetadataValue.MemberMetadata] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class HeartbeatRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        generation_id: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class HeartbeatResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class IncrementalAlterConfigsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterConfigsResource(WireStruct):
        resource_type: int
        resource_name: str
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig]
        def __init__(
            self,
            *,
            resource_type: int = ...,
            resource_name: str = ...,
            configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AlterableConfig(WireStruct):
        name: str
        config_operation: int
        value: str | None
        def __init__(
            self,
            *,
            name: str = ...,
            config_operation: int = ...,
            value: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    def __init__(
        self,
        *,
        resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = ...,
        validate_only: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class IncrementalAlterConfigsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class AlterConfigsResourceResponse(WireStruct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            resource_type: int = ...,
            resource_name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class InitProducerIdRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    enable2_pc: bool
    keep_prepared_txn: bool
    def __init__(
        self,
        *,
        transactional_id: str | None = ...,
        transaction_timeout_ms: int = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        enable2_pc: bool = ...,
        keep_prepared_txn: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class InitProducerIdResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    ongoing_txn_producer_id: int
    ongoing_txn_producer_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        ongoing_txn_producer_id: int = ...,
        ongoing_txn_producer_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class InitializeShareGroupStateRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class InitializeStateData(WireStruct):
        topic_id: UUID
        partitions: list[InitializeShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[InitializeShareGroupStateRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition: int
        state_epoch: int
        start_offset: int
        def __init__(
            self,
            *,
            partition: int = ...,
            state_epoch: int = ...,
            start_offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[InitializeShareGroupStateRequest.InitializeStateData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[InitializeShareGroupStateRequest.InitializeStateData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class InitializeShareGroupStateResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class InitializeStateResult(WireStruct):
        topic_id: UUID
        partitions: list[InitializeShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[InitializeShareGroupStateResponse.PartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionResult(WireStruct):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    results: list[InitializeShareGroupStateResponse.InitializeStateResult]
    def __init__(
        self,
        *,
        results: list[InitializeShareGroupStateResponse.InitializeStateResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class JoinGroupRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class JoinGroupRequestProtocol(WireStruct):
        name: str
        metadata: bytes
        def __init__(
            self,
            *,
            name: str = ...,
            metadata: bytes = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol]
    reason: str | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        session_timeout_ms: int = ...,
        rebalance_timeout_ms: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        protocol_type: str = ...,
        protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = ...,
        reason: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class JoinGroupResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class JoinGroupResponseMember(WireStruct):
        member_id: str
        group_instance_id: str | None
        metadata: bytes
        def __init__(
            self,
            *,
            member_id: str = ...,
            group_instance_id: str | None = ...,
            metadata: bytes = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: list[JoinGroupResponse.JoinGroupResponseMember]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        generation_id: int = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        leader: str = ...,
        skip_assignment: bool = ...,
        member_id: str = ...,
        members: list[JoinGroupResponse.JoinGroupResponseMember] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class KRaftVersionRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    version: int
    k_raft_version: int
    def __init__(
        self,
        *,
        version: int = ...,
        k_raft_version: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class LeaderAndIsrRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class LeaderAndIsrPartitionState(WireStruct):
        topic_name: str
        partition_index: int
        controller_epoch: int
        leader: int
        leader_epoch: int
        isr: Sequence[int]
        partition_epoch: int
        replicas: Sequence[int]
        adding_replicas: Sequence[int]
        removing_replicas: Sequence[int]
        is_new: bool
        leader_recovery_state: int
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_index: int = ...,
            controller_epoch: int = ...,
            leader: int = ...,
            leader_epoch: int = ...,
            isr: Sequence[int] = ...,
            partition_epoch: int = ...,
            replicas: Sequence[int] = ...,
            adding_replicas: Sequence[int] = ...,
            removing_replicas: Sequence[int] = ...,
            is_new: bool = ...,
            leader_recovery_state: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderAndIsrTopicState(WireStruct):
        topic_name: str
        topic_id: UUID
        partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            topic_id: UUID = ...,
            partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderAndIsrLiveLeader(WireStruct):
        broker_id: int
        host_name: str
        port: int
        def __init__(
            self,
            *,
            broker_id: int = ...,
            host_name: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    controller_id: int
    is_k_raft_controller: bool
    controller_epoch: int
    broker_epoch: int
    type: int
    ungrouped_partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState]
    topic_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState]
    live_leaders: list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        is_k_raft_controller: bool = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        type: int = ...,
        ungrouped_partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = ...,
        topic_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState] = ...,
        live_leaders: list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class LeaderAndIsrResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class LeaderAndIsrPartitionError(WireStruct):
        topic_name: str
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_index: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderAndIsrTopicError(WireStruct):
        topic_id: UUID
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError]
    topics: list[LeaderAndIsrResponse.LeaderAndIsrTopicError]
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...,
        topics: list[LeaderAndIsrResponse.LeaderAndIsrTopicError] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class LeaderChangeMessage(WireMessage):
    SCHEMA: ClassVar[Message]

    class Voter(WireStruct):
        voter_id: int
        voter_directory_id: UUID
        def __init__(
            self,
            *,
            voter_id: int = ...,
            voter_directory_id: UUID = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    version: int
    leader_id: int
    voters: list[LeaderChangeMessage.Voter]
    granting_voters: list[LeaderChangeMessage.Voter]
    def __init__(
        self,
        *,
        version: int = ...,
        leader_id: int = ...,
        voters: list[LeaderChangeMessage.Voter] = ...,
        granting_voters: list[LeaderChangeMessage.Voter] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class LeaveGroupRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class MemberIdentity(WireStruct):
        member_id: str
        group_instance_id: str | None
        reason: str | None
        def __init__(
            self,
            *,
            member_id: str = ...,
            group_instance_id: str | None = ...,
            reason: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    member_id: str
    members: list[LeaveGroupRequest.MemberIdentity]
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        members: list[LeaveGroupRequest.MemberIdentity] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class LeaveGroupResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class MemberResponse(WireStruct):
        member_id: str
        group_instance_id: str | None
        error_code: int
        def __init__(
            self,
            *,
            member_id: str = ...,
            group_instance_id: str | None = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    members: list[LeaveGroupResponse.MemberResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        members: list[LeaveGroupResponse.MemberResponse] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class LegacyOffsetCommitKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group: str
    topic: str
    partition: int
    def __init__(
        self,
        *,
        group: str = ...,
        topic: str = ...,
        partition: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class LegacyOffsetCommitValue(WireMessage):
    SCHEMA: ClassVar[Message]
    offset: int
    metadata: str
    commit_timestamp: int
    def __init__(
        self,
        *,
        offset: int = ...,
        metadata: str = ...,
        commit_timestamp: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListConfigResourcesRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    resource_types: Sequence[int]
    def __init__(
        self,
        *,
        resource_types: Sequence[int] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListConfigResourcesResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ConfigResource(WireStruct):
        resource_name: str
        resource_type: int
        def __init__(
            self,
            *,
            resource_name: str = ...,
            resource_type: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    config_resources: list[ListConfigResourcesResponse.ConfigResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        config_resources: list[ListConfigResourcesResponse.ConfigResource] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListGroupsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    states_filter: list[str]
    types_filter: list[str]
    def __init__(
        self,
        *,
        states_filter: list[str] = ...,
        types_filter: list[str] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListGroupsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ListedGroup(WireStruct):
        group_id: str
        protocol_type: str
        group_state: str
        group_type: str
        def __init__(
            self,
            *,
            group_id: str = ...,
            protocol_type: str = ...,
            group_state: str = ...,
            group_type: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    groups: list[ListGroupsResponse.ListedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        groups: list[ListGroupsResponse.ListedGroup] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListOffsetsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class ListOffsetsTopic(WireStruct):
        name: str
        partitions: list[ListOffsetsRequest.ListOffsetsPartition]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[ListOffsetsRequest.ListOffsetsPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ListOffsetsPartition(WireStruct):
        partition_index: int
        current_leader_epoch: int
        timestamp: int
        max_num_offsets: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            current_leader_epoch: int = ...,
            timestamp: int = ...,
            max_num_offsets: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    replica_id: int
    isolation_level: int
    topics: list[ListOffsetsRequest.ListOffsetsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        replica_id: int = ...,
        isolation_level: int = ...,
        topics: list[ListOffsetsRequest.ListOffsetsTopic] = ...,
        timeout_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListOffsetsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ListOffsetsTopicResponse(WireStruct):
        name: str
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ListOffsetsPartitionResponse(WireStruct):
        partition_index: int
        error_code: int
        old_style_offsets: Sequence[int]
        timestamp: int
        offset: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            old_style_offsets: Sequence[int] = ...,
            timestamp: int = ...,
            offset: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListPartitionReassignmentsRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class ListPartitionReassignmentsTopics(WireStruct):
        name: str
        partition_indexes: Sequence[int]
        def __init__(
            self,
            *,
            name: str = ...,
            partition_indexes: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    timeout_ms: int
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListPartitionReassignmentsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class OngoingTopicReassignment(WireStruct):
        name: str
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OngoingPartitionReassignment(WireStruct):
        partition_index: int
        replicas: Sequence[int]
        adding_replicas: Sequence[int]
        removing_replicas: Sequence[int]
        def __init__(
            self,
            *,
            partition_index: int = ...,
            replicas: Sequence[int] = ...,
            adding_replicas: Sequence[int] = ...,
            removing_replicas: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListTransactionsRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    state_filters: list[str]
    producer_id_filters: Sequence[int]
    duration_filter: int
    transactional_id_pattern: str | None
    def __init__(
        self,
        *,
        state_filters: list[str] = ...,
        producer_id_filters: Sequence[int] = ...,
        duration_filter: int = ...,
        transactional_id_pattern: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ListTransactionsResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TransactionState(WireStruct):
        transactional_id: str
        producer_id: int
        transaction_state: str
        def __init__(
            self,
            *,
            transactional_id: str = ...,
            producer_id: int = ...,
            transaction_state: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[ListTransactionsResponse.TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        unknown_state_filters: list[str] = ...,
        transaction_states: list[ListTransactionsResponse.TransactionState] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class MetadataRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class MetadataRequestTopic(WireStruct):
        topic_id: UUID
        name: str | None
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            name: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[MetadataRequest.MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool
    def __init__(
        self,
        *,
        topics: list[MetadataRequest.MetadataRequestTopic] | None = ...,
        allow_auto_topic_creation: bool = ...,
        include_cluster_authorized_operations: bool = ...,
        include_topic_authorized_operations: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class MetadataResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class MetadataResponseBroker(WireStruct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            rack: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class MetadataResponseTopic(WireStruct):
        error_code: int
        name: str | None
        topic_id: UUID
        is_internal: bool
        partitions: list[MetadataResponse.MetadataResponsePartition]
        topic_authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = ...,
            name: str | None = ...,
            topic_id: UUID = ...,
            is_internal: bool = ...,
            partitions: list[MetadataResponse.MetadataResponsePartition] = ...,
            topic_authorized_operations: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class MetadataResponsePartition(WireStruct):
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: Sequence[int]
        isr_nodes: Sequence[int]
        offline_replicas: Sequence[int]
        def __init__(
            self,
            *,
            error_code: int = ...,
            partition_index: int = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            replica_nodes: Sequence[int] = ...,
            isr_nodes: Sequence[int] = ...,
            offline_replicas: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    brokers: list[MetadataResponse.MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: list[MetadataResponse.MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        brokers: list[MetadataResponse.MetadataResponseBroker] = ...,
        cluster_id: str | None = ...,
        controller_id: int = ...,
        topics: list[MetadataResponse.MetadataResponseTopic] = ...,
        cluster_authorized_operations: int = ...,
        error_code: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class NoOpRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    def __init__(
        self,
        *,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetCommitKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group: str
    topic: str
    partition: int
    def __init__(
        self,
        *,
        group: str = ...,
        topic: str = ...,
        partition: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetCommitRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class OffsetCommitRequestTopic(WireStruct):
        name: str
        topic_id: UUID
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition]
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetCommitRequestPartition(WireStruct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        commit_timestamp: int
        committed_metadata: str | None
        def __init__(
            self,
            *,
            partition_index: int = ...,
            committed_offset: int = ...,
            committed_leader_epoch: int = ...,
            commit_timestamp: int = ...,
            committed_metadata: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        generation_id_or_member_epoch: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        retention_time_ms: int = ...,
        topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetCommitResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class OffsetCommitResponseTopic(WireStruct):
        name: str
        topic_id: UUID
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition]
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetCommitResponsePartition(WireStruct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetCommitValue(WireMessage):
    SCHEMA: ClassVar[Message]
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: UUID
    def __init__(
        self,
        *,
        offset: int = ...,
        leader_epoch: int = ...,
        metadata: str = ...,
        commit_timestamp: int = ...,
        expire_timestamp: int = ...,
        topic_id: UUID = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetDeleteRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class OffsetDeleteRequestTopic(WireStruct):
        name: str
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetDeleteRequestPartition(WireStruct):
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetDeleteResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class OffsetDeleteResponseTopic(WireStruct):
        name: str
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetDeleteResponsePartition(WireStruct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic]
    def __init__(
        self,
        *,
        error_code: int = ...,
        throttle_time_ms: int = ...,
        topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetFetchRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class OffsetFetchRequestTopic(WireStruct):
        name: str
        partition_indexes: Sequence[int]
        def __init__(
            self,
            *,
            name: str = ...,
            partition_indexes: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetFetchRequestGroup(WireStruct):
        group_id: str
        member_id: str | None
        member_epoch: int
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None
        def __init__(
            self,
            *,
            group_id: str = ...,
            member_id: str | None = ...,
            member_epoch: int = ...,
            topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetFetchRequestTopics(WireStruct):
        name: str
        topic_id: UUID
        partition_indexes: Sequence[int]
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partition_indexes: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup]
    require_stable: bool
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ...,
        groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = ...,
        require_stable: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetFetchResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class OffsetFetchResponseTopic(WireStruct):
        name: str
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetFetchResponsePartition(WireStruct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            committed_offset: int = ...,
            committed_leader_epoch: int = ...,
            metadata: str | None = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetFetchResponseGroup(WireStruct):
        group_id: str
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics]
        error_code: int
        def __init__(
            self,
            *,
            group_id: str = ...,
            topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetFetchResponseTopics(WireStruct):
        name: str
        topic_id: UUID
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions]
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetFetchResponsePartitions(WireStruct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            committed_offset: int = ...,
            committed_leader_epoch: int = ...,
            metadata: str | None = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic]
    error_code: int
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = ...,
        error_code: int = ...,
        groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetForLeaderEpochRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class OffsetForLeaderTopic(WireStruct):
        topic: str
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class OffsetForLeaderPartition(WireStruct):
        partition: int
        current_leader_epoch: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = ...,
            current_leader_epoch: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    replica_id: int
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic]
    def __init__(
        self,
        *,
        replica_id: int = ...,
        topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class OffsetForLeaderEpochResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class OffsetForLeaderTopicResult(WireStruct):
        topic: str
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class EpochEndOffset(WireStruct):
        error_code: int
        partition: int
        leader_epoch: int
        end_offset: int
        def __init__(
            self,
            *,
            error_code: int = ...,
            partition: int = ...,
            leader_epoch: int = ...,
            end_offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class PartitionChangeRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    partition_id: int
    topic_id: UUID
    isr: Sequence[int] | None
    leader: int
    replicas: Sequence[int] | None
    removing_replicas: Sequence[int] | None
    adding_replicas: Sequence[int] | None
    leader_recovery_state: int
    directories: list[UUID] | None
    eligible_leader_replicas: Sequence[int] | None
    last_known_elr: Sequence[int] | None
    def __init__(
        self,
        *,
        partition_id: int = ...,
        topic_id: UUID = ...,
        isr: Sequence[int] | None = ...,
        leader: int = ...,
        replicas: Sequence[int] | None = ...,
        removing_replicas: Sequence[int] | None = ...,
        adding_replicas: Sequence[int] | None = ...,
        leader_recovery_state: int = ...,
        directories: list[UUID] | None = ...,
        eligible_leader_replicas: Sequence[int] | None = ...,
        last_known_elr: Sequence[int] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class PartitionRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    partition_id: int
    topic_id: UUID
    replicas: Sequence[int]
    isr: Sequence[int]
    removing_replicas: Sequence[int]
    adding_replicas: Sequence[int]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: list[UUID]
    eligible_leader_replicas: Sequence[int] | None
    last_known_elr: Sequence[int] | None
    def __init__(
        self,
        *,
        partition_id: int = ...,
        topic_id: UUID = ...,
        replicas: Sequence[int] = ...,
        isr: Sequence[int] = ...,
        removing_replicas: Sequence[int] = ...,
        adding_replicas: Sequence[int] = ...,
        leader: int = ...,
        leader_recovery_state: int = ...,
        leader_epoch: int = ...,
        partition_epoch: int = ...,
        directories: list[UUID] = ...,
        eligible_leader_replicas: Sequence[int] | None = ...,
        last_known_elr: Sequence[int] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ProduceRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicProduceData(WireStruct):
        name: str
        topic_id: UUID
        partition_data: list[ProduceRequest.PartitionProduceData]
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partition_data: list[ProduceRequest.PartitionProduceData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionProduceData(WireStruct):
        index: int
        records: bytes | memoryview | None
        def __init__(
            self,
            *,
            index: int = ...,
            records: bytes | memoryview | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[ProduceRequest.TopicProduceData]
    def __init__(
        self,
        *,
        transactional_id: str | None = ...,
        acks: int = ...,
        timeout_ms: int = ...,
        topic_data: list[ProduceRequest.TopicProduceData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ProduceResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicProduceResponse(WireStruct):
        name: str
        topic_id: UUID
        partition_responses: list[ProduceResponse.PartitionProduceResponse]
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partition_responses: list[ProduceResponse.PartitionProduceResponse] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionProduceResponse(WireStruct):
        index: int
        error_code: int
        base_offset: int
        log_append_time_ms: int
        log_start_offset: int
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage]
        error_message: str | None
        current_leader: ProduceResponse.LeaderIdAndEpoch
        def __init__(
            self,
            *,
            index: int = ...,
            error_code: int = ...,
            base_offset: int = ...,
            log_append_time_ms: int = ...,
            log_start_offset: int = ...,
            record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = ...,
            error_message: str | None = ...,
            current_leader: ProduceResponse.LeaderIdAndEpoch = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class BatchIndexAndErrorMessage(WireStruct):
        batch_index: int
        batch_index_error_message: str | None
        def __init__(
            self,
            *,
            batch_index: int = ...,
            batch_index_error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(WireStruct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NodeEndpoint(WireStruct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            rack: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    responses: list[ProduceResponse.TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[ProduceResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        responses: list[ProduceResponse.TopicProduceResponse] = ...,
        throttle_time_ms: int = ...,
        node_endpoints: list[ProduceResponse.NodeEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ProducerIdsRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    broker_id: int
    broker_epoch: int
    next_producer_id: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        next_producer_id: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ProducerSnapshot(WireMessage):
    SCHEMA: ClassVar[Message]

    class ProducerEntry(WireStruct):
        producer_id: int
        epoch: int
        last_sequence: int
        last_offset: int
        offset_delta: int
        timestamp: int
        coordinator_epoch: int
        current_txn_first_offset: int
        def __init__(
            self,
            *,
            producer_id: int = ...,
            epoch: int = ...,
            last_sequence: int = ...,
            last_offset: int = ...,
            offset_delta: int = ...,
            timestamp: int = ...,
            coordinator_epoch: int = ...,
            current_txn_first_offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    crc: int
    producer_entries: list[ProducerSnapshot.ProducerEntry]
    def __init__(
        self,
        *,
        crc: int = ...,
        producer_entries: list[ProducerSnapshot.ProducerEntry] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class PushTelemetryRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    client_instance_id: UUID
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes
    def __init__(
        self,
        *,
        client_instance_id: UUID = ...,
        subscription_id: int = ...,
        terminating: bool = ...,
        compression_type: int = ...,
        metrics: bytes = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class PushTelemetryResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class QuorumStateData(WireMessage):
    SCHEMA: ClassVar[Message]

    class Voter(WireStruct):
        voter_id: int
        def __init__(
            self,
            *,
            voter_id: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    cluster_id: str
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: UUID
    applied_offset: int
    current_voters: list[QuorumStateData.Voter] | None
    def __init__(
        self,
        *,
        cluster_id: str = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        voted_id: int = ...,
        voted_directory_id: UUID = ...,
        applied_offset: int = ...,
        current_voters: list[QuorumStateData.Voter] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ReadShareGroupStateRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class ReadStateData(WireStruct):
        topic_id: UUID
        partitions: list[ReadShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[ReadShareGroupStateRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[ReadShareGroupStateRequest.ReadStateData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[ReadShareGroupStateRequest.ReadStateData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ReadShareGroupStateResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ReadStateResult(WireStruct):
        topic_id: UUID
        partitions: list[ReadShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[ReadShareGroupStateResponse.PartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionResult(WireStruct):
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        start_offset: int
        state_batches: list[ReadShareGroupStateResponse.StateBatch]
        def __init__(
            self,
            *,
            partition: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            state_epoch: int = ...,
            start_offset: int = ...,
            state_batches: list[ReadShareGroupStateResponse.StateBatch] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class StateBatch(WireStruct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = ...,
            last_offset: int = ...,
            delivery_state: int = ...,
            delivery_count: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    results: list[ReadShareGroupStateResponse.ReadStateResult]
    def __init__(
        self,
        *,
        results: list[ReadShareGroupStateResponse.ReadStateResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ReadShareGroupStateSummaryRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class ReadStateSummaryData(WireStruct):
        topic_id: UUID
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ReadShareGroupStateSummaryResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ReadStateSummaryResult(WireStruct):
        topic_id: UUID
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionResult(WireStruct):
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        def __init__(
            self,
            *,
            partition: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            state_epoch: int = ...,
            leader_epoch: int = ...,
            start_offset: int = ...,
            delivery_complete_count: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult]
    def __init__(
        self,
        *,
        results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RegisterBrokerRecord(WireMessage):
    SCHEMA: ClassVar[Message]

    class BrokerEndpoint(WireStruct):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            security_protocol: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class BrokerFeature(WireStruct):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = ...,
            min_supported_version: int = ...,
            max_supported_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    broker_id: int
    is_migrating_zk_broker: bool
    incarnation_id: UUID
    broker_epoch: int
    end_points: list[RegisterBrokerRecord.BrokerEndpoint]
    features: list[RegisterBrokerRecord.BrokerFeature]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: list[UUID]
    cordoned_log_dirs: list[UUID] | None
    def __init__(
        self,
        *,
        broker_id: int = ...,
        is_migrating_zk_broker: bool = ...,
        incarnation_id: UUID = ...,
        broker_epoch: int = ...,
        end_points: list[RegisterBrokerRecord.BrokerEndpoint] = ...,
        features: list[RegisterBrokerRecord.BrokerFeature] = ...,
        rack: str | None = ...,
        fenced: bool = ...,
        in_controlled_shutdown: bool = ...,
        log_dirs: list[UUID] = ...,
        cordoned_log_dirs: list[UUID] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RegisterControllerRecord(WireMessage):
    SCHEMA: ClassVar[Message]

    class ControllerEndpoint(WireStruct):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            security_protocol: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ControllerFeature(WireStruct):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = ...,
            min_supported_version: int = ...,
            max_supported_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool
    end_points: list[RegisterControllerRecord.ControllerEndpoint]
    features: list[RegisterControllerRecord.ControllerFeature]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        incarnation_id: UUID = ...,
        zk_migration_ready: bool = ...,
        end_points: list[RegisterControllerRecord.ControllerEndpoint] = ...,
        features: list[RegisterControllerRecord.ControllerFeature] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoteLogSegmentMetadataRecord(WireMessage):
    SCHEMA: ClassVar[Message]

    class RemoteLogSegmentIdEntry(WireStruct):
        topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry
        id: UUID
        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = ...,
            id: UUID = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicIdPartitionEntry(WireStruct):
        name: str
        id: UUID
        partition: int
        def __init__(
            self,
            *,
            name: str = ...,
            id: UUID = ...,
            partition: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class SegmentLeaderEpochEntry(WireStruct):
        leader_epoch: int
        offset: int
        def __init__(
            self,
            *,
            leader_epoch: int = ...,
            offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool
    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry = ...,
        start_offset: int = ...,
        end_offset: int = ...,
        broker_id: int = ...,
        max_timestamp_ms: int = ...,
        event_timestamp_ms: int = ...,
        segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = ...,
        segment_size_in_bytes: int = ...,
        custom_metadata: bytes | None = ...,
        remote_log_segment_state: int = ...,
        txn_index_empty: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoteLogSegmentMetadataSnapshotRecord(WireMessage):
    SCHEMA: ClassVar[Message]

    class SegmentLeaderEpochEntry(WireStruct):
        leader_epoch: int
        offset: int
        def __init__(
            self,
            *,
            leader_epoch: int = ...,
            offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    segment_id: UUID
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool
    def __init__(
        self,
        *,
        segment_id: UUID = ...,
        start_offset: int = ...,
        end_offset: int = ...,
        broker_id: int = ...,
        max_timestamp_ms: int = ...,
        event_timestamp_ms: int = ...,
        segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry] = ...,
        segment_size_in_bytes: int = ...,
        custom_metadata: bytes | None = ...,
        remote_log_segment_state: int = ...,
        txn_index_empty: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoteLogSegmentMetadataUpdateRecord(WireMessage):
    SCHEMA: ClassVar[Message]

    class RemoteLogSegmentIdEntry(WireStruct):
        topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry
        id: UUID
        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = ...,
            id: UUID = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicIdPartitionEntry(WireStruct):
        name: str
        id: UUID
        partition: int
        def __init__(
            self,
            *,
            name: str = ...,
            id: UUID = ...,
            partition: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry = ...,
        broker_id: int = ...,
        event_timestamp_ms: int = ...,
        custom_metadata: bytes | None = ...,
        remote_log_segment_state: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemotePartitionDeleteMetadataRecord(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicIdPartitionEntry(WireStruct):
        name: str
        id: UUID
        partition: int
        def __init__(
            self,
            *,
            name: str = ...,
            id: UUID = ...,
            partition: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry
    broker_id: int
    event_timestamp_ms: int
    remote_partition_delete_state: int
    def __init__(
        self,
        *,
        topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry = ...,
        broker_id: int = ...,
        event_timestamp_ms: int = ...,
        remote_partition_delete_state: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoveAccessControlEntryRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    id: UUID
    def __init__(
        self,
        *,
        id: UUID = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoveDelegationTokenRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    token_id: str
    def __init__(
        self,
        *,
        token_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoveRaftVoterRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    cluster_id: str | None
    voter_id: int
    voter_directory_id: UUID
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        voter_id: int = ...,
        voter_directory_id: UUID = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoveRaftVoterResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoveTopicRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    topic_id: UUID
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RemoveUserScramCredentialRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    name: str
    mechanism: int
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RenewDelegationTokenRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    hmac: bytes
    renew_period_ms: int
    def __init__(
        self,
        *,
        hmac: bytes = ...,
        renew_period_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RenewDelegationTokenResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        expiry_timestamp_ms: int = ...,
        throttle_time_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class RequestHeader(WireMessage):
    SCHEMA: ClassVar[Message]
    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None
    def __init__(
        self,
        *,
        request_api_key: int = ...,
        request_api_version: int = ...,
        correlation_id: int = ...,
        client_id: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ResponseHeader(WireMessage):
    SCHEMA: ClassVar[Message]
    correlation_id: int
    def __init__(
        self,
        *,
        correlation_id: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SaslAuthenticateRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    auth_bytes: bytes
    def __init__(
        self,
        *,
        auth_bytes: bytes = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SaslAuthenticateResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        auth_bytes: bytes = ...,
        session_lifetime_ms: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SaslHandshakeRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    mechanism: str
    def __init__(
        self,
        *,
        mechanism: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SaslHandshakeResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    error_code: int
    mechanisms: list[str]
    def __init__(
        self,
        *,
        error_code: int = ...,
        mechanisms: list[str] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareAcknowledgeRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class AcknowledgeTopic(WireStruct):
        topic_id: UUID
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AcknowledgePartition(WireStruct):
        partition_index: int
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch]
        def __init__(
            self,
            *,
            partition_index: int = ...,
            acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AcknowledgementBatch(WireStruct):
        first_offset: int
        last_offset: int
        acknowledge_types: Sequence[int]
        def __init__(
            self,
            *,
            first_offset: int = ...,
            last_offset: int = ...,
            acknowledge_types: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic]
    def __init__(
        self,
        *,
        group_id: str | None = ...,
        member_id: str | None = ...,
        share_session_epoch: int = ...,
        is_renew_ack: bool = ...,
        topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareAcknowledgeResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ShareAcknowledgeTopicResponse(WireStruct):
        topic_id: UUID
        partitions: list[ShareAcknowledgeResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[ShareAcknowledgeResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        error_message: str | None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(WireStruct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NodeEndpoint(WireStruct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            rack: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse]
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        acquisition_lock_timeout_ms: int = ...,
        responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ...,
        node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareFetchRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class FetchTopic(WireStruct):
        topic_id: UUID
        partitions: list[ShareFetchRequest.FetchPartition]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[ShareFetchRequest.FetchPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class FetchPartition(WireStruct):
        partition_index: int
        partition_max_bytes: int
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch]
        def __init__(
            self,
            *,
            partition_index: int = ...,
            partition_max_bytes: int = ...,
            acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AcknowledgementBatch(WireStruct):
        first_offset: int
        last_offset: int
        acknowledge_types: Sequence[int]
        def __init__(
            self,
            *,
            first_offset: int = ...,
            last_offset: int = ...,
            acknowledge_types: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ForgottenTopic(WireStruct):
        topic_id: UUID
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: list[ShareFetchRequest.FetchTopic]
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic]
    def __init__(
        self,
        *,
        group_id: str | None = ...,
        member_id: str | None = ...,
        share_session_epoch: int = ...,
        max_wait_ms: int = ...,
        min_bytes: int = ...,
        max_bytes: int = ...,
        max_records: int = ...,
        batch_size: int = ...,
        share_acquire_mode: int = ...,
        is_renew_ack: bool = ...,
        topics: list[ShareFetchRequest.FetchTopic] = ...,
        forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareFetchResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class ShareFetchableTopicResponse(WireStruct):
        topic_id: UUID
        partitions: list[ShareFetchResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[ShareFetchResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        error_message: str | None
        acknowledge_error_code: int
        acknowledge_error_message: str | None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch
        records: bytes | memoryview | None
        acquired_records: list[ShareFetchResponse.AcquiredRecords]
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            acknowledge_error_code: int = ...,
            acknowledge_error_message: str | None = ...,
            current_leader: ShareFetchResponse.LeaderIdAndEpoch = ...,
            records: bytes | memoryview | None = ...,
            acquired_records: list[ShareFetchResponse.AcquiredRecords] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(WireStruct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = ...,
            leader_epoch: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class AcquiredRecords(WireStruct):
        first_offset: int
        last_offset: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = ...,
            last_offset: int = ...,
            delivery_count: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NodeEndpoint(WireStruct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            rack: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse]
    node_endpoints: list[ShareFetchResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        acquisition_lock_timeout_ms: int = ...,
        responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = ...,
        node_endpoints: list[ShareFetchResponse.NodeEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupCurrentMemberAssignmentKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupCurrentMemberAssignmentValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartitions(WireStruct):
        topic_id: UUID
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions]
    def __init__(
        self,
        *,
        member_epoch: int = ...,
        previous_member_epoch: int = ...,
        state: int = ...,
        assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupDescribeRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupDescribeResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribedGroup(WireStruct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ShareGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            group_id: str = ...,
            group_state: str = ...,
            group_epoch: int = ...,
            assignment_epoch: int = ...,
            assignor_name: str = ...,
            members: list[ShareGroupDescribeResponse.Member] = ...,
            authorized_operations: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Member(WireStruct):
        member_id: str
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        assignment: ShareGroupDescribeResponse.Assignment
        def __init__(
            self,
            *,
            member_id: str = ...,
            rack_id: str | None = ...,
            member_epoch: int = ...,
            client_id: str = ...,
            client_host: str = ...,
            subscribed_topic_names: list[str] = ...,
            assignment: ShareGroupDescribeResponse.Assignment = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Assignment(WireStruct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicPartitions(WireStruct):
        topic_id: UUID
        topic_name: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[ShareGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        groups: list[ShareGroupDescribeResponse.DescribedGroup] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupHeartbeatRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        rack_id: str | None = ...,
        subscribed_topic_names: list[str] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupHeartbeatResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class Assignment(WireStruct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicPartitions(WireStruct):
        topic_id: UUID
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ShareGroupHeartbeatResponse.Assignment | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        member_id: str | None = ...,
        member_epoch: int = ...,
        heartbeat_interval_ms: int = ...,
        assignment: ShareGroupHeartbeatResponse.Assignment | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupMemberMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupMemberMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    def __init__(
        self,
        *,
        rack_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        subscribed_topic_names: list[str] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]
    epoch: int
    metadata_hash: int
    def __init__(
        self,
        *,
        epoch: int = ...,
        metadata_hash: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupPartitionMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupPartitionMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicMetadata(WireStruct):
        topic_id: UUID
        topic_name: str
        num_partitions: int
        partition_metadata: list[ShareGroupPartitionMetadataValue.PartitionMetadata]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = ...,
            num_partitions: int = ...,
            partition_metadata: list[ShareGroupPartitionMetadataValue.PartitionMetadata] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionMetadata(WireStruct):
        partition: int
        racks: list[str]
        def __init__(
            self,
            *,
            partition: int = ...,
            racks: list[str] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topics: list[ShareGroupPartitionMetadataValue.TopicMetadata]
    def __init__(
        self,
        *,
        topics: list[ShareGroupPartitionMetadataValue.TopicMetadata] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupStatePartitionMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupStatePartitionMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartitionsInfo(WireStruct):
        topic_id: UUID
        topic_name: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicInfo(WireStruct):
        topic_id: UUID
        topic_name: str
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo]
    def __init__(
        self,
        *,
        initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...,
        initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...,
        deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMemberKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMemberValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicPartition(WireStruct):
        topic_id: UUID
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition]
    def __init__(
        self,
        *,
        topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = ...,
        assignment_timestamp: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareSnapshotKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    topic_id: UUID
    partition: int
    def __init__(
        self,
        *,
        group_id: str = ...,
        topic_id: UUID = ...,
        partition: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareSnapshotValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class StateBatch(WireStruct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = ...,
            last_offset: int = ...,
            delivery_state: int = ...,
            delivery_count: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    state_batches: list[ShareSnapshotValue.StateBatch]
    def __init__(
        self,
        *,
        snapshot_epoch: int = ...,
        state_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
        create_timestamp: int = ...,
        write_timestamp: int = ...,
        state_batches: list[ShareSnapshotValue.StateBatch] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareUpdateKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    topic_id: UUID
    partition: int
    def __init__(
        self,
        *,
        group_id: str = ...,
        topic_id: UUID = ...,
        partition: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ShareUpdateValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class StateBatch(WireStruct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = ...,
            last_offset: int = ...,
            delivery_state: int = ...,
            delivery_count: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[ShareUpdateValue.StateBatch]
    def __init__(
        self,
        *,
        snapshot_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
        state_batches: list[ShareUpdateValue.StateBatch] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SnapshotFooterRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    version: int
    def __init__(
        self,
        *,
        version: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SnapshotHeaderRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    version: int
    last_contained_log_timestamp: int
    def __init__(
        self,
        *,
        version: int = ...,
        last_contained_log_timestamp: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StickyUserData(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicAssignment(WireStruct):
        topic: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    previous_assignment: list[StickyUserData.TopicAssignment]
    generation: int
    def __init__(
        self,
        *,
        previous_assignment: list[StickyUserData.TopicAssignment] = ...,
        generation: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StopReplicaRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class StopReplicaPartitionV0(WireStruct):
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_index: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class StopReplicaTopicV1(WireStruct):
        name: str
        partition_indexes: Sequence[int]
        def __init__(
            self,
            *,
            name: str = ...,
            partition_indexes: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class StopReplicaTopicState(WireStruct):
        topic_name: str
        partition_states: list[StopReplicaRequest.StopReplicaPartitionState]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_states: list[StopReplicaRequest.StopReplicaPartitionState] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class StopReplicaPartitionState(WireStruct):
        partition_index: int
        leader_epoch: int
        delete_partition: bool
        def __init__(
            self,
            *,
            partition_index: int = ...,
            leader_epoch: int = ...,
            delete_partition: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    controller_id: int
    is_k_raft_controller: bool
    controller_epoch: int
    broker_epoch: int
    delete_partitions: bool
    ungrouped_partitions: list[StopReplicaRequest.StopReplicaPartitionV0]
    topics: list[StopReplicaRequest.StopReplicaTopicV1]
    topic_states: list[StopReplicaRequest.StopReplicaTopicState]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        is_k_raft_controller: bool = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        delete_partitions: bool = ...,
        ungrouped_partitions: list[StopReplicaRequest.StopReplicaPartitionV0] = ...,
        topics: list[StopReplicaRequest.StopReplicaTopicV1] = ...,
        topic_states: list[StopReplicaRequest.StopReplicaTopicState] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StopReplicaResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class StopReplicaPartitionError(WireStruct):
        topic_name: str
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_index: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    partition_errors: list[StopReplicaResponse.StopReplicaPartitionError]
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition_errors: list[StopReplicaResponse.StopReplicaPartitionError] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupCurrentMemberAssignmentKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupCurrentMemberAssignmentValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TaskIds(WireStruct):
        subtopology_id: str
        partitions: Sequence[int]
        assignment_epochs: Sequence[int] | None
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            partitions: Sequence[int] = ...,
            assignment_epochs: Sequence[int] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    def __init__(
        self,
        *,
        member_epoch: int = ...,
        previous_member_epoch: int = ...,
        state: int = ...,
        active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupDescribeRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    group_ids: list[str]
    include_authorized_operations: bool
    include_topology_description: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = ...,
        include_topology_description: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupDescribeResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class DescribedGroup(WireStruct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        topology: StreamsGroupDescribeResponse.Topology | None
        members: list[StreamsGroupDescribeResponse.Member]
        authorized_operations: int
        topology_description: StreamsGroupDescribeResponse.TopologyDescription | None
        topology_description_status: int
        assignor_name: str | None
        def __init__(
            self,
            *,
            error_code: int = ...,
            error_message: str | None = ...,
            group_id: str = ...,
            group_state: str = ...,
            group_epoch: int = ...,
            assignment_epoch: int = ...,
            topology: StreamsGroupDescribeResponse.Topology | None = ...,
            members: list[StreamsGroupDescribeResponse.Member] = ...,
            authorized_operations: int = ...,
            topology_description: StreamsGroupDescribeResponse.TopologyDescription | None = ...,
            topology_description_status: int = ...,
            assignor_name: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Topology(WireStruct):
        epoch: int
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None
        def __init__(
            self,
            *,
            epoch: int = ...,
            subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Subtopology(WireStruct):
        subtopology_id: str
        source_topics: list[str]
        repartition_sink_topics: list[str]
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            source_topics: list[str] = ...,
            repartition_sink_topics: list[str] = ...,
            state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...,
            repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicInfo(WireStruct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: int = ...,
            replication_factor: int = ...,
            topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class KeyValue(WireStruct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = ...,
            value: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Member(WireStruct):
        member_id: str
        member_epoch: int
        instance_id: str | None
        rack_id: str | None
        client_id: str
        client_host: str
        topology_epoch: int
        process_id: str
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue]
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        assignment: StreamsGroupDescribeResponse.Assignment
        target_assignment: StreamsGroupDescribeResponse.Assignment
        is_classic: bool
        def __init__(
            self,
            *,
            member_id: str = ...,
            member_epoch: int = ...,
            instance_id: str | None = ...,
            rack_id: str | None = ...,
            client_id: str = ...,
            client_host: str = ...,
            topology_epoch: int = ...,
            process_id: str = ...,
            user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = ...,
            client_tags: list[StreamsGroupDescribeResponse.KeyValue] = ...,
            task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...,
            task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...,
            assignment: StreamsGroupDescribeResponse.Assignment = ...,
            target_assignment: StreamsGroupDescribeResponse.Assignment = ...,
            is_classic: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Endpoint(WireStruct):
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TaskOffset(WireStruct):
        subtopology_id: str
        partition: int
        offset: int
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            partition: int = ...,
            offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Assignment(WireStruct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        def __init__(
            self,
            *,
            active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...,
            standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...,
            warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TaskIds(WireStruct):
        subtopology_id: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopologyDescription(WireStruct):
        subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology]
        global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore]
        def __init__(
            self,
            *,
            subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology] = ...,
            global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopologyDescriptionSubtopology(WireStruct):
        subtopology_id: str
        nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopologyDescriptionNode(WireStruct):
        name: str
        node_type: int
        source_topics: list[str]
        sink_topic: str | None
        stores: list[str]
        successors: list[str]
        def __init__(
            self,
            *,
            name: str = ...,
            node_type: int = ...,
            source_topics: list[str] = ...,
            sink_topic: str | None = ...,
            stores: list[str] = ...,
            successors: list[str] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopologyDescriptionGlobalStore(WireStruct):
        source: StreamsGroupDescribeResponse.TopologyDescriptionNode
        processor: StreamsGroupDescribeResponse.TopologyDescriptionNode
        def __init__(
            self,
            *,
            source: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...,
            processor: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[StreamsGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        groups: list[StreamsGroupDescribeResponse.DescribedGroup] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupHeartbeatRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class Topology(WireStruct):
        epoch: int
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology]
        def __init__(
            self,
            *,
            epoch: int = ...,
            subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Subtopology(WireStruct):
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            source_topics: list[str] = ...,
            source_topic_regex: list[str] = ...,
            state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...,
            repartition_sink_topics: list[str] = ...,
            repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...,
            copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicInfo(WireStruct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: int = ...,
            replication_factor: int = ...,
            topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class KeyValue(WireStruct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = ...,
            value: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class CopartitionGroup(WireStruct):
        source_topics: Sequence[int]
        source_topic_regex: Sequence[int]
        repartition_source_topics: Sequence[int]
        def __init__(
            self,
            *,
            source_topics: Sequence[int] = ...,
            source_topic_regex: Sequence[int] = ...,
            repartition_source_topics: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TaskIds(WireStruct):
        subtopology_id: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Endpoint(WireStruct):
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TaskOffset(WireStruct):
        subtopology_id: str
        partition: int
        offset: int
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            partition: int = ...,
            offset: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: StreamsGroupHeartbeatRequest.Topology | None
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    process_id: str | None
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    shutdown_application: bool
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        endpoint_information_epoch: int = ...,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        rebalance_timeout_ms: int = ...,
        topology: StreamsGroupHeartbeatRequest.Topology | None = ...,
        active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ...,
        standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ...,
        warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ...,
        process_id: str | None = ...,
        user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = ...,
        client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = ...,
        task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = ...,
        task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = ...,
        shutdown_application: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupHeartbeatResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class Status(WireStruct):
        status_code: int
        status_detail: str
        def __init__(
            self,
            *,
            status_code: int = ...,
            status_detail: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TaskIds(WireStruct):
        subtopology_id: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class EndpointToPartitions(WireStruct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        def __init__(
            self,
            *,
            user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = ...,
            active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...,
            standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Endpoint(WireStruct):
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicPartition(WireStruct):
        topic: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    acceptable_recovery_lag_legacy: int
    task_offset_interval_ms: int
    acceptable_recovery_lag: int
    status: list[StreamsGroupHeartbeatResponse.Status] | None
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    topology_description_required: bool
    endpoint_information_epoch: int
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        heartbeat_interval_ms: int = ...,
        acceptable_recovery_lag_legacy: int = ...,
        task_offset_interval_ms: int = ...,
        acceptable_recovery_lag: int = ...,
        status: list[StreamsGroupHeartbeatResponse.Status] | None = ...,
        active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ...,
        standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ...,
        warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ...,
        topology_description_required: bool = ...,
        endpoint_information_epoch: int = ...,
        partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupMemberMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupMemberMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class Endpoint(WireStruct):
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class KeyValue(WireStruct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = ...,
            value: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None
    client_tags: list[StreamsGroupMemberMetadataValue.KeyValue]
    def __init__(
        self,
        *,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        rebalance_timeout_ms: int = ...,
        topology_epoch: int = ...,
        process_id: str = ...,
        user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = ...,
        client_tags: list[StreamsGroupMemberMetadataValue.KeyValue] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class LastAssignmentConfig(WireStruct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = ...,
            value: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None
    stored_description_topology_epoch: int
    failed_description_topology_epoch: int
    def __init__(
        self,
        *,
        epoch: int = ...,
        metadata_hash: int = ...,
        validated_topology_epoch: int = ...,
        last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None = ...,
        stored_description_topology_epoch: int = ...,
        failed_description_topology_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMemberKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMemberValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class TaskIds(WireStruct):
        subtopology_id: str
        partitions: Sequence[int]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            partitions: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    def __init__(
        self,
        *,
        active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
        standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
        warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMetadataKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMetadataValue(WireMessage):
    SCHEMA: ClassVar[Message]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = ...,
        assignment_timestamp: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupTopologyDescriptionUpdateRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopologyDescription(WireStruct):
        subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology]
        global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore]
        def __init__(
            self,
            *,
            subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology] = ...,
            global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopologyDescriptionSubtopology(WireStruct):
        subtopology_id: str
        nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopologyDescriptionNode(WireStruct):
        name: str
        node_type: int
        source_topics: list[str]
        sink_topic: str | None
        stores: list[str]
        successors: list[str]
        def __init__(
            self,
            *,
            name: str = ...,
            node_type: int = ...,
            source_topics: list[str] = ...,
            sink_topic: str | None = ...,
            stores: list[str] = ...,
            successors: list[str] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopologyDescriptionGlobalStore(WireStruct):
        source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
        processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
        def __init__(
            self,
            *,
            source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...,
            processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    member_id: str
    topology_epoch: int
    topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        topology_epoch: int = ...,
        topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupTopologyDescriptionUpdateResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupTopologyKey(WireMessage):
    SCHEMA: ClassVar[Message]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class StreamsGroupTopologyValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class Subtopology(WireStruct):
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo]
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup]
        def __init__(
            self,
            *,
            subtopology_id: str = ...,
            source_topics: list[str] = ...,
            source_topic_regex: list[str] = ...,
            state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = ...,
            repartition_sink_topics: list[str] = ...,
            repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = ...,
            copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicInfo(WireStruct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: int = ...,
            replication_factor: int = ...,
            topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TopicConfig(WireStruct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = ...,
            value: str = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class CopartitionGroup(WireStruct):
        source_topics: Sequence[int]
        source_topic_regex: Sequence[int]
        repartition_source_topics: Sequence[int]
        def __init__(
            self,
            *,
            source_topics: Sequence[int] = ...,
            source_topic_regex: Sequence[int] = ...,
            repartition_source_topics: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    epoch: int
    subtopologies: list[StreamsGroupTopologyValue.Subtopology]
    def __init__(
        self,
        *,
        epoch: int = ...,
        subtopologies: list[StreamsGroupTopologyValue.Subtopology] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SubscriptionInfoData(WireMessage):
    SCHEMA: ClassVar[Message]

    class TaskId(WireStruct):
        topic_group_id: int
        partition: int
        def __init__(
            self,
            *,
            topic_group_id: int = ...,
            partition: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TaskOffsetSum(WireStruct):
        topic_group_id: int
        partition: int
        offset_sum: int
        named_topology: str | None
        partition_to_offset_sum: list[SubscriptionInfoData.PartitionToOffsetSum]
        def __init__(
            self,
            *,
            topic_group_id: int = ...,
            partition: int = ...,
            offset_sum: int = ...,
            named_topology: str | None = ...,
            partition_to_offset_sum: list[SubscriptionInfoData.PartitionToOffsetSum] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionToOffsetSum(WireStruct):
        partition: int
        offset_sum: int
        def __init__(
            self,
            *,
            partition: int = ...,
            offset_sum: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class ClientTag(WireStruct):
        key: bytes
        value: bytes
        def __init__(
            self,
            *,
            key: bytes = ...,
            value: bytes = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    version: int
    latest_supported_version: int
    process_id: UUID
    prev_tasks: list[SubscriptionInfoData.TaskId]
    standby_tasks: list[SubscriptionInfoData.TaskId]
    user_end_point: bytes
    task_offset_sums: list[SubscriptionInfoData.TaskOffsetSum]
    unique_field: int
    error_code: int
    client_tags: list[SubscriptionInfoData.ClientTag]
    def __init__(
        self,
        *,
        version: int = ...,
        latest_supported_version: int = ...,
        process_id: UUID = ...,
        prev_tasks: list[SubscriptionInfoData.TaskId] = ...,
        standby_tasks: list[SubscriptionInfoData.TaskId] = ...,
        user_end_point: bytes = ...,
        task_offset_sums: list[SubscriptionInfoData.TaskOffsetSum] = ...,
        unique_field: int = ...,
        error_code: int = ...,
        client_tags: list[SubscriptionInfoData.ClientTag] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SyncGroupRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class SyncGroupRequestAssignment(WireStruct):
        member_id: str
        assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = ...,
            assignment: bytes = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]
    def __init__(
        self,
        *,
        group_id: str = ...,
        generation_id: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class SyncGroupResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        assignment: bytes = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class TopicRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    name: str
    topic_id: UUID
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class TransactionLogKey(WireMessage):
    SCHEMA: ClassVar[Message]
    transactional_id: str
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class TransactionLogValue(WireMessage):
    SCHEMA: ClassVar[Message]

    class PartitionsSchema(WireStruct):
        topic: str
        partition_ids: Sequence[int]
        def __init__(
            self,
            *,
            topic: str = ...,
            partition_ids: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        previous_producer_id: int = ...,
        next_producer_id: int = ...,
        producer_epoch: int = ...,
        next_producer_epoch: int = ...,
        transaction_timeout_ms: int = ...,
        transaction_status: int = ...,
        transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = ...,
        transaction_last_update_timestamp_ms: int = ...,
        transaction_start_timestamp_ms: int = ...,
        client_transaction_version: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class TxnOffsetCommitRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TxnOffsetCommitRequestTopic(WireStruct):
        name: str
        topic_id: UUID
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TxnOffsetCommitRequestPartition(WireStruct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        committed_metadata: str | None
        def __init__(
            self,
            *,
            partition_index: int = ...,
            committed_offset: int = ...,
            committed_leader_epoch: int = ...,
            committed_metadata: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        group_id: str = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        generation_id_or_member_epoch: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class TxnOffsetCommitResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TxnOffsetCommitResponseTopic(WireStruct):
        name: str
        topic_id: UUID
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition]
        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class TxnOffsetCommitResponsePartition(WireStruct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UnfenceBrokerRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    id: int
    epoch: int
    def __init__(
        self,
        *,
        id: int = ...,
        epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UnregisterBrokerRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UnregisterBrokerRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    broker_id: int
    def __init__(
        self,
        *,
        broker_id: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UnregisterBrokerResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UnregisterControllerRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    controller_id: int
    def __init__(
        self,
        *,
        controller_id: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UnregisterControllerRequest(WireMessage):
    SCHEMA: ClassVar[Message]
    controller_id: int
    def __init__(
        self,
        *,
        controller_id: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UnregisterControllerResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UpdateFeaturesRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class FeatureUpdateKey(WireStruct):
        feature: str
        max_version_level: int
        allow_downgrade: bool
        upgrade_type: int
        def __init__(
            self,
            *,
            feature: str = ...,
            max_version_level: int = ...,
            allow_downgrade: bool = ...,
            upgrade_type: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    timeout_ms: int
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey]
    validate_only: bool
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = ...,
        validate_only: bool = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UpdateFeaturesResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class UpdatableFeatureResult(WireStruct):
        feature: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            feature: str = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UpdateMetadataRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class UpdateMetadataPartitionState(WireStruct):
        topic_name: str
        partition_index: int
        controller_epoch: int
        leader: int
        leader_epoch: int
        isr: Sequence[int]
        zk_version: int
        replicas: Sequence[int]
        offline_replicas: Sequence[int]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partition_index: int = ...,
            controller_epoch: int = ...,
            leader: int = ...,
            leader_epoch: int = ...,
            isr: Sequence[int] = ...,
            zk_version: int = ...,
            replicas: Sequence[int] = ...,
            offline_replicas: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class UpdateMetadataTopicState(WireStruct):
        topic_name: str
        topic_id: UUID
        partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            topic_id: UUID = ...,
            partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class UpdateMetadataBroker(WireStruct):
        id: int
        v0_host: str
        v0_port: int
        endpoints: list[UpdateMetadataRequest.UpdateMetadataEndpoint]
        rack: str | None
        def __init__(
            self,
            *,
            id: int = ...,
            v0_host: str = ...,
            v0_port: int = ...,
            endpoints: list[UpdateMetadataRequest.UpdateMetadataEndpoint] = ...,
            rack: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class UpdateMetadataEndpoint(WireStruct):
        port: int
        host: str
        listener: str
        security_protocol: int
        def __init__(
            self,
            *,
            port: int = ...,
            host: str = ...,
            listener: str = ...,
            security_protocol: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    controller_id: int
    is_k_raft_controller: bool
    type: int
    controller_epoch: int
    broker_epoch: int
    ungrouped_partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState]
    topic_states: list[UpdateMetadataRequest.UpdateMetadataTopicState]
    live_brokers: list[UpdateMetadataRequest.UpdateMetadataBroker]
    def __init__(
        self,
        *,
        controller_id: int = ...,
        is_k_raft_controller: bool = ...,
        type: int = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        ungrouped_partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = ...,
        topic_states: list[UpdateMetadataRequest.UpdateMetadataTopicState] = ...,
        live_brokers: list[UpdateMetadataRequest.UpdateMetadataBroker] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UpdateMetadataResponse(WireMessage):
    SCHEMA: ClassVar[Message]
    error_code: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UpdateRaftVoterRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class Listener(WireStruct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class KRaftVersionFeature(WireStruct):
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            min_supported_version: int = ...,
            max_supported_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    cluster_id: str | None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: UUID
    listeners: list[UpdateRaftVoterRequest.Listener]
    k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        current_leader_epoch: int = ...,
        voter_id: int = ...,
        voter_directory_id: UUID = ...,
        listeners: list[UpdateRaftVoterRequest.Listener] = ...,
        k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UpdateRaftVoterResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class CurrentLeader(WireStruct):
        leader_id: int
        leader_epoch: int
        host: str
        port: int
        def __init__(
            self,
            *,
            leader_id: int = ...,
            leader_epoch: int = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    current_leader: UpdateRaftVoterResponse.CurrentLeader
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        current_leader: UpdateRaftVoterResponse.CurrentLeader = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class UserScramCredentialRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
        salt: bytes = ...,
        stored_key: bytes = ...,
        server_key: bytes = ...,
        iterations: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class VoteRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        partitions: list[VoteRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[VoteRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        replica_epoch: int
        replica_id: int
        replica_directory_id: UUID
        voter_directory_id: UUID
        last_offset_epoch: int
        last_offset: int
        pre_vote: bool
        def __init__(
            self,
            *,
            partition_index: int = ...,
            replica_epoch: int = ...,
            replica_id: int = ...,
            replica_directory_id: UUID = ...,
            voter_directory_id: UUID = ...,
            last_offset_epoch: int = ...,
            last_offset: int = ...,
            pre_vote: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    cluster_id: str | None
    voter_id: int
    topics: list[VoteRequest.TopicData]
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        voter_id: int = ...,
        topics: list[VoteRequest.TopicData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class VoteResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class TopicData(WireStruct):
        topic_name: str
        partitions: list[VoteResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = ...,
            partitions: list[VoteResponse.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        vote_granted: bool
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            leader_id: int = ...,
            leader_epoch: int = ...,
            vote_granted: bool = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class NodeEndpoint(WireStruct):
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    error_code: int
    topics: list[VoteResponse.TopicData]
    node_endpoints: list[VoteResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = ...,
        topics: list[VoteResponse.TopicData] = ...,
        node_endpoints: list[VoteResponse.NodeEndpoint] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class VotersRecord(WireMessage):
    SCHEMA: ClassVar[Message]

    class Voter(WireStruct):
        voter_id: int
        voter_directory_id: UUID
        endpoints: list[VotersRecord.Endpoint]
        k_raft_version_feature: VotersRecord.KRaftVersionFeature
        def __init__(
            self,
            *,
            voter_id: int = ...,
            voter_directory_id: UUID = ...,
            endpoints: list[VotersRecord.Endpoint] = ...,
            k_raft_version_feature: VotersRecord.KRaftVersionFeature = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class Endpoint(WireStruct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = ...,
            host: str = ...,
            port: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class KRaftVersionFeature(WireStruct):
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            min_supported_version: int = ...,
            max_supported_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    version: int
    voters: list[VotersRecord.Voter]
    def __init__(
        self,
        *,
        version: int = ...,
        voters: list[VotersRecord.Voter] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class WriteShareGroupStateRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class WriteStateData(WireStruct):
        topic_id: UUID
        partitions: list[WriteShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[WriteShareGroupStateRequest.PartitionData] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionData(WireStruct):
        partition: int
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        state_batches: list[WriteShareGroupStateRequest.StateBatch]
        def __init__(
            self,
            *,
            partition: int = ...,
            state_epoch: int = ...,
            leader_epoch: int = ...,
            start_offset: int = ...,
            delivery_complete_count: int = ...,
            state_batches: list[WriteShareGroupStateRequest.StateBatch] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class StateBatch(WireStruct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = ...,
            last_offset: int = ...,
            delivery_state: int = ...,
            delivery_count: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[WriteShareGroupStateRequest.WriteStateData]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[WriteShareGroupStateRequest.WriteStateData] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class WriteShareGroupStateResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class WriteStateResult(WireStruct):
        topic_id: UUID
        partitions: list[WriteShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: list[WriteShareGroupStateResponse.PartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class PartitionResult(WireStruct):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = ...,
            error_code: int = ...,
            error_message: str | None = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    results: list[WriteShareGroupStateResponse.WriteStateResult]
    def __init__(
        self,
        *,
        results: list[WriteShareGroupStateResponse.WriteStateResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class WriteTxnMarkersRequest(WireMessage):
    SCHEMA: ClassVar[Message]

    class WritableTxnMarker(WireStruct):
        producer_id: int
        producer_epoch: int
        transaction_result: bool
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic]
        coordinator_epoch: int
        transaction_version: int
        def __init__(
            self,
            *,
            producer_id: int = ...,
            producer_epoch: int = ...,
            transaction_result: bool = ...,
            topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = ...,
            coordinator_epoch: int = ...,
            transaction_version: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class WritableTxnMarkerTopic(WireStruct):
        name: str
        partition_indexes: Sequence[int]
        def __init__(
            self,
            *,
            name: str = ...,
            partition_indexes: Sequence[int] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    markers: list[WriteTxnMarkersRequest.WritableTxnMarker]
    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class WriteTxnMarkersResponse(WireMessage):
    SCHEMA: ClassVar[Message]

    class WritableTxnMarkerResult(WireStruct):
        producer_id: int
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult]
        def __init__(
            self,
            *,
            producer_id: int = ...,
            topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class WritableTxnMarkerTopicResult(WireStruct):
        name: str
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]
        def __init__(
            self,
            *,
            name: str = ...,
            partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    class WritableTxnMarkerPartitionResult(WireStruct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = ...,
            error_code: int = ...,
            unknown_tagged_fields: dict[int, bytes] | None = ...,
        ) -> None: ...

    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult]
    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...

class ZkMigrationStateRecord(WireMessage):
    SCHEMA: ClassVar[Message]
    zk_migration_state: int
    def __init__(
        self,
        *,
        zk_migration_state: int = ...,
        unknown_tagged_fields: dict[int, bytes] | None = ...,
    ) -> None: ...
