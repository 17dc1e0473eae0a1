"""Directed runs of the simulator: chosen events at chosen moments, for rules that random runs hardly ever test.

A `Directed` run has the same nodes, network, disks and checkers as any run, and the seed draws latencies and the losses
of a power failure. But a *script* replaces the nemesis and the operators: a generator that acts, and yields the
conditions that it waits for. It acts as networks, machines and operators do. Above all it *holds* connections: a
process does not read one of them for a while, so its bytes arrive late, in order.

The script must never look at whether a rule is broken, and decides only the times of events. With the unbroken rules a
run reaches the end of the script and passes the liveness phase. If a condition does not come, as may happen with a
broken rule, the script releases everything, and the run continues without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.client.admin import ElectionType, elect_request, reassign_request
from tanist.controller.image.partition_state import PartitionState
from tanist.lab.history import Checker
from tanist.lab.history.report import failures
from tanist.lab.history.simulated import Recorder
from tanist.lab.mutations.writer import ScriptedWriter
from tanist.replica.leader import LeaderState
from tanist.sim.checkers.violation import Violation
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import TOPIC, ChaosConfig
from tanist.sim.scripted.hosts import ScriptedHosts
from tanist.sim.workload.operations import Topic
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import Host, Watcher
from tanist.wire.ids import TopicIdPartition

CONTROLLER = 11
_PATIENCE_MS = 10_000


@dataclass(frozen=True, slots=True)
class Until:
    """A condition that a script waits for, and a time limit."""

    condition: Callable[[], bool]
    within_ms: int = _PATIENCE_MS


Script = Iterator["Until | int"]
"""Yields `Until`, or milliseconds to let pass."""


def config(
    *,
    min_isr: int = 2,
    topic: tuple[tuple[str, str], ...] = (),
    roles: dict[int, str] | None = None,
    properties: dict[str, str] | None = None,
    fault_time_ms: int = 12_000,
    settle_time_ms: int = 30_000,
    latency_us: tuple[int, int] = (50, 300),
    observers: int = 0,
    plain: tuple[int, ...] = (),
) -> ChaosConfig:
    """Three brokers and a separate controller, one partition on all three, and no writer but the script."""
    return ChaosConfig(
        roles=roles or {**dict.fromkeys((1, 2, 3), "broker"), CONTROLLER: "controller"},
        topics=(Topic(TOPIC, 1, 3, topic),),
        min_insync_replicas=min_isr,
        producers=0,
        observers=observers,
        plain=plain,
        fault_time_ms=fault_time_ms,
        settle_time_ms=settle_time_ms,
        latency_us=latency_us,
        kinds=(),
        down_max=3,
        properties={
            "broker.session.timeout.ms": "9000",
            "broker.heartbeat.interval.ms": "500",
            "replica.lag.time.max.ms": "1500",
            "unclean.recovery.manager.enabled": "true",
            **(properties or {}),
        },
    )


class Directed(ChaosRun, ScriptedHosts):
    """One seed of a directed run."""

    timeout_ms = 6_000

    def __init__(self, seed: int, script: Callable[[Directed], Script], config: ChaosConfig, **options: Any) -> None:
        ChaosRun.__init__(self, seed, config, faults=[], **options)
        ScriptedHosts.__init__(self, self.world, self.admin)
        self.completed = False
        """Whether the script reached its end. With the unbroken rules it must."""
        self.writer = ScriptedWriter(self)
        self._recorder = Recorder(self.history)
        self._forgotten: set[str] = set()
        self._script: Script | None = script(self)
        self._awaited: Until | None = None
        self.line = 0
        """The line of the script that waits, or that gave up."""
        self._deadline_us = 0
        self.world.watchers.append(_ScriptWatcher(self))
        self.world.scheduler.after(0, self._go_on)

    def _play(self) -> None:
        super()._play()
        self._judge_clients()

    def _judge_clients(self) -> None:
        """Check the clients' history with the history checker, if no committed record was lost."""
        if any(oracle.unclean for oracle in self.checkers.replicas.oracles.values()):
            return
        lines = StringIO()
        self._recorder.write(lines)
        operations = [json.loads(line) for line in lines.getvalue().splitlines()]
        checker = Checker()
        for number, operation in enumerate(operations, start=1):
            if operation.get("partition") not in self._forgotten:
                checker.take(number, operation)
        for found in failures(checker.verdict()):
            self.fail(found.anomaly.value, found.summary)

    # -- the script

    def _node_turn_ended(self) -> None:
        """After every turn of a node: continue the script if its condition holds."""
        awaited = self._awaited
        if awaited is None:
            return
        if self._holds_now(awaited):
            self._awaited = None
            self.world.scheduler.after(0, self._go_on)  # not within the present turn
        elif self.world.now_us > self._deadline_us:
            self._awaited = None
            self.world.scheduler.after(0, self._give_up)

    def _go_on(self) -> None:
        while self._script is not None:
            try:
                wait = next(self._script)
            except StopIteration:
                self.completed = True
                self._give_up()
                return
            except Violation:
                raise
            except Exception:  # of the script, in a broken cluster: no finding
                self._give_up()
                return
            self.line = _line_of(self._script)
            if not isinstance(wait, Until):
                self.world.scheduler.after(wait * MICROSECONDS, self._go_on)
                return
            if not self._holds_now(wait):
                self._awaited = wait
                self._deadline_us = self.world.now_us + wait.within_ms * MICROSECONDS
                return

    def _holds_now(self, wait: Until) -> bool:
        """A condition that raises does not hold."""
        try:
            return wait.condition()
        except (AttributeError, LookupError):
            return False

    def _give_up(self) -> None:
        """Release everything that is held, as at the end; and if it is not the end, start the nodes that are down."""
        self._script, self._awaited = None, None
        self.release_all()
        for host in self.world.hosts.values():
            if not self.completed and not host.up:
                host.start()

    # -- the state of the cluster

    @property
    def key(self) -> TopicIdPartition:
        return next(iter(self.checkers.replicas.states))

    @property
    def state(self) -> PartitionState:
        """The partition in the committed metadata."""
        return self.checkers.replicas.states[self.key]

    def replica(self, node_id: int) -> HostedPartition | None:
        """The partition on a node that runs."""
        return self.hosted(*self.key).get(node_id)

    def leader_state(self, node_id: int) -> LeaderState | None:
        """The node's leader state, if it acts as the partition's leader."""
        hosted = self.replica(node_id)
        return None if hosted is None else hosted.leader

    def end(self, node_id: int) -> int:
        """The end of the node's log; -1 if it has none."""
        hosted = self.replica(node_id)
        return -1 if hosted is None else hosted.log.log_end_offset

    def high_watermark(self, node_id: int) -> int:
        hosted = self.replica(node_id)
        return -1 if hosted is None else hosted.replica.high_watermark

    def known_end(self, leader_id: int, follower_id: int) -> int:
        """The end of the follower's log, as far as the leader knows."""
        leader = self.leader_state(leader_id)
        return -1 if leader is None else leader.remotes[follower_id].log_end_offset

    def epoch(self, node_id: int) -> int:
        """The leader epoch that the node knows of."""
        hosted = self.replica(node_id)
        return -1 if hosted is None else hosted.leader_epoch

    def leaving(self, broker_id: int) -> bool:
        """In a controlled shutdown, as the controller knows it."""
        broker = self.checkers.metadata.image.brokers.get(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def fenced(self, broker_id: int) -> bool:
        broker = self.checkers.metadata.image.brokers.get(broker_id)
        return broker is None or broker.fenced

    def whole(self) -> bool:
        """All replicas are in sync, have all records, and have applied all metadata."""
        if not self.checkers.replicas.states:
            return False
        replicas, leader = self.state.replicas, self.state.leader
        return set(self.state.isr) == set(replicas) and all(
            self.epoch(each) == self.state.leader_epoch
            and self.end(each) == self.end(leader) == self.high_watermark(leader)
            and self.node(each).lifecycle.state.value == "RUNNING"
            for each in replicas
        )

    # -- actions of a script

    def stop(self, node_id: int) -> None:
        """A controlled shutdown. The script must start the node again."""
        host = self.host(node_id)

        def stopped() -> None:
            if self._script is None:
                host.start()

        host.stop(stopped)

    def reassign(self, replicas: tuple[int, ...], by: int) -> None:
        """An operator reassigns to these replicas, the preferred leader first, through broker `by`."""
        self.send(reassign_request(TOPIC, 0, replicas), 0, to=by)

    def elect(self, by: int) -> None:
        """An operator asks for the preferred leader, through broker `by`."""
        self.send(elect_request(ElectionType.PREFERRED, TOPIC), 2, to=by)

    def forget_topic(self, name: str) -> None:
        """A topic was deleted with its records: its name means another topic to clients from now on."""
        for send in self.history.sends:
            if send.topic == name:
                send.promised = False
        self.checkers._topic_ids.pop(name, None)
        self._forgotten.add(f"{name}-0")

    def move_leader(self, broker_id: int, by: int) -> Script:
        """Make a member of the ISR the leader, by an operator's request."""
        epoch = self.state.leader_epoch
        self.reassign((broker_id, *(each for each in self.state.replicas if each != broker_id)), by)
        yield Until(lambda: self.state.replicas[0] == broker_id)
        self.elect(by)
        yield Until(lambda: self.state.leader == broker_id and self.state.leader_epoch > epoch)

    def fail(self, property_id: str, message: str) -> None:
        """A violation that only the script can recognize."""
        raise Violation(property_id, self.world.now_us, message)


def _line_of(script: Any) -> int:
    """The line of the innermost generator of a script."""
    while getattr(script, "gi_yieldfrom", None) is not None:
        script = script.gi_yieldfrom
    frame = script.gi_frame
    return 0 if frame is None else int(frame.f_lineno)


def with_records(run: Directed, records: int, leader: int = 1) -> Script:
    """Wait for a whole cluster, with this leader and this many records on all replicas."""
    yield Until(run.whole)
    if run.state.leader != leader:
        yield from run.move_leader(leader, by=leader)
        yield Until(run.whole)
    run.writer.write(leader, records)
    yield Until(lambda: run.high_watermark(leader) == records)
    yield Until(run.whole)


class _ScriptWatcher(Watcher):
    """Calls the script after every turn (`world.Watcher`)."""

    def __init__(self, run: Directed) -> None:
        self._run = run

    def turn_ended(self, host: Host) -> None:
        self._run._node_turn_ended()
