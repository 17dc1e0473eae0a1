"""The workload of Streams groups: processes of applications come and go, change their topology, and commit.

Everything is drawn from the seed: the cluster and its groups (`streams_profiles`), faults and operators as in any run,
and what processes do. The checks of Streams groups (W1 to W6), of committed offsets (C1, C2, C4), of coordinators' logs
(C6) and of the logs judge it. The groups settle when the faults are over (W4, W5).

    tanist lab run --streams --seeds 1..200
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import ClassVar

from tanist.sim.checkers.coordinators import CoordinatorChecks
from tanist.sim.checkers.liveness import LIVENESS_STREAM, LivenessPhase
from tanist.sim.checkers.streams import StreamsChecks
from tanist.sim.events import TopologyChanged
from tanist.sim.run.clients import Clients, but_for_internal_topics
from tanist.sim.run.workload import Run
from tanist.sim.workload.streams_members import SimStreamsMember, SimStreamsProcess, StreamsOperator
from tanist.sim.workload.streams_settings import Needs, StreamsPlan, needs_of
from tanist.sim.world.clock import stream
from tanist.sim.world.scheduler import MICROSECONDS

_MENDING_MS = 2_000
"""Between two looks, in the end, for groups that have a topology of long ago."""
_REFUSED_MS = 1_500
"""How long a process tries a topology that its group does not take."""

STREAMS_EXPECTED: dict[str, str] = {
    "elections": "a broker was elected, and with it a coordinator",
    "streams: tasks given": "a member is to work on them",
    "streams: standbys given": "a member is to follow their changelogs",
    "streams: tasks given up": "a member has said so, and others may get them",
    "streams: heartbeats refused": "the member is fenced, or asks who does not coordinate",
    "streams: assignment delayed": "until more members are there, or since the last one was made a moment ago",
    "streams: missing internal topics": "somebody has them made",
    "streams: stale topology": "a process of an old version has joined",
    "streams: topologies refused": "a process of a new version asks for a group of an old one",
    "streams: groups deleted": "so that another topology can come",
    "streams: groups described": "by an operator, who sees its epochs",
    "streams: commits of tasks that others have": "by a member that does not know it yet, or has heard so",
    "streams: answered by a coordinator that was succeeded": "and does not know it",
    "streams: members die": "without a word, so that their sessions end",
    "streams: members leave": "in good order",
    "streams: members pause": "for longer than a session, and go on believing that they have their tasks",
    "groups: commits acknowledged": "a commit has succeeded",
    "groups: offsets returned": "to members, which go on from there",
    "coordinators: compared with the replay of their log": "all that they had decided was committed",
}
"""Counters that must not be zero over a large range of seeds, and their meanings."""


class _Application:
    """One group of the run."""

    def __init__(self, plan: StreamsPlan, versions: tuple[Needs, ...]) -> None:
        self.plan = plan
        self.versions = versions
        self.version = 0
        self.processes: list[SimStreamsProcess] = []
        self.has_strangers = False
        """Processes of an older version may have brought their topology first."""

    @property
    def needs(self) -> Needs:
        return self.versions[self.version]

    @property
    def members(self) -> list[SimStreamsMember]:
        return [member for process in self.processes for member in process.members]


class Streams:
    """Of one seed. A `Workload`."""

    expected: ClassVar[Mapping[str, str]] = STREAMS_EXPECTED

    def __init__(self, run: Run) -> None:
        self._run = run
        self._settings = settings = run.config.streams
        self.world = run.world
        replicas = run.checkers.replicas
        self.checks = StreamsChecks(self.world, replicas, settings)
        CoordinatorChecks(self.world)
        # The checkers know the producers of each topic.
        replicas.leaders.on_committed = but_for_internal_topics(replicas.leaders.on_committed)
        replicas.elections.on_given_up = but_for_internal_topics(replicas.elections.on_given_up)
        self._clients = Clients(self.world, "streams", settings)
        self._resting: set[SimStreamsProcess] = set()
        """Those that a change of their topology has stopped."""
        self.applications = [self._application(plan) for plan in settings.plans]
        self._operators = {
            plan.group: StreamsOperator(
                self._clients.context(f"{plan.group}/operator", self.checks),
                f"{plan.group}/operator",
                plan.group,
                pause_ms=settings.describe_pause_ms,
            )
            for plan in settings.plans
        }

    def _application(self, plan: StreamsPlan) -> _Application:
        counts = {topic.name: topic.partitions for topic in self._run.config.topics}
        versions = tuple(needs_of(plan, version, counts) for version in range(len(plan.shapes)))
        made = _Application(plan, versions)
        for n in range(plan.processes):
            name = f"{plan.group}/process{n}"
            context = self._clients.context(name, self.checks)
            made.processes.append(SimStreamsProcess(context, name, plan, self._settings, versions))
        return made

    # -- the run

    def play(self, liveness: LivenessPhase) -> None:
        run, world = self._run, self.world
        for operator in self._operators.values():
            self._clients.act(operator, operator.start)
        for each in self.applications:
            for process in each.processes:
                self._clients.act(process, process.start)
        run.begin_faults()
        for each in self.applications:
            for process in each.processes:
                self._clients.churn(process, stream(run.seed, f"{process.name}/churn"), self._resting)
            if len(each.versions) > 1:
                self._change_again(each, stream(run.seed, f"{each.plan.group}/changes"))
        world.run_for(run.config.fault_time_ms)
        self._clients.churning = False
        run.nemesis.end()
        for each in self.applications:
            self._gather(each)
            self._mend(each)
        liveness.must(lambda: not self._misfits(), "W5", lambda: "; ".join(self._misfits()))
        liveness.must(lambda: not self._unsettled(), "W4", lambda: f"not settled: {'; '.join(self._unsettled()[:6])}")
        for each in self.applications:
            for needs in each.versions:
                self.checks.check_fit(needs)
            for process in each.processes:
                self._clients.act(process, process.leave)
        for operator in self._operators.values():
            operator.stop()
        world.run_for(1_000)
        liveness.run(stream(run.seed, LIVENESS_STREAM))

    def _gather(self, application: _Application) -> None:
        """All are of one version, and stay."""
        for process in application.processes:
            self._clients.resume(process)
        if application.has_strangers or any(process in self._resting for process in application.processes):
            self._replace(application, lambda process: process.die)
            return
        there = [process for process in application.processes if process.running] or application.processes[:1]
        for process in application.processes if self._settings.all_return else there:
            if process.version != application.version:
                self._clients.act(process, process.die)
                process.version = application.version
            self._clients.act(process, process.start)
        for member in application.members:
            member.reported_commits.clear()

    def _mend(self, application: _Application) -> None:
        """A process that is gone may have joined late, after its group was deleted: then that has its topology."""
        resting = any(process in self._resting for process in application.processes)
        if any(member.is_refused for member in application.members) and not resting:
            self._replace(application, lambda process: process.die)
        self.world.scheduler.after(_MENDING_MS * MICROSECONDS, lambda: self._mend(application))

    def _misfits(self) -> list[str]:
        return [wrong for each in self.applications for wrong in self.checks.misfits(each.needs)]

    def _unsettled(self) -> list[str]:
        found: list[str] = []
        for each in self.applications:
            found += self.checks.unsettled(each.plan.group, each.members, each.needs)
        return found

    # -- topologies change

    def _change_again(self, application: _Application, rng: random.Random) -> None:
        def change() -> None:
            if not any(process in self._resting for process in application.processes):
                how = rng.choice(("refused", "replaced", "replaced"))
                self.world.emit(TopologyChanged(application.plan.group, how))
                if how == "refused":
                    self._try(application, rng)
                else:
                    stops = {process: rng.random() < 0.5 for process in application.processes}
                    application.version = (application.version + 1) % len(application.versions)
                    self._replace(application, lambda process: process.die if stops[process] else process.leave)
                    if application.version > 0 and rng.random() < 0.5:
                        self._later(rng.randint(2_000, 3_000), lambda: self._try(application, rng, older=True))
            again()

        def again() -> None:
            self._later(rng.randint(*self._settings.change_pause_ms), change)

        again()

    def _replace(self, application: _Application, stop: Callable[[SimStreamsProcess], Callable[[], None]]) -> None:
        """All stop, the group is deleted, and all begin with the topology of the present version."""
        application.has_strangers = False
        operator = self._operators[application.plan.group]
        self._resting.update(application.processes)
        for process in application.processes:
            self._clients.resume(process)
            self._clients.act(process, stop(process))

        def begin() -> None:
            self.world.counts["streams: groups deleted"] += 1
            for process in application.processes:
                self._resting.discard(process)
                process.version = application.version
                self._clients.act(process, process.start)

        self._clients.act(operator, lambda: operator.delete(begin))

    def _try(self, application: _Application, rng: random.Random, *, older: bool = False) -> None:
        """One process is of another version for a while: of a newer one, which is refused, or of an older one."""
        process = rng.choice(application.processes)
        version = application.version - 1 if older else application.version + 1
        if process in self._resting or not 0 <= version < len(application.versions):
            return
        self.world.counts["streams: topologies refused"] += not older
        application.has_strangers = True
        self._restart(process, version)
        self._later(_REFUSED_MS, lambda: self._restart(process, application.version))

    def _restart(self, process: SimStreamsProcess, version: int) -> None:
        if process in self._resting:
            return
        self._clients.resume(process)
        self._clients.act(process, process.die)
        process.version = version
        self._clients.act(process, process.start)

    def _later(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Act then, if the groups have not been asked to settle by then."""
        self.world.scheduler.after(delay_ms * MICROSECONDS, lambda: act() if self._clients.churning else None)
