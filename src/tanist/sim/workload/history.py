"""The history of a run: the operations of its clients, which the checkers judge as they come and at the end.

One list of operations in order of virtual time. A send is *invoked*, then acknowledged, failed, or left open
("unknown": the answer never came, so the record may or may not exist). Values are unique over the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Send:
    """One record that a producer tried to write."""

    producer: str
    number: int
    """Counts the producer's records, over all partitions."""
    topic: str
    partition: int
    value: bytes
    invoked_us: int
    promised: bool = True
    """It was sent with acks=all, so an acknowledgement is a promise."""
    ordered: bool = True
    """It was sent with idempotence: once, and in order."""
    least_offset: int = 0
    """All records that were acknowledged before this one was sent have smaller offsets."""
    asked: int = -1
    """The broker that was asked last."""
    outcome: str = "unknown"
    """ok, failed or unknown."""
    offset: int = -1
    completed_us: int = -1
    error: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """One record that a consumer received."""

    topic: str
    partition: int
    offset: int
    value: bytes
    consumer: str
    at_us: int
    broker: int = -1
    """That gave it."""
    asked_us: int = -1
    """When it was asked."""


@dataclass(frozen=True, slots=True)
class EndSeen:
    """A partition's end from ListOffsets, and the least offset that the asked leader must know."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    least: int
    """Committed when the epoch of that leader began."""


def _nobody(_: object) -> None:
    pass


def _nobody2(send: Send, error: int) -> None:
    pass


def _nobody4(topic: str, partition: int, consumer: str, offset: int) -> None:
    pass


def _nobody3(topic: str, partition: int, offset: int) -> None:
    pass


@dataclass
class History:
    """All sends and reads of a run."""

    sends: list[Send] = field(default_factory=list)
    by_value: dict[bytes, Send] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    on_sent: Callable[[Send], None] = _nobody
    on_acknowledged: Callable[[Send], None] = _nobody
    """Called at the moment when a client receives the acknowledgement."""
    on_read: Callable[[Read], None] = _nobody
    on_gone: Callable[[str, int, int], None] = _nobody3
    """Called when a consumer's offset (topic, partition, offset) is out of range."""
    on_refused: Callable[[Send, int], None] = _nobody2
    """Called when a broker refuses the sequence of an idempotent producer (the send, the error)."""
    on_moved: Callable[[str, int, str, int], None] = _nobody4
    """Called when a consumer continues at another offset of (topic, partition)."""
    on_end: Callable[[EndSeen], None] = _nobody
    """Called when a client learns a partition's end."""

    def sent(self, send: Send) -> None:
        self.sends.append(send)
        self.by_value[send.value] = send
        self.on_sent(send)

    def acknowledged(self, send: Send, offset: int, now_us: int) -> None:
        send.outcome, send.offset, send.completed_us = "ok", offset, now_us
        self.on_acknowledged(send)

    def read(self, read: Read) -> None:
        self.reads.append(read)
        self.on_read(read)

    @property
    def acknowledged_count(self) -> int:
        return sum(send.outcome == "ok" for send in self.sends)
