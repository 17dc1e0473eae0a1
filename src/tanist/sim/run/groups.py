"""The workload of consumer groups: members of both protocols, while coordinators die and members move.

Everything is drawn from the seed: the cluster and its groups (`group_profiles`), faults and operators as in any run,
and the actions of members (leave, die, pause for longer than a session). The ledger (C1-C4) and the checkers of the log
judge it while it runs; and after the faults:

    C5  each group settles: every partition of its topics gets one owner with acknowledged commits within bounded time

    tanist lab run --groups --seeds 1..200
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from tanist.sim.checkers.coordinators import CoordinatorChecks
from tanist.sim.checkers.groups import Ledger
from tanist.sim.checkers.liveness import LIVENESS_STREAM, LivenessPhase
from tanist.sim.events import GroupMoved, PartitionsRequested
from tanist.sim.run.clients import Clients, but_for_internal_topics
from tanist.sim.run.config import CLASSIC, CONSUMER, MOVING, GroupPlan
from tanist.sim.run.workload import Run
from tanist.sim.workload.group_client import OffsetWatcher
from tanist.sim.workload.group_members import SimGroupMember
from tanist.sim.world.clock import stream
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic

_CREATE_PARTITIONS_VERSION = 3
_GROWTH_TIMEOUT_MS = 5_000


GROUPS_EXPECTED: dict[str, str] = {
    "elections": "a broker was elected, and with it a coordinator",
    "groups: an assignment is received": "the partitions that the member owns",
    "groups: commits acknowledged": "a commit has succeeded",
    "groups: commits refused": "of a generation that is over, or by who does not coordinate",
    "groups: members die": "without a word, so that their sessions end",
    "groups: members leave": "in good order",
    "groups: members pause": "for longer than a session, and go on believing that they are members",
    "groups: offsets returned": "to members, and to clients that only read offsets",
    "groups: an ended assignment is received": "the log has ended the assignment before the client receives it",
    "groups: topics grown": "a topic has a partition more, which must get an owner",
    "groups: upgraded": "a classic group became one of the consumer protocol, with its members",
    "groups: downgraded": "and the other way round",
    "groups: moves to the classic protocol, rolling": "member by member, so that both are there",
    "groups: moves to the classic protocol, empty": "nobody is there between",
    "groups: moves to the classic protocol, abrupt": "all of the other protocol have died",
    "groups: moves to the consumer protocol, rolling": "member by member, so that both are there",
    "groups: moves to the consumer protocol, empty": "nobody is there between",
    "groups: moves to the consumer protocol, abrupt": "all of the other protocol have died",
    "coordinators: compared with the replay of their log": "all that they had decided was committed",
    "groups: sessions ended": "a coordinator has given a member up",
}
"""Counters that must not be zero over a large range of seeds, and their meanings."""


class Groups:
    """Of one seed. A `Workload`."""

    expected: ClassVar[Mapping[str, str]] = GROUPS_EXPECTED

    def __init__(self, run: Run) -> None:
        self._run = run
        self._settings = run.config.groups
        self.world = run.world
        replicas = run.checkers.replicas
        self.ledger = Ledger(self.world, replicas)
        CoordinatorChecks(self.world)
        # The checkers know the producers of each topic.
        replicas.leaders.on_committed = but_for_internal_topics(replicas.leaders.on_committed)
        replicas.elections.on_given_up = but_for_internal_topics(replicas.elections.on_given_up)
        self._clients = Clients(self.world, "groups", self._settings)
        self.members = [member for plan in self._settings.plans for member in self._members_of(plan)]
        self._resting: set[SimGroupMember] = set()
        """Members whose protocol their group does not speak at the time."""
        self.watchers = [self._watcher_of(plan) for plan in self._settings.plans]

    # -- clients

    def _members_of(self, plan: GroupPlan) -> list[SimGroupMember]:
        made: list[SimGroupMember] = []
        for n in range(2 * plan.members if plan.protocol == MOVING else plan.members):
            consumer = plan.protocol == CONSUMER or (plan.protocol != CLASSIC and n % 2 == 1)
            name = f"{plan.group}/member{n}"
            made.append(
                SimGroupMember(
                    self._clients.context(name, self.ledger),
                    name,
                    plan.group,
                    plan.topics,
                    is_classic=not consumer,
                    session_timeout_ms=self._settings.session_timeout_ms,
                    rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
                    pause_ms=self._settings.commit_pause_ms,
                    is_static=plan.is_static and consumer,
                )
            )
        return made

    def _watcher_of(self, plan: GroupPlan) -> OffsetWatcher:
        name = f"{plan.group}/watcher"
        return OffsetWatcher(
            self._clients.context(name, self.ledger), name, plan.group, pause_ms=self._settings.watch_pause_ms
        )

    # -- the run

    def play(self, liveness: LivenessPhase) -> None:
        run, world, settings = self._run, self.world, self._settings
        fault_time_ms = run.config.fault_time_ms
        for plan in settings.plans:
            if plan.protocol == MOVING and settings.moves:
                self._move(plan, stream(run.seed, f"{plan.group}/moves"))
        for member in self.members:
            if member not in self._resting:
                self._clients.act(member, member.start)
        for watcher in self.watchers:
            self._clients.act(watcher, watcher.start)
        run.begin_faults()
        for member in self.members:
            self._clients.churn(member, stream(run.seed, f"{member.name}/churn"), self._resting)
        if settings.grows:
            world.scheduler.after(fault_time_ms * MICROSECONDS // 2, self._grow)
        world.run_for(fault_time_ms)
        self._check_recovery(liveness)
        for member in self.members:
            self._clients.act(member, member.leave)
        for watcher in self.watchers:
            self._clients.act(watcher, watcher.stop)
        world.run_for(1_000)
        liveness.run(stream(run.seed, LIVENESS_STREAM))
        world.counts["groups: commits refused"] += sum(sum(member.errors.values()) for member in self.members)

    def _check_recovery(self, liveness: LivenessPhase) -> None:
        """C5: after the repairs, every partition gets an owner with acknowledged commits, even if members are gone."""
        self._clients.churning = False
        self._resting.clear()
        self._run.nemesis.end()
        for member in self.members:
            self._clients.resume(member)
        for plan in self._settings.plans:
            members = [member for member in self.members if member.group == plan.group]
            there = [member for member in members if member.running] or members[:1]
            for member in members if self._settings.all_return else there:
                self._clients.act(member, member.start)
        for member in self.members:
            member.reported_commits.clear()
        liveness.must(
            lambda: not self._not_recovered(), "C5", lambda: f"groups do not settle: {'; '.join(self._not_recovered())}"
        )

    def _not_recovered(self) -> list[str]:
        image = self._run.checkers.replicas.metadata.image
        found: list[str] = []
        for plan in self._settings.plans:
            members = [member for member in self.members if member.group == plan.group]
            for name in plan.topics:
                for index in range(len(image.topics[image.topic_ids[name]].partitions)):
                    owners = [member for member in members if (name, index) in member.owned]
                    if len(owners) != 1 or not owners[0].reported_commits.get((name, index)):
                        names = ", ".join(owner.name for owner in owners) or "nobody"
                        found.append(f"{name}-{index} of {plan.group} is {names}'s")
        return found

    # -- members come and go

    def _move(self, plan: GroupPlan, rng: random.Random) -> None:
        """The group goes over to the other protocol, again and again."""
        members = [member for member in self.members if member.group == plan.group]
        there = [member for member in members if member.is_classic]
        others = [member for member in members if not member.is_classic]
        if rng.random() < 0.5:
            there, others = others, there
        self._resting.update(others)

        def comes(member: SimGroupMember) -> None:
            self._resting.discard(member)
            self._clients.act(member, member.start)

        def goes(member: SimGroupMember, act: Callable[[], None]) -> None:
            self._resting.add(member)
            self._clients.resume(member)
            self._clients.act(member, act)

        def go_over() -> None:
            nonlocal there, others
            if not self._clients.churning:
                return
            there, others = others, there
            kind, between_ms = rng.choice(self._settings.moves), rng.randint(50, 1_000)
            to = CLASSIC if there[0].is_classic else CONSUMER
            self.world.counts[f"groups: moves to the {to} protocol, {kind}"] += 1
            self.world.emit(GroupMoved(plan.group, to, kind))
            late = 0
            for n, (coming, going) in enumerate(zip(there, others, strict=True)):
                if kind == "rolling":
                    late = n * between_ms
                    self._later(late, partial(comes, coming))
                    self._later(late + between_ms // 2, partial(goes, going, going.leave))
                else:
                    act = going.leave if kind == "empty" else going.die
                    goes(going, act)
                    self._later(between_ms, partial(comes, coming))
            self._later(late + rng.randint(*self._settings.move_pause_ms), go_over)

        self._later(rng.randint(*self._settings.move_pause_ms), go_over)

    def _later(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Act then, if the groups have not been asked to settle by then."""
        self.world.scheduler.after(delay_ms * MICROSECONDS, lambda: act() if self._clients.churning else None)

    def _grow(self) -> None:
        """A topic gets one more partition, which its groups must assign."""
        topic = self._run.config.topics[0]
        name, count = topic.name, topic.partitions + 1
        self.world.emit(PartitionsRequested(name, count))
        self.world.counts["groups: topics grown"] += 1

        def handle_response(response: Any) -> None:
            error = -1 if response is None else response.results[0].error_code
            if error not in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS):
                self._run.admin.later(300, ask)

        def ask() -> None:
            wanted = CreatePartitionsTopic(name=name, count=count, assignments=None)
            request = CreatePartitionsRequest(topics=(wanted,), timeout_ms=_GROWTH_TIMEOUT_MS)
            self._run.admin.any_broker().call(request, _CREATE_PARTITIONS_VERSION, _GROWTH_TIMEOUT_MS, handle_response)

        self._run.admin.run(ask)
