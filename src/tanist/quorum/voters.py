"""The participants: replica keys, voters, and the set of voters.

A set never changes. With kraft.version 0 it is the static one of `controller.quorum.voters`; from kraft.version 1 on
the metadata log names one after the other (`voter_history`). Only this module defines a majority.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tanist.wire.ids import ZERO_UUID


class ReplicaKey(NamedTuple):
    """A replica: its node id and the id of the directory of its log (zero: not known)."""

    node_id: int
    directory_id: UUID = ZERO_UUID


class Endpoint(NamedTuple):
    host: str
    port: int


class Listener(NamedTuple):
    """A named endpoint of a voter, as the metadata log has it."""

    name: str
    host: str
    port: int


class LogEnd(NamedTuple):
    """How far a log goes. Ordered as votes compare logs: by epoch, then by offset (rule 136)."""

    epoch: int
    offset: int


class SnapshotId(NamedTuple):
    """The records that a snapshot covers: all below `end_offset`, the last of them of `epoch`."""

    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Voter:
    node_id: int
    directory_id: UUID
    host: str
    port: int
    listeners: tuple[Listener, ...] = ()
    """All its endpoints; `host` and `port` are those of the quorum's listener."""
    kraft_versions: tuple[int, int] = (0, 1)
    """The lowest and highest `kraft.version` that it supports."""

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)

    def is_key(self, key: ReplicaKey) -> bool:
        """A voter whose directory is not known (static voters) is known by its node id alone."""
        return self.node_id == key.node_id and self.directory_id in (ZERO_UUID, key.directory_id)


class VoterSet:
    """The voters, by node id. Empty where they are not known yet."""

    __slots__ = ("_voters",)

    def __init__(self, voters: Iterable[Voter]) -> None:
        by_id: dict[int, Voter] = {}
        for voter in sorted(voters, key=lambda voter: voter.node_id):
            if voter.node_id in by_id:
                raise ValueError(f"voter {voter.node_id} is named twice")
            by_id[voter.node_id] = voter
        self._voters = by_id

    def __len__(self) -> int:
        return len(self._voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._voters.values())

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._voters

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self._voters)

    @property
    def majority(self) -> int:
        return len(self._voters) // 2 + 1

    def get(self, node_id: int) -> Voter | None:
        return self._voters.get(node_id)

    def is_voter(self, key: ReplicaKey) -> bool:
        voter = self._voters.get(key.node_id)
        return voter is not None and voter.is_key(key)

    def others(self, node_id: int) -> tuple[Voter, ...]:
        return tuple(voter for voter in self._voters.values() if voter.node_id != node_id)

    def with_voter(self, voter: Voter) -> VoterSet:
        """This set and `voter`, which takes the place of the one of its id."""
        return VoterSet((*self.others(voter.node_id), voter))

    def without(self, node_id: int) -> VoterSet:
        return VoterSet(self.others(node_id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    def __hash__(self) -> int:
        return hash(tuple(self._voters.values()))
