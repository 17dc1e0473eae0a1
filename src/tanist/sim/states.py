"""The states that partitions have been in: how much of the protocol's ground a run has seen.

Situations count the moments in which a rule decides. A *state* is what surrounds such a moment: the ISR, the ELR and
LastKnownElr, who of the replicas is up, registered and suspected, what their logs have, whose epochs are old, what the
leader has proposed, and what is half sent. It names no broker and counts no records, so the same situation of other
brokers is the same state. Replicas that are alike count once, so it does not depend on the replication factor either.

Owns the measure (`StateRecorder`), which looks when the events of nodes and of the world say that a partition may be in
another state. It changes nothing: a run ends with the same digest with it and without.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tanist.controller.image.partition_state import PartitionState
from tanist.events import metadata, quorum, replication, storage
from tanist.events.event import Event as NodeEvent
from tanist.replica.leader import LeaderState
from tanist.sim import events as world_events
from tanist.sim.events import Event
from tanist.sim.oracle import Oracle, PartitionOracle, ReplicaMirror
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.ids import TopicIdPartition

_OF_A_PARTITION: Final = frozenset(
    (
        replication.BecameLeader,
        replication.SucceededItself,
        replication.BecameFollower,
        replication.StoppedReplicating,
        replication.IsrProposed,
        replication.IsrChanged,
        replication.IsrUpdateFailed,
        replication.IsrProposalRepeated,
        replication.IsrProposalEnded,
        replication.IsrAnswerIgnored,
        replication.FetchRefused,
        replication.DivergenceFound,
        replication.FollowerFenced,
        replication.LogTruncated,
        replication.TruncationUnfinished,
        metadata.PartitionChanged,
        metadata.UncleanElection,
        metadata.AlterPartitionRefused,
        metadata.RecoveryPhaseEntered,
        metadata.RecoveryDecided,
        metadata.LogInfoDropped,
        storage.LogRecovered,
    )
)
"""Events of nodes after which the partition that they name is looked at."""
_OF_ALL: Final = frozenset(
    (
        metadata.BrokerRegistered,
        metadata.BrokerFenced,
        metadata.BrokerUnfenced,
        metadata.BrokerShuttingDown,
        metadata.ControllerActivated,
        metadata.SessionExpired,
        metadata.StaleBrokerEpochRefused,
        quorum.SteppedDown,
        storage.LogDirectoryFailed,
        world_events.Killed,
        world_events.DiedMidTurn,
        world_events.GaveUp,
        world_events.PowerLost,
        world_events.Stopped,
        world_events.StopRequested,
        world_events.Frozen,
        world_events.Thawed,
        world_events.LinksFailed,
        world_events.LinksMended,
    )
)
"""Events after which all partitions are looked at."""
_EVERYWHERE: Final = ""
"""In place of a partition's name: all of them."""


