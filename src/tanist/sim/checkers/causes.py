"""What needs a cause: who leaves an ISR, who is fenced, what is called unclean, a reassignment's end (S33-S35, L3).

No record is lost by any of these, so the checks of logs and of elections let them pass. Yet each of them is dear: an
ISR that shrinks for nothing costs acks=all, a broker that is fenced for nothing costs all its leaderships, a wrong
alarm costs an operator's night. Must never ask the product's own code whether there was a cause: it knows the faults.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.partition_state import PartitionState
from tanist.events.event import Event as NodeEvent
from tanist.events.metadata import ControllerActivated, LeaderElected, SessionExpired
from tanist.events.replication import BecameLeader, IsrChanged, IsrProposed, SucceededItself
from tanist.replica.leader import LeaderState
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import (
    Event,
    ExceptionPlanted,
    LifeBegan,
    PartitionStateCommitted,
    Place,
    Thawed,
    VotersCommitted,
)
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import Host, Watcher, World

_REPEAT_US = 2_500_000
"""A broker has asked the controllers one after the other by then."""


class CauseChecks(Watcher):
    """A `Watcher` of a world. It runs after the checkers of its metadata."""

    def __init__(self, world: World, image: MetadataImage) -> None:
        """`image`: of the committed metadata."""
        self._world = world
        self._image = image
        self._unclean: dict[tuple[str, int], set[bool]] = {}
        """Whether the committed election of (partition, leader epoch) was an unclean one; both, if there were two."""
        self._observed: list[LeaderElected | IsrProposed | SessionExpired] = []
        """In this turn: an exception from `observed` would be one of the node."""
        self._led_since_us: dict[tuple[int, str], int] = {}
        """(node, partition) -> when its newest leader epoch began there."""
        self._joined: dict[tuple[int, str], set[int]] = {}
        """Who has joined the ISR since then: perhaps without ever having had all."""
        self._disturbed_us: dict[int, int] = {}
        """When a node last began its life, continued, or was given an exception."""
        self._active_since_us: dict[int, int] = {}
        """When a controller last became the active one: sessions begin anew then."""
        self._voters: Collection[int] = ()
        """Of a dynamic quorum."""
        self._shrunk: list[str] = []
        """Partitions whose ISR has shrunk in this turn."""
        world.watchers.append(self)

    # -- world.Watcher

    def happened(self, event: Event) -> None:
        if isinstance(event, LifeBegan | Thawed | ExceptionPlanted):
            self._disturbed_us[event.node_id] = self._world.now_us
        elif isinstance(event, VotersCommitted):
            self._voters = event.voters.ids
        elif isinstance(event, PartitionStateCommitted) and event.before is not None:
            self._check_change(event.partition_name, event.before, event.after)

    def observed(self, host: Host, event: NodeEvent) -> None:
        if isinstance(event, LeaderElected | IsrProposed | SessionExpired):
            self._observed.append(event)
        elif isinstance(event, BecameLeader | SucceededItself):
            self._led_since_us[host.node_id, event.partition] = self._world.now_us
            self._joined[host.node_id, event.partition] = set()
        elif isinstance(event, ControllerActivated):
            self._active_since_us[host.node_id] = self._world.now_us
        elif isinstance(event, IsrChanged):
            self._joined.setdefault((host.node_id, event.partition), set()).update(event.grew)
            if event.shrank:
                self._shrunk.append(event.partition)

    def turn_ended(self, host: Host) -> None:
        observed, self._observed = self._observed, []
        for event in observed:
            if isinstance(event, LeaderElected):
                self._check_report(host, event)
            elif isinstance(event, IsrProposed):
                self._check_proposal(host, event)
            else:
                self._check_expiry(host, event)
        if self._shrunk and host.node is not None:
            for hosted in host.node.replicas:
                if f"{hosted.topic}-{hosted.index}" in self._shrunk:
                    self._check_high_watermark(host, hosted)
        self._shrunk.clear()

    # -- the properties

    def _check_change(self, name: str, before: PartitionState, after: PartitionState) -> None:
        """S12: who is elected has its log. S33: a reassignment that leaves fewer replicas leaves no fewer copies."""
        if after.leader >= 0 and after.leader_epoch > before.leader_epoch:
            broker = self._image.brokers.get(after.leader)
            if broker is not None and not broker.has_online_directory(after.directory_of(after.leader)):
                self._fail("S12", Place(name), f": {after.leader} was elected, and its directory is offline: ", after)
            # A leader that is recovering may still be followed by one that was eligible.
            unclean = after.recovering and after.leader not in {*before.isr, *before.elr}
            self._unclean.setdefault((name, after.leader_epoch), set()).add(unclean)
        if after.reassigning or len(before.removing) <= len(before.adding):
            return
        staying = set(before.replicas) - set(before.removing)
        if staying == set(after.replicas) and not staying <= set(after.isr):
            self._fail("S33", Place(name), ": a reassignment ends before all are in sync, of ", before, " made ", after)

    def _check_report(self, host: Host, event: LeaderElected) -> None:
        """S34: an election is reported as what it was."""
        known = self._unclean.get((event.partition, event.leader_epoch))
        if known is not None and event.unclean not in known:
            said = f": the election of {event.leader} in epoch {event.leader_epoch} is reported as "
            self._fail("S34", Place(event.partition, host.node_id), said, "unclean" if event.unclean else "clean")

    def _check_proposal(self, host: Host, event: IsrProposed) -> None:
        """S35: a leader drops nobody of its first ISR before it could have been late in this epoch."""
        led = host.node_id, event.partition
        since_us = self._led_since_us.get(led)
        left = set(event.isr) - set(event.proposed)
        dropped = sorted(left - self._joined.get(led, set()))
        lag_us = int(host.properties.get("replica.lag.time.max.ms", "30000")) * MICROSECONDS
        if dropped and since_us is not None and self._world.now_us - since_us <= lag_us:
            said = f": drops {dropped} from its ISR {self._world.now_us - since_us} us after its leadership began"
            self._fail("S35", Place(event.partition, host.node_id), said)
        for hosted in () if left or host.node is None else host.node.replicas:
            if hosted.leader is not None and f"{hosted.topic}-{hosted.index}" == event.partition:
                self._check_joining(host, event, hosted.log.log_end_offset, hosted.leader)

    def _check_joining(self, host: Host, event: IsrProposed, end: int, leader: LeaderState) -> None:
        """S35: under min ISR the high watermark stands still, and who is only there would be late at once."""
        now_ms, lag_ms = self._world.now_us // MICROSECONDS, leader.config.replica_lag_time_max_ms
        for broker_id in set(event.proposed) - set(event.isr):
            remote = leader.remotes.get(broker_id)
            if leader.under_min_isr and remote is not None and remote.log_end_offset < end:
                late_ms = now_ms - remote.last_caught_up_ms
                if late_ms > lag_ms:
                    said = f": takes {broker_id} in at {remote.log_end_offset} of {end}, which is {late_ms} ms late"
                    self._fail("S35", Place(event.partition, host.node_id), said)

    def _check_expiry(self, controller: Host, event: SessionExpired) -> None:
        """S35: a broker whose session ends was away, or its way to the controllers was; or who is the controller is new
        to it, as when the one before it hangs.
        """
        broker_id = event.broker_id
        world, broker = self._world, self._world.hosts.get(broker_id)
        if broker is None or not broker.up or broker.frozen or broker.node is None:
            return
        if broker.node.lifecycle.broker_epoch != event.broker_epoch:
            return  # it is back, and is not registered before the session of its former life has ended
        session_us = int(controller.properties.get("broker.session.timeout.ms", "9000")) * MICROSECONDS
        since_us = world.now_us - session_us - _REPEAT_US
        if self._active_since_us.get(controller.node_id, 0) >= since_us:
            return
        conditions = world.network.conditions
        slow = {name for link in conditions.slow_links for name in link}
        disturbed = self._disturbed_us.get(broker_id, 0) >= since_us or broker.name in slow
        others = [each for each in world.hosts.values() if each is not broker]
        if disturbed or any(world.network.was_troubled(broker.name, each.name, since_us) for each in others):
            return
        if not self._could_commit(controller, since_us):
            return  # the answer to a heartbeat waits for the records that were written before it
        self._fail("S35", f"{controller.name}: the session of broker {broker_id} ends, which was there all the time")

    def _could_commit(self, controller: Host, since_us: int) -> bool:
        """Whether a majority of the voters was there all the time, and in touch with this one."""
        hosts, network = self._world.hosts, self._world.network
        voters = [hosts[each] for each in self._voters] or [each for each in hosts.values() if each.votes]
        there = [
            each
            for each in voters
            if each.up and not each.frozen and self._disturbed_us.get(each.node_id, 0) < since_us
            if each is controller or not network.was_troubled(controller.name, each.name, since_us)
        ]
        return 2 * len(there) > len(voters)

    def _check_high_watermark(self, host: Host, hosted: HostedPartition) -> None:
        """L3: who has left the ISR holds nobody up any more."""
        leader = hosted.leader
        if leader is None or leader.under_min_isr or hosted.stale or hosted.log.failed is not None:
            return
        now_ms, lag_ms = self._world.now_us // MICROSECONDS, leader.config.replica_lag_time_max_ms
        ends = [hosted.log.log_end_offset]
        for broker_id, remote in leader.remotes.items():
            if broker_id in leader.maximal_isr or now_ms - remote.last_caught_up_ms <= lag_ms:
                ends.append(remote.log_end_offset)
        if leader.high_watermark < min(ends):
            said = f": the ISR has shrunk to {leader.isr}, and {leader.high_watermark} is committed of {min(ends)}"
            self._fail("L3", Place(f"{hosted.topic}-{hosted.index}", host.node_id), said)

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)
