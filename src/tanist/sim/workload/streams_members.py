"""Processes of Streams applications, and their members: they join, get tasks, commit for them, and give them up.

Owns what a workload needs beside the protocol, which `tanist.client` has: lives of processes, how long it takes to
give a task up, what a member that has lost its epoch still tries, and what the witness hears. The driver of a run calls
`start`, `leave` and `die` of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from tanist.broker.network.channel import Channel
from tanist.client.membership import Effect, Failed, GroupMember, Lost
from tanist.client.requests import Ask
from tanist.client.streams_member import StreamsGroupMember, Task
from tanist.client.topic_partition import TopicPartition
from tanist.sim.workload.cluster_client import ResponseHandler
from tanist.sim.workload.group_client import ClientContext, GroupClient, Witness
from tanist.sim.workload.group_members import SimGroupMember
from tanist.sim.workload.streams_settings import Needs, StreamsPlan, StreamsSettings
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest


class StreamsWitness(Witness):
    """Gets what members of Streams groups send and receive, before they act on it. This one looks at nothing."""

    def beats(self, member: SimStreamsMember, request: StreamsGroupHeartbeatRequest) -> None:
        """A member sends this heartbeat."""

    def answered(
        self, member: SimStreamsMember, host: str, sent_ms: int, request: StreamsGroupHeartbeatRequest, answer: Any
    ) -> None:
        """It receives the answer of that broker to what it has sent then."""

    def over(self, member: SimStreamsMember) -> None:
        """A member has no task any more, as far as it knows: it has heard so, leaves, or its process has ended."""

    def asks_of(self, group: str) -> Any:
        """A client will ask for the group's description. The result goes to `described`."""

    def described(self, group: str, asked: Any, host: str, answer: Any) -> None:
        """It receives the description, of that broker."""

    def objection(self, member: SimStreamsMember, partition: TopicPartition, member_id: str, epoch: int) -> str:
        """Why a commit that is sent now must be refused; "" if it may succeed."""
        return ""

    def commit_succeeded(self, member: SimStreamsMember, partition: TopicPartition, objection: str) -> None:
        """A commit to which there was an objection was acknowledged."""

    def deleting(self, group: str) -> None:
        """A client will ask to delete the group, which has no members as far as it knows."""

    def deleted(self, group: str) -> None:
        """The group is gone, by an answer. It had no members by then."""


class SimStreamsMember(SimGroupMember):
    """A thread of a process, through all its lives."""

    context: ClientContext[StreamsWitness]

    def __init__(
        self,
        context: ClientContext[StreamsWitness],
        name: str,
        plan: StreamsPlan,
        settings: StreamsSettings,
        process: SimStreamsProcess,
    ) -> None:
        self.process = process
        self.tasks: frozenset[Task] = frozenset()
        """Those that it works on."""
        self.is_refused = False
        """Its group has another topology."""
        self._streams = settings
        self._given: frozenset[Task] = frozenset()
        self._last_epoch = 0
        super().__init__(
            context,
            name,
            plan.group,
            plan.topics,
            is_classic=False,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            pause_ms=settings.commit_pause_ms,
            is_static=plan.is_static,
        )

    @property
    def standbys(self) -> frozenset[Task]:
        return self._streams_member.standbys

    @property
    def _streams_member(self) -> StreamsGroupMember:
        if not isinstance(self._member, StreamsGroupMember):
            raise TypeError(f"{self.name} is a member of another kind of group")
        return self._member

    def start(self) -> None:
        if not self.running:
            self._member = self._another()
        super().start()

    def leave(self) -> None:
        """It gives its tasks up first."""
        if self.running:
            self.context.witness.over(self)
        super().leave()

    def _another(self) -> GroupMember:
        self._ids += 1
        process = self.process
        return StreamsGroupMember(
            self._settings, f"{self.name}-{self._ids}", process.process_id, process.needs.topology
        )

    def _stop(self) -> None:
        self.context.witness.over(self)
        self.tasks = self._given = frozenset()
        self.is_refused = False
        super()._stop()

    # -- on the wire

    def _witness_of(self, channel: Channel, request: Any) -> ResponseHandler | None:
        if not isinstance(request, StreamsGroupHeartbeatRequest):
            return super()._witness_of(channel, request)
        witness, sent_ms = self.context.witness, self.clock.now_ms()
        witness.beats(self, request)

        def heard(response: Any | None) -> None:
            if response is not None and self.running:
                witness.answered(self, channel.host, sent_ms, request, response)

        return heard

    def commit(
        self,
        partition: TopicPartition,
        offset: int,
        member_id: str,
        epoch: int,
        done: Callable[[Any | None, int], None],
    ) -> None:
        objection = self.context.witness.objection(self, partition, member_id, epoch)

        def answered(response: Any | None, error: int) -> None:
            if objection and response is not None and not error:
                self.context.witness.commit_succeeded(self, partition, objection)
            done(response, error)

        super().commit(partition, offset, member_id, epoch, answered)

    # -- tasks

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Lost):
                self._is_fenced()
            elif isinstance(effect, Failed):
                self.is_refused = True
            super()._carry_out((effect,))

    def _is_fenced(self) -> None:
        """Sometimes it commits all the same, in its old epoch, when others may have its tasks."""
        self.context.witness.over(self)
        rng, owned = self.context.rng, sorted(self.positions)
        self.tasks = self._given = frozenset()
        if owned and self._last_epoch > 0:
            partition = owned[rng.randrange(len(owned))]
            offset, member_id, epoch = self.positions[partition] + rng.randint(1, 5), self.member_id, self._last_epoch
            self.later(
                rng.randint(0, 2 * self._streams.session_timeout_ms),
                lambda: self.commit(partition, offset, member_id, epoch, lambda response, error: None),
            )

    def _own(self, partitions: Collection[Task]) -> None:
        """It was given these tasks. What it has beside them it gives up, which takes a while."""
        self._given = frozenset(partitions)
        self._last_epoch, self.is_refused = self.epoch, False
        rng, settings = self.context.rng, self._streams
        if self.tasks <= self._given:
            self._move()
            return
        closing_ms = rng.randint(0, settings.closing_ms)
        if rng.random() < settings.slow_share:
            closing_ms += settings.rebalance_timeout_ms
        self.later(closing_ms, self._move)

    def _move(self) -> None:
        """It has given up what it was to give up."""
        if self._member.is_in:
            self.tasks = self._given
            needs = self.process.needs
            super()._own(sorted({each for task in self.tasks for each in needs.partitions_of(task)}))
            self._carry_out(self._streams_member.moved())


