"""Members of consumer groups, of both protocols: they join, receive assignments, and commit offsets.

Owns what a workload needs beside the protocol, which `tanist.client` has: lives, positions and commits, and what the
witness hears. A member commits one offset at a time, each greater than the offset that it fetched when it got the
partition. The driver of a run calls `leave`, `die` and `start`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tanist.client.classic_member import ClassicGroupMember
from tanist.client.consumer_member import ConsumerGroupMember
from tanist.client.membership import Assigned, Effect, GroupMember, LearnTopics, Lost, MemberSettings, Pause
from tanist.client.offsets import NO_EPOCH
from tanist.client.requests import Ask
from tanist.client.topic_partition import TopicPartition
from tanist.sim.workload.cluster_client import BACKOFF_MS
from tanist.sim.workload.group_client import ClientContext, GroupClient, Offsets, Witness

_HEARTBEATS_A_SESSION = 10
_TOPICS_PAUSE_MS = 1_000
"""Pause between two looks of a classic group's leader at the topics' partition counts."""


class SimGroupMember(GroupClient):
    """A member through all its lives, of one protocol."""

    def __init__(
        self,
        context: ClientContext[Witness],
        name: str,
        group: str,
        topics: Sequence[str],
        *,
        is_classic: bool,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        pause_ms: int | None,
        is_static: bool = False,
    ) -> None:
        """`pause_ms`: between two commits; None: it commits nothing."""
        super().__init__(context, name, group)
        self.is_classic = is_classic
        self.pause_ms = pause_ms
        self.owned: dict[TopicPartition, int] = {}
        """Owned partitions, and the number of the ownership: a partition that comes back gets another number."""
        self.positions: dict[TopicPartition, int] = {}
        self.running = False
        self.reported_commits: dict[TopicPartition, int] = {}
        """Number of acknowledged commits of each partition."""
        self._settings = MemberSettings(
            group,
            tuple(topics),
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            heartbeat_ms=session_timeout_ms // _HEARTBEATS_A_SESSION,
            topics_ms=_TOPICS_PAUSE_MS,
            backoff_ms=BACKOFF_MS,
            instance_id=name if is_static else None,
        )
        self._ids = 0
        self._member: GroupMember = self._another()
        self._tenures = 0
        self._loading = False

    @property
    def member_id(self) -> str:
        return self._member.member_id

    @property
    def epoch(self) -> int:
        """Generation, or member epoch."""
        return self._member.epoch

    # -- for the driver of a run

    def start(self) -> None:
        """Join the group."""
        if not self.running:
            self.running = True
            self._carry_out(self._member.start())
            if self.pause_ms is not None:
                self._commit_again(self.pause_ms)

    def leave(self) -> None:
        """Leave the group."""
        if self.running:
            self._lose(list(self.owned))
            self._carry_out(self._member.leave())
            self._stop()

    def die(self) -> None:
        """Die without leaving the group."""
        if self.running:
            self._lose(list(self.owned))
            self._stop()
            self.end_life()

    def _stop(self) -> None:
        self.running = False
        self.next_life()
        self._member = self._another()
        self._loading = False

    def _another(self) -> GroupMember:
        if self.is_classic:
            return ClassicGroupMember(self._settings)
        self._ids += 1
        return ConsumerGroupMember(self._settings, f"{self.name}-{self._ids}")

    # -- the protocol

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        member = self._member
        for effect in effects:
            match effect:
                case Ask():
                    self.ask(effect, lambda response, asked=effect: self._handle_response(member, asked, response))  # type: ignore[misc]
                case Pause():
                    self.later(effect.ms, lambda pause=effect: self._carry_out(member.due(pause)))  # type: ignore[misc]
                case LearnTopics():
                    self.learn_topics(effect.names, lambda view: self._carry_out(member.learnt(view)))
                case Assigned():
                    self._own(effect.partitions)
                case Lost():
                    self._lose(list(self.owned))

    def _handle_response(self, member: GroupMember, asked: Ask, response: Any) -> None:
        self._carry_out(member.handle_response(asked, response))

    # -- partitions

    def _own(self, partitions: Collection[TopicPartition]) -> None:
        """It received this assignment: these partitions and no others."""
        self._lose([partition for partition in self.owned if partition not in partitions])
        self.context.witness.assigned(
            self.name, self.group, self.member_id, self.epoch, sorted(partitions), classic=self.is_classic
        )
        for partition in sorted(partitions):
            if partition not in self.owned:
                self._tenures += 1
                self.owned[partition] = self._tenures
        self._load_positions()

    def _lose(self, partitions: Collection[TopicPartition]) -> None:
        if not partitions:
            return
        for partition in partitions:
            del self.owned[partition]
            self.positions.pop(partition, None)
        self.context.witness.revoked(self.name, self.group, partitions)

    def _load_positions(self) -> None:
        wanted = {partition: tenure for partition, tenure in self.owned.items() if partition not in self.positions}
        if not wanted or self._loading:
            return
        self._loading = True

        def done(offsets: Offsets | None) -> None:
            self._loading = False
            for partition, tenure in wanted.items():
                if offsets is not None and partition in offsets and self.owned.get(partition) == tenure:
                    self.positions[partition] = max(offsets[partition][0], 0)
            if any(partition not in self.positions for partition in self.owned):
                self.later(BACKOFF_MS, self._load_positions)

        if self.is_classic:
            self.fetch_offsets(sorted(wanted), None, NO_EPOCH, done)
        else:
            self.fetch_offsets(sorted(wanted), self.member_id, self.epoch, done)

    # -- commits

    def _commit_again(self, between_ms: int) -> None:
        """Commit one at a time, so that a member's commits keep their order."""
        rng = self.context.rng
        pause_ms = between_ms + rng.randint(0, between_ms)
        ready = sorted(self.positions)
        if not ready:
            self.later(max(pause_ms, BACKOFF_MS), lambda: self._commit_again(between_ms))
            return
        partition = ready[rng.randrange(len(ready))]
        tenure = self.owned[partition]
        offset = self.positions[partition] = self.positions[partition] + rng.randint(1, 5)

        def done(response: Any | None, error: int) -> None:
            if response is not None and not error:
                self.reported_commits[partition] = self.reported_commits.get(partition, 0) + 1
            elif response is not None and self.owned.get(partition) == tenure:
                self._carry_out(self._member.commit_refused(response))
            self.later(pause_ms, lambda: self._commit_again(between_ms))

        self.commit(partition, offset, self.member_id, self.epoch, done)
