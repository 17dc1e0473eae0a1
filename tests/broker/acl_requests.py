"""A request for each row of the table of requirements, about topic t, group g and transactional id x."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from tanist.broker.share.state_requests import (
    Delete,
    Initialize,
    Read,
    StateRequest,
    Summarize,
    Write,
    message_of,
)
from tanist.client.admin import move_logs_request
from tanist.coordinator.share.state_shard import SharePartitionId
from tanist.security.requirements import Need, Row
from tanist.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from tanist.wire.apis import BROKER_APIS, CONTROLLER_APIS, INTER_BROKER_APIS, ApiKey, request_class
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages import add_partitions_to_txn_request as add_partitions
from tanist.wire.messages import alter_client_quotas_request as client_quotas
from tanist.wire.messages import alter_configs_request, incremental_alter_configs_request
from tanist.wire.messages import alter_share_group_offsets_request as alter_share
from tanist.wire.messages import alter_user_scram_credentials_request as scram
from tanist.wire.messages import delete_records_request as delete_records
from tanist.wire.messages import delete_share_group_offsets_request as delete_share
from tanist.wire.messages import describe_configs_request as describe_configs
from tanist.wire.messages import describe_producers_request as describe_producers
from tanist.wire.messages import describe_share_group_offsets_request as describe_share
from tanist.wire.messages import describe_topic_partitions_request as describe_partitions
from tanist.wire.messages import elect_leaders_request as elect_leaders
from tanist.wire.messages import fetch_request as fetch
from tanist.wire.messages import init_producer_id_request as init_producer_id
from tanist.wire.messages import list_offsets_request as list_offsets
from tanist.wire.messages import metadata_request as metadata
from tanist.wire.messages import offset_commit_request as offset_commit
from tanist.wire.messages import offset_delete_request as offset_delete
from tanist.wire.messages import offset_fetch_request as offset_fetch
from tanist.wire.messages import offset_for_leader_epoch_request as leader_epoch
from tanist.wire.messages import produce_request as produce
from tanist.wire.messages import streams_group_heartbeat_request as streams_heartbeat
from tanist.wire.messages import txn_offset_commit_request as txn_offset_commit
from tanist.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest
from tanist.wire.messages.get_replica_log_info_request import TopicPartitions as LogInfoPartitions
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.leave_group_request import LeaveGroupRequest
from tanist.wire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from tanist.wire.messages.share_fetch_request import ShareFetchRequest
from tanist.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tanist.wire.messages.sync_group_request import SyncGroupRequest
from tanist.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tanist.wire.schema import Request

TOPIC, GROUP, TRANSACTION = "t", "g", "x"
_NAMES: Final = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: TRANSACTION,
    ResourceType.CLUSTER: CLUSTER_NAME,
}
_BATCH: Final = bytes(encode_batch([NewRecord(timestamp=0, key=None, value=b"v")]))
_TRANSACTIONAL: Final = bytes(
    encode_batch([NewRecord(timestamp=0, key=None, value=b"v")], transactional=True, producer_id=5, producer_epoch=0)
)


class Sample(NamedTuple):
    """A request, and the versions in which it says what it is to say."""

    request: Callable[[], Request]
    """Makes it anew: handlers may change it."""
    rows: tuple[Row, ...]
    """Those that apply to it."""
    versions: range
    controller: bool = False

    @property
    def api(self) -> ApiKey:
        return ApiKey(self.request().API_KEY)


def acl_of(need: Need) -> tuple[AclOperation, ResourceType, str]:
    """The entry that gives it."""
    return need.operation, need.resource_type, _NAMES[need.resource_type]


def _produce(records: bytes, transactional_id: str | None = None) -> produce.ProduceRequest:
    part = produce.PartitionProduceData(index=0, records=records)
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1_000,
        topic_data=(produce.TopicProduceData(name=TOPIC, partition_data=(part,)),),
    )


def _fetch(replica_id: int) -> fetch.FetchRequest:
    part = fetch.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1, partition_max_bytes=1 << 20
    )
    return fetch.FetchRequest(
        replica_id=replica_id,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=(fetch.FetchTopic(topic=TOPIC, partitions=(part,)),),
    )


def _describe_configs(kind: int, name: str) -> Callable[[], Request]:
    resource = describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    return lambda: describe_configs.DescribeConfigsRequest(resources=(resource,))


def _alter(module: object, kind: int, name: str) -> Callable[[], Request]:
    resource = module.AlterConfigsResource(resource_type=kind, resource_name=name)  # type: ignore[attr-defined]
    made = "AlterConfigsRequest" if module is alter_configs_request else "IncrementalAlterConfigsRequest"
    return lambda: getattr(module, made)(resources=(resource,), validate_only=True)


def _add_partitions(version_4: bool) -> add_partitions.AddPartitionsToTxnRequest:
    topics = (add_partitions.AddPartitionsToTxnTopic(name=TOPIC, partitions=(0,)),)
    if version_4:
        transaction = add_partitions.AddPartitionsToTxnTransaction(
            transactional_id=TRANSACTION, producer_id=5, producer_epoch=0, verify_only=True, topics=topics
        )
        return add_partitions.AddPartitionsToTxnRequest(transactions=(transaction,))
    return add_partitions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=5,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics,
    )


_HANDLED: Final[dict[str, tuple[Callable[[], Request], range | None]]] = {
    "PRODUCE_TOPIC": (lambda: _produce(_BATCH), range(3, 13)),
    "PRODUCE_TRANSACTION": (lambda: _produce(_TRANSACTIONAL, TRANSACTION), range(3, 12)),
    "FETCH_TOPIC": (lambda: _fetch(-1), range(4, 13)),
    "FETCH_FOLLOWER": (lambda: _fetch(1), range(4, 13)),
    "LIST_OFFSETS_TOPIC": (
        lambda: list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=(
                list_offsets.ListOffsetsTopic(
                    name=TOPIC,
                    partitions=(
                        list_offsets.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1),
                    ),
                ),
            ),
        ),
        None,
    ),
    "METADATA_NAMED": (
        lambda: metadata.MetadataRequest(
            topics=(metadata.MetadataRequestTopic(name=TOPIC),), allow_auto_topic_creation=False
        ),
        None,
    ),
    "OFFSET_COMMIT_TOPIC": (
        lambda: offset_commit.OffsetCommitRequest(
            group_id=GROUP,
            topics=(
                offset_commit.OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=(offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1),),
                ),
            ),
        ),
        range(2, 10),
    ),
    "OFFSET_FETCH_GROUP": (
        lambda: offset_fetch.OffsetFetchRequest(
            groups=(
                offset_fetch.OffsetFetchRequestGroup(
                    group_id=GROUP,
                    member_epoch=-1,
                    topics=(offset_fetch.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),),
                ),
            )
        ),
        range(8, 10),
    ),
    "OFFSET_FETCH_TOPIC": (
        lambda: offset_fetch.OffsetFetchRequest(
            group_id=GROUP, topics=(offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,)),)
        ),
        range(1, 8),
    ),
    "FIND_COORDINATOR_GROUP": (
        lambda: FindCoordinatorRequest(key=GROUP, key_type=0, coordinator_keys=(GROUP,)),
        None,
    ),
    "FIND_COORDINATOR_TRANSACTION": (
        lambda: FindCoordinatorRequest(key=TRANSACTION, key_type=1, coordinator_keys=(TRANSACTION,)),
        range(1, 7),
    ),
    "DESCRIBE_GROUPS_GROUP": (lambda: DescribeGroupsRequest(groups=(GROUP,)), None),
    "DELETE_RECORDS_TOPIC": (
        lambda: delete_records.DeleteRecordsRequest(
            topics=(
                delete_records.DeleteRecordsTopic(
                    name=TOPIC, partitions=(delete_records.DeleteRecordsPartition(partition_index=0, offset=0),)
                ),
            ),
            timeout_ms=1_000,
        ),
        None,
    ),
    "OFFSET_FOR_LEADER_EPOCH_TOPIC": (
        lambda: leader_epoch.OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=(
                leader_epoch.OffsetForLeaderTopic(
                    topic=TOPIC,
                    partitions=(leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0),),
                ),
            ),
        ),
        None,
    ),
    "ADD_PARTITIONS_TO_TXN_TOPIC": (lambda: _add_partitions(False), range(4)),
    "TXN_OFFSET_COMMIT_TOPIC": (
        lambda: txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=TRANSACTION,
            group_id=GROUP,
            producer_id=5,
            producer_epoch=0,
            topics=(
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=(
                        txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1),
                    ),
                ),
            ),
        ),
        range(6),
    ),
    "DESCRIBE_CONFIGS_CLUSTER": (_describe_configs(4, "1"), None),
    "DESCRIBE_CONFIGS_TOPIC": (_describe_configs(2, TOPIC), None),
    "DESCRIBE_CONFIGS_GROUP": (_describe_configs(32, GROUP), None),
    "DELETE_GROUPS_GROUP": (lambda: DeleteGroupsRequest(groups_names=(GROUP,)), None),
    "ALTER_LOGGERS": (_alter(incremental_alter_configs_request, 8, "1"), None),
    "OFFSET_DELETE_TOPIC": (
        lambda: offset_delete.OffsetDeleteRequest(
            group_id=GROUP,
            topics=(
                offset_delete.OffsetDeleteRequestTopic(
                    name=TOPIC, partitions=(offset_delete.OffsetDeleteRequestPartition(partition_index=0),)
                ),
            ),
        ),
        None,
    ),
    "DESCRIBE_PRODUCERS_TOPIC": (
        lambda: describe_producers.DescribeProducersRequest(
            topics=(describe_producers.TopicRequest(name=TOPIC, partition_indexes=(0,)),)
        ),
        None,
    ),
    "DESCRIBE_TRANSACTIONS_ID": (lambda: DescribeTransactionsRequest(transactional_ids=(TRANSACTION,)), None),
    "CONSUMER_GROUP_DESCRIBE_GROUP": (lambda: ConsumerGroupDescribeRequest(group_ids=(GROUP,)), None),
    "STREAMS_GROUP_HEARTBEAT_TOPIC": (
        lambda: streams_heartbeat.StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="m",
            topology=streams_heartbeat.Topology(subtopologies=(streams_heartbeat.Subtopology(source_topics=(TOPIC,)),)),
        ),
        None,
    ),
    "STREAMS_GROUP_DESCRIBE_GROUP": (lambda: StreamsGroupDescribeRequest(group_ids=(GROUP,)), None),
    "SHARE_GROUP_DESCRIBE_GROUP": (lambda: ShareGroupDescribeRequest(group_ids=(GROUP,)), None),
    "DESCRIBE_SHARE_GROUP_OFFSETS_GROUP": (
        lambda: describe_share.DescribeShareGroupOffsetsRequest(
            groups=(describe_share.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=()),)
        ),
        None,
    ),
    "DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC": (
        lambda: describe_share.DescribeShareGroupOffsetsRequest(
            groups=(
                describe_share.DescribeShareGroupOffsetsRequestGroup(
                    group_id=GROUP,
                    topics=(describe_share.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=(0,)),),
                ),
            )
        ),
        None,
    ),
    "ALTER_SHARE_GROUP_OFFSETS_TOPIC": (
        lambda: alter_share.AlterShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=(
                alter_share.AlterShareGroupOffsetsRequestTopic(
                    topic_name=TOPIC,
                    partitions=(alter_share.AlterShareGroupOffsetsRequestPartition(partition_index=0),),
                ),
            ),
        ),
        None,
    ),
    "DELETE_SHARE_GROUP_OFFSETS_TOPIC": (
        lambda: delete_share.DeleteShareGroupOffsetsRequest(
            group_id=GROUP, topics=(delete_share.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC),)
        ),
        None,
    ),
    "DESCRIBE_TOPIC_PARTITIONS_NAMED": (
        lambda: describe_partitions.DescribeTopicPartitionsRequest(
            topics=(describe_partitions.TopicRequest(name=TOPIC),), response_partition_limit=10
        ),
        None,
    ),
}
"""By the name of a row that a broker's handler asks about."""

