"""A folder changes hands while transactions are open: from Apache Kafka to us and back, and the other way round.

The next owner serves what is committed, and nothing else. It knows open transactions and their pending offsets: one is
committed by the producer that began it, which only reconnects; the next producer of its id aborts another; one times
out. Apache's decoders read what we wrote of all this.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tanist.client.requests import CoordinatorKind
from tanist.runtime.client.client import Client
from tanist.runtime.client.coordinators import coordinator_of
from tanist.runtime.client.transactions import describe_transaction
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tanist.wire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from tanist.wire.messages.offset_fetch_response import OffsetFetchResponse
from tests.interop import apache
from tests.interop.cluster import Cluster, free_ports, wait_in_sync
from tests.interop.dump import Decoded, decoded
from tests.interop.tanist_cluster import TanistNode
from tests.interop.traffic import create_topic
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

TOPIC = "ledger"
RECORDS = 10
OFFSET = 7
"""What each transaction commits for its group."""
PATIENCE_S = 60.0
EXPIRES_MS = {"tanist": 20_000, "apache": 75_000}
"""By the next owner. A transaction that times out while Apache Kafka starts is complete there without all its markers,
for it takes a partition whose leader is not back yet for deleted. Readers and groups then wait for ever."""
LASTS_MS = 600_000
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
"""By their numbers in the log."""
PROPERTIES = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


@dataclasses.dataclass(slots=True)
class Application:
    """A producer and one transaction of its own: ten records, and the offset of a group without members."""

    cluster: Cluster
    name: str
    timeout_ms: int = LASTS_MS
    committed: bool = False
    values: list[str] = dataclasses.field(default_factory=list)
    producer: Any = None

    def begin(self) -> Application:
        from confluent_kafka import Consumer, TopicPartition

        self.producer = self.next_producer()
        self.producer.begin_transaction()
        for number in range(RECORDS):
            self.values.append(f"{self.name}/{number}")
            self.producer.produce(TOPIC, self.values[-1].encode(), partition=0)
        member = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": self.name})
        offsets = [TopicPartition(TOPIC, 0, OFFSET)]
        self.producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), PATIENCE_S)
        member.close()
        assert self.producer.flush(PATIENCE_S) == 0
        return self

    def next_producer(self) -> Any:
        """One that fences the last, whose transaction is aborted then."""
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": self.cluster.bootstrap, "transactional.id": self.name, "log_level": 0}
        producer = Producer(settings | {"transaction.timeout.ms": self.timeout_ms})
        producer.init_transactions(PATIENCE_S)
        return producer

    def commit(self) -> Application:
        self.producer.commit_transaction(PATIENCE_S)
        self.committed = True
        return self

    def abort(self) -> Application:
        self.producer.abort_transaction(PATIENCE_S)
        return self


@dataclasses.dataclass(slots=True)
class Round:
    """What one owner leaves to the next."""

    ended: list[Application]
    open: list[Application]

    @staticmethod
    def of(cluster: Cluster, number: int, expires_ms: int) -> Round:
        """Ended ones are before and behind the open ones."""

        def application(kind: str, timeout_ms: int = LASTS_MS) -> Application:
            return Application(cluster, f"{kind}-{number}", timeout_ms).begin()

        early = [application("early-commit").commit(), application("early-abort").abort()]
        going_on, fenced = application("going-on"), application("fenced")
        late = [application("late-commit").commit(), application("late-abort").abort()]
        return Round([*early, *late], [going_on, fenced, application("expired", expires_ms)])

    @property
    def before_the_open_ones(self) -> list[Application]:
        return self.ended[:2]


def values_of(applications: Sequence[Application]) -> list[str]:
    return [value for each in applications if each.committed for value in each.values]


@contextmanager
def client_of(cluster: Cluster) -> Iterator[Client]:
    with Client([cluster.address(1)]) as client:
        yield client


def read(cluster: Cluster, isolation: str) -> list[str]:
    """All that a consumer gets until it is at the end, which for committed records is the last stable offset."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer(settings | {"isolation.level": isolation, "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    found: list[str] = []

    def ended() -> bool:
        message = consumer.poll(1.0)
        if message is None:
            return False
        if message.error() is None:
            found.append(message.value().decode())
        return bool(message.error() and message.error().code() == KafkaError._PARTITION_EOF)

    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ended():
            assert time.monotonic() < deadline, found
    finally:
        consumer.close()
    return found


def stable_offset(client: Client, group: str) -> int | ErrorCode:
    """The offset of a group for a reader that wants none that a transaction may change yet, or the error."""
    request = OffsetFetchRequest(
        group_id=group, topics=(OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,)),), require_stable=True
    )

    def attempt() -> OffsetFetchResponse:
        node_id = coordinator_of(client, CoordinatorKind.GROUP, group)
        return client.ask(request, OffsetFetchResponse, node_id=node_id, max_version=7)

    answer = client.persist(attempt)
    if answer.error_code:
        return ErrorCode(answer.error_code)
    (place,) = answer.topics[0].partitions
    return ErrorCode(place.error_code) if place.error_code else place.committed_offset


