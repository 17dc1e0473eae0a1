"""The effects of a replica: the requests and notices of `Partition`, `LeaderState` and `FollowerState`.

An effect is a request to, or a notice for, the node that runs the replica. A notice is an event, and is emitted by who
carries the effects out. No effect refers back to the replica, so effects may be kept, compared and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from tanist.events.replication import (
    BecameFollower,
    BecameLeader,
    IsrChanged,
    IsrUpdateFailed,
    LogTruncated,
    RecordsRefused,
    StoppedReplicating,
)
from tanist.replica.salvage import Cut


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """The leader has committed up to here: waiting producers and consumers can be answered."""

    high_watermark: int


@dataclass(frozen=True, slots=True)
class HighWatermarkSet:
    """A follower learned another high watermark. It may be lower than the last one (rule 7)."""

    high_watermark: int


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Send this partition's part of an AlterPartition, `delay_ms` from now.

    `isr` pairs each proposed member with the broker epoch the leader knows it by, -1 for unknown (rule 17). Hand the
    effect back with the answer, so that the leader can ignore an answer to an overtaken proposal (rule 20).
    """

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovering: bool
    delay_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SalvageFirst:
    """The follower is about to cut records off: save them, then call `salvaged` with this effect (or if that fails).

    Until then it does not fetch.
    """

    cut: Cut
    end_offset: int
    high_watermark: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class FetchAgain:
    """The follower's next fetch may be sent in `delay_ms`."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class AskOffsets:
    """Ask `leader`, by ListOffsets as a replica, for its log start and log end; then call `handle_offsets_response`."""

    leader: int
    current_leader_epoch: int


Effect: TypeAlias = (
    BecameLeader
    | BecameFollower
    | StoppedReplicating
    | HighWatermarkAdvanced
    | HighWatermarkSet
    | ProposeIsr
    | IsrChanged
    | IsrUpdateFailed
    | LogTruncated
    | SalvageFirst
    | RecordsRefused
    | FetchAgain
    | AskOffsets
)
