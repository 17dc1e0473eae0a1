"""The effects of a quorum node, and its exceptions.

Effects are to be done in order. A `SaveElectionState` is done durably before any effect that follows it: a vote that
was sent and then forgotten elects two leaders in one epoch (rule 137).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tanist.quorum.store import ElectionState
from tanist.quorum.voters import Endpoint, SnapshotId
from tanist.wire.schema import Request, Response


@dataclass(frozen=True, slots=True)
class Send:
    """Send `request` to the node `to`; hand its answer (None: none came) to `RaftNode.response`.

    A negative `to` is a bootstrap server, whose id is not known.
    """

    request_id: int
    to: int
    request: Request
    endpoint: Endpoint | None = None
    """Where `to` listens."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request that came with `source`."""

    source: object
    response: Response


@dataclass(frozen=True, slots=True)
class SaveElectionState:
    """Write `quorum-state`, durably, before anything else."""

    state: ElectionState
    kraft_version: int = 0
    """Decides in which version of the file."""


@dataclass(frozen=True, slots=True)
class SyncLog:
    """Make the log durable, then call `RaftNode.log_synced` once with the end it had when the sync began.

    There is never more than one of these unanswered. If the disk fails, do not answer: stop the node.
    """


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """Everything below `offset` is committed, and in the local log or its snapshot."""

    offset: int


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """The leader or the epoch that this node knows has changed."""

    leader_id: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class Elected:
    """This node leads `epoch`, and everything older than the epoch is committed and readable (rule 149).

    `epoch_start_offset` is where its own records begin. Until this effect, `append` refuses.
    """

    epoch: int
    epoch_start_offset: int


@dataclass(frozen=True, slots=True)
class SteppedDown:
    """The node that was `Elected` in `epoch` leads no more. Its uncommitted records may be lost."""

    epoch: int


@dataclass(frozen=True, slots=True)
class MetadataTruncated:
    """The local log was cut: no record at or above `offset` is left of it. Nothing committed was among them."""

    offset: int


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The log was replaced by the leader's snapshot. Load it before reading on from its end."""

    snapshot_id: SnapshotId


Effect: TypeAlias = (
    Send
    | Reply
    | SaveElectionState
    | SyncLog
    | HighWatermark
    | LeaderChanged
    | Elected
    | SteppedDown
    | MetadataTruncated
    | SnapshotInstalled
)


@dataclass(frozen=True, slots=True)
class AppendOutcome:
    first_offset: int
    last_offset: int
    effects: list[Effect]


class QuorumError(Exception):
    """Base of the exceptions of this package."""


class NotLeader(QuorumError):
    """Only an elected leader appends."""


class BatchTooLarge(QuorumError):
    """The records do not fit into one batch."""


class QuorumInconsistent(QuorumError):
    """The impossible: two leaders in one epoch, committed records to be cut off, a leader's own fetch.

    A node has lost or forged state on which the algorithm rests. The node must stop; nothing was changed.
    """


class IllegalTransition(QuorumError):
    """A change of role that the table in `roles` does not have."""
