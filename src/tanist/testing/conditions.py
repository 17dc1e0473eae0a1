"""What a test waits for: a state of partitions, asked of the cluster until it holds.

A `Condition` says what it lacks, so that a wait that ends too late says it as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tanist.runtime.client.admin import PartitionDescription, describe_topics
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.runtime.cluster.waiting import POLL_EVERY_S, wait_until_so
from tanist.testing.errors import NotInTime
from tanist.text import counted
from tanist.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Condition:
    """A state of a topic's partitions, or of one of them."""

    topic: str
    partition: int | None = None
    """None: every partition."""
    leader: int | None = None
    """The broker that shall lead; None: any."""
    has_leader: bool = True
    isr: int | None = None
    """How many replicas shall be in sync, exactly; None: no matter."""
    all_in_sync: bool = False

    def __post_init__(self) -> None:
        if self.isr is not None and not isinstance(self.isr, int):
            raise ValueError(f"isr is how many replicas shall be in sync, such as 2, and not {self.isr!r}")

    def lack(self, client: Client) -> str:
        """What is not so yet; empty if all is."""
        try:
            (topic,) = describe_topics(client, [self.topic])
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return f"there is no topic {self.topic}"
            raise
        partitions = [each for each in topic.partitions if self.partition in (None, each.partition)]
        if not partitions:
            return f"{self.topic} has no partition {self.partition}"
        for each in partitions:
            if lack := self._lack_of(each):
                return f"{self.topic}-{each.partition} has {lack}"
        return ""

    def _lack_of(self, partition: PartitionDescription) -> str:
        if self.leader is not None and partition.leader != self.leader:
            return "no leader" if partition.leader < 0 else f"leader {partition.leader}, not {self.leader}"
        if self.has_leader and partition.leader < 0:
            return "no leader"
        if not self.has_leader and partition.leader >= 0:
            return f"leader {partition.leader}"
        wanted = len(partition.replicas) if self.all_in_sync else self.isr
        if wanted is not None and len(partition.isr) != wanted:
            members = ", ".join(map(str, partition.isr)) or "none"
            return f"{counted(len(partition.isr), 'replica')} in sync ({members}), not {wanted}"
        return ""


def led(topic: str, partition: int | None = None, *, by: int | None = None) -> Condition:
    """The topic exists and every partition (or this one) has a leader: any, or broker `by`."""
    return Condition(topic, partition, leader=by)


def in_sync(topic: str, partition: int | None = None, *, isr: int | None = None) -> Condition:
    """Every partition (or this one) has a leader and all its replicas in sync, or exactly `isr` of them."""
    return Condition(topic, partition, isr=isr, all_in_sync=isr is None)


def wait_for(condition: Condition, connect: Callable[[], Client], timeout_s: float) -> None:
    """Ask until the condition holds. `NotInTime` says what was lacking last."""
    try:
        lack = wait_until_so(condition.lack, connect, timeout_s)
    except ClusterError as error:
        lack = str(error)
    if lack:
        raise _late(timeout_s, lack)


def wait_for_true(predicate: Callable[[], object], timeout_s: float) -> None:
    """Call until it gives something true."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        if time.monotonic() >= deadline:
            name = getattr(predicate, "__qualname__", repr(predicate))
            raise _late(timeout_s, f"{name} gives nothing true")
        time.sleep(POLL_EVERY_S)


def _late(timeout_s: float, lack: str) -> NotInTime:
    return NotInTime(f"not within {timeout_s:g} s: {lack}")
