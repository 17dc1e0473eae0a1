"""Streams groups: what members hear on the wire, against each other; nothing that a coordinator says of itself counts.

    W1  an active task is one member's at a time. A member has it from the answer that gives it until the member has
        said that it has given it up, has heard that it is fenced, or has kept the coordinator waiting for a session, or
        for its rebalance timeout while it has tasks to give up
    W2  in one group's life the epochs of the group, its target and its members do not go back
    W3  a process has a task once, in whatever role: a standby is never with the active task
    W4  when the faults are over, each task has a member whose commits succeed, and its standbys
    W5  internal topics have the partitions that the topology needs
    W6  a commit is refused that a member sends when another has got the task

The offsets that members commit and read are judged like those of consumer groups (C1, C2, C4: `groups.Ledger`). A
coordinator that was deposed, and does not know it, may answer a heartbeat in which nothing changes: by that no session
goes on. After an unclean election has lost records of the group, W4 and W5 alone are judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tanist.client.epoch_member import LEAVING, LEAVING_STATIC
from tanist.client.streams_member import Task
from tanist.client.topic_partition import TopicPartition
from tanist.coordinator.streams.topology import StatusCode
from tanist.sim.checkers.groups import Ledger
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.events import MemberAssigned, MemberRevoked
from tanist.sim.workload.streams_members import SimStreamsMember, StreamsWitness
from tanist.sim.workload.streams_settings import Needs, StreamsSettings
from tanist.sim.world.world import World
from tanist.wire.internal_topics import OFFSETS_TOPIC, partition_of
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest

_NEVER: Final = 2**62


@dataclass(slots=True)
class _Book:
    """What is known of one member, in one life."""

    epoch: int = 0
    actives: set[Task] = field(default_factory=set)
    standbys: set[Task] = field(default_factory=set)
    session_until_ms: int = 0
    """No coordinator ends its session before."""
    patience: tuple[int, int] = (-1, _NEVER)
    """The epoch in which it has tasks to give up, and until when it has time for it."""
    asking_since_ms: int = -1
    """When it sent the first heartbeat since the last answer."""

    def is_in(self, now_ms: int, rebalance_timeout_ms: int) -> bool:
        """Whether no coordinator can have given it up. An answer that has not come may have taken tasks from it."""
        if self.asking_since_ms >= 0 and now_ms >= self.asking_since_ms + rebalance_timeout_ms:
            return False
        return now_ms < min(self.session_until_ms, self.patience[1])


class _Epochs(NamedTuple):
    """The largest ones that were heard of a group."""

    life: int = 0
    """How often it was deleted."""
    group: int = 0
    target: int = 0


class StreamsChecks(Ledger, StreamsWitness):
    """The `StreamsWitness` of a run's members, and a `Watcher` of its world."""

    def __init__(self, world: World, replicas: ReplicaChecks, settings: StreamsSettings) -> None:
        super().__init__(world, replicas)
        self._settings = settings
        self._books: defaultdict[SimStreamsMember, _Book] = defaultdict(_Book)
        self._last: dict[tuple[str, Task], tuple[str, int]] = {}
        """Who got a task last, and in which epoch first."""
        self._epochs: defaultdict[str, _Epochs] = defaultdict(_Epochs)
        self._deleting: set[str] = set()
        """Groups that may be gone, or not yet."""

    # -- Witness: offsets are the ledger's, assignments come with heartbeats

    def assigned(
        self,
        client: str,
        group: str,
        member_id: str,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        classic: bool,
    ) -> None:
        self._world.emit(MemberAssigned(client, group, epoch, tuple(partitions)))

    def revoked(self, client: str, group: str, partitions: Iterable[TopicPartition]) -> None:
        self._world.emit(MemberRevoked(client, group, tuple(partitions)))

    # -- heartbeats

    def beats(self, member: SimStreamsMember, request: StreamsGroupHeartbeatRequest) -> None:
        book = self._books[member]
        if book.asking_since_ms < 0:
            book.asking_since_ms = self._world.now_ms
        if request.member_epoch in (LEAVING, LEAVING_STATIC):
            self.over(member)
        elif request.active_tasks is not None and request.standby_tasks is not None:
            has = set(_tasks(request.active_tasks))
            self._world.counts["streams: tasks given up"] += len(book.actives - has)
            book.actives &= has
            book.standbys &= set(_tasks(request.standby_tasks))

    def over(self, member: SimStreamsMember) -> None:
        self._books.pop(member, None)

    def answered(
        self, member: SimStreamsMember, host: str, sent_ms: int, request: StreamsGroupHeartbeatRequest, answer: Any
    ) -> None:
        counts = self._world.counts
        if answer.error_code:
            counts["streams: heartbeats refused"] += 1
            return
        book, group = self._books[member], member.group
        since_ms, book.asking_since_ms = book.asking_since_ms, -1
        for each in answer.status or ():
            counts[f"streams: {StatusCode(each.status_code).name.lower().replace('_', ' ')}"] += 1
        if self._is_lost(group):
            book.actives.clear()
            book.standbys.clear()
            return
        if answer.member_epoch < book.epoch:
            self._fail("W2", f"{member.name} hears epoch {answer.member_epoch} of {group} after {book.epoch}")
        if answer.member_epoch != book.epoch:
            book.patience = (-1, _NEVER)
        book.epoch = answer.member_epoch
        if self._coordinates(host, group):
            book.session_until_ms = sent_ms + self._settings.session_timeout_ms
            self._heard_epochs(group, answer.member_epoch, 0)
        else:
            counts["streams: answered by a coordinator that was succeeded"] += 1
        if answer.active_tasks is not None:
            self._given(member, book, since_ms, set(_tasks(answer.active_tasks)), set(_tasks(answer.standby_tasks)))

    def _given(
        self, member: SimStreamsMember, book: _Book, since_ms: int, actives: set[Task], standbys: set[Task]
    ) -> None:
        counts = self._world.counts
        counts["streams: tasks given"] += len(actives - book.actives)
        counts["streams: standbys given"] += len(standbys - book.standbys)
        if actives & standbys:
            self._fail("W3", f"{member.name} is given {sorted(actives & standbys)} as its task, and to follow")
        time_ms = (self._world.now_ms, self._settings.rebalance_timeout_ms)
        others = [
            (other, known)
            for other, known in self._books.items()
            if other is not member and other.group == member.group and known.is_in(*time_ms)
        ]
        for other, known in others:
            for task in sorted(actives & known.actives):
                self._fail(
                    "W1", f"task {_named(task)} of {member.group} is given to {member.name} in epoch {book.epoch}, and "
                    f"{other.name} has it since epoch {self._last[member.group, task][1]}",
                )  # fmt: skip
            if other.process is not member.process:
                continue
            twice = (actives | standbys) & (known.actives | known.standbys)
            if twice:
                self._fail("W3", f"{_named(min(twice))} is given to {member.name}, and {other.name} has it there")
        for task in actives - book.actives:
            self._last[member.group, task] = (member.member_id, book.epoch)
        if not (book.actives <= actives and book.standbys <= standbys) and book.patience[0] != book.epoch:
            book.patience = (book.epoch, since_ms + self._settings.rebalance_timeout_ms)
        book.actives |= actives
        book.standbys |= standbys

    # -- commits

    def objection(self, member: SimStreamsMember, partition: TopicPartition, member_id: str, epoch: int) -> str:
        """W6."""
        for task in member.process.needs.tasks_of(partition):
            owner, since = self._last.get((member.group, task), (member_id, 0))
            if owner != member_id or since > epoch:
                self._world.counts["streams: commits of tasks that others have"] += 1
                return f"epoch {epoch} of {member_id}, when {owner} had got {_named(task)} in epoch {since}"
        return ""

    def commit_succeeded(self, member: SimStreamsMember, partition: TopicPartition, objection: str) -> None:
        if not self._is_lost(member.group):
            topic, index = partition
            self._fail("W6", f"a commit of {topic}-{index} of {member.group} succeeds, sent in {objection}")

    # -- epochs

    def deleting(self, group: str) -> None:
        self._deleting.add(group)

    def deleted(self, group: str) -> None:
        self._deleting.discard(group)
        self._epochs[group] = _Epochs(self._epochs[group].life + 1)
        for key in [each for each in self._last if each[0] == group]:
            del self._last[key]

    def asks_of(self, group: str) -> _Epochs:
        return self._epochs[group]

    def described(self, group: str, asked: _Epochs, host: str, answer: Any) -> None:
        """W2."""
        self._world.counts["streams: groups described"] += 1
        if group in self._deleting or asked.life != self._epochs[group].life:
            return
        if self._is_lost(group) or not self._coordinates(host, group):
            return
        if answer.group_epoch < asked.group or answer.assignment_epoch < asked.target:
            self._fail(
                "W2", f"{group} is described in epoch {answer.group_epoch} with a target of {answer.assignment_epoch}, "
                f"after {asked.group} and {asked.target}",
            )  # fmt: skip
        self._heard_epochs(group, answer.group_epoch, answer.assignment_epoch)

    def _heard_epochs(self, group: str, epoch: int, target: int) -> None:
        known = self._epochs[group]
        self._epochs[group] = _Epochs(known.life, max(epoch, known.group), max(target, known.target))

    # -- the end

    def unsettled(self, group: str, members: Iterable[SimStreamsMember], needs: Needs) -> Iterator[str]:
        """W4: what is not as it must be, in words."""
        running = [member for member in members if member.running]
        processes = len({member.process for member in running})
        for task in sorted(needs.all_tasks()):
            owners = [member for member in running if task in member.tasks]
            if len(owners) != 1:
                yield f"{_named(task)} of {group} is {', '.join(each.name for each in owners) or 'nobody'}'s"
                continue
            if not any(owners[0].reported_commits.get(each) for each in needs.partitions_of(task)):
                yield f"{owners[0].name} does not commit for {_named(task)}"
            stateful = task[0] in needs.stateful
            wanted = min(self._settings.standby_replicas, processes - 1) if stateful else 0
            followers = sum(task in member.standbys for member in running)
            if followers != wanted:
                yield f"{_named(task)} of {group} has {followers} standbys, not {wanted}"

    def misfits(self, needs: Needs) -> Iterator[str]:
        """W5: internal topics that are not as the topology needs them, in words."""
        image = self._replicas.metadata.image
        for name, wanted in sorted(needs.internal.items()):
            found = len(image.topics[image.topic_ids[name]].partitions) if name in image.topic_ids else 0
            if found != wanted:
                yield f"{name} has {found} partitions, and {wanted} are needed"

    def check_fit(self, needs: Needs) -> None:
        """W5, of what there is."""
        image = self._replicas.metadata.image
        wrong = [each for each in self.misfits(needs) if each.split()[0] in image.topic_ids]
        if wrong:
            self._fail("W5", wrong[0])

    # -- bits

    def _is_lost(self, group: str) -> bool:
        return bool(self._oracle_of(group).unclean)

    def _coordinates(self, host: str, group: str) -> bool:
        """Whether this broker leads the group's partition of `__consumer_offsets`."""
        image = self._replicas.metadata.image
        topic = image.topics[image.topic_ids[OFFSETS_TOPIC]]
        return host == f"node{topic.partitions[partition_of(group, len(topic.partitions))].leader}"


def _tasks(ids: Iterable[Any] | None) -> Iterator[Task]:
    return ((each.subtopology_id, index) for each in ids or () for index in each.partitions)


def _named(task: Task) -> str:
    return f"{task[0]}_{task[1]}"
