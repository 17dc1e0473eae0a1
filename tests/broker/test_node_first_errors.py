"""Of several things that are wrong with a request, the error of the one that Apache Kafka looks at first.

`python -m tests.interop.requests` found each case, by asking nodes of both.
"""

from __future__ import annotations

import pytest

from tanist.broker.api.produce_transactional import transaction_error
from tanist.wire.apis import ApiKey
from tanist.wire.batch import MAGIC_AT, NewRecord, encode_batch
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_response, encode_response
from tanist.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.join_group_response import JoinGroupResponse
from tanist.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tanist.wire.messages.offset_delete_request import OffsetDeleteRequest
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tanist.wire.schema import Request
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client, groups_cluster
from tests.broker.transactions_rig import TransactionalProducer

NEGATIVE_EPOCH = -2


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    cluster = groups_cluster(nodes=1, partitions=1, config={"transaction.state.log.num.partitions": "1"})
    cluster.create_topic("t", factor=1)
    Client(cluster).coordinator()
    TransactionalProducer(cluster).begin()  # and the coordinator of transactions
    return cluster


def produce(
    cluster: Cluster, *, version: int = 12, topic: str = "t", index: int = 0, records: bytes, acks: int = -1
) -> tuple[int, int]:
    """The error and the log start offset of the partition's answer."""
    partition = PartitionProduceData(index=index, records=records)
    topics = (TopicProduceData(name=topic, partition_data=(partition,)),)
    answer = cluster.ask(ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=topics), version)
    found = answer.responses[0].partition_responses[0]
    return found.error_code, found.log_start_offset


def batch(*, transactional: bool = False, magic: int = 2) -> bytes:
    made = encode_batch([NewRecord(1, None, b"v")], producer_id=7, producer_epoch=0, base_sequence=0,
                        transactional=transactional)  # fmt: skip
    made[MAGIC_AT] = magic
    return bytes(made)


@pytest.mark.parametrize("twice", [False, True])
def test_a_transactional_batch_without_an_id_is_denied_wherever_it_goes(cluster: Cluster, *, twice: bool) -> None:
    records = batch(transactional=True) * (2 if twice else 1)
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert produce(cluster, topic="absent", records=records)[0] == denied


def test_what_is_no_batch_is_in_no_transaction(cluster: Cluster) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(cluster, topic="absent", records=batch(transactional=True, magic=1))[0] == unknown
    assert produce(cluster, topic="absent", records=batch(transactional=True)[:-1])[0] == unknown


def test_acks_that_are_none_are_refused_where_a_batch_could_be_appended(cluster: Cluster) -> None:
    assert produce(cluster, acks=2, records=batch())[0] == ErrorCode.INVALID_REQUIRED_ACKS
    assert produce(cluster, acks=2, topic="absent", records=batch())[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(cluster, acks=2, records=batch(magic=1)) == (ErrorCode.INVALID_RECORD, -1)


def test_what_is_not_as_it_was_sent_does_not_hear_where_the_log_begins(cluster: Cluster) -> None:
    assert produce(cluster, records=batch()[:-1] + b"?") == (ErrorCode.CORRUPT_MESSAGE, -1)
    large = bytes(encode_batch([NewRecord(1, None, b"v" * 1_048_600)]))
    assert produce(cluster, records=large) == (ErrorCode.MESSAGE_TOO_LARGE, -1)
    late = bytes(encode_batch([NewRecord(2**62, None, b"v")]))
    assert produce(cluster, records=late) == (ErrorCode.INVALID_TIMESTAMP, 0)


def test_a_partition_that_a_known_topic_lacks_is_unknown_also_by_id(cluster: Cluster) -> None:
    topic_id = cluster.node(1).metadata.image.topic_ids["t"]
    partitions = (PartitionProduceData(index=9, records=batch()),)
    topics = (TopicProduceData(topic_id=topic_id, partition_data=partitions),)
    answer = cluster.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics), 13)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.responses[0].partition_responses[0].error_code == unknown
    fetched = cluster.ask(fetch(FetchTopic(topic_id=topic_id, partitions=(FetchPartition(partition=9),))), 13)
    assert fetched.responses[0].partitions[0].error_code == unknown


def fetch(topic: FetchTopic) -> FetchRequest:
    return FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=(topic,))


def test_a_fetch_out_of_range_says_nothing_of_the_log(cluster: Cluster) -> None:
    partition = FetchPartition(partition=0, fetch_offset=1_000, partition_max_bytes=100)
    found = cluster.ask(fetch(FetchTopic(topic="t", partitions=(partition,))), 11).responses[0].partitions[0]
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (-1, -1, -1)


