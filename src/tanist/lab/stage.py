"""A small cluster of whole nodes in virtual time, and one client that writes numbers: the stage of a play.

Owns the steps that plays are made of: write, cut off, wait for a state, read everything back. The cluster decides
everything else. Brokers come first, and the last node is the only controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.client.positions import fetch_request
from tanist.client.sequences import produce_request
from tanist.controller.image.partition_state import PartitionState
from tanist.lab.mutations.patching import Patch
from tanist.lab.mutations.rules_of_replicas import a1_ignores_min_isr
from tanist.log.salvage.manifest import QUARANTINE
from tanist.log.salvage.reading import sound_batches
from tanist.log.scan import read_batch
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.still_file import StillFile
from tanist.sim.world.world import BROKER_PORT, Host, Watcher, World
from tanist.wire.batch import NewRecord, decode_batch, encode_batch, iterate_batches, iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

_PATIENCE_MS = 60_000
_TRIES, _PAUSE_MS = 20, 100
_ELR = "eligible.leader.replicas.version"
_SAFE_DOWNGRADE = 2
_PRODUCE_VERSION, _FETCH_VERSION, _CREATE_TOPICS_VERSION, _UPDATE_FEATURES_VERSION = 9, 12, 7, 1


class PlayError(Exception):
    """The cluster does not reach the state that the step waits for."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The cluster of a play, and its topic."""

    topic: str
    replicas: tuple[int, ...]
    """Of the only partition, the preferred leader first."""
    brokers: int
    config: Mapping[str, str]
    topic_config: Mapping[str, str]
    elr: bool = True
    before_the_kip: bool = False
    """The high watermark's rule, too, is that of Kafka before KIP-966; `breaking` does it, for no setting does."""

    @property
    def breaking(self) -> tuple[Patch, ...]:
        """What is replaced in the nodes' code for this cluster."""
        return a1_ignores_min_isr() if self.before_the_kip else ()

    def world(self, seed: int) -> World:
        roles = {**dict.fromkeys(range(1, self.brokers + 1), "broker"), self.brokers + 1: "controller"}
        return World(seed, roles=roles, config=self.config)


@dataclass(frozen=True, slots=True)
class Ending:
    """The fate of the records."""

    acknowledged: int
    refused: int
    consumed: int
    lost: tuple[int, ...]
    """Acknowledged numbers that consumers do not get any more."""
    salvaged: int
    """The number of those that the replicas saved before they truncated them."""
    digest: str
    """A hash over all events: the same in every run."""