class SimStreamsProcess:
    """A process of an application, through all its lives: its members come and go together."""

    def __init__(
        self,
        context: ClientContext[StreamsWitness],
        name: str,
        plan: StreamsPlan,
        settings: StreamsSettings,
        versions: tuple[Needs, ...],
    ) -> None:
        """`versions`: of its topology."""
        self.name = name
        self.group = plan.group
        self.version = 0
        self._versions = versions
        self._rng = context.rng
        self._lives = 0
        self.process_id = ""
        self.members = [
            SimStreamsMember(context, f"{name}/thread{n}", plan, settings, self) for n in range(plan.threads)
        ]

    @property
    def needs(self) -> Needs:
        return self._versions[self.version]

    @property
    def running(self) -> bool:
        return any(member.running for member in self.members)

    def start(self) -> None:
        """As the process that it was, by what its disk says, or with an empty disk."""
        if self.running:
            return
        if not self._lives or self._rng.random() < 0.5:
            self._lives += 1
            self.process_id = f"{self.name}-{self._lives}"
        for member in self.members:
            member.start()

    def leave(self) -> None:
        for member in self.members:
            member.leave()

    def die(self) -> None:
        for member in self.members:
            member.die()


class StreamsOperator(GroupClient):
    """Describes its group again and again, and deletes it when it is asked to."""

    context: ClientContext[StreamsWitness]

    def __init__(self, context: ClientContext[StreamsWitness], name: str, group: str, *, pause_ms: int) -> None:
        super().__init__(context, name, group)
        self._pause_ms = pause_ms
        self.stopped = False

    def start(self) -> None:
        self._describe()

    def stop(self) -> None:
        self.stopped = True

    def delete(self, done: Callable[[], None]) -> None:
        """Until the group is gone. It is not before the sessions of its last members have ended."""
        self.context.witness.deleting(self.group)

        def handle_response(response: Any | None) -> None:
            if response is not None and response.results[0].error_code in (
                ErrorCode.NONE,
                ErrorCode.GROUP_ID_NOT_FOUND,
            ):
                self.context.witness.deleted(self.group)
                done()
            elif not self.stopped:
                self.later(self._pause_ms, lambda: self.delete(done))

        self.ask(Ask(self._coordinator, DeleteGroupsRequest(groups_names=(self.group,))), handle_response)

    def _witness_of(self, channel: Channel, request: Any) -> ResponseHandler | None:
        if not isinstance(request, StreamsGroupDescribeRequest):
            return super()._witness_of(channel, request)
        witness = self.context.witness
        asked = witness.asks_of(self.group)

        def heard(response: Any | None) -> None:
            if response is not None and not response.groups[0].error_code:
                witness.described(self.group, asked, channel.host, response.groups[0])

        return heard

    def _describe(self) -> None:
        if not self.stopped:
            request = StreamsGroupDescribeRequest(group_ids=(self.group,))
            self.ask(Ask(self._coordinator, request), lambda response: self.later(self._pause_ms, self._describe))
