"""The stage of a play: a scripted cluster with one partition, whose client writes numbers and reads them back.

Owns the steps that plays are made of. The cluster decides everything else. Brokers come first, and the last node is the
only controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.client.admin import UpgradeType, update_feature_request
from tanist.client.sequences import produce_request
from tanist.controller.image.partition_state import PartitionState
from tanist.lab.mutations.patching import Patch
from tanist.lab.mutations.rules_of_replicas import a1_ignores_min_isr
from tanist.log.salvage.manifest import QUARANTINE
from tanist.log.salvage.reading import sound_batches
from tanist.log.scan import read_batch
from tanist.sim.scripted.cluster import PRODUCE_VERSION, ScriptedCluster, ScriptError
from tanist.sim.world.still_file import StillFile
from tanist.sim.world.world import World
from tanist.wire.batch import Record, decode_batch, iterate_batches
from tanist.wire.errors import ErrorCode

_TRIES, _PAUSE_MS = 20, 100
_ELR = "eligible.leader.replicas.version"
_UPDATE_FEATURES_VERSION = 1


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


class Stage(ScriptedCluster):
    """The cluster, and its client, which writes numbers."""

    patience_ms = 60_000
    timeout_ms = 5_000

    def __init__(self, setup: Setup, seed: int) -> None:
        super().__init__(setup.world(seed))
        self.setup = setup
        self.acknowledged: list[int] = []
        self.refused = 0
        self.asked = 0
        """The last number that was to be written."""
        self.ready_ms = 0
        """When the topic had a leader."""
        self.until_us = 0
        """Until then a play without an end goes on."""

    def begin(self) -> None:
        """Start all nodes, and create the topic."""
        setup = self.setup
        self.start()
        if not setup.elr:
            downgrade = update_feature_request(_ELR, 0, UpgradeType.SAFE_DOWNGRADE, timeout_ms=60_000)
            answer = self.ask(downgrade, _UPDATE_FEATURES_VERSION)
            if answer is None or answer.error_code != ErrorCode.NONE:
                raise ScriptError(f"the feature {_ELR} could not be switched off: {answer}")
        self.create_topic(setup.topic, assignment=[setup.replicas], config=setup.topic_config)
        self.ready_ms = self.world.now_ms

    # -- actions

    def write(self, first: int, last: int) -> None:
        """Numbers, one record and one request each, acks=all."""
        for number in range(first, last + 1):
            self._offer_and_wait(number)

    def persist(self, number: int) -> None:
        """One number, again and again until it is acknowledged."""
        for _ in range(_TRIES):
            if self._offer_and_wait(number):
                return
            self.refused -= 1
            self.run(_PAUSE_MS)
        raise ScriptError(f"{number} is not acknowledged")

    def _offer_and_wait(self, number: int) -> bool:
        answered = self.offer(number)
        self.until(lambda: bool(answered))
        return answered[0]

    def offer(self, number: int) -> Sequence[bool]:
        """Write one number and do not wait. The list gets whether it was acknowledged, when that is known."""
        request = produce_request((self.setup.topic, 0), self.records([b"%d" % number]), timeout_ms=2_000)
        outcome: list[bool] = []
        self.asked = number

        def handle_response(response: Any) -> None:
            error = None if response is None else response.responses[0].partition_responses[0].error_code
            if error == ErrorCode.NONE:
                self.acknowledged.append(number)
            else:
                self.refused += 1
            outcome.append(error == ErrorCode.NONE)

        to = self.leader(self.setup.topic) or 1
        self.send(request, PRODUCE_VERSION, to=to, heard=handle_response)
        return outcome

    def until_state(self, condition: Callable[[PartitionState], bool]) -> None:
        self.until(lambda: condition(self.state))

    def until_led(self, by: int | None = None) -> None:
        """Until a broker knows that it leads the partition; this one, if one is named."""
        self.until(lambda: self.leader(self.setup.topic) in ((by,) if by else self.setup.replicas))

    # -- observations

    @property
    def state(self) -> PartitionState:
        """The partition in the metadata."""
        return self.partition(self.setup.topic)

    def replica(self, broker_id: int) -> HostedPartition | None:
        """The replica of a broker that runs."""
        return self.hosted(self.setup.topic).get(broker_id)

    def ending(self) -> Ending:
        found = {_number_of(record) for record in self.read(self.setup.topic)}
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


def numbers_text(numbers: Sequence[int]) -> str:
    """`101 to 150`, or `11`; of an ascending sequence."""
    if not numbers:
        return "none"
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _numbers_saved(file: StillFile) -> Iterator[int]:
    """Recovery saves what it cuts, damage and all."""
    for batch in sound_batches(file, 0, file.size):
        for _, records in iterate_batches(read_batch(file, batch)):
            yield from map(_number_of, decode_batch(records))


def _number_of(record: Record) -> int:
    return int(record.value or b"")
