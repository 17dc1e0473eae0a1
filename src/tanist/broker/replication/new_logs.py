"""New replicas whose logs are not made yet: too many for one turn, or for want of descriptors.

For all others it is as if the metadata had not come yet for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.events.replication import ReplicasWait, ReplicasWaitNoMore

_RETRY_WAITING_MS = 1000


class NewLogs:
    """Who waits, and how many logs this turn has made."""

    def __init__(self, context: NodeContext, apply: Callable[[Iterable[tuple[UUID, int]]], None]) -> None:
        """`apply` makes replicas that had to wait, or has them wait again."""
        self._context = context
        self._apply = apply
        self._waiting: set[tuple[UUID, int]] = set()
        """For descriptors."""
        self.queued: dict[tuple[UUID, int], None] = {}
        """Their logs are made in one of the next turns."""
        self.turn_max = context.config.new_logs_turn_max
        """So many are made in a turn: a log takes some tenths of a millisecond."""
        self.pause_ms = context.config.new_logs_pause_ms
        """After a turn that could not make all."""
        self.made = 0
        """Logs that this turn has made."""
        self._closed = False

    def close(self) -> None:
        self._closed = True

    @property
    def turn_is_full(self) -> bool:
        return self.made >= self.turn_max

    def make_later(self, topic_id: UUID, index: int) -> None:
        """Other input comes first: thousands of new logs take seconds. As if the metadata had not come yet for it."""
        if not self.queued:
            self._schedule_making()
        self.queued[topic_id, index] = None

    def _schedule_making(self) -> None:
        self._context.clock.call_at(self._context.clock.now_ms() + self.pause_ms, self._make_queued)

    def _make_queued(self) -> None:
        queued = list(islice(self.queued, self.turn_max))
        for key in queued:
            del self.queued[key]
        if self.queued:
            self._schedule_making()
        self._apply(queued)

    def wait_for_descriptors(self, name: str, topic_id: UUID, index: int) -> None:
        """A new replica waits until files can be opened again: those that are open must have what their logs need.

        As the metadata has not come yet for it: nobody produces to it here, and as a follower it does not fetch.
        """
        if not self._waiting:
            self._context.events.emit(ReplicasWait(f"{name}-{index}"))
            self._context.clock.call_at(self._context.clock.now_ms() + _RETRY_WAITING_MS, self._retry_waiting)
        self._waiting.add((topic_id, index))

    def _retry_waiting(self) -> None:
        waiting, self._waiting = self._waiting, set()
        if self._closed:
            return
        self._apply(sorted(waiting))
        if waiting and not self._waiting:
            self._context.events.emit(ReplicasWaitNoMore(len(waiting)))
