"""A run of the simulator as the moments of a replay.

It has three sources: the events of the world and of its nodes, the frames as they arrive, and every node after each of
its turns. It changes nothing: a run ends with the same digest with it and without. Its moments depend on
the plan alone, so the same plan gives the same moments everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.events.event import Event as NodeEvent
from tanist.events.metadata import (
    BrokerFenced,
    BrokerGone,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    BrokerUnregistered,
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
from tanist.lab.simulation.committed import Situation, changed, is_turning_point, reason
from tanist.lab.simulation.exchanges import Exchanges, Statement
from tanist.lab.simulation.properties import breach, meaning
from tanist.lab.simulation.replicas import Replicas
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
from tanist.sim.run.chaos_run import ChaosRun, SeedResult
from tanist.sim.world.world import COMBINED, Host, Watcher

CLIENT = "client"

_ENDS = (Killed, PowerLost, Stopped, DiedMidTurn, GaveUp, CannotStart)
_NOT_A_TURN = (Thawed, Stopped, LinksMended, DiskMended)
_TURNS = (ControllerActivated, ControllerResigned, UncleanElection, QuorumLeaderGone, BrokerGone)
_RETOLD = (IsrChanged, QuorumLeaderChanged, RegistrationAccepted, UnfencingLearned)
"""Events of nodes that their actions already show."""
_REGISTRATIONS = (BrokerRegistered, BrokerFenced, BrokerUnfenced, BrokerShuttingDown, BrokerUnregistered)
"""Committed changes of a broker."""


@dataclass(frozen=True, slots=True)
class Played:
    """A run, and its moments."""

    outcome: SeedResult
    moments: tuple[Moment, ...]
    lanes: tuple[str, ...]
    """All lanes, in their order."""
    partition: str | None
    """The failed partition, if the violation names one."""


def play(run: ChaosRun) -> Played:
    """Play a run from its beginning to its end, and record its moments."""
    player = Player(run)
    outcome = run.run()
    player.finish(outcome.violation)
    partition = None if outcome.violation is None else outcome.violation.partition
    return Played(outcome, tuple(player.moments), player.lanes, partition)


class _AfterTheCheckers(Watcher):
    """A watcher that comes last: the checkers have noted the committed metadata by then."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def turn_ended(self, host: Host) -> None:
        self._player.tell_turn()


