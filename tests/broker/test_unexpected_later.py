"""An exception in what is left of a handler, after the controller, another broker, a log or a timer: the table's row
"request".

Whatever a request waits for, an exception in its continuation refuses it, once; nothing else is given up, and the
same request sent again and again takes no node down. Without being planted, it is a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tanist.broker.api
from tanist.client.admin import create_topics_request, new_topic
from tanist.events.metadata import ControllerResigned
from tanist.sim.planted import PlantedError
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from tanist.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.schema import Struct
from tests.broker.cluster_rig import Cluster
from tests.planting import Plant

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
TIMES = 6
API = "tanist.broker.api."
METADATA = "tanist.broker.metadata."

Do = Callable[[Cluster, int], Any]
"""Make the request for the n-th time; gives its answer."""


def create(cluster: Cluster, n: int) -> Any:
    return cluster.ask(create_topics_request(new_topic(f"u{n}", partitions=1, replication_factor=1)), 7)


def reassign(cluster: Cluster, n: int) -> Any:
    return cluster.ask(AlterPartitionReassignmentsRequest(timeout_ms=5_000, topics=()), 0)


def auto_create(cluster: Cluster, n: int) -> Any:
    return cluster.ask(MetadataRequest(topics=(MetadataRequestTopic(name=f"auto{n}"),)), 9)


def find_group(cluster: Cluster, n: int) -> Any:
    return cluster.ask(FindCoordinatorRequest(coordinator_keys=("g",), key_type=0), 4)


def init(cluster: Cluster, n: int) -> Any:
    return cluster.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)


def produce(cluster: Cluster, n: int) -> Any:
    return cluster.produce("t", [b"x"])


def fetch(cluster: Cluster, n: int) -> Any:
    return cluster.fetch("t", 1, max_wait_ms=200)


def delete(cluster: Cluster, n: int) -> Any:
    partition = DeleteRecordsPartition(partition_index=0, offset=1)
    request = DeleteRecordsRequest(timeout_ms=2_000, topics=(DeleteRecordsTopic(name="t", partitions=(partition,)),))
    return cluster.ask(request, 2, to=cluster.leader("t") or 1)


def offsets(cluster: Cluster, n: int) -> Any:
    cluster.until(lambda: find_group(cluster, n).coordinators[0].error_code == 0)
    (found,) = find_group(cluster, n).coordinators
    return cluster.ask(OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g"),)), 8, to=found.node_id)


def transactional(cluster: Cluster, n: int) -> Any:
    """The first batch of a transaction; its coordinator is another broker."""

    def coordinator() -> Any:
        return cluster.ask(FindCoordinatorRequest(coordinator_keys=(f"id{n}",), key_type=1), 4).coordinators[0]

    cluster.until(lambda: coordinator().error_code == 0)
    node_id = coordinator().node_id
    given: list[Any] = []

    def initialized() -> bool:
        request = InitProducerIdRequest(transactional_id=f"id{n}", transaction_timeout_ms=60_000)
        given.append(cluster.ask(request, 4, to=node_id))
        return bool(given[-1].error_code == 0)

    cluster.until(initialized)
    records = encode_batch(
        [NewRecord(timestamp=cluster.client.clock.wall_ms(), key=None, value=b"in a transaction")],
        producer_id=given[-1].producer_id,
        producer_epoch=given[-1].producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    part = PartitionProduceData(index=0, records=bytes(records))
    request = ProduceRequest(
        transactional_id=f"id{n}",
        acks=-1,
        timeout_ms=2_000,
        topic_data=(TopicProduceData(name="tx", partition_data=(part,)),),
    )
    return cluster.ask(request, 12, to=cluster.leader("tx") or 1)


@dataclass(frozen=True)
class Later:
    """A continuation: where the exception is planted, and the request that comes there."""

    place: str
    do: Do
    again: bool = True
    """It comes there each time that it is sent."""

    def __str__(self) -> str:
        return self.place


LATER = (
    Later(METADATA + "controller_channel:_Forward._reply", create),
    Later(METADATA + "controller_channel:_Forward._handle_response", reassign),
    Later(API + "envelope:encode_response", create),
    Later(API + "metadata:Metadata._response", auto_create),
    Later(API + "find_coordinator:FindCoordinator._answer", find_group, again=False),
    Later(METADATA + "internal_topics:InternalTopics._handle_response", find_group, again=False),
    Later(METADATA + "producer_ids:ProducerIds._handle_response", init),
    Later("tanist.broker.transactions.verification:_answers_of", transactional),
    Later(API + "produce_transactional:_verified", transactional),
    Later(API + "produce:Produce.answer", produce),
    Later(API + "fetch:Fetch.answer", fetch),
    Later(API + "delete_records:DeleteRecordsWait._answer", delete),
    Later(API + "offset_fetch:OffsetFetch._group", offsets),
)


def began(later: Later, monkeypatch: pytest.MonkeyPatch, error: Callable[[], Exception]) -> tuple[Cluster, Plant]:
    plant = Plant(later.place, error)
    plant.install(monkeypatch.setattr)
    cluster = Cluster(
        config={
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "auto.create.topics.enable": "true",
        }
    )
    cluster.create_topic("t")
    assert cluster.produce("t", [b"first"]).error_code == 0
    if later.do is transactional:
        lead_away(cluster)
    return cluster, plant


def lead_away(cluster: Cluster) -> None:
    """`tx` is led by another broker than the one that coordinates the transactions."""
    ask = FindCoordinatorRequest(coordinator_keys=("id",), key_type=1)
    cluster.until(lambda: cluster.ask(ask, 4).coordinators[0].error_code == 0)
    coordinator = cluster.ask(ask, 4).coordinators[0].node_id
    others = [node_id for node_id in (1, 2, 3) if node_id != coordinator]
    cluster.create_topic("tx", assignment=[[*others, coordinator]])


def errors(answer: Any) -> Iterator[int]:
    """All error codes of a response, or of a part of one."""
    for each in answer if isinstance(answer, (list, tuple)) else (answer,):
        for field in type(each).FIELDS if isinstance(each, Struct) else ():
            value = getattr(each, field.name)
            if field.name.endswith("error_code"):
                yield value
            else:
                yield from errors(value)


@pytest.mark.parametrize("later", LATER, ids=str)
def test_the_request_is_refused_once_and_the_nodes_go_on(later: Later, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, plant = began(later, monkeypatch, lambda: PlantedError("planted"))
    times = TIMES if later.again else 1
    resigned = len(cluster.seen(ControllerResigned))
    for n in range(times):
        plant.armed = n + 1
        answer = later.do(cluster, n)
        assert plant.raised == n + 1
        assert UNKNOWN in errors(answer), answer
    cluster.run(1_000)
    assert plant.raised == times
    hosts = cluster.world.hosts.values()
    assert all(host.up and not host.crash_reports for host in hosts)
    assert len(cluster.seen(ControllerResigned)) == resigned
    counts = [node.context.unexpected.counts() for node in cluster.world.nodes()]
    assert sum(sum(each.values()) for each in counts) == times, counts
    assert any("PlantedError" in line for line in cluster.log)
    cluster.until(lambda: UNKNOWN not in errors(later.do(cluster, 100)))
    assert cluster.produce("t", [b"last"]).error_code == 0


@pytest.mark.parametrize("later", LATER, ids=str)
def test_it_is_a_violation_if_the_run_has_not_planted_it(later: Later, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, plant = began(later, monkeypatch, lambda: IndexError("a bug"))
    plant.armed = 1
    with pytest.raises(IndexError, match="a bug"):
        later.do(cluster, 0)


def test_requests_that_wait_for_the_same_topic_are_refused_each_for_its_own_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first of two that wait raises: the second is answered all the same."""
    plant = Plant(API + "find_coordinator:FindCoordinator._answer", lambda: PlantedError("planted"))
    plant.install(monkeypatch.setattr)
    cluster = Cluster(config={"offsets.topic.num.partitions": "1"})
    plant.armed = 1
    request = FindCoordinatorRequest(coordinator_keys=("g",), key_type=0)
    answers: list[Any] = []
    host = cluster.host(1)
    channel = cluster.client.channel((host.name, BROKER_PORT))

    def ask_twice() -> None:
        for _ in range(2):
            channel.call(request, 4, 20_000, answers.append)

    cluster.client.run(ask_twice)
    cluster.until(lambda: len(answers) == 2)
    assert [UNKNOWN in errors(answer) for answer in answers] == [True, False]
    assert host.up


def test_no_handler_goes_on_later_without_a_guard() -> None:
    """`Call.wait` keeps a place, and guards nothing: in a handler only where a `Call` itself goes on."""
    (folder,) = tanist.broker.api.__path__
    found = {path.name for path in Path(folder).glob("*.py") if ".wait(" in path.read_text(encoding="utf-8")}
    assert found == {"envelope.py", "delete_records.py"}
