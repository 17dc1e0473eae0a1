"""One node of Apache Kafka, broker and controller, and followers that are played to it.

A played broker registers, beats and is fenced as `tests.interop.controllers` has it; here it fetches as well, from the
real one, which leads. So a show decides what a follower has, and when it says so. Nothing waits for a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from tanist.client.requests import CoordinatorKind, find_coordinator
from tanist.client.sequences import produce_request
from tanist.controller.image.image import PartitionState
from tanist.lab.scenarios import requests
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.metadata_response import MetadataResponse
from tanist.wire.messages.produce_response import ProduceResponse
from tanist.wire.schema import Request, Response
from tests.interop import apache
from tests.interop.cluster import HOST, free_ports
from tests.interop.controllers.nodes import NODE_ID, ApacheController
from tests.interop.controllers.side import Side
from tests.interop.controllers.steps import Heartbeat, Register
from tests.interop.pair import Asker
from tests.interop.raw import LATEST, RawClient
from tests.interop.waiting import wait_for

REAL = NODE_ID
"""The broker that is not played."""
SESSION_MS = 15_000
"""Of brokers. Most shows are over by then; nobody beats in them."""
MIN_ISR = "min.insync.replicas"
CLUSTER, BROKER = (4, ""), (4, str(REAL))
_FETCH_VERSION = 17
_PRODUCE_VERSION = 9

_R = TypeVar("_R", bound=Response)


def record(value: bytes) -> NewRecord:
    """Of now: retention takes old ones, and producers whose last one is old are forgotten."""
    return NewRecord(time.time_ns() // 1_000_000, None, value)


class FieldNode:
    """The node, and who is played to it."""

    def __init__(self, side: Side, address: tuple[str, int]) -> None:
        self.side = side
        self.address = address
        self._asker = Asker(address)
        self._lives = count(1)
        self._topics = count(1)
        self._ids = count(1)
        self._alive: set[int] = set()
        self._witness = (-1, "")

    def close(self) -> None:
        self._asker.close()
        self.side.close()

    # -- who is there

    def join(self, how_many: int) -> tuple[int, ...]:
        """New ones, unfenced."""
        brokers = tuple(next(self._ids) for _ in range(how_many))
        for broker in brokers:
            assert self._register(broker)
            self.unfence(broker)
        return brokers

    def unfence(self, broker: int) -> None:
        assert Heartbeat(broker).act(self.side)["is_fenced"] is False
        self._alive.add(broker)

    def fence(self, *brokers: int) -> None:
        self._alive.difference_update(brokers)
        for broker in brokers:
            Heartbeat(broker, want_fence=True).act(self.side)

    def reboot(self, broker: int) -> None:
        """It registers after it has died. Before its session is over it is refused; the others beat meanwhile."""
        self._alive.discard(broker)

        def registered() -> bool:
            for other in self._alive:
                Heartbeat(other).act(self.side)
            return self._register(broker)

        wait_for(registered, f"the session of broker {broker} is over", poll_s=0.5)

    def _register(self, broker: int) -> bool:
        error = Register(broker, False, UUID(int=(3 << 64) + next(self._lives))).act(self.side)["error"]
        assert error in ("NONE", "DUPLICATE_BROKER_REGISTRATION"), error
        return error == "NONE"

    # -- topics

    def topic(self, *replicas: int, partitions: int = 1, min_isr: int | None = None) -> str:
        """A new one, which its leader serves if it is the real broker."""
        name = f"field-{next(self._topics)}"
        config = {} if min_isr is None else {MIN_ISR: min_isr}
        answer = self.side.ask(requests.create_topic(name, [replicas] * partitions, config))
        assert requests.error_in(answer) == 0, answer
        if self.state(name).leader == REAL:
            wait_for(lambda: self._is_led(name), f"the broker leads {name}")
        return name

    def state(self, topic: str) -> PartitionState:
        """Of its first partition."""
        self.side.catch_up()
        state = self.side.partition(topic, 0)
        assert state is not None
        return state

    def set(self, resource: tuple[int, str], key: str, value: str | None) -> int:
        """The error."""
        return requests.error_in(self.side.ask(requests.set_config(*resource, key, value)))

    def _is_led(self, topic: str) -> bool:
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        (found,) = self.ask(request, 9, MetadataResponse).topics
        return bool(not found.error_code and self._fetch(topic, -1, -1, 0).error_code == 0)

    # -- records

    def ask(self, request: Request, version: int, expected: type[_R]) -> _R:
        """Of the real broker."""
        return self._asker.ask(request, version, expected)

    def has_coordinator(self) -> bool:
        """Of transactions: they have one partition."""
        request = find_coordinator(CoordinatorKind.TRANSACTION, "field")
        return not self.ask(request, 4, FindCoordinatorResponse).coordinators[0].error_code

    def produce(self, topic: str, values: Sequence[bytes], *, acks: int = 1, **producer: Any) -> Any:
        """The partition's answer."""
        batch = encode_batch([record(value) for value in values], **producer)
        request = produce_request((topic, 0), bytes(batch), acks=acks, timeout_ms=5_000)
        return self.ask(request, _PRODUCE_VERSION, ProduceResponse).responses[0].partition_responses[0]

    def high_watermark(self, topic: str) -> int:
        """As a consumer gets to know it."""
        with RawClient(*self.address) as client:
            return client.list_offset(topic, 0, LATEST)

    def fetch(self, broker: int, topic: str, offset: int, *, epoch: int | None = None) -> Any:
        """A played follower's fetch, in its present life or one that is named: the partition's answer."""
        return self._fetch(topic, broker, self.side.epoch(broker) if epoch is None else epoch, offset)

    def _fetch(self, topic: str, broker: int, epoch: int, offset: int) -> Any:
        state = self.state(topic)
        follows = broker >= 0
        part = FetchPartition(
            current_leader_epoch=state.leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=state.leader_epoch if follows and offset else -1,
            log_start_offset=0 if follows else -1,
            partition_max_bytes=1,
        )
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=broker, replica_epoch=epoch),
            max_bytes=1,
            topics=(FetchTopic(topic_id=self.side.topic_id(topic), partitions=(part,)),),
        )
        return self.ask(request, _FETCH_VERSION, FetchResponse).responses[0].partitions[0]

    def settle(self) -> None:
        """Until the controller has what the broker had to ask of it: it asks in order, and this is asked last."""
        witness, topic = self._witness
        if not topic:
            (witness,) = self.join(1)
            topic = self.topic(REAL, witness)
            self.fence(witness)
            self._witness = witness, topic
        self.unfence(witness)
        assert self.state(topic).isr == (REAL,)

        def joined() -> bool:
            self.fetch(witness, topic, 0)
            return witness in self.state(topic).isr

        wait_for(joined, "the witness is in sync")
        self.fence(witness)


@contextmanager
def field_node(folder: Path) -> Iterator[FieldNode]:
    """Started, and stopped in the end."""
    controller_port = free_ports(2)
    listeners = f"PLAINTEXT://{HOST}:{controller_port + 1},CONTROLLER://{HOST}:{controller_port}"
    properties = {
        "process.roles": "broker,controller",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "broker.session.timeout.ms": str(SESSION_MS),
        "controlled.shutdown.enable": "false",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
    }
    node = ApacheController("apache", folder, apache.random_cluster_id(), properties, port=controller_port)
    node.start()
    try:
        address = (HOST, controller_port + 1)
        wait_for(lambda: RawClient(*address).metadata(()).brokers, "the broker serves")
        field = FieldNode(Side(node), address)
        try:
            field.side.catch_up()
            assert field.side.image.elr_enabled
            # While nobody is played who would get the coordinator's partition.
            wait_for(field.has_coordinator, "there is a coordinator")
            yield field
        finally:
            field.close()
    finally:
        node.stop()
