"""What the clients of a run did and saw: the evidence that is judged at its end.

One list of operations in order of virtual time. A send is *invoked*, then acknowledged, failed, or left open
("unknown": the answer never came, so the record may or may not be there). Values are unique over the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Send:
    """One record that a producer tried to write."""

    topic: str
    partition: int
    value: bytes
    invoked_us: int
    outcome: str = "unknown"
    """ok, failed or unknown."""
    offset: int = -1
    completed_us: int = -1
    error: int = 0


@dataclass(slots=True)
class Read:
    """One record that a consumer was given."""

    topic: str
    partition: int
    offset: int
    value: bytes
    consumer: str
    at_us: int


@dataclass
class History:
    """All sends and reads of a run."""

    sends: list[Send] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)

    @property
    def acknowledged(self) -> list[Send]:
        return [send for send in self.sends if send.outcome == "ok"]
