"""A voter of the quorum model as a value: its saved state, role and log, and the result of one of its turns.

A voter is a number from 0. `renamed` and `anonymous` serve the symmetry of the search: voters differ by name only.
Owns the places in a state's tuple, too, and `Ghosts`, which no node has: the model keeps them for its properties.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tanist.lab.model.steps import Permutation, rename_mask, rename_one

MetadataLog: TypeAlias = tuple[tuple[int, int], ...]
"""The epoch and payload of each record: -1 for the record with which an epoch begins, less for a set of voters."""

_SETS_BELOW = -1


def payload_of_set(mask: int) -> int:
    """The payload of a record that names these voters."""
    return _SETS_BELOW - 1 - mask


def set_of_payload(payload: int) -> int | None:
    """The voters that a record names, as a mask; None if it is another record."""
    return _SETS_BELOW - 1 - payload if payload < _SETS_BELOW else None


def voters_in(log: MetadataLog, first: int) -> int:
    """The set in force, as a mask: the last one in the log, or the first of all."""
    return next((_SETS_BELOW - 1 - payload for _, payload in reversed(log) if payload < _SETS_BELOW), first)


def renamed_log(log: MetadataLog, to: Permutation) -> MetadataLog:
    if all(payload >= _SETS_BELOW for _, payload in log):
        return log
    return tuple(
        (epoch, payload if (mask := set_of_payload(payload)) is None else payload_of_set(rename_mask(mask, to)))
        for epoch, payload in log
    )


def _nameless_log(log: MetadataLog) -> MetadataLog:
    if all(payload >= _SETS_BELOW for _, payload in log):
        return log
    return tuple(
        (epoch, payload if (mask := set_of_payload(payload)) is None else payload_of_set(mask.bit_count()))
        for epoch, payload in log
    )


class Saved(NamedTuple):
    """The content of a node's `quorum-state` file."""

    epoch: int
    leader: int
    voted: int

    def renamed(self, to: Permutation) -> Saved:
        return Saved(self.epoch, rename_one(self.leader, to), rename_one(self.voted, to))


class VoterState(NamedTuple):
    """One voter: its saved state, its role, and its log."""

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
    """Of a leader: its committed offset in its own epoch, -1 for none."""
    announced: bool
    ends: tuple[int, ...]
    """Of a leader: each controller's end offset, -1 where it is unknown."""
    log: MetadataLog
    durable: int
    """The offset up to which it knows the log to be durable. A new process begins with 0."""
    on_disk: int
    """The offset up to which the log would survive a loss of power (a ghost)."""
    high_watermark: int
    cast: int
    """The candidate of its vote in its epoch, remembered or not (a ghost); -1: none."""

    def renamed(self, to: Permutation) -> VoterState:
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
            log=renamed_log(self.log, to),
        )

    def anonymous(self) -> tuple[object, ...]:
        """Its traits that name no other voter."""
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
            _nameless_log(self.log),
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


class VoterResult(NamedTuple):
    """The result of a node's turn."""

    member: VoterState
    elected_at: int = -1
    """The effect `BecameQuorumLeader`, for an epoch that begins at this offset; -1: none."""
    cut_at: int = -1
    pre_vote_granted: bool = False
    fatal: str = ""
    """The reason why the node has stopped: it has seen an impossible event."""


STALE, GHOSTS, BUDGET, MEMBERS = range(4)
"""The places in a state: vote requests of former candidates, ghosts, budget, then each member."""


class Ghosts(NamedTuple):
    """Ghost variables: only the checker knows them."""

    leaders: tuple[tuple[int, int], ...]
    """Epochs and their leaders."""
    committed: MetadataLog

    def renamed(self, to: Permutation) -> Ghosts:
        return self._replace(
            leaders=tuple((epoch, to[leader]) for epoch, leader in self.leaders),
            committed=renamed_log(self.committed, to),
        )
