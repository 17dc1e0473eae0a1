"""The effects of a replica: the requests and notices of `Partition`, `LeaderState` and `FollowerState`.

An effect is a request to, or a notice for, the node that runs the replica. No effect refers back to the replica, so
effects may be kept, compared and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from tanist.replica.salvage import Cut


@dataclass(frozen=True, slots=True)
class BecameLeader:
    """This replica leads, in a leader epoch it had not led in before."""

    leader_epoch: int
    leader_epoch_start_offset: int


@dataclass(frozen=True, slots=True)
class BecameFollower:
    """This replica follows `leader` (-1: none yet), in a leader epoch that is new to it."""

    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class StoppedReplicating:
    """This broker is no replica of the partition any more."""

    leader_epoch: int


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
class IsrChanged:
    """The committed ISR has changed, by our proposal or by the controller's decision."""

    isr: tuple[int, ...]
    grew: tuple[int, ...]
    shrank: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IsrUpdateFailed:
    """The controller did not take our proposal. For `FailedIsrUpdatesPerSec` and the log."""

    error: int


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """The follower's log was cut from `previous_end_offset` to `offset`, or emptied and restarted there (`fully`).

    `previous_high_watermark` above `offset` means that records which had been committed, as far as this replica knew,
    are gone from it: only an unclean election explains that (rule 115).
    """

    offset: int
    previous_end_offset: int
    previous_high_watermark: int
    fully: bool = False


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
class RecordsRefused:
    """What the leader of the epoch has sent cannot follow this log: nothing of it was appended."""

    leader: int
    leader_epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class FetchAgain:
    """The follower's next fetch may be sent in `delay_ms`."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class AskOffsets:
    """Ask `leader`, by ListOffsets as a replica, for its log start and log end; then call `offsets_answered`."""

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