def test_a_negative_leader_epoch_is_none_in_a_fetch_only(cluster: Cluster) -> None:
    partition = FetchPartition(partition=0, current_leader_epoch=NEGATIVE_EPOCH, partition_max_bytes=100)
    found = cluster.ask(fetch(FetchTopic(topic="t", partitions=(partition,))), 11)
    assert found.responses[0].partitions[0].error_code == ErrorCode.NONE
    assert list_error(cluster, 11, -1, current_leader_epoch=NEGATIVE_EPOCH) == ErrorCode.FENCED_LEADER_EPOCH


def list_error(
    cluster: Cluster, version: int, timestamp: int, *, topic: str = "t", current_leader_epoch: int = -1
) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=current_leader_epoch)
    topics = (ListOffsetsTopic(name=topic, partitions=(wanted,)),)
    answer = cluster.ask(ListOffsetsRequest(replica_id=-1, topics=topics), version)
    return int(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_special_time_is_unsupported_before_the_version_that_has_it(
    cluster: Cluster, timestamp: int, since: int
) -> None:
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert list_error(cluster, since - 1, timestamp) == unsupported
    assert list_error(cluster, since - 1, timestamp, topic="absent") == unsupported
    assert list_error(cluster, since, timestamp) == ErrorCode.NONE


def test_a_time_before_all_special_ones_is_unsupported(cluster: Cluster) -> None:
    assert list_error(cluster, 11, -7) == ErrorCode.UNSUPPORTED_VERSION


def test_a_partition_that_is_not_there_comes_before_what_is_wrong_with_a_transaction(cluster: Cluster) -> None:
    partitions = tuple(TxnOffsetCommitRequestPartition(partition_index=each) for each in (0, 9))
    topics = (TxnOffsetCommitRequestTopic(name="t", partitions=partitions),)
    request = TxnOffsetCommitRequest(
        transactional_id="nobody's", group_id="g", producer_id=77, producer_epoch=0, topics=topics
    )
    answer = cluster.ask(request, 5)
    mapping, unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in answer.topics[0].partitions] == [mapping, unknown]
    request.group_id = ""
    answer = cluster.ask(request, 5)
    assert [each.error_code for each in answer.topics[0].partitions] == [ErrorCode.INVALID_GROUP_ID, unknown]


def test_verifying_a_partition_that_is_not_there_attempts_nothing(cluster: Cluster) -> None:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="nobody's",
        producer_id=77,
        producer_epoch=0,
        verify_only=True,
        topics=(AddPartitionsToTxnTopic(name="t", partitions=(0, 9)),),
    )
    answer = cluster.ask(AddPartitionsToTxnRequest(transactions=(transaction,)), 5)
    results = answer.results_by_transaction[0].topic_results[0].results_by_partition
    expected = [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [each.partition_error_code for each in results] == expected


def test_half_of_a_producers_id_and_epoch_is_invalid_also_without_a_transaction(cluster: Cluster) -> None:
    half = InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=-1)
    assert cluster.ask(half, 4).error_code == ErrorCode.INVALID_REQUEST


GROUPLESS: tuple[tuple[Request, int], ...] = (
    (OffsetDeleteRequest(group_id=""), 0),
    (LeaveGroupRequest(group_id="", members=(MemberIdentity(member_id="m"),)), 5),
)


@pytest.mark.parametrize(("request_", "version"), GROUPLESS, ids=["delete offsets", "leave"])
def test_a_group_without_a_name_is_invalid(cluster: Cluster, request_: Request, version: int) -> None:
    answer = cluster.ask(request_, version)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
    assert not getattr(answer, "members", ())


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_no_group_commits(cluster: Cluster, version: int, error: ErrorCode) -> None:
    topics = (OffsetCommitRequestTopic(name="t", partitions=(OffsetCommitRequestPartition(partition_index=0),)),)
    request = OffsetCommitRequest(group_id="never-seen", generation_id_or_member_epoch=3, member_id="m", topics=topics)
    assert cluster.ask(request, version).topics[0].partitions[0].error_code == error


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_is_invalid_before_version_12(cluster: Cluster, version: int) -> None:
    topic_id = cluster.node(1).metadata.image.topic_ids["t"]
    answer = cluster.ask(MetadataRequest(topics=(MetadataRequestTopic(topic_id=topic_id, name=""),)), version)
    assert [each.error_code for each in answer.topics] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("version", [6, 9])