def offset_is(client: Client, group: str, offset: int) -> bool:
    return stable_offset(client, group) == offset


def take_over(cluster: Cluster, history: list[Application], left: Round) -> list[Application]:
    """The checks of a new owner; gives the history with all of the round, in the order of the log."""
    number = left.open[0].name.rpartition("-")[2]
    going_on, fenced, expired = left.open
    everything = [*history, *left.before_the_open_ones, going_on, fenced, *left.ended[2:], expired]
    wait_in_sync(cluster, TOPIC)
    with client_of(cluster) as client:
        assert read(cluster, "read_uncommitted") == [value for each in everything for value in each.values]
        assert read(cluster, "read_committed") == values_of([*history, *left.before_the_open_ones])
        for each in (going_on, fenced):
            assert describe_transaction(client, each.name).state == "Ongoing"
            assert stable_offset(client, each.name) == ErrorCode.UNSTABLE_OFFSET_COMMIT
        for each in left.ended:
            described = describe_transaction(client, each.name)
            assert described.state == ("CompleteCommit" if each.committed else "CompleteAbort")
            assert stable_offset(client, each.name) == (OFFSET if each.committed else -1)

        going_on.commit()
        fenced.next_producer()
        wait_for(
            lambda: describe_transaction(client, expired.name).state == "CompleteAbort",
            f"the transaction of expired-{number} times out",
            timeout_s=2 * PATIENCE_S,
        )
        for each in left.open:
            settled = OFFSET if each.committed else -1
            try:
                wait_for(partial(offset_is, client, each.name, settled), "it is settled", timeout_s=PATIENCE_S)
            except AssertionError as error:
                raise AssertionError(f"{each.name}: {stable_offset(client, each.name)}, not {settled}") from error
    wait_for(
        lambda: read(cluster, "read_committed") == values_of(everything), "no transaction is open", timeout_s=PATIENCE_S
    )
    return everything


def coordinators_log(folder: Path, topic: str, decoder: str) -> list[Decoded]:
    logs = [log for log in folder.glob(f"{topic}-*/*.log") if log.stat().st_size > 0]
    return decoded(logs, decoder)


def check_what_the_tool_reads(folder: Path, everything: list[Application], left: Round) -> None:
    """`kafka-dump-log` on the folder of ours, with the transactions that are open in it."""
    states: dict[str, list[str]] = {}
    for record in coordinators_log(folder, TRANSACTIONS_TOPIC, "--transaction-log-decoder"):
        assert record.value is not None
        states.setdefault(record.key["data"]["transactionalId"], []).append(
            STATES[record.value["data"]["transactionStatus"]]
        )
    for each in everything:
        assert states[each.name][-1] in ("CompleteCommit" if each.committed else "CompleteAbort", "Empty"), each.name
    for each in left.open:
        assert states[each.name][-1] == "Ongoing"

    pending: dict[str, int] = {}
    outcomes: dict[int, str] = {}
    for record in coordinators_log(folder, OFFSETS_TOPIC, "--offsets-decoder"):
        if record.marker is not None:
            outcomes[record.producer_id] = record.marker
        elif record.transactional:
            pending[record.key["data"]["group"]] = record.producer_id
            assert record.value["data"]["offset"] == OFFSET
    for each in [*everything, *left.ended, *left.open]:
        marker = outcomes.get(pending[each.name])
        assert marker == (None if each in left.open else "COMMIT" if each.committed else "ABORT"), each.name


@pytest.fixture
def formatted(java: None, libraries: None, tmp_path: Path) -> apache.ApacheCluster:
    """One node of Apache Kafka, formatted."""
    node = apache.ApacheCluster(tmp_path, nodes=1, properties=PROPERTIES, first_port=free_ports(2), heap="256m")
    node.format()
    return node


@pytest.mark.parametrize(("first", "end"), [("apache", "stopped"), ("tanist", "killed")])
def test_open_transactions_change_hands(formatted: apache.ApacheCluster, first: str, end: str) -> None:
    theirs = formatted
    ours = TanistNode(theirs.properties_file(1))
    owners: list[Cluster] = [theirs, ours, theirs] if first == "apache" else [ours, theirs, ours]
    history: list[Application] = []
    left: Round | None = None
    for number, owner in enumerate(owners):
        owner.start()
        try:
            if left is None:
                create_topic(owner, TOPIC, 1)
                wait_in_sync(owner, TOPIC)
            else:
                history = take_over(owner, history, left)
            if number + 1 < len(owners):
                left = Round.of(owner, number, EXPIRES_MS[owners[number + 1].name])
            (owner.stop_node if end == "stopped" else owner.kill_node)(1)
        finally:
            owner.stop()
        if owner is ours and left is not None and number < 2:
            check_what_the_tool_reads(ours.log_directory(1), history, left)
