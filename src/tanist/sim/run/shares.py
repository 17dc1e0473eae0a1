"""The workload of share groups: producers that go on, and members that fetch, accept, release, reject, or say nothing.

Everything is drawn from the seed: the cluster and its groups (`share_profiles`), faults and operators as in any run,
and what members do with records. The checks of share groups (Q1-Q4, Q6, Q7) and those of the logs judge it; and after
the faults:

    Q5  every committed record is done with: accepted, rejected, or given as often as it may be

    tanist lab run --share-groups --seeds 1..200
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from tanist.client.admin import GROUP_RESOURCE, alter_configs_request
from tanist.sim.checkers.coordinators import CoordinatorChecks
from tanist.sim.checkers.liveness import LIVENESS_STREAM, LivenessPhase
from tanist.sim.checkers.shares import ShareChecks
from tanist.sim.oracle import PartitionOracle
from tanist.sim.run.clients import Clients, but_for_internal_topics
from tanist.sim.run.workload import Run
from tanist.sim.situations import SituationCounter
from tanist.sim.situations_of_shares import OF_SHARES
from tanist.sim.workload.operations import SHARE_OPERATIONS
from tanist.sim.workload.producer import Producer
from tanist.sim.workload.share_members import Share, SimShareMember
from tanist.sim.workload.share_operator import Crew, ShareOperator
from tanist.sim.workload.share_settings import DEAD_LETTERS
from tanist.sim.workload.transactional import TransactionalClient, TransactionWitness
from tanist.sim.world.clock import stream

_CONFIGS_TIMEOUT_MS = 3_000
_APPLICATION = "application"
_TRANSACTION_TIMEOUT_MS = 3_000
_TRANSACTION_PAUSE_MS = 100

SHARES_EXPECTED: dict[str, str] = {
    "elections": "a broker was elected, and with it a leader of share partitions, or a coordinator",
    "shares: records received": "by a member, which is given them",
    "shares: words stored": "an acknowledgement has succeeded",
    "shares: words refused": "the lock has expired, or the leader has another",
    "shares: members die": "without a word, so that their sessions end with their connections",
    "shares: members leave": "in good order",
    "shares: members pause": "for longer than a lock, and go on believing that they have the records",
    "shares: given by a leader that was succeeded": "and does not know it: no message ends a leadership",
    "shares: given when offsets were changed": "by a leader that has not read since",
    "shares: offsets changed": "by an operator, of an empty group",
    "shares: offsets not changed": "the group has members, or nothing there",
    "shares: aborted records received": "by a group that reads what is not committed",
    "shares: aborted records passed over": "of a group that reads what is committed",
    "shares: records gone before they were given": "by DeleteRecords or retention: the group goes on behind them",
    "shares: dead letters written": "records that were rejected, or given as often as they may be",
    "shares: markers received": "of transactions: the member says that there is no record",
    "coordinators: compared with the replay of their log": "all that they had decided was committed",
    **{name: each.meaning for name, each in OF_SHARES.items()},
}
"""Counters that must not be zero over a large range of seeds, and their meanings."""


class Shares(Crew):
    """Of one seed. A `Workload`."""

    expected: ClassVar[Mapping[str, str]] = SHARES_EXPECTED

    def __init__(self, run: Run) -> None:
        self._run = run
        self._settings = settings = run.config.shares
        self.world = run.world
        replicas = run.checkers.replicas
        self.checks = ShareChecks(self.world, replicas, settings)
        CoordinatorChecks(self.world).on_share_states = self.checks.state_is_whole
        self.world.watchers.append(SituationCounter(self.world.counts, OF_SHARES))
        # The checkers know the producers of each topic.
        of_producers = _but_for_applications(replicas.leaders.on_committed)
        replicas.leaders.on_committed = but_for_internal_topics(of_producers)
        replicas.elections.on_given_up = but_for_internal_topics(replicas.elections.on_given_up)
        self._clients = Clients(self.world, "shares", settings)
        self.members = [
            SimShareMember(self._clients.context(name, self.checks), name, plan, settings)
            for plan in settings.plans
            for name in (f"{plan.group}/m{n}" for n in range(plan.members))
        ]
        self.producers = [
            Producer(
                run.world,
                f"{topic.name}/producer{n}",
                run.history,
                topic.name,
                topic.partitions,
                pause_ms=run.config.pause_ms,
                value_bytes=run.config.value_bytes,
            )
            for topic in run.config.topics
            for n in range(run.config.producers)
        ]
        self.applications = [
            TransactionalClient(
                self.world,
                f"{topic.name}/{_APPLICATION}{n}",
                TransactionWitness(),
                f"{_APPLICATION}-{topic.name}-{n}",
                topic.name,
                topic.partitions,
                bumps=n % 2 == 0,
                timeout_ms=_TRANSACTION_TIMEOUT_MS,
                pause_ms=_TRANSACTION_PAUSE_MS,
                abort_share=settings.abort_share,
                small_batches=n % 2 == 1,
            )
            for topic in run.config.topics
            for n in range(settings.applications)
        ]
        self.operator = ShareOperator(self.world, run.history, replicas.oracle, settings.plans, self.checks, self)
        self._resting: set[SimShareMember] = set()
        """Whose group must be empty."""

    # -- Crew

    def rest(self, group: str) -> None:
        for member in self._members_of(group):
            self._resting.add(member)
            self._clients.act(member, member.leave)

    def wake(self, group: str) -> None:
        for member in self._members_of(group):
            self._resting.discard(member)
            self._clients.act(member, member.start)

    def _members_of(self, group: str) -> list[SimShareMember]:
        return [member for member in self.members if member.group == group]

    # -- the run

    def play(self, liveness: LivenessPhase) -> None:
        run, world = self._run, self.world
        self._configure(liveness)
        for producer in self.producers:
            producer.start()
        for application in self.applications:
            application.start()
        for member in self.members:
            self._clients.act(member, member.start)
        run.begin_faults()
        self.operator.start([each for each in run.operations if each.kind in SHARE_OPERATIONS])
        for member in self.members:
            self._clients.churn(member, stream(run.seed, f"{member.name}/churn"), self._resting)
        world.run_for(run.config.fault_time_ms)
        self._clients.churning = False
        self.operator.stop()
        for application in self.applications:
            application.stop()
        for member in self.members:
            self._clients.resume(member)
            member.settle()
            if member not in self._resting:
                self._clients.act(member, member.start)
        liveness.run(stream(run.seed, LIVENESS_STREAM), producers=self.producers)
        liveness.must(lambda: self.operator.idle, "L3", lambda: "the operator of share groups is not answered")
        shares = list(self._shares())
        liveness.must(
            lambda: not any(self.checks.unsettled(shares)),
            "Q5",
            lambda: f"not done with: {'; '.join(self.checks.unsettled(shares))}",
        )
        self.checks.check_all_done(shares)
        for member in self.members:
            self._clients.act(member, member.leave)
        world.run_for(1_000)

    def _shares(self) -> Iterator[Share]:
        image = self._run.checkers.replicas.metadata.image
        for plan in self._settings.plans:
            for name in plan.topics:
                for index in sorted(image.topics[image.topic_ids[name]].partitions):
                    yield Share(plan.group, name, index)

    def _configure(self, liveness: LivenessPhase) -> None:
        """Groups begin where they are to begin."""
        left = [plan for plan in self._settings.plans if plan.configs]

        def ask() -> None:
            request = alter_configs_request(GROUP_RESOURCE, left[0].group, left[0].configs)
            self._run.admin.any_broker().call(request, 1, _CONFIGS_TIMEOUT_MS, handle_response)

        def handle_response(response: Any | None) -> None:
            if response is not None and not response.responses[0].error_code:
                left.pop(0)
            if left:
                self._run.admin.later(100, ask)

        if left:
            self._run.admin.run(ask)
        liveness.must(lambda: not left, "L2", lambda: "the groups cannot be configured")


def _but_for_applications(callback: Callable[[PartitionOracle, int, bytes], None]) -> Callable[..., None]:
    """The same callback, for records of producers: not of applications, and no dead letters."""

    def tell(oracle: PartitionOracle, offset: int, value: bytes) -> None:
        if not value.startswith(_APPLICATION.encode()) and not oracle.name.startswith(DEAD_LETTERS):
            callback(oracle, offset, value)

    return tell
