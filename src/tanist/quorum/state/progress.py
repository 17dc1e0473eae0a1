"""The progress of each replica, as the leader of an epoch knows it (rules 139, 141, 142).

Owns the voters' and observers' end offsets and times, and the values that follow from them: the committed offset, the
order of successors, and whether a majority still fetches. Knows nothing of messages. Observers come and go, so their
number is bounded and silent ones are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from tanist.quorum.voters import ReplicaKey, VoterSet
from tanist.wire.ids import ZERO_UUID

OBSERVER_SESSION_MS = 300_000
"""After this long without a fetch an observer is no longer described."""

MAX_OBSERVERS = 2000
"""More than a cluster has brokers; a stranger that invents replica ids evicts the longest silent, no voter."""


@dataclass(slots=True)
class ReplicaProgress:
    key: ReplicaKey
    end_offset: int | None = None
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None
    leader_end_at_last_fetch: int = -1

    directory_id: UUID = ZERO_UUID
    """As its last fetch has it; a static voter's key lacks it."""

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        if offset >= leader_end:
            self.last_caught_up_ms = now_ms
        elif 0 < self.leader_end_at_last_fetch <= offset:
            # It has reached the leader's end as of its last fetch: it was caught up then.
            self.last_caught_up_ms = self.last_fetch_ms
        self.leader_end_at_last_fetch = leader_end
        self.last_fetch_ms = now_ms
        self.end_offset = offset


class Progress:
    """The replicas of one leader's epoch. `now_ms` is when the epoch began."""

    __slots__ = ("_fetched_voters", "_voter_set", "observers", "own_id", "own_offset", "quorum_seen_ms", "voters")

    def __init__(self, own_id: int, voters: VoterSet, now_ms: int) -> None:
        self.own_id = own_id
        self.own_offset = -1
        self._voter_set = voters
        self._fetched_voters: set[int] = set()
        self.voters = {voter.node_id: ReplicaProgress(voter.key) for voter in voters}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {}
        self.quorum_seen_ms = now_ms
        """Since when, at the latest, a majority has fetched (rule 141)."""

    def own_end(self, offset: int) -> None:
        """The leader's own log is durable up to `offset`."""
        self.own_offset = offset
        own = self.voters.get(self.own_id)
        if own is not None:
            own.end_offset = offset

    def set_voters(self, voters: VoterSet, now_ms: int) -> None:
        """The log names other voters. Each replica keeps its progress, be it a voter or an observer from now on."""
        before, self.voters, self._voter_set = self.voters, {}, voters
        for voter in voters:
            known = before.pop(voter.node_id, None)
            if known is not None and voter.is_key(known.key):
                known.key = voter.key
            else:
                if known is not None:
                    self._observe(known)
                known = self.observers.pop(voter.key, None) or ReplicaProgress(voter.key)
            self.voters[voter.node_id] = known
        for removed in before.values():
            self._observe(removed)
        self._fetched_voters &= set(self.voters)
        self.own_end(self.own_offset)
        self.quorum_seen_ms = now_ms

    def _observe(self, replica: ReplicaProgress) -> None:
        if replica.key.node_id != self.own_id and replica.last_fetch_ms is not None:
            self.observers[replica.key] = replica

    def of(self, key: ReplicaKey) -> ReplicaProgress | None:
        """A replica's progress, be it a voter or an observer."""
        voter = self.voters.get(key.node_id)
        return voter if voter is not None and self._voter_set.is_voter(key) else self.observers.get(key)

    def fetched(self, key: ReplicaKey, offset: int, leader_end: int, now_ms: int) -> None:
        """A valid fetch: the replica has, durably, everything below `offset` as the leader has it."""
        replica = self._replica(key, now_ms)
        replica.directory_id = key.directory_id
        replica.fetched(offset, leader_end, now_ms)
        self.heard_from(key, now_ms)

    def heard_from(self, key: ReplicaKey, now_ms: int) -> None:
        """Rule 141: a voter has fetched, be it a snapshot. Observers do not count, nor does the leader itself."""
        if key.node_id == self.own_id or not self._voter_set.is_voter(key):
            return
        self._fetched_voters.add(key.node_id)
        needed = self._voter_set.majority - (1 if self.own_id in self._voter_set else 0)
        if len(self._fetched_voters) >= needed:
            self._fetched_voters.clear()
            self.quorum_seen_ms = now_ms

    def end_offsets(self, *, counts_own: bool = True) -> list[int]:
        """The voters' end offsets, the farthest first; -1 where none is known. The leader's own if `counts_own`."""
        ends = [
            -1 if voter.end_offset is None else voter.end_offset
            for node_id, voter in self.voters.items()
            if node_id != self.own_id
        ]
        if counts_own:
            ends.append(self.own_offset)
        return sorted(ends, reverse=True)

    def successors(self) -> tuple[ReplicaKey, ...]:
        """The other voters, the best replicated first (rule 139)."""
        others = [voter for node_id, voter in self.voters.items() if node_id != self.own_id]
        others.sort(key=lambda voter: (voter.end_offset is None, -(voter.end_offset or 0), voter.key.node_id))
        return tuple(voter.key for voter in others)

    def silent_voters(self, since_ms: int) -> tuple[int, ...]:
        """The other voters that have not fetched since `since_ms` (rule 138)."""
        return tuple(
            node_id
            for node_id, voter in self.voters.items()
            if node_id != self.own_id and (voter.last_fetch_ms is None or voter.last_fetch_ms < since_ms)
        )

    def present_observers(self, now_ms: int) -> Iterable[ReplicaProgress]:
        self._forget_silent(now_ms)
        return self.observers.values()

    def _replica(self, key: ReplicaKey, now_ms: int) -> ReplicaProgress:
        if self._voter_set.is_voter(key):
            return self.voters[key.node_id]
        # Taken out and put back, so that the dictionary is in order of the last fetch.
        replica = self.observers.pop(key, None)
        if replica is None:
            self._forget_silent(now_ms)
            if len(self.observers) >= MAX_OBSERVERS:
                del self.observers[next(iter(self.observers))]
            replica = ReplicaProgress(key)
        self.observers[key] = replica
        return replica

    def _forget_silent(self, now_ms: int) -> None:
        while self.observers:
            key, replica = next(iter(self.observers.items()))
            if replica.last_fetch_ms is None or now_ms - replica.last_fetch_ms < OBSERVER_SESSION_MS:
                return
            del self.observers[key]
