"""Answers to what Apache Kafka 4.4 has brought, which its node and ours must give alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tanist.wire.errors import ErrorCode
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.delete_groups_response import DeleteGroupsResponse
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from tanist.wire.messages.describe_producers_response import DescribeProducersResponse
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.metadata_response import MetadataResponse
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Subtopology, Topology
from tanist.wire.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tanist.wire.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from tanist.wire.messages.unregister_controller_request import UnregisterControllerRequest
from tanist.wire.messages.unregister_controller_response import UnregisterControllerResponse
from tests.interop import apache
from tests.interop.pair import Asker, Pair, alike, pair
from tests.interop.raw import RawClient
from tests.interop.waiting import wait_for

pytestmark = [
    pytest.mark.interop,
    pytest.mark.usefixtures("java"),
    pytest.mark.skipif(apache.PIN.metadata_version < 33, reason="needs Apache Kafka 4.4"),
]

TRANSACTION, NOWHERE = "tx", UUID(int=9)
_NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


@pytest.fixture(scope="module")
def nodes(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("answers")
    intervals = ("streams.initial.rebalance.delay", "streams.assignment.interval", "consumer.assignment.interval")
    with pair(folder, {f"group.{name}.ms": "0" for name in intervals}) as both:
        for address in (both.apache, both.tanist):
            with RawClient(*address) as client:
                client.create_topic("t", 1, 1, {})
            with Asker(address) as asker:
                for kind in (0, 1):
                    _settled(partial(_coordinator, asker, kind))
        yield both


def _coordinator(asker: Asker, kind: int) -> tuple[int, int]:
    """Of groups or of transactions; to ask for it makes its topic."""
    request = FindCoordinatorRequest(key=TRANSACTION, key_type=kind, coordinator_keys=(TRANSACTION,))
    (found,) = asker.ask(request, 5, FindCoordinatorResponse).coordinators
    return found.error_code, found.node_id


def _settled(ask: Callable[[], tuple[int, Any]]) -> Any:
    """The first answer that says more than that a coordinator is not ready."""

    def settled() -> Any:
        error, answer = ask()
        return None if error in _NOT_YET else (answer,)

    return wait_for(settled, "the coordinator answers")[0]


@pytest.mark.parametrize("controllers", [True, False])
@pytest.mark.parametrize("own_cluster", [True, False, None])
@pytest.mark.parametrize("node_id", [1, 2, -1])
def test_the_node_that_is_meant(nodes: Pair, *, node_id: int, own_cluster: bool | None, controllers: bool) -> None:
    def question(asker: Asker) -> Any:
        described = DescribeClusterRequest(endpoint_type=2 if controllers else 1)
        own = asker.ask(described, 1, DescribeClusterResponse).cluster_id
        cluster_id = None if own_cluster is None else own if own_cluster else "another"
        request = ApiVersionsRequest(
            client_software_name="tests", client_software_version="1", cluster_id=cluster_id, node_id=node_id
        )
        answer = asker.ask(request, 5, ApiVersionsResponse)
        return answer.error_code, bool(answer.api_keys)

    alike(nodes, question, controllers=controllers)


def _beat(group: str, epoch: int, member: str = "AAAAAAAAAAAAAAAAAAAAAA") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=30_000 if epoch == 0 else -1,
        subscribed_topic_names=("t",) if epoch == 0 else None,
        topic_partitions=() if epoch == 0 else None,
    )


@pytest.mark.parametrize("epoch", [1, -1])
def test_a_heartbeat_to_a_group_that_is_not_there(nodes: Pair, epoch: int) -> None:
    def question(asker: Asker) -> Any:
        def ask() -> tuple[int, Any]:
            answer = asker.ask(_beat("nowhere", epoch), 1, ConsumerGroupHeartbeatResponse)
            return answer.error_code, (answer.error_code, answer.error_message)

        return _settled(ask)

    assert alike(nodes, question)[0] == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", [2, 3])
def test_groups_that_cannot_be_deleted(nodes: Pair, version: int) -> None:
    def question(asker: Asker) -> Any:
        def join() -> tuple[int, Any]:
            answer = asker.ask(_beat("members", 0), 1, ConsumerGroupHeartbeatResponse)
            return answer.error_code, answer.error_code

        assert _settled(join) == 0
        request = DeleteGroupsRequest(groups_names=("members", "nowhere", ""))
        answer = asker.ask(request, version, DeleteGroupsResponse)
        return sorted((each.group_id, each.error_code, each.error_message) for each in answer.results)

    alike(nodes, question)


@pytest.mark.parametrize("version", [5, 6])
@pytest.mark.parametrize("generation", [-1, 5])
@pytest.mark.parametrize("known", [True, False])
def test_offsets_within_a_transaction(nodes: Pair, version: int, *, generation: int, known: bool) -> None:
    """Of a group that is not there, or whose member has another epoch."""

    def question(asker: Asker) -> Any:
        names = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
        (topic,) = asker.ask(names, 12, MetadataResponse).topics

        def begin() -> tuple[int, Any]:
            request = InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=60_000)
            answer = asker.ask(request, 5, InitProducerIdResponse)
            return answer.error_code, (answer.producer_id, answer.producer_epoch)

        def join() -> tuple[int, Any]:
            answer = asker.ask(_beat("epochs", 0), 1, ConsumerGroupHeartbeatResponse)
            return answer.error_code, answer.error_code

        assert _settled(join) == 0
        producer_id, producer_epoch = _settled(begin)
        partitions = (TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
        request = TxnOffsetCommitRequest(
            transactional_id=TRANSACTION,
            group_id="epochs" if known else f"of-generation-{generation}",
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            generation_id=generation,
            member_id="AAAAAAAAAAAAAAAAAAAAAA" if known and generation >= 0 else "",
            topics=(
                TxnOffsetCommitRequestTopic(name="t", topic_id=topic.topic_id, partitions=partitions),
                TxnOffsetCommitRequestTopic(name="gone", topic_id=NOWHERE, partitions=partitions),
            ),
        )

        def commit() -> tuple[int, Any]:
            answer = asker.ask(request, version, TxnOffsetCommitResponse)
            errors = {each.name or each.topic_id == NOWHERE: each.partitions[0].error_code for each in answer.topics}
            return errors[("t" if version < 6 else False)], errors

        return _settled(commit)

    alike(nodes, question)


def test_a_topic_is_named_twice_to_describe_producers(nodes: Pair) -> None:
    def question(asker: Asker) -> Any:
        topic = TopicRequest(name="t", partition_indexes=(0,))
        request = DescribeProducersRequest(topics=(topic, topic, TopicRequest(name="gone", partition_indexes=(0,))))
        answer = asker.ask(request, 0, DescribeProducersResponse)
        return sorted((each.name, [part.error_code for part in each.partitions]) for each in answer.topics)

    alike(nodes, question)


@pytest.mark.parametrize("controllers", [True, False])
@pytest.mark.parametrize("controller_id", [7, -1, 1])
def test_controllers_that_cannot_be_unregistered(nodes: Pair, controller_id: int, *, controllers: bool) -> None:
    """Node 1 is the active controller, and may not unregister itself."""

    def question(asker: Asker) -> Any:
        answer = asker.ask(UnregisterControllerRequest(controller_id=controller_id), 0, UnregisterControllerResponse)
        return answer.error_code, answer.error_message

    alike(nodes, question, controllers=controllers)


# -- static members: (member, epoch, whether it names its instance), with "same" for the epoch that it was last given

Steps = tuple[tuple[str, int | str, bool], ...]

STATIC: Steps = (
    ("one", 0, True),
    ("two", 0, False),
    ("one", "same", True),
    ("two", "same", False),
    ("three", 1, True),
    ("two", "same", True),
    ("one", "same", False),
    ("one", -2, False),
    ("one", -2, True),
    ("two", "same", False),
    ("one", -2, True),
    ("three", 0, True),
    ("one", "same", True),
    ("one", -1, True),
    ("three", "same", True),
    ("three", -1, False),
    ("two", "same", False),
    ("four", 0, True),
    ("four", -1, True),
    ("four", -2, True),
)


DOUBLE = (*STATIC[:2], ("three", 0, True), *STATIC[2:5])


@pytest.mark.parametrize("streams", [False, True])
def test_static_members(nodes: Pair, *, streams: bool) -> None:
    """The same requests to both: errors, texts, epochs, and how much each member has.

    A consumer group's first epoch is 2 there and 1 here, which no client sees the meaning of.
    """

    def question(asker: Asker) -> Any:
        return _played(asker, f"static-{streams}", STATIC, _streams_beat if streams else _consumer_beat)

    alike(nodes, question)


def test_the_double_of_a_static_member_is_refused(nodes: Pair) -> None:
    alike(nodes, lambda asker: _played(asker, "double-False", DOUBLE, _consumer_beat))
    answers = []
    for address in (nodes.apache, nodes.tanist):
        with Asker(address) as asker:
            answers.append(_played(asker, "double-True", DOUBLE, _streams_beat))
    theirs, ours = answers
    assert theirs[:3] == ours[:3]
    assert ours[2][3] == ErrorCode.UNRELEASED_INSTANCE_ID
    (*_, had), (*_, has) = theirs[3], ours[3]
    assert has is None, "it keeps what it has"
    # Apache Kafka 4.4.0 has renamed the owner of the tasks before it refuses the double, and takes them away.
    assert had == ([] if apache.PIN.version == "4.4.0" else None)


def _played(asker: Asker, group: str, steps: Steps, send: Callable[[Asker, dict[str, Any]], tuple[Any, Any]]) -> Any:
    answers = []
    epochs: dict[str, int] = {}
    for name, epoch, static in steps:
        now = epochs.get(name, 1) if epoch == "same" else epoch
        fields = {"group_id": group, "member_id": f"member-{name}", "member_epoch": now}
        answer, has = send(asker, fields | {"instance_id": "instance" if static else None})
        if not answer.error_code and answer.member_epoch > 0:
            epochs[name] = answer.member_epoch
        answers.append((name, epoch, static, answer.error_code, answer.error_message, answer.member_epoch, has))
    first = answers[0][-2]
    return [(*asked, epoch - first if epoch > 0 else epoch, has) for *asked, epoch, has in answers]


def _consumer_beat(asker: Asker, fields: dict[str, Any]) -> tuple[Any, Any]:
    if fields["member_epoch"] == 0:
        fields |= {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": ("t",), "topic_partitions": ()}

    def ask() -> tuple[int, Any]:
        answer = asker.ask(ConsumerGroupHeartbeatRequest(**fields), 1, ConsumerGroupHeartbeatResponse)
        return answer.error_code, answer

    answer = _settled(ask)
    has = answer.assignment
    return answer, has and [each.partitions for each in has.topic_partitions]


def _streams_beat(asker: Asker, fields: dict[str, Any]) -> tuple[Any, Any]:
    if fields["member_epoch"] == 0:
        topology = Topology(epoch=1, subtopologies=(Subtopology(subtopology_id="0", source_topics=("t",)),))
        fields |= {"rebalance_timeout_ms": 30_000, "topology": topology, "process_id": str(fields["instance_id"])}
        fields |= dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ())

    def ask() -> tuple[int, Any]:
        answer = asker.ask(StreamsGroupHeartbeatRequest(**fields), 1, StreamsGroupHeartbeatResponse)
        return answer.error_code, answer

    answer = _settled(ask)
    return answer, None if answer.active_tasks is None else [each.partitions for each in answer.active_tasks]
