"""The Last Replica Standing: KIP-966's motivation, T0 to T4, played by whole nodes in virtual time.

Owns one play with two endings: the same steps, from the same seed, on a cluster without Eligible Leader Replicas and on
one with them. It reports the partition's state after each step and, in the end, which acknowledged records exist. Only
the steps are fixed beforehand; the cluster decides everything.

(The KIP's brokers 0, 1 and 2 are 1, 2 and 3.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tanist.controller.partition_state import PartitionState
from tanist.log.salvage.manifest import QUARANTINE
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.world import BROKER_PORT, World
from tanist.wire.batch import NewRecord, decode_batch, encode_batch, iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

TOPIC = "orders"
MIN_ISR = 2
SEED = 7
"""A seed whose loss of power takes all unsynced records: the seed decides how many are lost."""

_ROLES = {1: "broker", 2: "broker", 3: "broker", 4: "controller"}
_CONFIG = {
    "min.insync.replicas": str(MIN_ISR),
    "broker.session.timeout.ms": "2500",
    "broker.heartbeat.interval.ms": "500",
    "log.flush.interval.messages": "100",
}
_PATIENCE_MS = 60_000
_ELR = "eligible.leader.replicas.version"
_SAFE_DOWNGRADE = 2


class PlayError(Exception):
    """The cluster does not reach the state that the step waits for."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The partition's state after a step."""

    when: str
    """T0 to T4, or empty: the beginning, the end."""
    what: str
    """The step, as text."""
    at_ms: int
    """Virtual time since the cluster was ready."""
    state: PartitionState
    offline: frozenset[int]
    min_isr: int = MIN_ISR


@dataclass(frozen=True, slots=True)
class Ending:
    """The fate of the records."""

    acknowledged: int
    refused: int
    found: int
    lost: tuple[int, ...]
    """Acknowledged numbers that consumers do not get any more."""
    salvaged: int
    """The number of those that the replicas saved before they truncated them."""
    digest: str
    """A hash over all events: the same in every run."""


def play(*, elr: bool, seed: int = SEED) -> Iterator[Scene | Ending]:
    """Play it. `PlayError` if a step does not happen."""
    stage = _Stage(seed)
    stage.begin(elr=elr)
    stage.write(1, 100)
    yield stage.scene("", "100 records are written with acks=all; every replica is in sync")
    stage.cut_off(1)
    stage.until(lambda state: state.isr == (2, 3))
    stage.write(101, 150)
    yield stage.scene("T0", "the network cuts broker 1 off; 50 more records are acknowledged by the other two")
    stage.cut_off(2)
    stage.until(lambda state: state.isr == (3,))
    stage.write(151, 160)
    yield stage.scene("T1", "broker 2 is cut off as well: broker 3 is the last replica standing")
    stage.world.hosts[3].lose_power()
    stage.until(lambda state: not state.has_leader)
    yield stage.scene("T2", "broker 3 loses power, and what was not on its disk yet")
    stage.world.network.heal()
    stage.world.run_for(5_000)
    yield stage.scene("T3", "the network is back, and with it brokers 1 and 2")
    stage.world.hosts[3].start()
    stage.until(lambda state: len(state.isr) == len(state.replicas))
    yield stage.scene("T4", "broker 3 is back")
    yield stage.ending()


