"""What the checks of share groups know of each share partition: who has which record, and what was said of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Hold:
    """A member has a record, by its leader's gift."""

    member_id: str
    node_id: int
    until_us: int


@dataclass(slots=True)
class Book:
    """What is known of one share partition."""

    newest_epoch: int = -1
    """The leader epoch of the last reading of its state."""
    readers: set[int] = field(default_factory=set)
    """Nodes that have read it since its offsets were last changed."""
    in_doubt: bool = False
    """An operator has asked for other offsets, and has no answer."""
    changed_to: int | None = None
    """The offset that the next reader must find; None: it was read since."""
    begins: int = -1
    """Where the group has begun; -1: it has not yet."""
    stored_start: int = -1
    state_epoch: int = -1
    done: set[int] = field(default_factory=set)
    """Offsets whose acceptance or rejection was answered."""
    unchecked: set[int] = field(default_factory=set)
    """Those that are not below a start offset that is known to be stored."""
    said: set[int] = field(default_factory=set)
    """Offsets that somebody has accepted or rejected, answered or not."""
    accepted: set[int] = field(default_factory=set)
    """Those that somebody has accepted."""
    rejected: set[int] = field(default_factory=set)
    """And those that somebody has rejected; of all times."""
    dead: set[int] = field(default_factory=set)
    """Whose rejection was answered without an error, and that nobody had accepted: below the start offset a late word
    is answered so, too."""
    exhausted: set[int] = field(default_factory=set)
    """Offsets that were ever given as often as they may be."""
    given_up: set[int] = field(default_factory=set)
    """Offsets that were given as often as they may be."""
    counts: dict[int, int] = field(default_factory=dict)
    """How often the leader of now has given each, as it says."""
    released: dict[int, int] = field(default_factory=dict)
    """The delivery count with which a record's release was answered."""
    holds: dict[int, Hold] = field(default_factory=dict)
    gifts: set[tuple[int, str, int]] = field(default_factory=set)
    """(offset, member id, delivery count)"""
    counted: set[tuple[int, str]] = field(default_factory=set)
    """(offset, member id) of gifts by who has read the state since its offsets were last changed."""
    received: dict[tuple[int, str], int] = field(default_factory=dict)
    """(offset, member id) -> the delivery count with which the member has last received it."""

    def forget(self) -> None:
        """The group goes on from other offsets: what members have got and said does not count any more."""
        of_now = (self.done, self.unchecked, self.said, self.accepted, self.dead, self.given_up)
        for known in (*of_now, self.readers, self.counted):
            known.clear()
        for of_offsets in (self.counts, self.released, self.holds):
            of_offsets.clear()
        self.received.clear()
        self.stored_start = -1