_ALSO: Final = {
    "PRODUCE_TRANSACTION": ("PRODUCE_TRANSACTION", "PRODUCE_TOPIC"),
    "OFFSET_FETCH_GROUP": ("OFFSET_FETCH_GROUP", "OFFSET_FETCH_TOPIC"),
    "OFFSET_FETCH_TOPIC": ("OFFSET_FETCH_GROUP", "OFFSET_FETCH_TOPIC"),
    "DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC": ("DESCRIBE_SHARE_GROUP_OFFSETS_GROUP", "DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC"),
}
"""All that such a request needs, in the order of the checks, where that is more than one."""

_DECIDED: Final[dict[str, Callable[[], Request]]] = {
    "CREATE_TOPICS_TOPIC": lambda: CreateTopicsRequest(
        topics=(CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1),), validate_only=True
    ),
    "CREATE_PARTITIONS_TOPIC": lambda: CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=TOPIC, count=2),), validate_only=True
    ),
    "ALTER_CONFIGS_CLUSTER": _alter(alter_configs_request, 4, "1"),
    "ALTER_CONFIGS_TOPIC": _alter(alter_configs_request, 2, TOPIC),
    "ALTER_CONFIGS_GROUP": _alter(alter_configs_request, 32, GROUP),
    "INCREMENTAL_CONFIGS_CLUSTER": _alter(incremental_alter_configs_request, 4, "1"),
    "INCREMENTAL_CONFIGS_TOPIC": _alter(incremental_alter_configs_request, 2, TOPIC),
    "INCREMENTAL_CONFIGS_GROUP": _alter(incremental_alter_configs_request, 32, GROUP),
}
"""By the name of a row about what a request to the controller names."""