class Player(Watcher):
    """Records a run. A `Watcher` (`sim.world`) that comes before the checkers, which may end the run."""

    def __init__(self, run: ChaosRun) -> None:
        self.moments: list[Moment] = []
        self._run = run
        self._world = world = run.world
        self._names = {host.name: _lane(host) for host in world.hosts.values()}
        self.lanes = (*self._names.values(), CLIENT, OPERATOR)
        self._image = run.checkers.metadata.image
        self._replicas = Replicas()
        self._last_said: dict[tuple[str, str, str | None], str] = {}
        """Sender, receiver and subject -> the last statement: a repeated one is not shown."""
        self._compared: dict[str, tuple[int, ...]] = {}
        """Partition -> the brokers whose logs its last unclean recovery compared."""
        self._brokers: list[Moment] = []
        self._partitions: list[Moment] = []
        self._did: list[Moment] = []
        """What has come of a turn, causes first: committed changes of brokers and of partitions, acts of replicas."""
        self._acting = self.lanes[0]
        """The node that had the last turn."""
        world.watchers.insert(0, self)
        world.watchers.append(_AfterTheCheckers(self))
        world.network.readers.append(Exchanges(self._image, self._said).read)

    # -- sources

    def turn_ended(self, host: Host) -> None:
        self._acting = lane = self._names[host.name]
        if host.node is not None:
            for did in self._replicas.changes(host, host.node):
                self._did.append(Moment(self._at, lane, did.text, why=did.why, about=did.partition, weight=did.weight))

    def _said(self, source: str, target: str, said: Statement) -> None:
        self._acting = to = self._lane(target)
        pair = (source, target, said.about)
        weight = Weight.DETAIL if self._last_said.get(pair) == said.text else said.weight
        self._last_said[pair] = said.text
        who = source if source not in self._names else target
        client = "" if who in self._names or who == "admin" else f"{who.rpartition('/')[2]} "
        text = f"{client}{said.text}"
        self.moments.append(Moment(self._at, self._lane(source), text, to, said.why, about=said.about, weight=weight))

    def happened(self, event: Event) -> None:
        if isinstance(event, LifeBegan):  # which registers for the first time
            host, said = self._world.hosts[event.node_id], self._last_said
            self._last_said = {key: said[key] for key in said if key[0] != host.name or key[2] is not None}
        rendered = story_line(event, lambda host: self._names.get(host, host))
        if rendered is None:
            return
        about = getattr(event, "partition_name", None)
        text = rendered.text.removeprefix(f"{about}: ")
        if isinstance(event, PartitionStateCommitted):
            self._partitions.append(self._committed(event))
        elif isinstance(event, RecordsLost):
            self.moments.append(Moment(self._at, self._acting, text, why=_LOSS, about=about, weight=Weight.TURN))
        elif rendered.who in self.lanes:
            alive = True if isinstance(event, LifeBegan) else False if isinstance(event, _ENDS) else None
            first = isinstance(event, LifeBegan) and event.life == 1
            weight = Weight.DETAIL if first else Weight.PART if isinstance(event, _NOT_A_TURN) else Weight.TURN
            self.moments.append(Moment(self._at, rendered.who, text, about=about, weight=weight, alive=alive))

    def observed(self, host: Host, event: NodeEvent) -> None:
        lane = self._names[host.name]
        if isinstance(event, UncleanElection):
            self._compared[event.partition] = tuple(broker_id for broker_id, _, _ in event.logs)
        elif isinstance(event, _REGISTRATIONS) and self._is_first_to_apply(host):
            before, (text, weight) = self._image.brokers.get(event.broker_id), _registration(event)
            begins = before is None or not self._run.checkers.replicas.states  # the cluster
            weight, text = Weight.DETAIL if begins else weight, f"committed: broker {event.broker_id} {text}"
            again = before is not None and isinstance(event, BrokerRegistered) and before.epoch == event.broker_epoch
            if not again:
                self._brokers.append(Moment(self._at, lane, text, weight=weight))
        rendered = describe(event)
        if rendered is None or isinstance(event, _RETOLD):
            return
        level, text = rendered
        about = getattr(event, "partition", None)
        weight = Weight.TURN if isinstance(event, _TURNS) else Weight.DETAIL if level == "INFO" else Weight.PART
        self.moments.append(Moment(self._at, lane, text.removeprefix(f"{about}: "), about=about, weight=weight))

    def _is_first_to_apply(self, host: Host) -> bool:
        """Whether nobody has applied before what this node applies now."""
        return host.node is not None and host.node.metadata.applied_offset > self._run.checkers.metadata.applied_offset

    def _committed(self, event: PartitionStateCommitted) -> Moment:
        key, name, before, after = event.partition, event.partition_name, event.before, event.after
        replicas = self._run.checkers.replicas
        situation = Situation(
            self._image.effective_min_isr(*key),
            replicas.elections.promise.strategy(replicas.oracle_of(key)),
            self._image.elr_enabled,
            key in replicas.elections.asked_for,
            self._compared.pop(name, ()),
        )
        weight = Weight.TURN if is_turning_point(before, after) else Weight.PART
        text, why = f"committed: {changed(before, after)}", reason(before, after, situation)
        return Moment(self._at, self._acting, text, why=why, about=name, weight=weight)

    def tell_turn(self) -> None:
        """The moments of the last turn, causes first."""
        for each in (self._brokers, self._partitions, self._did):
            self.moments += each
            each.clear()

    def finish(self, violation: Violation | None) -> None:
        """The run has ended."""
        if violation is None:
            return
        self.tell_turn()
        lane = OPERATOR if violation.property_id.startswith("L") else self._acting
        about, said, why = violation.partition, violation.message, meaning(violation.property_id)
        if about is not None:
            said = said.removeprefix(about).removeprefix(": ").lstrip()
        text = f"{breach(violation.property_id)}: {said}"
        self.moments.append(Moment(self._at, lane, text, None, why or None, True, about, Weight.TURN))

    # -- names and times

    @property
    def _at(self) -> str:
        return f"{self._world.now_us / 1e6:.3f}"

    def _lane(self, host: str) -> str:
        return self._names.get(host) or (OPERATOR if host == "admin" else CLIENT)


_LOSS = "the elected lacks them; the configuration, an operator or too many losses at once allow it"


def _lane(host: Host) -> str:
    role = host.properties["process.roles"]
    return f"{'node' if role == COMBINED else role} {host.node_id}"


def _registration(event: NodeEvent) -> tuple[str, Weight]:
    """What a broker is or does, by a committed record."""
    match event:
        case BrokerRegistered():
            return f"is registered, broker epoch {event.broker_epoch}, fenced until it has caught up", Weight.PART
        case BrokerFenced():
            return "is fenced", Weight.TURN
        case BrokerUnfenced():
            return "is unfenced", Weight.PART
        case BrokerShuttingDown():
            return "shuts down: it leaves its ISRs", Weight.PART
    return "is unregistered", Weight.TURN