class StateRecorder(Watcher):
    """Records the states of one run. A `Watcher` that comes after the checkers, whose oracle it reads."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self.reached: dict[str, int] = {}
        """State -> the virtual time, in microseconds, at which a partition was first in it."""
        self._world = world
        self._oracle = oracle
        self._due: set[str] = set()
        """Names of the partitions to look at when the turn has ended."""

    def observed(self, host: Host, event: NodeEvent) -> None:
        kind = type(event)
        if kind in _OF_A_PARTITION:
            self._due.add(event.partition)  # type: ignore[attr-defined]
        elif kind in _OF_ALL:
            self._due.add(_EVERYWHERE)

    def happened(self, event: Event) -> None:
        if type(event) in _OF_ALL:
            self._due.add(_EVERYWHERE)

    def turn_ended(self, host: Host) -> None:
        if not self._due:
            return
        due, self._due = self._due, set()
        look = _Look(self._world, self._oracle)
        for key, state in self._oracle.states.items():
            of = self._oracle.partitions.get(key)
            if of is not None and (_EVERYWHERE in due or of.name in due):
                for each in look.states(key, state, of):
                    self.reached.setdefault(each, self._world.now_us)


class _Look:
    """The world at one moment."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._hosts = world.hosts
        self._image = oracle.image
        network = world.network
        self._cut = set(network.blocked_links())
        self._late = {(end.host, end.peer_host) for end in network.connections.values() if end.pending_bytes}
        self._late.update(network.conditions.slow_links)
        self._controllers = [
            host for host in world.hosts.values() if host.up and host.node and host.node.quorum.raft.is_leader
        ]

    def states(self, key: TopicIdPartition, state: PartitionState, of: PartitionOracle) -> Iterator[str]:
        """The partition's as a whole, and each replica's in more detail."""
        image = self._image
        size, least = len(state.isr), image.effective_min_isr(*key)
        words = [
            "no ISR" if not size else "ISR < min" if size < least else "ISR",
            "" if image.elr_enabled else "ELR off",
            "recovering" if state.recovering else "",
        ]
        isr = ", ".join(filter(None, words))
        leader = self._leader_of(key, state.leader)
        replicas = set()
        for node_id in state.replicas:
            standing = self._standing(key, node_id, state, of, leader)
            replicas.add(standing)
            yield f"{isr}: one {standing}{self._detail(key, node_id, state, of)}"
        yield f"{isr}: {'; '.join(sorted(replicas))}"

    def _leader_of(self, key: TopicIdPartition, node_id: int) -> LeaderState | None:
        host = self._hosts.get(node_id)
        hosted = None if host is None or not host.up or host.node is None else host.node.replicas.get(*key)
        return None if hosted is None else hosted.leader

    def _standing(
        self,
        key: TopicIdPartition,
        node_id: int,
        state: PartitionState,
        of: PartitionOracle,
        leader: LeaderState | None,
    ) -> str:
        """What a replica is to the partition: member, alive, suspected, and about to join or to leave."""
        host, broker, mirror = self._hosts[node_id], self._image.brokers.get(node_id), of.mirrors.get(node_id)
        words = [
            _place(node_id, state),
            "down" if not host.up else "frozen" if host.frozen else "",
            "fenced" if broker is None or broker.fenced else "leaving" if broker.in_controlled_shutdown else "",
            "" if mirror is None else _doubt(mirror),
        ]
        acting = self._leader_of(key, node_id)
        if acting is not None:
            words.append("deposed" if acting.leader_epoch < state.leader_epoch else "")
            words.append(_proposal(acting, state))
        pending = None if leader is None or node_id == state.leader else leader.pending
        if pending is not None and (node_id in pending.proposed) != (node_id in state.isr):
            known = dict(pending.proposal.isr).get(node_id)
            born_again = known is not None and broker is not None and known not in (-1, broker.epoch)
            words.append("joins in another life" if born_again else "leaves" if known is None else "joins")
        return " ".join(filter(None, words))

    def _detail(self, key: TopicIdPartition, node_id: int, state: PartitionState, of: PartitionOracle) -> str:
        """What else is so: its epoch, its log, and its links."""
        host = self._hosts[node_id]
        hosted = None if not host.up or host.node is None else host.node.replicas.get(*key)
        behind = hosted is not None and hosted.replica.leader_epoch < state.leader_epoch
        links = self._links(host, self._hosts.get(state.leader), node_id == state.leader)
        words = (" behind the epoch" if behind else "", _log(of.mirrors.get(node_id), of), links)
        return "".join(words)

    def _links(self, host: Host, leader: Host | None, is_leader: bool) -> str:
        """Between a replica and its leader, or between the leader and the controllers."""
        others = self._controllers if is_leader else () if leader is None else (leader,)
        links = {link for other in others for link in ((host.name, other.name), (other.name, host.name))}
        return ", cut off" if links & self._cut else ", late" if links & self._late else ""


def _place(node_id: int, state: PartitionState) -> str:
    if node_id == state.leader:
        return "leader"
    for name, members in (("ISR", state.isr), ("ELR", state.elr), ("last known", state.last_known_elr)):
        if node_id in members:
            return name
    return "out"


def _doubt(mirror: ReplicaMirror) -> str:
    return "lost power" if mirror.lossy_since_epoch is not None else "unclean" if mirror.doubtful else ""


def _proposal(leader: LeaderState, state: PartitionState) -> str:
    """What an acting leader has proposed."""
    pending = leader.pending
    if pending is None:
        return ""
    kind = "expands" if len(pending.proposed) > len(leader.isr) else "shrinks"
    if pending.proposal.partition_epoch == state.partition_epoch:
        return kind
    return f"{kind}, as is committed" if set(pending.proposed) == set(state.isr) else f"{kind} in vain"


def _log(mirror: ReplicaMirror | None, of: PartitionOracle) -> str:
    """What a replica's log has, beside what is committed."""
    if mirror is None:
        return ", no log"
    if mirror.agreed_end >= of.high_watermark:
        return ", a tail" if mirror.end > of.high_watermark else ""
    return ", diverges" if mirror.agreeing < len(mirror.batches) else ", lags"
