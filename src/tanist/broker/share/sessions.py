"""Share sessions: which partitions a member fetches, kept between its requests (KIP-932).

A session begins with epoch 0, and each request of its member has the next epoch; -1 ends it. It also ends with the
member's connection. Records that a member has are others' to have when its session ends: the caller sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from tanist.wire.errors import ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1

Place = tuple[UUID, int]


class SessionRefused(Exception):
    """The request is refused with this error."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(ErrorCode.name_of(error))
        self.error = error


@dataclass(slots=True, eq=False)
class ShareSession:
    """One member's session."""

    group_id: str
    member_id: str
    epoch: int = 1
    """That of the next request."""
    places: dict[Place, None] = field(default_factory=dict)
    """In their order."""
    owed: set[Place] = field(default_factory=set)
    """Those that the next answer names though it has nothing of them: they are new, or had an error."""

    def answered(self, errors: Mapping[Place, int]) -> None:
        """An answer has named these, with or without an error."""
        self.owed.difference_update(errors)
        self.owed.update(place for place, error in errors.items() if error and place in self.places)


class ShareSessions:
    """The sessions of this broker."""

    def __init__(self, most: int, ended: Callable[[ShareSession], None]) -> None:
        """`most`: how many there may be. `ended` hears of each whose member has not ended it itself."""
        self._most = most
        self._ended = ended
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def has_group(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return any(group == group_id for group, _ in self._sessions)

    def fetching(
        self,
        key: tuple[str, str],
        epoch: int,
        added: Collection[Place],
        forgotten: Iterable[Place],
        *,
        acknowledges: bool,
    ) -> ShareSession:
        """The session of a ShareFetch, after what the request changes in it. `SessionRefused`."""
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                raise SessionRefused(ErrorCode.INVALID_REQUEST)
            self._sessions.pop(key, None)
            if len(self._sessions) >= self._most:
                raise SessionRefused(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            session = self._sessions[key] = ShareSession(*key, places=dict.fromkeys(added))
            return session
        session = self.acknowledging(key, epoch)
        if epoch != FINAL_EPOCH:
            session.owed.update(place for place in added if place not in session.places)
            session.places.update(dict.fromkeys(added))
            for place in forgotten:
                session.places.pop(place, None)
                session.owed.discard(place)
        return session

    def acknowledging(self, key: tuple[str, str], epoch: int) -> ShareSession:
        """The session of a ShareAcknowledge. `SessionRefused`."""
        if epoch == INITIAL_EPOCH:
            raise SessionRefused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = self._sessions.get(key)
        if session is None:
            raise SessionRefused(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if epoch != session.epoch:
                raise SessionRefused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        return session

    def end(self, session: ShareSession) -> None:
        """The session is over, by its member's word or with its connection."""
        key = (session.group_id, session.member_id)
        if self._sessions.get(key) is session:
            del self._sessions[key]
            self._ended(session)