class _Stage:
    """The cluster, and one client that writes numbers."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed, roles=_ROLES, config=_CONFIG)
        self.acknowledged: list[int] = []
        self.refused = 0
        self._client = SimClient(self.world, "client", History())
        self._ready_ms = 0

    def begin(self, *, elr: bool) -> None:
        self.world.start()
        self._wait(self.world.ready)
        if not elr:
            downgrade = FeatureUpdateKey(
                feature=_ELR, max_version_level=0, allow_downgrade=True, upgrade_type=_SAFE_DOWNGRADE
            )
            response = self._ask(UpdateFeaturesRequest(feature_updates=(downgrade,)), 1)
            if response is None or response.error_code != ErrorCode.NONE:
                raise PlayError(f"the feature {_ELR} could not be switched off: {response}")
        topic = CreatableTopic(
            name=TOPIC,
            num_partitions=-1,
            replication_factor=-1,
            assignments=(CreatableReplicaAssignment(partition_index=0, broker_ids=(1, 2, 3)),),
            configs=(CreatableTopicConfig(name="flush.messages", value="100"),),
        )
        response = self._ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
        if response is None or response.topics[0].error_code != ErrorCode.NONE:
            raise PlayError(f"the topic could not be created: {response}")
        self._wait(lambda: self._leader() is not None)
        self._ready_ms = self.world.now_ms

    # -- actions

    def cut_off(self, broker_id: int) -> None:
        """Cut the broker off from all others, in both directions."""
        name = self.world.hosts[broker_id].name
        for other in (*(host.name for host in self.world.hosts.values()), "client"):
            if other != name:
                self.world.network.block(name, other)
                self.world.network.block(other, name)

    def write(self, first: int, last: int) -> None:
        """Numbers, one record and one request each, acks=all."""
        for number in range(first, last + 1):
            records = encode_batch([NewRecord(timestamp=self._client.clock.wall_ms(), key=None, value=b"%d" % number)])
            data = PartitionProduceData(index=0, records=bytes(records))
            request = ProduceRequest(
                acks=-1, timeout_ms=2_000, topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),)
            )
            response = self._ask(request, 9, to=self._leader())
            error = None if response is None else response.responses[0].partition_responses[0].error_code
            if error == ErrorCode.NONE:
                self.acknowledged.append(number)
            else:
                self.refused += 1

    def until(self, condition: Callable[[PartitionState], bool]) -> None:
        self._wait(lambda: condition(self.state()))

    # -- observations

    def state(self) -> PartitionState:
        """The partition in the controller's metadata."""
        node = self.world.hosts[4].node
        image = None if node is None else node.metadata.image
        state = None if image is None else image.partition(image.topic_ids[TOPIC], 0)
        if state is None:
            raise PlayError("the controller does not know the topic")
        return state

    def scene(self, when: str, what: str) -> Scene:
        node = self.world.hosts[4].node
        brokers = {} if node is None else node.metadata.image.brokers
        offline = frozenset(broker_id for broker_id in (1, 2, 3) if not brokers[broker_id].active)
        return Scene(when, what, self.world.now_ms - self._ready_ms, self.state(), offline)

    def ending(self) -> Ending:
        found = set(self._read())
        lost = tuple(number for number in self.acknowledged if number not in found)
        salvaged = self._salvaged() & set(lost)
        return Ending(len(self.acknowledged), self.refused, len(found), lost, len(salvaged), self.world.digest)

    def _salvaged(self) -> set[int]:
        """The numbers in the brokers' quarantines."""
        return {
            number
            for host in self.world.brokers
            for path in host.disk.paths()
            if QUARANTINE in path and path.endswith(".log")
            for number in _numbers_in(host.disk.content(path))
        }

    def _read(self) -> list[int]:
        """All numbers that a consumer gets."""
        numbers: list[int] = []
        offset = 0
        while True:
            partition = FetchPartition(
                partition=0,
                current_leader_epoch=-1,
                fetch_offset=offset,
                last_fetched_epoch=-1,
                partition_max_bytes=1 << 20,
            )
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1 << 20,
                session_epoch=-1,
                topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),),
            )
            response = self._ask(request, 12, to=self._leader())
            if response is None:
                continue
            records = response.responses[0].partitions[0].records
            if not records:
                return numbers
            view = memoryview(records)
            numbers += _numbers_in(records)
            for _, header in iterate_headers(view):
                offset = header.next_offset

    def _leader(self) -> int | None:
        leaders = [
            (hosted.leader_epoch, node.node_id)
            for node in self.world.nodes()
            if node.is_broker and (hosted := node.replicas.get(TOPIC, 0)) is not None and hosted.leader is not None
        ]
        return max(leaders)[1] if leaders else None

    def _ask(self, request: Any, version: int, *, to: int | None = None) -> Any:
        """Send a request to a broker, and wait; None if the connection ended, or no broker is up."""
        answers: list[Any] = []
        address = (self.world.hosts[to or 1].name, BROKER_PORT)

        def answered(response: Any) -> None:
            if isinstance(response, FetchResponse):
                for topic in response.responses:  # the frame's memory is only borrowed
                    for partition in topic.partitions:
                        partition.records = bytes(partition.records or b"")
            answers.append(response)

        self._client.run(lambda: self._client.channel(address).call(request, version, 5_000, answered))
        self._wait(lambda: bool(answers))
        return answers[0]

    def _wait(self, condition: Callable[[], bool]) -> None:
        if not self.world.run_until(condition, within_ms=_PATIENCE_MS):
            raise PlayError(
                f"after {_PATIENCE_MS // 1000} s of virtual time the cluster is not where the play wants it"
            )


def _numbers_in(segment: bytes) -> Iterator[int]:
    view = memoryview(segment)
    for position, header in iterate_headers(view):
        for record in decode_batch(view[position : position + header.size_bytes]):
            yield int(record.value or b"")
