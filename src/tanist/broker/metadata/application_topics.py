"""The internal topics of Streams applications: made by the controller when a member's heartbeat finds them missing.

Nobody waits for them: the members learn of the topics by their next heartbeats. What could not be made is kept for a
while, so that members hear why.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.throttled import Throttled
from tanist.events.metadata import InternalTopicNotCreated
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse

_CREATE_TOPICS_VERSION: Final = 5
"""The last before THROTTLING_QUOTA_EXCEEDED, as for other topics that this broker asks for."""
_CREATE_TIMEOUT_MS: Final = 5_000
_FAILED_INTERVAL_MS: Final = 60_000
_REMEMBERED: Final = 1_000
"""Failures that are kept at most; the oldest go first."""


class ApplicationTopics:
    """Creations that are under way, and those that have failed."""

    def __init__(self, context: NodeContext, controller_channel: ControllerChannel) -> None:
        self._context = context
        self._controller_channel = controller_channel
        self._under_way: set[str] = set()
        self._failures: dict[str, tuple[str, int]] = {}
        """By topic: why, and until when to tell of it."""
        self._failed = Throttled(context.clock, context.events, _FAILED_INTERVAL_MS)

    def create(self, topics: Iterable[CreatableTopic], kept_for_ms: int) -> None:
        """Have these made that are not under way. A failure is kept for so long."""
        wanted = tuple(topic for topic in topics if topic.name not in self._under_way)
        if not wanted:
            return
        names = tuple(topic.name for topic in wanted)
        self._under_way.update(names)
        request = CreateTopicsRequest(topics=wanted, timeout_ms=_CREATE_TIMEOUT_MS)
        answered = partial(self._created, names, kept_for_ms)
        self._controller_channel.call(request, _CREATE_TOPICS_VERSION, _CREATE_TIMEOUT_MS, answered)

    def _created(self, names: tuple[str, ...], kept_for_ms: int, response: CreateTopicsResponse | None) -> None:
        self._under_way.difference_update(names)
        if response is None:
            self._failed.emit(lambda left_out: InternalTopicNotCreated(names[0], "", left_out))
            return
        until_ms = self._context.clock.now_ms() + kept_for_ms
        for topic in response.topics:
            self._failures.pop(topic.name, None)
            if topic.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                continue
            name, error = topic.name, ErrorCode.name_of(topic.error_code)
            self._failures[name] = (topic.error_message or error, until_ms)
            self._failed.emit(partial(InternalTopicNotCreated, name, error))
        while len(self._failures) > _REMEMBERED:
            del self._failures[next(iter(self._failures))]

    def failures(self, names: Iterable[str]) -> list[str]:
        """Why these could not be made, of late."""
        now_ms = self._context.clock.now_ms()
        found = ((name, self._failures[name]) for name in sorted(names) if name in self._failures)
        return [f"{name} ({why})" for name, (why, until_ms) in found if now_ms < until_ms]
