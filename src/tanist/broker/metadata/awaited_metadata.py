"""Requests that wait until this broker's metadata has what the controller has committed for them."""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.metadata.view import MetadataView
from tanist.ports import Clock, Timer


class AwaitedMetadata:
    """Requests and what they wait for. The length is the number of requests."""

    def __init__(self, clock: Clock, metadata: MetadataView) -> None:
        self._clock = clock
        self._metadata = metadata
        self._waiting: list[tuple[Callable[[], bool], Callable[[], None], Timer]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def when_known(self, names: list[str], deadline_ms: int, then: Callable[[], None]) -> None:
        """Call `then` once the metadata has all the topics, or at the deadline."""
        self._when(lambda: all(name in self._metadata.image.topic_ids for name in names), deadline_ms, then)

    def when_applied(self, offset: int, deadline_ms: int, then: Callable[[], None]) -> None:
        """Call `then` once the metadata has the records up to and including `offset`, or at the deadline."""
        self._when(lambda: self._metadata.applied_offset >= offset, deadline_ms, then)

    def metadata_changed(self) -> None:
        """Perhaps it has come."""
        for entry in list(self._waiting):
            has_come, then, timer = entry
            if has_come():
                self._waiting.remove(entry)
                timer.cancel()
                then()

    def _when(self, has_come: Callable[[], bool], deadline_ms: int, then: Callable[[], None]) -> None:
        if has_come():
            then()
            return

        def give_up() -> None:
            self._waiting.remove(entry)
            then()

        entry = (has_come, then, self._clock.call_at(deadline_ms, give_up))
        self._waiting.append(entry)
