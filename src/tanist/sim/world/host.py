"""One machine of the virtual world: a disk that stays, and one node after another on it.

Each start is a new life with new ports over the same disk. Owns what can happen to the machine and to the process of
its node: kills, crashes, losses of power, pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol
from uuid import UUID

from tanist.broker.assembly import format_directory
from tanist.broker.config import NodeConfig
from tanist.broker.node import Node
from tanist.controller.features import (
    DEFAULT_METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    Bootstrap,
    default_features,
)
from tanist.events.event import Event as NodeEvent
from tanist.events.stream import Events
from tanist.log.checkpoints import CLEAN_SHUTDOWN, decode_clean_shutdown
from tanist.quorum.storage.voter_history import first_snapshot
from tanist.quorum.voters import Listener, Voter, VoterSet
from tanist.sim.events import (
    CannotStart,
    ClockSkewed,
    DiedMidTurn,
    Event,
    ExceptionPlanted,
    Frozen,
    GaveUp,
    Killed,
    LifeBegan,
    MetadataDiskReplaced,
    PowerLost,
    Stopped,
    StopRequested,
    Thawed,
)
from tanist.sim.planted import Plant, is_planted
from tanist.sim.world.clock import EPOCH_MS, SimClock, SimRandom, stream
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.network import SimNetwork
from tanist.sim.world.scheduler import CrashPoint, Process, Scheduler
from tanist.wire.ids import ZERO_UUID

CONTROLLER_PORT = 9093
CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZX"
PRIVATE_REQUESTS = "tanist.private.requests.enable"
_FEATURES = {**default_features(DEFAULT_METADATA_VERSION), SHARE_VERSION: 0, STREAMS_VERSION: 0}
"""How clusters begin, but for those whose workload needs a feature of groups."""


class HostEnvironment(Protocol):
    """The part of the world that a host uses (`world.World`)."""

    seed: int
    scheduler: Scheduler
    network: SimNetwork
    watchers: list[Watcher]
    owners: dict[Process, Host]
    fine: bool
    group_features: Mapping[str, int]

    def observed(self, host: Host, event: NodeEvent) -> None:
        """A node has emitted an event."""

    def emit(self, event: Event) -> None:
        """Something has happened to a node or its disk."""


class Watcher:
    """Sees each turn and event of a run. An exception from it ends the run. What it leaves out does not concern it."""

    def turn_ended(self, host: Host) -> None:
        """The host's node has had a turn."""

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        """The host's process has ended; its disk is as the process left it (a loss of power changes it after this).

        Also when the host loses its power and no process was left to end.
        """

    def observed(self, host: Host, event: NodeEvent) -> None:
        """The host's node has emitted an event, in its turn. Fine events come if `World.fine` is set at its start."""

    def happened(self, event: Event) -> None:
        """A fault on nodes and their disks, or a request of an operator."""


