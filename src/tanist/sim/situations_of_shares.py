"""Situations of share groups: moments in which a rule of their delivery decides (`situations`, for runs with them)."""

from __future__ import annotations

from typing import Final

from tanist.coordinator.share.runs import RecordState
from tanist.events import coordination
from tanist.sim.situations import Situation, on
from tanist.wire.errors import ErrorCode

OF_SHARES: Final[dict[str, Situation]] = {
    "share leader: begins by the group's configuration": on(
        coordination.ShareStateRead, "nothing was stored of the partition", reset=True
    ),
    "share leader: goes on from a stored state": on(
        coordination.ShareStateRead,
        "of a leader before it, which is fenced by that",
        lambda event: not event.reset and event.leader_epoch > 0,
    ),
    "share leader: fenced by its successor": on(
        coordination.ShareStateRefused,
        "it hears of it by the answer of the state's coordinator",
        error=ErrorCode.FENCED_LEADER_EPOCH,
    ),
    "share leader: record given again": on(
        coordination.ShareRecordsAcquired, "released, or not spoken of in time", lambda event: event.delivery_count > 1
    ),
    "share leader: record released": on(
        coordination.ShareRecordsStored, "by its member's word, or with its session", state=RecordState.AVAILABLE
    ),
    "share leader: record accepted": on(
        coordination.ShareRecordsStored, "it is not given again", state=RecordState.ACKNOWLEDGED
    ),
    "share leader: record archived": on(
        coordination.ShareRecordsStored, "rejected, or released too often", state=RecordState.ARCHIVED
    ),
    "share leader: lock expired": on(coordination.ShareLockExpired, "others may have the record", archived=False),
    "share leader: lock expired for the last time": on(
        coordination.ShareLockExpired, "the record was given as often as it may be", archived=True
    ),
    "share session: ended": on(coordination.ShareSessionEnded, "by its member, or with its connection"),
    "share session: not found": on(
        coordination.ShareSessionRefused,
        "the leader has moved, or started again",
        error=ErrorCode.SHARE_SESSION_NOT_FOUND,
    ),
    "share session: too many": on(
        coordination.ShareSessionRefused,
        "of members that are gone, and whose connections are not",
        error=ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ),
}
"""Name -> the situation."""
