"""A run of the simulator as the moments of a replay.

It has three sources: the events of the world and of its nodes, the frames as they arrive, and every node after each of
its turns. It changes nothing: a run ends with the same digest with it and without. Its moments depend on
the plan alone, so the same plan gives the same moments everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from tanist.controller.registration import BrokerRegistration
from tanist.events.event import Event as NodeEvent
from tanist.events.metadata import (
    BrokerGone,
    ControllerActivated,
    ControllerResigned,
    RegistrationAccepted,
    UncleanElection,
    UnfencingLearned,
)
from tanist.events.quorum import QuorumLeaderChanged, QuorumLeaderGone
from tanist.events.replication import IsrChanged
from tanist.events.text import describe
from tanist.lab.replay.moments import Moment, Weight
from tanist.lab.simulation.committed import Situation, broker_changed, changed, is_turning_point, reason
from tanist.lab.simulation.exchanges import Exchanges, Statement
from tanist.lab.simulation.properties import breach, meaning
from tanist.lab.simulation.replicas import Did, Replicas
from tanist.sim.checkers.violation import Violation
from tanist.sim.event_text import OPERATOR, story_line
from tanist.sim.events import (
    CannotStart,
    DiedMidTurn,
    DiskMended,
    Event,
    GaveUp,
    Killed,
    LifeBegan,
    LinksMended,
    PartitionStateCommitted,
    PowerLost,
    RecordsLost,
    Stopped,
    Thawed,
)
from tanist.sim.run.chaos_run import ChaosRun, Plan, SeedResult
from tanist.sim.world.world import COMBINED, Host, Watcher

CLIENT = "client"

_ENDS = (Killed, PowerLost, Stopped, DiedMidTurn, GaveUp, CannotStart)
_NOT_A_TURN = (Thawed, Stopped, LinksMended, DiskMended)
_TURNS = (ControllerActivated, ControllerResigned, UncleanElection, QuorumLeaderGone, BrokerGone)
_RETOLD = (IsrChanged, QuorumLeaderChanged, RegistrationAccepted, UnfencingLearned)
"""Events of nodes that their actions already show."""


@dataclass(frozen=True, slots=True)
class Played:
    """A run, and its moments."""

    outcome: SeedResult
    moments: tuple[Moment, ...]
    lanes: tuple[str, ...]
    """All lanes, in their order."""
    partition: str | None
    """The failed partition, if the violation names one."""


def moments(plan: Plan) -> Iterator[Moment]:
    """All moments of a run of the plan."""
    yield from play(plan.begin()).moments


def play(run: ChaosRun) -> Played:
    """Play a run from its beginning to its end, and record its moments."""
    player = _Player(run)
    outcome = run.run()
    player.finish(outcome.violation)
    partition = None if outcome.violation is None else outcome.violation.partition
    return Played(outcome, tuple(player.moments), player.lanes, partition)


class _AfterTheCheckers(Watcher):
    """A watcher that comes last: the checkers have noted the committed metadata by then."""

    def __init__(self, player: _Player) -> None:
        self._player = player

    def turn_ended(self, host: Host) -> None:
        self._player.tell_turn()


class _Player(Watcher):
    """Records a run. A `Watcher` (`sim.world`) that comes before the checkers, which may end the run."""

    def __init__(self, run: ChaosRun) -> None:
        self.moments: list[Moment] = []
        self._run = run
        self._world = world = run.world
        self._ids = {host.name: host.node_id for host in world.hosts.values()}
        self._names = {host.name: _lane(host) for host in world.hosts.values()}
        self.lanes = (*self._names.values(), CLIENT, OPERATOR)
        self._image = run.checkers.metadata.image
        self._replicas = Replicas()
        self._exchanges = Exchanges(self._topic_name, lambda broker_id: broker_id in self._brokers, self._said)
        self._brokers: dict[int, BrokerRegistration] = {}
        self._last_said: dict[tuple[str, str, str | None], str] = {}
        """Sender, receiver and subject -> the last statement: a repeated one is not shown."""
        self._answered: dict[str, list[int]] = {}
        """Partition -> the brokers that have reported their logs' ends since it last had a leader."""
        self._did: list[Did] = []
        """Actions of the replicas in this turn, shown after the committed changes that caused them."""
        self._changes: list[tuple[PartitionStateCommitted, Situation]] = []
        """Committed in this turn."""
        self._applied_offset = -1
        self._acting = self.lanes[0]
        """The node that had the last turn."""
        world.watchers.insert(0, self)
        world.watchers.append(_AfterTheCheckers(self))
        world.network.on_frame = self._exchanges.read

    # -- sources

    def turn_ended(self, host: Host) -> None:
        self._acting = self._names[host.name]
        if host.node is not None:
            self._did = self._replicas.look(host, host.node)

    def _said(self, source: str, target: str, said: Statement) -> None:
        self._acting = self._lane(target)
        if said.tells_its_log and said.about is not None:
            self._answered.setdefault(said.about, []).append(self._ids[source])
        pair = (source, target, said.about)
        again = self._last_said.get(pair) == said.text
        self._last_said[pair] = said.text
        who = source if source not in self._names else target
        client = "" if who in self._names or who == "admin" else f"{who.rpartition('/')[2]} "
        self._tell(
            self._lane(source),
            f"{client}{said.text}",
            to=self._lane(target),
            why=said.why,
            about=said.about,
            weight=Weight.DETAIL if again else said.weight,
        )

    def happened(self, event: Event) -> None:
        rendered = story_line(event, self._shown)
        if rendered is None:
            return
        about = getattr(event, "partition_name", None)
        text = rendered.text.removeprefix(f"{about}: ")
        if isinstance(event, PartitionStateCommitted):
            self._committed(event)
        elif isinstance(event, RecordsLost):
            self._tell(self._acting, text, about=about, weight=Weight.TURN, why=_LOSS)
        elif rendered.who in self.lanes:
            alive = True if isinstance(event, LifeBegan) else False if isinstance(event, _ENDS) else None
            first = isinstance(event, LifeBegan) and event.life == 1
            weight = Weight.DETAIL if first else Weight.PART if isinstance(event, _NOT_A_TURN) else Weight.TURN
            self._tell(rendered.who, text, weight=weight, about=about, alive=alive)

    def observed(self, host: Host, event: NodeEvent) -> None:
        rendered = describe(event)
        if rendered is None or isinstance(event, _RETOLD):
            return
        level, text = rendered
        about = getattr(event, "partition", None)
        weight = Weight.TURN if isinstance(event, _TURNS) else Weight.DETAIL if level == "INFO" else Weight.PART
        self._tell(self._names[host.name], text.removeprefix(f"{about}: "), weight=weight, about=about)

    # -- committed metadata

    def _committed(self, event: PartitionStateCommitted) -> None:
        """A partition has changed: kept until the turn's end, because the records of a broker come after those."""
        key, name = event.partition, event.partition_name
        replicas = self._run.checkers.replicas
        oracle, elections = replicas.oracle_of(key), replicas.elections
        situation = Situation(
            self._image.effective_min_isr(*key),
            elections.promise.strategy(oracle),
            self._image.elr_enabled,
            key in elections.asked_for,
            tuple(dict.fromkeys(self._answered.get(name, ()))),
        )
        if event.after.leader >= 0:
            self._answered.pop(name, None)
        self._changes.append((event, situation))

    def tell_turn(self) -> None:
        """The moments of the last turn, causes first: brokers, then partitions, then replicas."""
        applied_offset = self._run.checkers.metadata.applied_offset
        if applied_offset != self._applied_offset:
            self._applied_offset = applied_offset
            self._tell_brokers()
        changes, self._changes = self._changes, []
        for change, situation in changes:
            name, before, after = change.partition_name, change.before, change.after
            weight = Weight.TURN if is_turning_point(before, after) else Weight.PART
            text = f"committed: {changed(before, after)}"
            why = reason(before, after, situation)
            self._tell(self._acting, text, why=why, about=name, weight=weight)
        did, self._did = self._did, []
        for each in did:
            self._tell(self._acting, each.text, why=each.why, about=each.partition, weight=each.weight)

    def _tell_brokers(self) -> None:
        image = self._image
        for broker_id in sorted({*self._brokers, *image.brokers}):
            before, after = self._brokers.get(broker_id), image.brokers.get(broker_id)
            if before is after:
                continue
            text = broker_changed(broker_id, before, after)
            if after is None:
                del self._brokers[broker_id]
            else:
                self._brokers[broker_id] = after
            if text is not None:
                fresh = before is None or (before.epoch == 0) or self._run.checkers.replicas.states == {}
                turn = after is None or (after.fenced and before is not None and not before.fenced)
                weight = Weight.DETAIL if fresh else Weight.TURN if turn else Weight.PART
                self._tell(self._acting, f"committed: {text}", weight=weight)

    # -- the end

    def finish(self, violation: Violation | None) -> None:
        """The run has ended."""
        if violation is None:
            return
        self.tell_turn()
        lane = OPERATOR if violation.property_id.startswith("L") else self._acting
        about, said = violation.partition, violation.message
        if about is not None:
            said = said.removeprefix(about).removeprefix(": ").lstrip()
        text = f"{breach(violation.property_id)}: {said}"
        self._tell(lane, text, why=meaning(violation.property_id), about=about, weight=Weight.TURN, broken=True)

    # -- bits

    def _tell(
        self,
        lane: str,
        text: str,
        *,
        to: str | None = None,
        why: str | None = None,
        about: str | None = None,
        weight: Weight = Weight.PART,
        alive: bool | None = None,
        broken: bool = False,
    ) -> None:
        at = f"{self._world.now_us / 1e6:.3f}"
        self.moments.append(Moment(at, lane, text, to, why or None, broken, about, weight, alive))

    def _lane(self, host: str) -> str:
        return self._names.get(host) or (OPERATOR if host == "admin" else CLIENT)

    def _shown(self, host: str) -> str:
        return self._names.get(host, host)

    def _topic_name(self, topic_id: UUID) -> str | None:
        topic = self._image.topics.get(topic_id)
        return None if topic is None else topic.name


_LOSS = "the elected lacks them; the configuration, an operator or too many losses at once allow it"


def _lane(host: Host) -> str:
    role = host.properties["process.roles"]
    return f"{'node' if role == COMBINED else role} {host.node_id}"
