"""The workload of transactions: exactly-once applications and their zombies, while coordinators die.

Everything is drawn from the seed: the cluster and its applications (`transaction_profiles`), faults and operators as in
any run, and the pauses of clients. The checks of transactions (X4, X5) and those of the logs judge it while it runs;
after the faults every application must commit again (X9), no transaction may stay open (X7), and what is committed
must be right, and be read (X1-X3, X6, X8, X10).

    tanist lab run --transactions --seeds 1..200
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from tanist.sim.checkers.coordinators import CoordinatorChecks
from tanist.sim.checkers.liveness import LIVENESS_STREAM, LivenessPhase
from tanist.sim.checkers.transactions import TransactionChecks
from tanist.sim.events import ClientAway
from tanist.sim.oracle import PartitionOracle
from tanist.sim.run.config import BOTH, BUMPING
from tanist.sim.run.workload import Run
from tanist.sim.workload.committed_reader import CommittedReader
from tanist.sim.workload.membership import member_of
from tanist.sim.workload.transactional import TransactionalClient
from tanist.sim.world.clock import stream
from tanist.sim.world.scheduler import MICROSECONDS

TRANSACTIONS_EXPECTED: dict[str, str] = {
    "elections": "a broker was elected, and with it a coordinator",
    "transactions: producers initialized": "a client has got an epoch",
    "transactions: committed": "a commit was acknowledged",
    "transactions: aborted": "an abort was acknowledged",
    "transactions: applications that start again": "after an error, or because another instance has fenced them",
    "transactions: clients paused": "and go on as zombies",
    "transactions: partitions revoked": "the group has given them to another instance",
    "transactions: generations fenced": "an offset of an earlier generation was refused",
    "transactions: lost markers": "an unclean election has taken a marker away, and the leader writes another",
}
"""Counters that must not be zero over a large range of seeds, and their meanings."""


class Transactions:
    """Of one seed. A `Workload`."""

    expected: ClassVar[Mapping[str, str]] = TRANSACTIONS_EXPECTED

    def __init__(self, run: Run) -> None:
        self._run = run
        self._settings = settings = run.config.transactions
        self.world = run.world
        replicas = run.checkers.replicas
        self.checks = TransactionChecks(self.world, replicas, calm=not (run.config.kinds or run.config.all_operations))
        CoordinatorChecks(self.world)
        # The checkers of produces know the batches of their own producers; here others write.
        replicas.leaders.on_committed = replicas.elections.on_given_up = _of_no_producer
        self._freezing = True
        self.reader = self._reader("reader")
        self.late_reader = self._reader("reader/late")
        """Begins after the faults: of records that an unclean election took away it knows nothing."""
        self.applications = [
            self._client(application, instance)
            for application in range(settings.applications)
            for instance in range(settings.instances)
        ]

    def _reader(self, name: str) -> CommittedReader:
        config, topic = self._run.config, self._run.config.topics[0]
        return CommittedReader(self.world, name, self._run.history, topic.name, topic.partitions, resets=config.trims)

    def _client(self, application: int, instance: int) -> TransactionalClient:
        settings, topic = self._settings, self._run.config.topics[0]
        bumps = settings.clients == BUMPING or (settings.clients == BOTH and application % 2 == 0)
        grouped = bool(settings.members)
        client = TransactionalClient(
            self.world,
            f"app{application}/{instance}",
            self.checks,
            f"app{application}.{instance}" if grouped else f"app{application}",
            topic.name,
            topic.partitions,
            bumps=bumps,
            timeout_ms=settings.transaction_timeout_ms,
            pause_ms=settings.client_pause_ms,
            abort_share=settings.abort_share,
            application=f"app{application}" if grouped else "",
            small_batches=self._run.config.trims,
        )
        if grouped:
            client.member = member_of(
                self.world,
                client.process,
                settings.members,
                f"{client.name}/member",
                client.group,
                topic.name,
                self.checks.assignments,
            )
        return client

    def play(self, liveness: LivenessPhase) -> None:
        run, world = self._run, self.world
        fault_time_ms = run.config.fault_time_ms
        rng = stream(run.seed, "transactions/starts")
        for client in self.applications:
            later_us = 0 if client.name.endswith("/0") else rng.randint(0, fault_time_ms // 2) * MICROSECONDS
            world.scheduler.after(later_us, client.start)
        self.reader.start()
        run.begin_faults()
        if self._settings.freezes:
            for client in self.applications:
                self._freeze_at_times(client, stream(run.seed, f"{client.name}/pauses"))
        world.run_for(fault_time_ms)
        self._check_recovery(liveness)
        liveness.run(stream(run.seed, LIVENESS_STREAM))
        # A reader does not notice that its position was lost, if other records have it by now.
        reader = self.late_reader if self.checks.has_lost else self.reader
        if reader is self.late_reader:
            reader.start()
        liveness.must(lambda: self._has_read_all(reader), "L12", lambda: f"not all is read: {reader.positions}")
        # A coordinator that was not there before may have had a transaction to abort.
        self._await_ends(liveness)
        self.reader.stop()
        self.late_reader.stop()
        self.checks.check(reader)

    def _await_ends(self, liveness: LivenessPhase) -> None:
        liveness.must(
            self.checks.none_open,
            "X7",
            lambda: f"transactions stay open: {'; '.join(self.checks.open_transactions()[:5])}",
        )

    def _has_read_all(self, reader: CommittedReader) -> bool:
        return all(
            reader.positions[key[1]] >= oracle.high_watermark
            for key, oracle in self._run.checkers.replicas.oracles.items()
            if oracle.name == f"{reader.topic}-{key[1]}"
        )

    def _check_recovery(self, liveness: LivenessPhase) -> None:
        """X9: after the repairs one instance of each application commits again; then nothing stays open (X7)."""
        self._freezing = False
        self._run.nemesis.end()
        for client in self.applications:
            if client.process.frozen:
                self.world.scheduler.thaw(client.process)
            if client.name.startswith("app0/") and self._settings.abandons:
                client.abandon()
            elif not client.name.endswith("/0"):
                client.stop()
        last = [client for client in self.applications if not client.stopped]
        goals = {client: client.committed + 2 for client in last}
        liveness.must(
            lambda: all(client.committed >= goal for client, goal in goals.items()),
            "X9",
            lambda: f"no commits again: {', '.join(self._stuck(goals))}",
        )
        for client in last:
            client.stop()
        self._await_ends(liveness)

    def _stuck(self, goals: dict[TransactionalClient, int]) -> list[str]:
        return [
            f"{client.name} (errors {dict(client.errors)})" for client, goal in goals.items() if client.committed < goal
        ]

    def _freeze_at_times(self, client: TransactionalClient, rng: random.Random) -> None:
        low_ms, high_ms = self._settings.freeze_pause_ms

        def strike() -> None:
            if not self._freezing:
                return
            away_ms = rng.randint(*self._settings.frozen_ms)
            self.world.counts["transactions: clients paused"] += 1
            self.world.emit(ClientAway(client.name, "pause", away_ms))
            client.process.frozen = True
            self.world.scheduler.after(away_ms * MICROSECONDS, back)

        def back() -> None:
            if self._freezing:
                self.world.scheduler.thaw(client.process)
                self.world.scheduler.after(rng.randint(low_ms, high_ms) * MICROSECONDS, strike)

        self.world.scheduler.after(rng.randint(low_ms, high_ms) * MICROSECONDS, strike)


def _of_no_producer(oracle: PartitionOracle, *rest: Any) -> None:
    """These checks compare with the history of plain producers, and there are none."""
