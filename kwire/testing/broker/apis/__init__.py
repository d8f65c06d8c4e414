"""How the broker answers each API: a function for each, which takes an ``Ask`` and gives a response or a ``Wait``.

``HANDLERS`` has them by API key. An API without one is answered with UNSUPPORTED_VERSION (``refusing``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kwire.codec.objects import WireMessage
from kwire.schema.keys import ApiKey
from kwire.testing.broker.apis import (
    admin,
    committing,
    consuming,
    describing,
    fetching,
    grouping,
    listing,
    login,
    permitting,
    placing,
    producing,
    share_offsets,
    sharing,
    streaming,
    tokens,
    topology,
    transacting,
)
from kwire.testing.broker.asking import Ask, Wait

__all__ = ["HANDLERS", "Handler"]

Handler = Callable[[Ask], "WireMessage | Wait"]
"""Type: makes the answer to a request of one API, or says that it is not known yet."""

HANDLERS: Final[Mapping[int, Handler]] = {
    ApiKey.PRODUCE: producing.produce,
    ApiKey.FETCH: fetching.fetch,
    ApiKey.LIST_OFFSETS: listing.list_offsets,
    ApiKey.METADATA: topology.metadata,
    ApiKey.OFFSET_COMMIT: committing.commit,
    ApiKey.OFFSET_FETCH: committing.fetch,
    ApiKey.FIND_COORDINATOR: topology.find_coordinator,
    ApiKey.JOIN_GROUP: grouping.join,
    ApiKey.HEARTBEAT: grouping.heartbeat,
    ApiKey.LEAVE_GROUP: grouping.leave,
    ApiKey.SYNC_GROUP: grouping.sync,
    ApiKey.DESCRIBE_GROUPS: grouping.describe,
    ApiKey.LIST_GROUPS: grouping.list_all,
    ApiKey.SASL_HANDSHAKE: login.handshake,
    ApiKey.SASL_AUTHENTICATE: login.authenticate,
    ApiKey.API_VERSIONS: topology.api_versions,
    ApiKey.CREATE_TOPICS: admin.create_topics,
    ApiKey.DELETE_TOPICS: admin.delete_topics,
    ApiKey.DELETE_RECORDS: admin.delete_records,
    ApiKey.INIT_PRODUCER_ID: producing.init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: listing.offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: transacting.add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: transacting.add_offsets,
    ApiKey.END_TXN: transacting.end,
    ApiKey.TXN_OFFSET_COMMIT: transacting.commit_offsets,
    ApiKey.DESCRIBE_ACLS: permitting.describe,
    ApiKey.CREATE_ACLS: permitting.create,
    ApiKey.DELETE_ACLS: permitting.delete,
    ApiKey.DESCRIBE_CONFIGS: admin.describe_configs,
    ApiKey.ALTER_CONFIGS: admin.alter_configs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: placing.alter_log_dirs,
    ApiKey.DESCRIBE_LOG_DIRS: placing.describe_log_dirs,
    ApiKey.CREATE_DELEGATION_TOKEN: tokens.refuse_tokens,
    ApiKey.RENEW_DELEGATION_TOKEN: tokens.refuse_tokens,
    ApiKey.EXPIRE_DELEGATION_TOKEN: tokens.refuse_tokens,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.refuse_tokens,
    ApiKey.ELECT_LEADERS: placing.elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: placing.alter_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: placing.list_reassignments,
    ApiKey.OFFSET_DELETE: committing.delete,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: admin.incremental_alter_configs,
    ApiKey.CREATE_PARTITIONS: admin.create_partitions,
    ApiKey.DELETE_GROUPS: grouping.delete,
    ApiKey.DESCRIBE_CLUSTER: topology.describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: describing.describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: describing.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: describing.list_transactions,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describing.describe_topic_partitions,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consuming.heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consuming.describe,
    ApiKey.SHARE_GROUP_HEARTBEAT: sharing.heartbeat,
    ApiKey.SHARE_GROUP_DESCRIBE: sharing.describe,
    ApiKey.SHARE_FETCH: sharing.fetch,
    ApiKey.SHARE_ACKNOWLEDGE: sharing.acknowledge,
    ApiKey.STREAMS_GROUP_HEARTBEAT: streaming.heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: streaming.describe,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: share_offsets.describe,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: share_offsets.alter,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: share_offsets.delete,
}
"""API key -> what answers it."""
