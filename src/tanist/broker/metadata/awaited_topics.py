"""Requests that wait until this broker's metadata has the topics that they have created."""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.metadata.view import MetadataView
from tanist.controller.delta import ImageDelta
from tanist.ports import Clock, Timer


class AwaitedTopics:
    """Requests and the topics that they wait for. The length is the number of requests."""

    def __init__(self, clock: Clock, metadata: MetadataView) -> None:
        self._clock = clock
        self._metadata = metadata
        self._waiting: list[tuple[list[str], Callable[[], None], Timer]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def when_known(self, names: list[str], deadline_ms: int, then: Callable[[], None]) -> None:
        """Call `then` once the metadata has all the topics, or at the deadline."""
        if self._are_known(names):
            then()
            return

        def give_up() -> None:
            self._waiting.remove(entry)
            then()

        entry = (names, then, self._clock.call_at(deadline_ms, give_up))
        self._waiting.append(entry)

    def metadata_changed(self, delta: ImageDelta) -> None:
        """Perhaps there are more topics."""
        if not delta.created_topics or not self._waiting:
            return
        for entry in list(self._waiting):
            names, then, timer = entry
            if self._are_known(names):
                self._waiting.remove(entry)
                timer.cancel()
                then()

    def _are_known(self, names: list[str]) -> bool:
        return all(name in self._metadata.image.topic_ids for name in names)
