"""A member of a consumer group, through `Client`: it joins, keeps its membership, commits, and leaves.

Owns the driving of `tanist.client`'s members, of both protocols. A member may share its group with other libraries'
members of the same protocol (or of both, where the broker lets a group go over).

There is no thread: the caller calls `poll` between fetches, and that is when heartbeats go out. Who commits what it
has handled before each `poll` loses no record and repeats only what it did not commit: by the time that the group
hears that a partition is free, its offset is there. A member that does not poll for a session is removed; the
next `poll` joins anew.

It never commits by itself, and reads nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

from tanist.client.classic_member import ClassicGroupMember
from tanist.client.consumer_member import ConsumerGroupMember
from tanist.client.errors import Meaning, error_in, meaning_in
from tanist.client.membership import Assigned, Effect, Failed, GroupMember, LearnTopics, Lost, MemberSettings, Pause
from tanist.client.offsets import offset_commit
from tanist.client.requests import Ask
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.asking import attempt
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.groups import ask_coordinator
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.offset_commit_response import OffsetCommitResponse
from tanist.wire.schema import Response

_LEAVE_WITHIN_S: Final = 5.0
_COMMIT_TRIES: Final = 5
_OF_GROUPS: Final = frozenset({Meaning.JOIN, Meaning.REBALANCE})
CONSUMER: Final = "consumer"
PROTOCOLS: Final = (CONSUMER, "classic")
"""By their names in Kafka's `group.protocol`."""


class PolledGroupMember:
    def __init__(self, client: Client, group: str, topics: Sequence[str], protocol: str) -> None:
        settings = MemberSettings(group, tuple(dict.fromkeys(topics)))
        self.client = client
        self.group = group
        self.assigned: frozenset[TopicPartition] = frozenset()
        """The partitions that this member may read and commit."""
        self._member: GroupMember = (
            ConsumerGroupMember(settings, str(uuid4())) if protocol == CONSUMER else ClassicGroupMember(settings)
        )
        self._waiting: list[tuple[float, Pause]] = []
        """The pauses that it makes, and when they end."""
        self._effects: deque[Effect] = deque(self._member.start())
        self._is_known = False
        """The group's coordinator has answered: it may know of this member."""

    @property
    def idle_s(self) -> float:
        """How long there is nothing to say to the group."""
        if self._effects:
            return 0.0
        return max(0.0, min((due_s for due_s, _ in self._waiting), default=0.0) - time.monotonic())

    def poll(self) -> bool:
        """Say to the group what is due; whether `assigned` has changed. The first one joins."""
        before = self.assigned
        while self.idle_s <= 0:
            self.client.persist(self._speak)
            if self._member.is_in:
                break
            time.sleep(self.idle_s)
        return self.assigned != before

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit what was handled; False if the group has gone on without this member, and it will be read again."""
        for _ in range(_COMMIT_TRIES):
            mine = {place: offset for place, offset in offsets.items() if place in self.assigned}
            if not mine:
                return not offsets
            request = offset_commit(self.group, mine, member_id=self._member.member_id, epoch=self._member.epoch)
            answer, _coordinator = ask_coordinator(
                self.client, self.group, request, OffsetCommitResponse, expected=_OF_GROUPS
            )
            if meaning_in(answer) is Meaning.DONE:
                return mine.keys() == offsets.keys()
            self._effects.extend(self._member.commit_refused(answer))
            if error_in(answer) != ErrorCode.STALE_MEMBER_EPOCH:
                return False
            # The group has a newer epoch for this member: the next heartbeat tells it.
            self._waiting = [(0.0, pause) for _, pause in self._waiting]
            self.client.persist(self._speak)
        return False

    def leave(self) -> None:
        """Say goodbye, so that others get the partitions at once. Best effort: a session ends by itself."""
        self.assigned, self._waiting = frozenset(), []
        self._effects.clear()
        patience_s, self.client.timeout_s = self.client.timeout_s, min(self.client.timeout_s, _LEAVE_WITHIN_S)
        try:
            for asked in self._member.leave() if self._is_known else ():
                if isinstance(asked, Ask):
                    with suppress(KafkaError, Unreachable, Unsupported):
                        self.client.persist(lambda asked=asked: self._answer(asked))  # type: ignore[misc]
        finally:
            self.client.timeout_s = patience_s

    # -- inner

    def _speak(self) -> None:
        """Carry out what is due. If a request has no answer, the machine says what the next attempt asks."""
        now_s = time.monotonic()
        due = [pause for due_s, pause in self._waiting if due_s <= now_s]
        self._waiting = [each for each in self._waiting if each[0] > now_s]
        for pause in due:
            self._effects.extend(self._member.due(pause))
        while self._effects:
            effect = self._effects.popleft()
            if isinstance(effect, Ask):
                self._ask(effect)
            else:
                self._carry_out(effect)

    def _ask(self, asked: Ask) -> None:
        try:
            answer = self._answer(asked)
        except (KafkaError, Unreachable):
            self._carry_out_now(self._member.handle_response(asked, None))
            raise
        if meaning_in(answer).is_retriable:
            self._carry_out_now(self._member.handle_response(asked, answer))
            raise KafkaError(error_in(answer), f"group {self.group}")
        self._effects.extend(self._member.handle_response(asked, answer))

    def _answer(self, asked: Ask) -> Response:
        patience_s = self.client.timeout_s + asked.patience_ms / 1000
        answer = attempt(self.client, asked, Response, timeout_s=patience_s)
        self._is_known = True
        if error_in(answer) == ErrorCode.UNSUPPORTED_VERSION:
            # The coordinator has the request, and the cluster not the feature: it is as if neither had it.
            name = type(asked.request).__name__
            raise Unsupported(f"the cluster's features (group.version) do not allow {name}")
        return answer

    def _carry_out_now(self, effects: Iterable[Effect]) -> None:
        """After a failure: the patience of `Client.persist` is the pause."""
        for effect in effects:
            if isinstance(effect, Pause):
                self._waiting.append((0.0, effect))
            else:
                self._effects.append(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Pause():
                self._waiting.append((time.monotonic() + effect.ms / 1000, effect))
            case LearnTopics():
                try:
                    view = self.client.metadata(effect.names)
                except (KafkaError, Unreachable):
                    self._effects.appendleft(effect)  # the next attempt asks again
                    raise
                self._effects.extend(self._member.learnt(view))
            case Assigned():
                self.assigned = effect.partitions
            case Lost():
                self.assigned = frozenset()
            case Failed():
                raise KafkaError(effect.code, effect.message or f"group {self.group}")


def new_member(client: Client, group: str, topics: Sequence[str], protocol: str | None) -> PolledGroupMember:
    """A member of this protocol; None: of KIP-848's, and of the classic one where the cluster does not have that."""
    if protocol is not None:
        return PolledGroupMember(client, group, topics, protocol)
    try:
        member = PolledGroupMember(client, group, topics, CONSUMER)
        member.poll()
    except Unsupported:
        return PolledGroupMember(client, group, topics, "classic")
    return member