class Host:
    """One machine: a disk that stays, a node that comes and goes."""

    def __init__(self, world: HostEnvironment, node_id: int, name: str, properties: Mapping[str, str]) -> None:
        self.world = world
        self.node_id = node_id
        self.name = name
        self.properties = dict(properties)
        self.disk = SimDisk(world.scheduler, stream(world.seed, f"{name}/disk"))
        self.disk.on_log_change = lambda: world.network.log_changed(name)
        self.directories = [path.strip() for path in properties["log.dirs"].split(",")]
        self.metadata_directory = properties.get("metadata.log.dir", self.directories[0])
        self.directory_id = ZERO_UUID
        """Of the metadata log's folder: a voter of a dynamic quorum is this node with this directory."""
        self._formatted = 0
        self.node: Node | None = None
        self.process: Process | None = None
        self.clock: SimClock | None = None
        self.lives = 0
        self.wall_skew_ms = 0
        self.fatal: str | None = None
        """The reason why the node ended itself, in its last life."""
        self.crash_reports: list[str] = []
        """Of all its lives that an exception has ended."""
        self._unplanted: Exception | None = None
        """An exception of the node's own: the run ends with it."""
        self._plant: Plant | None = None
        """The last exception that was planted."""
        self.powered = True
        self.clean_ends: set[int] = set()
        """Lives that ended cleanly: everything synced, and the mark with a broker epoch written."""
        self._stopping = 0
        """The last life that was asked to stop."""

    @property
    def is_broker(self) -> bool:
        return "broker" in self.properties["process.roles"]

    @property
    def votes(self) -> bool:
        return "controller" in self.properties["process.roles"]

    @property
    def private_requests(self) -> bool:
        """Whether it serves requests that only nodes of tanist have; Apache Kafka's brokers do not."""
        return self.properties.get(PRIVATE_REQUESTS, "true") == "true"

    @property
    def folders(self) -> list[str]:
        """The log directories, and the metadata log's."""
        return list(dict.fromkeys((self.metadata_directory, *self.directories)))

    @property
    def endpoint(self) -> Listener:
        """Where it listens as a controller."""
        return Listener("CONTROLLER", self.name, CONTROLLER_PORT)

    def as_voter(self) -> Voter:
        return Voter(self.node_id, self.directory_id, self.name, CONTROLLER_PORT, (self.endpoint,))

    def format(self) -> None:
        """`tanist format`: an identity for each folder."""
        rng = SimRandom(stream(self.world.seed, f"{self.name}/format"))
        for path in self.folders:
            self._format(path, rng)

    def write_first_voters(self, voters: VoterSet) -> None:
        name, content = first_snapshot(voters, self.endpoint.name, EPOCH_MS)
        path = f"{self.metadata_directory}/{name}"
        view = self.disk.view(Process("format"))
        view.make_directory(path.rpartition("/")[0])
        view.write_file(path, content)

    def replace_metadata_disk(self) -> UUID:
        """The disk of the metadata log is gone while the node is down: an empty one is in its place."""
        self.replace_disk(self.metadata_directory)
        self.world.emit(MetadataDiskReplaced(self.node_id))
        return self.directory_id

    def replace_disk(self, path: str) -> None:
        """The disk of this folder is another one, which an operator has formatted."""
        self.disk.replace(path)
        self._formatted += 1
        self._format(path, SimRandom(stream(self.world.seed, f"{self.name}/format{self._formatted}")))

    def _format(self, path: str, rng: SimRandom) -> None:
        meta = format_directory(self.disk.view(Process("format")), path, CLUSTER_ID, self.node_id, rng)
        if path == self.metadata_directory:
            self.directory_id = meta.directory_id

    @property
    def up(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def frozen(self) -> bool:
        return self.process is not None and self.process.alive and self.process.frozen

    def start(self) -> None:
        """Begin a new life of the node."""
        if self.up:
            raise RuntimeError(f"{self.name} runs already")
        world = self.world
        if not self.powered:
            self.powered = True
            world.network.got_power(self.name)
        self.lives += 1
        self.fatal = None
        self.node = None
        process = self.process = Process(f"{self.name}#{self.lives}", self._crashed, self._failed)
        clock = self.clock = SimClock(world.scheduler, process, self.wall_skew_ms)
        rng = stream(world.seed, process.name)
        world.emit(LifeBegan(self.node_id, self.lives))

        def boot() -> None:
            try:
                build()
            except (OSError, ValueError) as error:  # as `runtime.serve` does
                self._ended_itself(CannotStart(self.node_id, str(error)), f"cannot start: {error}")

        def build() -> None:
            events = Events()
            events.subscribe(lambda event: world.observed(self, event), fine=world.fine)
            self.node = Node(
                NodeConfig.from_properties(self.properties, hostname=self.name),
                clock,
                self.disk.view(process),
                world.network.view(self.name, process),
                SimRandom(rng),
                events,
                self._gave_up,
                self._crashed_by,
                self._met,
                bootstrap=Bootstrap(features={**_FEATURES, **world.group_features}),
            )
            self.node.start()

        world.owners[process] = self
        world.scheduler.dispatch(process, boot)

    def _gave_up(self, reason: str) -> None:
        """The node's own decision: its process ends."""
        if self._plant is not None:
            self._plant.gave_up()
        self._ended_itself(GaveUp(self.node_id, reason), reason)

    def _ended_itself(self, event: Event, reason: str) -> None:
        self.fatal = reason
        self.world.emit(event)
        self._end(lost_power=False, mid_turn=True)

    def _met(self, place: str, error: Exception) -> None:
        """The node has met an exception that nobody expected. Only one that the run has planted is none of its own."""
        process = self.process
        if is_planted(error):
            if self._plant is not None:
                self._plant.reported = True
        elif process is not None:
            self._unplanted = error
            process.end()
            raise CrashPoint

    def _crashed_by(self, reason: str, crash_report: str) -> None:
        """The node's process ends by an exception, as by SIGKILL."""
        self._gave_up(reason)
        self.crash_reports.append(crash_report)
        raise CrashPoint

    def _failed(self, error: Exception) -> None:
        """An exception has come through to the loop."""
        if self.node is None or not is_planted(error):
            raise error
        try:
            self.node.crash("the loop", error)
        except CrashPoint:
            self._crashed()

    def _crashed(self) -> None:
        """The process has died in the middle of a turn."""
        if self._unplanted is not None:
            raise self._unplanted
        if self.fatal is None:
            self.world.emit(DiedMidTurn(self.node_id))
            self._end(lost_power=False, mid_turn=True)

    def kill(self) -> None:
        """SIGKILL between two turns: the process is gone, the page cache is not."""
        if self.up:
            self.world.emit(Killed(self.node_id))
            self._end(lost_power=False, mid_turn=False)

    def crash_in(self, changes: int) -> None:
        """SIGKILL in the middle of a turn: in the n-th change to the disk from now on."""
        if self.process is not None and self.process.alive:
            self.process.fuse = changes

    def plant(self, plant: Plant) -> None:
        """An exception is raised in the process, in a turn from now on."""
        if self.process is not None and self.process.alive:
            self.process.plant = plant.watch
            self._plant = plant
            self.world.emit(ExceptionPlanted(self.node_id, plant.place))

    def lose_power(self) -> None:
        """The machine loses its power and all unsynced data; its peers get no packet."""
        self.world.emit(PowerLost(self.node_id))
        self.powered = False
        self._end(lost_power=True, mid_turn=False)
        self.disk.lose_power()

    def stop(self, stopped: Callable[[], None]) -> None:
        """SIGTERM: controlled shutdown; the process ends when it is done."""
        process, node = self.process, self.node
        if process is None or node is None or not process.alive:
            return

        def done() -> None:
            if process.alive:
                self.world.emit(Stopped(self.node_id))
                if node.lifecycle.broker_epoch >= 0 and not any(each.failed for each in node.replicas.directories):
                    self.clean_ends.add(self.lives)
                self._end(lost_power=False, mid_turn=True)
                stopped()

        self._stopping = self.lives
        self.world.emit(StopRequested(self.node_id))
        self.world.scheduler.dispatch(process, lambda: node.stop(done))

    def freeze(self) -> None:
        """A long pause: nothing runs, the clock goes on, connections stay."""
        if self.process is not None and self.process.alive:
            self.process.frozen = True
            self.world.emit(Frozen(self.node_id))

    def thaw(self) -> None:
        if self.process is not None and self.process.frozen:
            self.world.emit(Thawed(self.node_id))
            self.world.scheduler.thaw(self.process)

    def skew(self, wall_skew_ms: int) -> None:
        """The time of day jumps."""
        self.wall_skew_ms = wall_skew_ms
        if self.clock is not None:
            self.clock.wall_skew_ms = wall_skew_ms
        self.world.emit(ClockSkewed(self.node_id, wall_skew_ms))

    def _end(self, *, lost_power: bool, mid_turn: bool) -> None:
        process = self.process
        ran = process is not None and process in self.world.owners
        if process is not None and ran:
            process.end()
            del self.world.owners[process]
            if self._had_closed_its_logs() or self._has_opened_no_log():
                self.clean_ends.add(self.lives)
        if ran or lost_power:
            for watcher in self.world.watchers:
                watcher.went_down(self, lost_power=lost_power, mid_turn=mid_turn)
        if process is not None and ran and not lost_power:
            self.world.network.killed(process)
        if lost_power:
            self.world.network.lost_power(self.name, process)

    def _had_closed_its_logs(self) -> bool:
        """It died after its broker had stopped, while it left the quorum: only then is its mark trusted."""
        node = self.node
        if self._stopping != self.lives or node is None:
            return False
        present = set(self.disk.paths())
        marks = [f"{path}/{CLEAN_SHUTDOWN}" for path in self.directories]
        epochs = {decode_clean_shutdown(self.disk.content(mark)) if mark in present else None for mark in marks}
        return node.lifecycle.broker_epoch >= 0 and epochs == {node.lifecycle.broker_epoch}

    def _has_opened_no_log(self) -> bool:
        """It ended before it was a node (its disk failed, say): the clean end of the life before it still stands."""
        return self.node is None and self.lives - 1 in self.clean_ends
