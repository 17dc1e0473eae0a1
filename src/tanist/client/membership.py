"""A member of a consumer group, as far as both protocols share it: the effects, and who waits for what.

Owns `GroupMember`, a state machine. It gives effects, and takes what became of them:

    Ask           send the request to the group's coordinator, once; then `handle_response`, with None if no answer came
    Pause         wait; then `due`
    LearnTopics   ask for metadata; then `learnt`, with nothing new if no answer came
    Assigned      the member has these partitions now, and no others
    Lost          the member has none any more: others may have them by the time it hears of it
    Failed        the group takes no such member; the machine tries again after a pause, if its driver does not give up

An effect that is overtaken is ignored when it comes back, so a driver may let it run. The machine waits for one request
and one pause of each kind at a time. It never commits; a driver tells it of a refused commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from tanist.client.errors import Meaning, error_in, meaning_in, refusal_in
from tanist.client.metadata import ClusterView
from tanist.client.requests import Ask, Coordinator, CoordinatorKind
from tanist.client.topic_partition import TopicPartition
from tanist.wire.schema import Request, Response

NO_GENERATION: Final = -1


@dataclass(frozen=True, slots=True)
class MemberSettings:
    group: str
    topics: tuple[str, ...]
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 60_000
    """How long the group waits for this member to give up what it is to give up."""
    heartbeat_ms: int = 3_000
    """Of the classic protocol; KIP-848's coordinator says how often."""
    topics_ms: int = 30_000
    """How often the leader of a classic group looks whether the topics have grown."""
    backoff_ms: int = 100
    instance_id: str | None = None
    """Of a static member (KIP-345), in groups whose coordinator assigns."""


@dataclass(frozen=True, slots=True)
class Pause:
    ms: int


@dataclass(frozen=True, slots=True)
class LearnTopics:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assigned:
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lost:
    pass


@dataclass(frozen=True, slots=True)
class Failed:
    code: int
    message: str | None


Effect: TypeAlias = Ask | Pause | LearnTopics | Assigned | Lost | Failed
Effects: TypeAlias = Iterator[Effect]
"""As a machine makes them, before an event gives them all."""


class GroupMember(ABC):
    """One life of a member, from `start` to `leave`, or to the end of its process."""

    def __init__(self, settings: MemberSettings, member_id: str) -> None:
        self.settings = settings
        self.member_id = member_id
        self.epoch = NO_GENERATION
        """Generation, or member epoch."""
        self._view = ClusterView()
        """The topics that it has learnt."""
        self._asked: Ask | None = None
        self._pause: Pause | None = None
        self._topics_pause: Pause | None = None

    @property
    @abstractmethod
    def is_in(self) -> bool:
        """Whether the group has it, as far as it knows."""

    # -- events

    def start(self) -> list[Effect]:
        """Join the group."""
        return [LearnTopics(self.settings.topics)]

    def handle_response(self, asked: Ask, answer: Response | None) -> list[Effect]:
        if asked is not self._asked:
            return []
        self._asked = None
        return list(self._take(answer))

    def due(self, pause: Pause) -> list[Effect]:
        if pause is self._pause:
            self._pause = None
            return list(self._continue())
        if pause is self._topics_pause:
            self._topics_pause = None
            return [LearnTopics(self._wanted_topics())]
        return []

    def learnt(self, view: ClusterView) -> list[Effect]:
        """What a Metadata response says of the topics."""
        self._view = self._view.merged(view)
        return list(self._topics_learnt())

    def commit_refused(self, answer: Response) -> list[Effect]:
        """A commit of this epoch was refused."""
        return []

    def leave(self) -> list[Effect]:
        """Say goodbye, so that others get the partitions at once. Nothing is expected back."""
        effects = list(self._goodbye())
        self._asked = self._pause = self._topics_pause = None
        return effects

    # -- the protocol

    @abstractmethod
    def _continue(self) -> Effects:
        """The next request of the protocol."""

    @abstractmethod
    def _take(self, answer: Response | None) -> Effects:
        """The answer to it."""

    @abstractmethod
    def _topics_learnt(self) -> Effects:
        """There was an answer about the topics, or none."""

    @abstractmethod
    def _goodbye(self) -> Effects:
        """The request of a member that leaves."""

    def _wanted_topics(self) -> tuple[str, ...]:
        return self.settings.topics

    def _ask(self, request: Request, patience_ms: int = 0) -> Effects:
        to = Coordinator(CoordinatorKind.GROUP, self.settings.group)
        self._asked = Ask(to, request, patience_ms=patience_ms)
        yield self._asked

    def _wait(self, ms: int) -> Effects:
        self._pause = Pause(ms)
        yield self._pause

    def _watch_topics(self, ms: int) -> Effects:
        self._topics_pause = Pause(ms)
        yield self._topics_pause

    def _try_again(self, answer: Response | None) -> Effects:
        """After an error, or without an answer."""
        if answer is not None and meaning_in(answer) is Meaning.FINAL and error_in(answer):
            yield Failed(*refusal_in(answer))
        yield from self._wait(self.settings.backoff_ms)
