"""What the clients of a run did and saw: the evidence that is judged, as it comes and at the end.

One list of operations in order of virtual time. A send is *invoked*, then acknowledged, failed, or left open
("unknown": the answer never came, so the record may or may not be there). Values are unique over the run.
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
    """Whatever was acknowledged before this was sent lies below."""
    outcome: str = "unknown"
    """ok, failed or unknown."""
    offset: int = -1
    completed_us: int = -1
    error: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """One record that a consumer was given."""

    topic: str
    partition: int
    offset: int
    value: bytes
    consumer: str
    at_us: int


@dataclass(frozen=True, slots=True)
class EndSeen:
    """What ListOffsets says of a partition's end, and what the leader that was asked must know."""

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
    """Called at the moment when a client hears of it."""
    on_read: Callable[[Read], None] = _nobody
    on_gone: Callable[[str, int, int], None] = _nobody3
    """Called when a consumer hears that the offset it asks for (topic, partition, offset) is not there (any more)."""
    on_refused: Callable[[Send, int], None] = _nobody2
    """Called when an idempotent producer is told that its sequence (of the send, with this error) makes no sense."""
    on_moved: Callable[[str, int, str, int], None] = _nobody4
    """Called when a consumer goes on from another offset of (topic, partition)."""
    on_end: Callable[[EndSeen], None] = _nobody
    """Called when a client hears where a partition ends."""

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
