"""The effects of a quorum node, and its exceptions.

Effects are to be done in order. A `SaveElectionState` is done durably before any effect that follows it: a vote that
was sent and then forgotten elects two leaders in one epoch (rule 137). Those that are facts to others as well are
events (`events.quorum`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tanist.events.quorum import (
    BecameQuorumLeader,
    MetadataLogTruncated,
    QuorumLeaderChanged,
    SnapshotDownloaded,
    SteppedDown,
)
from tanist.quorum.storage.quorum_state_file import ElectionState
from tanist.quorum.voters import Endpoint
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


Effect: TypeAlias = (
    Send
    | Reply
    | SaveElectionState
    | SyncLog
    | HighWatermark
    | QuorumLeaderChanged
    | BecameQuorumLeader
    | SteppedDown
    | MetadataLogTruncated
    | SnapshotDownloaded
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
