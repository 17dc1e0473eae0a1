"""A fetch session (KIP-227) as the follower keeps it: what the leader knows of its fetches, and what the next names.

The first request is a full one. Each later one names the partitions whose position is another one than the leader has,
and those that are not fetched any more. A session that may be out of step is given up, whatever the reason: an error,
a request without an answer, an answer that does not count because the role or the log has changed meanwhile. The next
full request ends it at the leader, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tanist.replica.follower import FetchPosition, FollowerState
from tanist.wire.fetch import FetchTarget

Key = tuple[UUID, int]


class Asked(NamedTuple):
    """One partition as the leader has it: the role in which it is fetched, and from where."""

    follower: FollowerState
    position: FetchPosition
    target: FetchTarget


class FetcherSession:
    """One session, from its full request on. A leader that declines gives it no id: then each request is a full one."""

    __slots__ = ("_changed", "_forgotten", "asked", "before", "declined", "epoch", "id")

    def __init__(self, before: int = 0, *, declined: bool = False) -> None:
        """`before`: the id of the session that this one replaces. `declined`: the leader has refused the last one."""
        self.before = before
        self.declined = declined
        self.id = 0
        self.epoch = 0
        """Of the next request; 0 is the full one's."""
        self.asked: dict[Key, Asked] = {}
        self._changed: dict[UUID, list[FetchTarget]] = {}
        self._forgotten: dict[UUID, list[int]] = {}

    @property
    def begins(self) -> bool:
        """Is the next request the full one?"""
        return self.epoch == 0

    @property
    def unanswered(self) -> bool:
        """Has it begun, and has the leader not said yet whether there is one?"""
        return self.epoch != 0 and not self.id

    def ask(self, key: Key, asked: Asked) -> None:
        """The partition is to be fetched: name it if the leader does not know that already."""
        known = self.asked.get(key)
        if known is None or known.target != asked.target:
            self._changed.setdefault(key[0], []).append(asked.target)
        self.asked[key] = asked

    def forget(self, key: Key) -> None:
        """The partition is not to be fetched, for now or for good."""
        if self.asked.pop(key, None) is not None:
            self._forgotten.setdefault(key[0], []).append(key[1])

    def replaces(self, key: Key, asked: Asked) -> bool:
        """Whether the leader has the partition in another role or at another position."""
        known = self.asked.get(key)
        return known is not None and (known.follower is not asked.follower or known.position != asked.position)

    def request(
        self,
    ) -> tuple[int, int, Sequence[tuple[UUID, list[FetchTarget]]], Sequence[tuple[UUID, list[int]]]]:
        """(session id, epoch, topics, forgotten topics) of the next request, which must be sent."""
        named = (self.id or self.before, self.epoch, list(self._changed.items()), list(self._forgotten.items()))
        self._changed, self._forgotten = {}, {}
        self.epoch = self.epoch % (2**31 - 1) + 1
        return named

    def handle_response(self, session_id: int) -> bool:
        """The leader has answered without an error: does the session go on?"""
        if not self.id:
            self.id = session_id
        return session_id != 0 and session_id == self.id
