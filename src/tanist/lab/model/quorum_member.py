"""A voter of the quorum model as a value: its saved state, role and log, and the result of one of its turns.

A voter is a number from 0. `renamed` and `anonymous` serve the symmetry of the search: voters differ by name only.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tanist.lab.model.components import Permutation, rename_mask, rename_one

MetadataLog: TypeAlias = tuple[tuple[int, int], ...]
"""Of each record its epoch, and what it holds: -1 for the record with which an epoch begins."""


class Saved(NamedTuple):
    """What is in a node's `quorum-state` file."""

    epoch: int
    leader: int
    voted: int

    def renamed(self, to: Permutation) -> Saved:
        return Saved(self.epoch, rename_one(self.leader, to), rename_one(self.voted, to))


class Member(NamedTuple):
    """One voter: what it remembers, its role, and its log."""

    saved: Saved
    role: str
    epoch: int
    leader: int
    voted: int
    granted: int
    rejected: int
    has_fetched: bool
    leader_lost: bool
    epoch_start: int
    committed: int
    """Of a leader: how far it has committed in its own epoch, -1 for nothing."""
    announced: bool
    ends: tuple[int, ...]
    """Of a leader: how far each voter has come, -1 where it has not heard."""
    log: MetadataLog
    durable: int
    """How much of the log it knows to be durable. A new process begins with nothing."""
    on_disk: int
    """How much of it would survive a loss of power (a ghost)."""
    high_watermark: int
    cast: int
    """For whom it has voted in its epoch, whether or not it remembers (a ghost); -1: for nobody."""

    def renamed(self, to: Permutation) -> Member:
        ends = self.ends
        if ends:
            listed = list(ends)
            for voter, end in enumerate(ends):
                listed[to[voter]] = end
            ends = tuple(listed)
        return self._replace(
            saved=self.saved.renamed(to),
            leader=rename_one(self.leader, to),
            voted=rename_one(self.voted, to),
            cast=rename_one(self.cast, to),
            granted=rename_mask(self.granted, to),
            rejected=rename_mask(self.rejected, to),
            ends=ends,
        )

    def anonymous(self) -> tuple[object, ...]:
        """What can be said of it without naming another."""
        return (
            self.role,
            self.epoch,
            self.saved.epoch,
            self.granted.bit_count(),
            self.rejected.bit_count(),
            self.has_fetched,
            self.leader_lost,
            self.epoch_start,
            self.committed,
            self.log,
            self.durable,
            self.on_disk,
            self.high_watermark,
        )


class SentVoteRequest(NamedTuple):
    """A request for a vote."""

    candidate: int
    voter: int
    epoch: int
    last_epoch: int
    end_offset: int
    pre_vote: bool

    def renamed(self, to: Permutation) -> SentVoteRequest:
        return self._replace(candidate=to[self.candidate], voter=to[self.voter])


class Turn(NamedTuple):
    """What became of a node."""

    member: Member
    elected_at: int = -1
    """`Elected` was said, of an epoch that begins at this offset."""
    cut_at: int = -1
    pre_vote_granted: bool = False
    fatal: str = ""
    """The node has stopped, for what it was told is impossible."""