class Stage:
    """The cluster, and one client that writes numbers."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup = setup
        self.world = setup.world(seed)
        self.controller = setup.brokers + 1
        self.acknowledged: list[int] = []
        self.refused = 0
        self.asked = 0
        """The last number that was to be written."""
        self.ready_ms = 0
        """When the topic had a leader."""
        self.until_us = 0
        """Until then a play without an end goes on."""
        self._client = SimClient(self.world, "client", History())

    def begin(self) -> None:
        """Start all nodes, and create the topic."""
        setup = self.setup
        self.world.start()
        self.wait(self.world.ready)
        if not setup.elr:
            downgrade = FeatureUpdateKey(
                feature=_ELR, max_version_level=0, allow_downgrade=True, upgrade_type=_SAFE_DOWNGRADE
            )
            response = self.ask(UpdateFeaturesRequest(feature_updates=(downgrade,)), _UPDATE_FEATURES_VERSION)
            if response is None or response.error_code != ErrorCode.NONE:
                raise PlayError(f"the feature {_ELR} could not be switched off: {response}")
        topic = CreatableTopic(
            name=setup.topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=(CreatableReplicaAssignment(partition_index=0, broker_ids=setup.replicas),),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in setup.topic_config.items()),
        )
        response = self.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), _CREATE_TOPICS_VERSION)
        if response is None or response.topics[0].error_code != ErrorCode.NONE:
            raise PlayError(f"the topic could not be created: {response}")
        self.wait(lambda: self.leader() is not None)
        self.ready_ms = self.world.now_ms

    # -- actions

    def cut_off(self, broker_id: int, *, from_brokers_only: bool = False) -> None:
        """Cut the broker off from all others, in both directions; or from the other brokers only."""
        name = self.world.hosts[broker_id].name
        others = [host.name for host in self.world.hosts.values() if host.is_broker or not from_brokers_only]
        for other in (*others, *(() if from_brokers_only else ("client",))):
            if other != name:
                self.world.network.block(name, other)
                self.world.network.block(other, name)

    def write(self, first: int, last: int) -> None:
        """Numbers, one record and one request each, acks=all."""
        for number in range(first, last + 1):
            answered = self.offer(number)
            self.wait(lambda answered=answered: bool(answered))  # type: ignore[misc]

    def persist(self, number: int) -> None:
        """One number, again and again until it is acknowledged."""
        for _ in range(_TRIES):
            answered = self.offer(number)
            self.wait(lambda answered=answered: bool(answered))  # type: ignore[misc]
            if answered[0]:
                return
            self.refused -= 1
            self.world.run_for(_PAUSE_MS)
        raise PlayError(f"{number} is not acknowledged")

    def offer(self, number: int) -> Sequence[bool]:
        """Write one number and do not wait. The list gets whether it was acknowledged, when that is known."""
        records = encode_batch([NewRecord(timestamp=self._client.clock.wall_ms(), key=None, value=b"%d" % number)])
        request = produce_request((self.setup.topic, 0), bytes(records), timeout_ms=2_000)
        outcome: list[bool] = []
        self.asked = number

        def handle_response(response: Any) -> None:
            error = None if response is None else response.responses[0].partition_responses[0].error_code
            if error == ErrorCode.NONE:
                self.acknowledged.append(number)
            else:
                self.refused += 1
            outcome.append(error == ErrorCode.NONE)

        self._send(request, _PRODUCE_VERSION, self.leader(), handle_response)
        return outcome

    def until(self, condition: Callable[[PartitionState], bool]) -> None:
        self.wait(lambda: condition(self.state()))

    @contextmanager
    def when(self, condition: Callable[[], bool], action: Callable[[], None]) -> Iterator[None]:
        """Act at the end of the turn in which the condition holds first. The block may end before; this waits."""
        watcher = _Once(self.world, condition, action)
        self.world.watchers.append(watcher)
        try:
            yield
            self.wait(lambda: watcher.done)
        finally:
            self.world.watchers.remove(watcher)

    def wait(self, condition: Callable[[], bool]) -> None:
        if not self.world.run_until(condition, within_ms=_PATIENCE_MS):
            raise PlayError(
                f"after {_PATIENCE_MS // 1000} s of virtual time the cluster is not where the play wants it"
            )

    def ask(self, request: Any, version: int, *, to: int | None = None) -> Any:
        """Send a request to a broker, and wait; None if the connection ended, or no broker is up."""
        answers: list[Any] = []

        def handle_response(response: Any) -> None:
            if isinstance(response, FetchResponse):
                for topic in response.responses:  # the frame's memory is only borrowed
                    for partition in topic.partitions:
                        partition.records = bytes(partition.records or b"")
            answers.append(response)

        self._send(request, version, to, handle_response)
        self.wait(lambda: bool(answers))
        return answers[0]

    def insist(self, request: Any, version: int) -> Any:
        """`ask`, again and again until there is an answer: an old connection may have to end first."""
        for _ in range(_TRIES):
            answer = self.ask(request, version)
            if answer is not None:
                return answer
            self.world.run_for(_PAUSE_MS)
        raise PlayError("nobody answers")

    def _send(self, request: Any, version: int, to: int | None, on_response: Callable[[Any], None]) -> None:
        address = (self.world.hosts[to or 1].name, BROKER_PORT)
        self._client.run(lambda: self._client.channel(address).call(request, version, 5_000, on_response))

    # -- observations

    def state(self) -> PartitionState:
        """The partition in the controller's metadata."""
        node = self.world.hosts[self.controller].node
        image = None if node is None else node.metadata.image
        topic_id = None if image is None else image.topic_ids.get(self.setup.topic)
        state = None if image is None or topic_id is None else image.partition(topic_id, 0)
        if state is None:
            raise PlayError("the controller does not know the topic")
        return state

    def hosted(self, broker_id: int) -> HostedPartition | None:
        """The replica of a broker that runs."""
        host = self.world.hosts[broker_id]
        return host.node.replicas.get(self.setup.topic, 0) if host.up and host.node is not None else None

    def leader(self) -> int | None:
        leaders = [
            (hosted.leader_epoch, node.node_id)
            for node in self.world.nodes()
            if node.is_broker and (hosted := self._hosted_by(node)) is not None and hosted.leader is not None
        ]
        return max(leaders)[1] if leaders else None

    def _hosted_by(self, node: Node) -> HostedPartition | None:
        return node.replicas.get(self.setup.topic, 0)

    def ending(self) -> Ending:
        found = set(self.read())
        lost = tuple(number for number in self.acknowledged if number not in found)
        salvaged = self.salvaged() & set(lost)
        return Ending(len(self.acknowledged), self.refused, len(found), lost, len(salvaged), self.world.digest)

    def salvaged(self) -> set[int]:
        """The numbers in the brokers' quarantines."""
        return {
            number
            for host in self.world.brokers
            for path in host.disk.paths()
            if QUARANTINE in path and path.endswith(".log")
            for number in _numbers_saved(StillFile(path, host.disk.content(path)))
        }

    def read(self) -> list[int]:
        """All numbers that a consumer gets."""
        numbers: list[int] = []
        offset = 0
        while True:
            request = fetch_request((self.setup.topic, 0), offset, max_bytes=1 << 20, max_wait_ms=0)
            response = self.ask(request, _FETCH_VERSION, to=self.leader())
            if response is None:
                continue
            records = response.responses[0].partitions[0].records
            if not records:
                return numbers
            view = memoryview(records)
            numbers += _numbers_in(records)
            for _, header in iterate_headers(view):
                offset = header.next_offset


class _Once(Watcher):
    """A `Watcher` that waits for one condition."""

    def __init__(self, world: World, condition: Callable[[], bool], action: Callable[[], None]) -> None:
        self.done = False
        self._world = world
        self._condition = condition
        self._action = action

    def turn_ended(self, host: Host) -> None:
        if not self.done and self._condition():
            self.done = True
            self._world.scheduler.after(0, self._action)


def numbers_text(numbers: Sequence[int]) -> str:
    """`101 to 150`, or `11`; of an ascending sequence."""
    if not numbers:
        return "none"
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _numbers_saved(file: StillFile) -> Iterator[int]:
    """Recovery saves what it cuts, damage and all."""
    for batch in sound_batches(file, 0, file.size):
        yield from _numbers_in(read_batch(file, batch))


def _numbers_in(segment: bytes) -> Iterator[int]:
    for _, batch in iterate_batches(segment):
        for record in decode_batch(batch):
            yield int(record.value or b"")