def _of_state(asked: StateRequest) -> Request:
    """About the state of a share partition of a topic that is not there."""
    made: Request = message_of(GROUP, {SharePartitionId(GROUP, UUID(int=5), 0): asked})
    return made


_FILTER: Final[dict[str, Any]] = {
    "resource_type_filter": 2,
    "resource_name_filter": "n",
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_NAMING: Final[dict[ApiKey, Callable[[], Request]]] = {
    ApiKey.JOIN_GROUP: lambda: JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer"),
    ApiKey.HEARTBEAT: lambda: HeartbeatRequest(group_id=GROUP),
    ApiKey.LEAVE_GROUP: lambda: LeaveGroupRequest(group_id=GROUP),
    ApiKey.SYNC_GROUP: lambda: SyncGroupRequest(group_id=GROUP, protocol_type="consumer", protocol_name="range"),
    ApiKey.ADD_OFFSETS_TO_TXN: lambda: AddOffsetsToTxnRequest(
        transactional_id=TRANSACTION, group_id=GROUP, producer_id=5
    ),
    ApiKey.END_TXN: lambda: EndTxnRequest(transactional_id=TRANSACTION, producer_id=5),
    ApiKey.WRITE_TXN_MARKERS: lambda: WriteTxnMarkersRequest(
        markers=(
            WritableTxnMarker(producer_id=5, topics=(WritableTxnMarkerTopic(name=TOPIC, partition_indexes=(0,)),)),
        )
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda: move_logs_request({(TOPIC, 0): "/nowhere"}),
    ApiKey.OFFSET_DELETE: lambda: offset_delete.OffsetDeleteRequest(group_id=GROUP),
    ApiKey.FETCH: lambda: _fetch(-1),
    ApiKey.DESCRIBE_ACLS: lambda: DescribeAclsRequest(**_FILTER),
    ApiKey.CREATE_ACLS: lambda: CreateAclsRequest(
        creations=(
            AclCreation(
                resource_type=2, resource_name="n", principal="User:n", host="*", operation=3, permission_type=3
            ),
        )
    ),
    ApiKey.DELETE_ACLS: lambda: DeleteAclsRequest(filters=(DeleteAclsFilter(**_FILTER),)),
    ApiKey.ELECT_LEADERS: lambda: elect_leaders.ElectLeadersRequest(
        topic_partitions=(elect_leaders.TopicPartitions(topic="none", partitions=(0,)),), timeout_ms=1_000
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda: client_quotas.AlterClientQuotasRequest(
        entries=(
            client_quotas.EntryData(
                entity=(client_quotas.EntityData(entity_type="user", entity_name="a"),),
                ops=(client_quotas.OpData(key="producer_byte_rate", remove=True),),
            ),
        ),
        validate_only=True,
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda: scram.AlterUserScramCredentialsRequest(
        deletions=(scram.ScramCredentialDeletion(name="a", mechanism=1),)
    ),
    ApiKey.GET_REPLICA_LOG_INFO: lambda: GetReplicaLogInfoRequest(
        topic_partitions=(LogInfoPartitions(topic_id=UUID(int=5), partitions=(0,)),)
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: lambda: ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", subscribed_topic_names=(TOPIC,)
    ),
    ApiKey.SHARE_FETCH: lambda: ShareFetchRequest(group_id=GROUP, member_id="m", share_session_epoch=-1),
    ApiKey.SHARE_ACKNOWLEDGE: lambda: ShareAcknowledgeRequest(group_id=GROUP, member_id="m", share_session_epoch=-1),
    **{each.KEY: partial(_of_state, each) for each in (Read(0), Write(0, 0, 0, 0, ()), Initialize(0, 0), Delete())},
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: lambda: _of_state(Summarize()),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda: ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=(TOPIC,),
        topic_partitions=(),
    ),
}
"""Requests of which the whole needs more than the cluster, or whose errors stand at what they name."""


_NO_PLACE: Final = {ApiKey.DESCRIBE_LOG_DIRS: 3}
"""The first version that has a place for the error."""


def _init(transactional_id: str | None, two_phase: bool = False) -> Callable[[], Request]:
    return lambda: init_producer_id.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1_000, enable2_pc=two_phase
    )


def samples(rows: tuple[Row, ...], named: dict[str, Row], *, controller: bool) -> list[Sample]:
    """For all rows of a listener that have an error; `named`: the rows that handlers ask about, by their names."""
    table = CONTROLLER_APIS if controller else {**BROKER_APIS, **INTER_BROKER_APIS}
    handled: dict[str, tuple[Callable[[], Request], range | None]] = dict(_HANDLED)
    if controller:
        handled.update({name: (request, None) for name, request in _DECIDED.items()})
    found: list[Sample] = []
    covered: set[ApiKey] = set()
    for name, (request, versions) in handled.items():
        row = named.get(name)
        if row is None or row not in rows:
            continue
        low, high = table[row.api]
        every = versions or range(low, high + 1)
        whole = [each for each in rows if each.api == row.api and each.names is not None]
        applying = tuple(each for each in whole if any(_names(each, request(), version) for version in every))
        asked = tuple(named[each] for each in _ALSO.get(name, (name,)))
        found.append(Sample(request, (*applying, *asked), every, controller))
        covered.add(row.api)
    for row in rows:
        if row.names is None or row.api in covered or row.api in (ApiKey.INIT_PRODUCER_ID, ApiKey.FIND_COORDINATOR):
            continue
        covered.add(row.api)
        low, high = table[row.api]
        low = max(low, _NO_PLACE.get(row.api, 0))
        whole_rows = tuple(each for each in rows if each.api == row.api and each.names is not None)
        found.append(Sample(_NAMING.get(row.api, request_class(row.api)), whole_rows, range(low, high + 1), controller))
    if not controller:
        by_transaction, two_phase, alone = (each for each in rows if each.api == ApiKey.INIT_PRODUCER_ID)
        found += [
            Sample(_init(TRANSACTION), (by_transaction,), range(6)),
            Sample(_init(None), (alone,), range(6)),
        ]
        adding = next(each for each in rows if each.api == ApiKey.ADD_PARTITIONS_TO_TXN)
        found.append(Sample(lambda: _add_partitions(True), (adding,), range(4, 6)))
        assert two_phase.needs[0].operation is AclOperation.TWO_PHASE_COMMIT
    return found


def _names(row: Row, request: Request, version: int) -> tuple[str | None, ...]:
    return () if row.names is None else tuple(row.names(request, version))
