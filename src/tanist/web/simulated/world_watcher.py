"""The state of a world of the simulator, in the form of `web/state.py`.

Owns what was seen so far, so that a turn of one node costs a read of this node only. It is a `Watcher` that changes
nothing: a run has the same digest without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from tanist.broker.config import NodeConfig
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.decision import ControllerSettings
from tanist.quorum.storage.raft_log import RaftLog
from tanist.quorum.voters import SnapshotId
from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.sim.world.world import Host, Watcher, World
from tanist.web.actions import ACTIONS
from tanist.web.metadata_view import MetadataView
from tanist.web.partition_positions import Succession, positions
from tanist.web.simulated.disks import DiskReplica, Salvaged, disk_replica, salvage_keys, salvage_of
from tanist.web.simulated.faults import Links
from tanist.web.state import ClusterState, Json, MetadataEvent, NodeState, plain
from tanist.wire.metadata import decode_record

Emit: TypeAlias = Callable[[float, Mapping[str, Json], tuple[str, ...]], None]
"""(virtual milliseconds, the keys that are set, those that are gone)"""

_Place: TypeAlias = tuple[str, int]


class WorldWatcher(Watcher):
    """What a page sees of a world, and each change of it."""

    def __init__(self, world: World, emit: Emit, *, high_watermark_waits: bool = True) -> None:
        self.world = world
        self.links = Links(world)
        self._emit = emit
        first = next(iter(world.hosts.values()))
        config = NodeConfig.from_properties(first.properties, hostname=first.name)
        self.view = MetadataView(
            first.properties,
            ControllerSettings(
                min_insync_replicas=config.min_insync_replicas,
                unclean_leader_election_enable=config.unclean_leader_election_enable,
                unclean_recovery_manager_enabled=config.unclean_recovery_manager_enabled,
            ),
            high_watermark_waits=high_watermark_waits,
        )
        self._applied = -1
        self._controllers: dict[int, int] = {}
        """Epoch of the quorum -> its leader."""
        self._sent: dict[str, Json] = {}
        """The present value of each key."""
        self._replicas: dict[_Place, dict[int, ReplicaPositions]] = {}
        self._seen: dict[tuple[int, str, int], tuple[Any, ...]] = {}
        self._successions: dict[_Place, Mapping[int, Succession]] = {}
        self._down: dict[int, float] = {}
        """Nodes that are down -> since when."""
        self._stopped: list[Host] = []
        """Hosts that went down since the last turn: a loss of power changes their disks after it was reported."""
        self._nodes: tuple[Any, ...] = ()
        self._changed: dict[_Place, None] = {}
        """Partitions whose replicas moved since they were last shown."""
        self._salvage: dict[int, tuple[Salvaged, ...]] = {}
        world.watchers.append(self)

    @property
    def now_ms(self) -> float:
        return self.world.now_us / 1000

    # -- the watcher

    def turn_ended(self, host: Host) -> None:
        if self._stopped:
            self._read_stopped()
        self._read_node(host)
        self._show()

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        self._stopped.append(host)

    def finish(self) -> None:
        """After the last turn, which another watcher may have ended with an exception."""
        self._read_stopped()
        for host in self.world.hosts.values():
            if host.up:
                self._read_node(host)
        self._show()

    def say(self, **values: Json) -> None:
        """Keys of the page's own."""
        self._set(values)

    # -- one node

    def _read_node(self, host: Host) -> None:
        node = host.node
        if node is None:
            return
        if self._down.pop(host.node_id, None) is not None:
            self._has_started(host.node_id)
        raft = node.quorum.raft
        if raft.is_leader and raft.epoch not in self._controllers:
            self._controllers[raft.epoch] = host.node_id
            text = f"controller {host.node_id} leads the quorum in epoch {raft.epoch}"
            offset = raft.log.end_offset - 1
            self.view.note(MetadataEvent(offset, round(self.now_ms), "LeaderChangeMessage", text, weight=2))
            self._show_metadata()
        if node.metadata.applied_offset > self._applied:
            self._follow(raft.log, node.metadata.applied_offset)
        if node.is_broker:
            for hosted in node.replicas:
                self._read_replica(host, hosted)

    def _has_started(self, broker: int) -> None:
        """Its logs are on its disk, and it opens them when it has metadata."""
        self._successions.clear()
        for place, replicas in self._replicas.items():
            if broker in replicas:
                note = "its process runs and has not opened this log yet"
                replicas[broker] = replace(replicas[broker], role="offline", alive=True, since_ms=None, note=note)
                self._changed[place] = None

    def _follow(self, log: RaftLog, applied: int) -> None:
        """Take the records that this node is the first to have applied."""
        start = self._applied + 1
        if log.start_offset > start:  # it has truncated them behind a snapshot in this very turn
            self._read(self._log_with(log.earliest_snapshot_id), start, log.start_offset)
            start = log.start_offset
        self._read(log, start, applied + 1)
        self._applied = applied
        self._successions.clear()
        self._show_metadata()

    def _log_with(self, snapshot: SnapshotId | None) -> RaftLog:
        """The log of a node that still has all records of the snapshot: a majority has had them."""
        logs = [host.node.quorum.raft.log for host in self.world.hosts.values() if host.node is not None]
        for log in logs:
            if snapshot is not None and log.start_offset <= self._applied + 1:
                end = log.end_of_epoch(snapshot.epoch)
                if end.epoch == snapshot.epoch and end.offset >= snapshot.end_offset:
                    return log
        raise ValueError(f"no node has the metadata records from {self._applied + 1} on")

    def _read(self, log: RaftLog, start: int, end: int) -> None:
        at_ms = round(self.now_ms)
        for batch in log.read_batches(start, end):
            for number, value in enumerate(batch.values):
                self.view.replay(batch.offset + number, at_ms, decode_record(value))

    def _show_metadata(self) -> None:
        events, partitions = self.view.events, self.view.partitions()
        changed = {
            key: value
            for found in (events, partitions)
            for key, value in found.items()
            if self._sent.get(key) is not value
        }
        gone = [
            key
            for key in self._sent
            if (key.startswith("e/") and key not in events) or (key.startswith("p/") and key not in partitions)
        ]
        for key in [key for key in gone if key.startswith("p/")]:
            gone.append(f"r/{key[2:]}")
            topic, _, index = key[2:].rpartition("/")
            self._replicas.pop((topic, int(index)), None)
        self._set(changed, tuple(key for key in gone if key in self._sent))
        for place in self._replicas:
            self._changed[place] = None

    def _read_replica(self, host: Host, hosted: HostedPartition) -> None:
        place = hosted.topic, hosted.index
        key = (host.node_id, *place)
        role = hosted.leader or hosted.follower
        log = hosted.log
        now = (
            host.lives,
            hosted.leader is not None,
            role is None,
            log.log_start_offset,
            log.log_end_offset,
            None if role is None else role.high_watermark,
            log.flushed_offset,
            hosted.leader_epoch,
        )
        before = self._seen.get(key)
        if before == now:
            return
        self._seen[key] = now
        replicas = self._replicas.setdefault(place, {})
        replicas[host.node_id] = _alive(host.node_id, hosted, self._synced(host, hosted, replicas.get(host.node_id)))
        self._changed[place] = None
        if before is not None and (before[0] != now[0] or log.log_end_offset < before[4]):
            self._read_salvage(host)

    def _synced(self, host: Host, hosted: HostedPartition, last: ReplicaPositions | None) -> int:
        """A log that was opened after a crash does not know what is on its disk, until it syncs it: the disk does."""
        synced = hosted.log.flushed_offset
        if last is None or last.synced is None or last.synced <= synced:
            return synced
        found = disk_replica(host, hosted.topic, hosted.index)
        return synced if found is None else max(synced, found.synced)

    def _read_stopped(self) -> None:
        fallen, self._stopped = self._stopped, []
        for host in fallen:
            if host.up:
                continue
            self._down[host.node_id] = self.now_ms
            self._successions.clear()
            for place, replicas in self._replicas.items():
                if host.node_id in replicas:
                    found = disk_replica(host, *place)
                    replicas[host.node_id] = _dead(replicas[host.node_id], found, round(self.now_ms))
                    self._seen.pop((host.node_id, *place), None)
                    self._changed[place] = None

    def _read_salvage(self, host: Host) -> None:
        self._salvage[host.node_id] = salvage_of(host)
        self._set(salvage_keys(each for _, found in sorted(self._salvage.items()) for each in found))

    # -- all of them

    def _show(self) -> None:
        nodes = self._present_nodes()
        if nodes != self._nodes:
            self._nodes = nodes
            self.view.note_not_running([host.node_id for host in self.world.hosts.values() if not host.up])
            self._set({"cluster": plain(self._cluster())})
            self._show_metadata()
        if not self._changed:
            return
        changed, self._changed = self._changed, {}
        for place in changed:
            state = self.view.state(*place)
            if state is None:
                continue
            found = self._replicas[place]
            rows = [found.get(broker) or ReplicaPositions(broker, "offline", False) for broker in state.replicas]
            if place not in self._successions:
                self._successions[place] = self.view.successions(*place)
            value = plain(positions(*place, state.leader, rows, self._successions[place]))
            self._set({f"r/{place[0]}/{place[1]}": value})

    def _present_nodes(self) -> tuple[Any, ...]:
        """What the state of the cluster is made of, to notice a change."""
        controllers = [
            (node.quorum.raft.epoch, node.node_id) for node in self.world.nodes() if node.quorum.raft.is_leader
        ]
        return (
            max(controllers, default=None),
            tuple(
                (host.up, host.frozen, host.lives, host.fatal, _is_starting(host)) for host in self.world.hosts.values()
            ),
            tuple((each.id, each.fenced) for each in self.view.image.brokers.values()),
            self.links.signature(),
        )

    def _cluster(self) -> ClusterState:
        controller = self._nodes[0]
        nodes = tuple(self._node(host) for host in self.world.hosts.values())
        problem = None if controller is not None else "no controller is active: no leader can be elected"
        return ClusterState(
            "simulator",
            None,
            None if controller is None else controller[1],
            None if controller is None else controller[0],
            nodes,
            self.links.in_force(),
            problem if self._controllers else None,
            actions=ACTIONS,
        )

    def _node(self, host: Host) -> NodeState:
        registration = self.view.image.brokers.get(host.node_id) if host.is_broker else None
        fenced = None if registration is None else registration.fenced
        why = host.fatal
        if not host.up:
            state = "crashed" if host.lives and host.lives not in host.clean_ends else "stopped"
            if not host.powered:
                why = "it lost its power, and what was not synced"
        elif host.frozen:
            state = "paused"
        elif _is_starting(host):
            state = "starting"
        else:
            state = "fenced" if fenced else "running"
        since = self._down.get(host.node_id)
        roles = tuple(host.properties["process.roles"].split(","))
        return NodeState(host.node_id, roles, state, why, fenced, None if since is None else round(since))

    def _set(self, values: Mapping[str, Json], gone: tuple[str, ...] = ()) -> None:
        changed = {key: value for key, value in values.items() if self._sent.get(key) != value}
        if changed or gone:
            self._sent.update(changed)
            for key in gone:
                self._sent.pop(key, None)
            self._emit(self.now_ms, changed, gone)


def _is_starting(host: Host) -> bool:
    """Its process runs, and the broker is not registered in this life yet."""
    return host.is_broker and (host.node is None or host.node.lifecycle.broker_epoch < 0)


def _alive(broker: int, hosted: HostedPartition, synced: int) -> ReplicaPositions:
    log = hosted.log
    role = hosted.leader or hosted.follower
    return ReplicaPositions(
        broker,
        "leader" if hosted.leader else "follower" if hosted.follower else "offline",
        True,
        log.log_start_offset,
        log.log_end_offset,
        None if role is None else role.high_watermark,
        synced,
        tuple((entry.epoch, entry.start_offset) for entry in log.epochs.entries),
    )


def _dead(last: ReplicaPositions, found: DiskReplica | None, since_ms: int) -> ReplicaPositions:
    """A replica whose process has ended, as its disk has it."""
    if found is None:
        return replace(last, role="dead", alive=False, note="it has no log of this partition", since_ms=since_ms)
    return ReplicaPositions(
        last.broker,
        "dead",
        False,
        found.start,
        found.end,
        None if last.high_watermark is None else min(last.high_watermark, found.end),
        found.synced,
        found.epochs,
        since_ms=since_ms,
    )