def test_whom_the_authorizer_denies_a_group_hears_of_no_protocol(version: int) -> None:
    denied = error_response(JoinGroupRequest(group_id="g"), version, ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
    assert isinstance(denied, JoinGroupResponse)
    read = decode_response(ApiKey.JOIN_GROUP, version, encode_response(denied, version, 1)[4:])
    assert isinstance(read, JoinGroupResponse)
    assert (read.error_code, read.protocol_name) == (30, None if version >= 7 else "")


def test_who_may_not_write_in_transactions_gets_no_producer() -> None:
    denied = error_response(InitProducerIdRequest(transactional_id="tx"), 5, 53, "")
    assert isinstance(denied, InitProducerIdResponse)
    assert (denied.error_code, denied.producer_id, denied.producer_epoch) == (53, -1, -1)


def test_who_may_not_read_a_group_hears_of_none_of_its_members() -> None:
    request = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),))
    denied = error_response(request, 5, ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
    assert isinstance(denied, LeaveGroupResponse)
    assert (denied.error_code, denied.members) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, ())


@pytest.mark.parametrize(("control", "error"), [(False, ErrorCode.INVALID_TXN_STATE), (True, ErrorCode.INVALID_RECORD)])
def test_what_is_wrong_with_a_batch_comes_before_its_transaction(
    cluster: Cluster, control: bool, error: ErrorCode
) -> None:
    records = [NewRecord(1, None, b"v")]
    unverified = encode_batch(
        records, producer_id=4713, producer_epoch=0, base_sequence=0, transactional=True, control=control
    )
    (hosted,) = cluster.hosted("t").values()
    assert transaction_error(hosted, memoryview(unverified), {}, wall_ms=1) == error


def test_an_old_epoch_comes_before_what_the_coordinator_says(cluster: Cluster) -> None:
    newer = encode_batch([NewRecord(1, None, b"v")], producer_id=4711, producer_epoch=1, base_sequence=0)
    assert produce(cluster, records=bytes(newer))[0] == ErrorCode.NONE
    assert produce_in_transaction(cluster, producer_id=4711) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert produce_in_transaction(cluster, producer_id=4712) == (ErrorCode.INVALID_PRODUCER_ID_MAPPING, -1)


def test_an_old_epoch_comes_before_its_sequence(cluster: Cluster) -> None:
    newer = encode_batch([NewRecord(1, None, b"v")], producer_id=4714, producer_epoch=1, base_sequence=0)
    assert produce(cluster, records=bytes(newer))[0] == ErrorCode.NONE
    old = encode_batch(
        [NewRecord(1, None, b"v")], producer_id=4714, producer_epoch=0, base_sequence=3, transactional=True
    )
    (hosted,) = cluster.hosted("t").values()
    hosted.log.producers.begin_verification(4714, 0, 3, begins_anew=True)
    verified = {(hosted.topic, hosted.index): 0}
    assert transaction_error(hosted, memoryview(old), verified, wall_ms=1) == ErrorCode.NONE, "the log refuses it"


def produce_in_transaction(cluster: Cluster, *, producer_id: int) -> tuple[int, int]:
    records = encode_batch(
        [NewRecord(1, None, b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )
    partition = PartitionProduceData(index=0, records=bytes(records))
    topics = (TopicProduceData(name="t", partition_data=(partition,)),)
    request = ProduceRequest(transactional_id="unknown", acks=-1, timeout_ms=1_000, topic_data=topics)
    found = cluster.ask(request, 11).responses[0].partition_responses[0]
    return found.error_code, found.log_start_offset


def test_metadata_by_id_leaves_out_what_is_asked_for_by_name(cluster: Cluster) -> None:
    topic_id = cluster.node(1).metadata.image.topic_ids["t"]
    by_name = MetadataRequestTopic(name="__consumer_offsets")
    by_id = MetadataRequestTopic(topic_id=topic_id, name=None)
    answer = cluster.ask(MetadataRequest(topics=(by_name, by_id, by_id)), 12)
    assert [each.name for each in answer.topics] == ["t"]
    answer = cluster.ask(MetadataRequest(topics=(by_name, by_name)), 12)
    assert [each.name for each in answer.topics] == ["__consumer_offsets"]


def test_producers_of_a_topic_that_can_have_no_such_name(cluster: Cluster) -> None:
    request = DescribeProducersRequest(topics=(TopicRequest(name="", partition_indexes=(0,)),))
    answer = cluster.ask(request, 0)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_resource_of_no_type_refuses_all_that_are_asked_for_with_it(cluster: Cluster) -> None:
    resources = tuple(DescribeConfigsResource(resource_type=kind, resource_name="t") for kind in (2, 0))
    answer = cluster.ask(DescribeConfigsRequest(resources=resources), 4)
    assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST] * 2
