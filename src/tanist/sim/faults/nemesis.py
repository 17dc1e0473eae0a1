"""The nemesis: it injects the faults of a list into a run, and repairs them.

A fault is skipped if the protocol does not promise to survive it (`promise.survives`), or if more than `down_max` nodes
would be down. A run that `may_lose` breaks the promise on purpose and may lose committed records; the checkers verify
that it reports them.

Emits events (`sim/events.py`), reads the oracle, and knows no checker.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.sim.events import (
    DirectoryFailed,
    DirectoryMended,
    DiskFailed,
    DiskFilled,
    DiskFreed,
    DiskMended,
    PlantedRaised,
    RestartOfAllBegan,
    SyncsSlowed,
)
from tanist.sim.faults.bit_rot import BitRot
from tanist.sim.faults.links import LINK_FAULTS, cut
from tanist.sim.faults.lost_logs import lose_folder, replace_disk
from tanist.sim.faults.schedule import Fault
from tanist.sim.oracle import Oracle
from tanist.sim.planted import Plant
from tanist.sim.promise import Promise
from tanist.sim.voter_oracle import VoterOracle
from tanist.sim.world.world import Host, World

_ROLL_US = 100_000
"""Pause between two looks of an operator who restarts or repairs nodes."""
_HEARD_US = 500_000
"""Longer than work off the loop takes to report its failure."""
_REBORN_US = 30_000
_LATE_US = (1_000_000, 4_000_000, 11_000_000)
"""Longer than a new registration takes; the last one even if the former life's session must expire first."""


class Nemesis:
    """Injects the faults of a list, and repairs them."""

    def __init__(
        self,
        world: World,
        faults: list[Fault],
        oracle: Oracle,
        promise: Promise,
        *,
        down_max: int,
        may_lose: bool,
        voters: VoterOracle | None = None,
    ) -> None:
        self._world = world
        self._faults = faults
        self._oracle = oracle
        self._promise = promise
        self._down_max = down_max
        self._may_lose = may_lose
        self._voters = voters
        """Of a quorum whose voters change."""
        self._left_out: frozenset[int] = frozenset()
        self._ended = False
        self._is_rolling = False
        self._rotten = BitRot(world, oracle)
        self.done: list[Fault] = []
        """Faults that were not skipped."""
        self.taken_down: set[int] = set()
        """Nodes that others have taken down: they are on no schedule, and start when everything is repaired."""

    def start(self) -> None:
        now_us = self._world.now_us
        for fault in self._faults:
            self._world.scheduler.at(now_us + fault.at_us, lambda fault=fault: self._strike(fault))  # type: ignore[misc]

    def end(self, leave_out: frozenset[int] = frozenset()) -> None:
        """Repair everything at once, except nodes that are down: they start on schedule, or are left out."""
        self._left_out = leave_out
        self._ended = True
        self._world.network.conditions.end_faults()
        self._world.network.heal()
        for host in self._world.hosts.values():
            host.thaw()
            host.disk.failing.clear()
            host.disk.full = False
            host.disk.sync_us = (200, 3_000)
            if host.node_id in leave_out:
                host.kill()
        for node_id in sorted(self.taken_down):
            self._start_again(self._world.hosts[node_id])
        for node_id in self._rotten.rotten_nodes():
            self._renew(self._world.hosts[node_id])

    def let_back_in(self) -> None:
        """Start the nodes that were left out."""
        left_out, self._left_out = self._left_out, frozenset()
        for node_id in sorted(left_out):
            self._start_again(self._world.hosts[node_id])

    def may_leave_out(self, host: Host) -> bool:
        """Whether the promise allows its death."""
        return self._is_promised(host, lossy=False)

    def leaves_a_quorum(self, absent: frozenset[int]) -> bool:
        """Whether the controllers elect an active one without these nodes."""
        if self._voters is not None:
            return self._voters.may_be_absent(absent)
        voters = {host.node_id for host in self._world.hosts.values() if host.votes}
        return len(voters - absent) > len(voters) // 2

    def _strike(self, fault: Fault) -> None:
        host, other = self._world.hosts[fault.host], self._world.hosts[fault.other]
        link_fault = LINK_FAULTS.get(fault.kind)
        if link_fault is not None:
            self._after(fault.duration_us, link_fault(self._world, host, other, fault.detail))
        if link_fault is not None or getattr(self, f"_{fault.kind.replace('-', '_')}")(fault, host, other):
            self.done.append(fault)
            self._world.counts[f"fault: {fault.kind}"] += 1

    def _after(self, duration_us: int, mend: Callable[[], None]) -> None:
        self._world.scheduler.after(duration_us, mend)

    def _may_go_down(self, host: Host) -> bool:
        down = sum(not each.up or each.frozen for each in self._world.hosts.values())
        return host.up and not host.frozen and down < self._down_max

    def _may_die(self, host: Host, *, lossy: bool = False) -> bool:
        """Whether the node may end uncleanly."""
        return self._may_go_down(host) and self._is_promised(host, lossy=lossy)

    def _is_promised(self, host: Host, *, lossy: bool) -> bool:
        if self._may_lose:
            return True
        dying = {each.node_id for each in self._world.hosts.values() if self._is_dying(each)}
        return self._promise.survives_everywhere(host.node_id, lossy=lossy, dying=dying)

    def _is_dying(self, host: Host) -> bool:
        """An earlier fault will kill it."""
        process = host.process
        return host.disk.fails or (process is not None and (process.fuse >= 0 or process.plant is not None))

    def _start_again(self, host: Host) -> None:
        if not host.up and host.node_id not in self._left_out:
            host.start()

    def _restart_if_failed(self, host: Host) -> None:
        """A failed directory stays failed until the node is restarted."""
        node = host.node
        if host.up and node is not None and any(each.failed for each in node.replicas.directories):
            host.kill()
        self._start_again(host)

    # -- processes and machines

    def _crash(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_die(host):
            return False
        host.kill()
        self._after(fault.duration_us, lambda: self._start_again(host))
        return True

    def _crash_leader(self, fault: Fault, host: Host, other: Host) -> bool:
        leaders = sorted({state.leader for state in self._oracle.states.values() if state.leader >= 0})
        if not leaders:
            return False
        return self._crash(fault, self._world.hosts[leaders[int(fault.detail * len(leaders))]], other)

    def _crash_controller(self, fault: Fault, host: Host, other: Host) -> bool:
        for each in self._world.hosts.values():
            if each.up and each.node is not None and each.node.quorum.raft.is_leader:
                return self._crash(fault, each, other)
        return False

    def _quorum(self, fault: Fault, host: Host, other: Host) -> bool:
        """More than `down_max` voters, which the quorum survives; brokers only as far as the promise allows."""
        voters = [each for each in self._world.hosts.values() if each.votes and self._is_voter(each)]
        if fault.detail < 0.4:
            self._after(fault.duration_us, cut(self._world, voters))
            return True
        struck = 0
        for each in voters[: len(voters) // 2 + 1]:
            if each.up and not each.frozen and self._is_promised(each, lossy=False):
                each.kill()
                self._after(fault.duration_us, lambda each=each: self._start_again(each))  # type: ignore[misc]
                struck += 1
        return struck > 0

    def _is_voter(self, host: Host) -> bool:
        return self._voters is None or not self._voters.is_dynamic or host.node_id in self._voters.voter_ids

    def _rolling(self, fault: Fault, host: Host, other: Host) -> bool:
        """Each node stops when the one before is back."""
        if self._is_rolling:
            return False
        self._is_rolling = True
        hosts = list(self._world.hosts.values())
        first = hosts.index(host)
        left = hosts[first:] + hosts[:first]
        self._world.emit(RestartOfAllBegan(host.node_id))

        def go_on() -> None:
            if self._ended or not left:
                self._is_rolling = False
            elif self._world.ready() and self._may_go_down(left[0]):
                each = left.pop(0)
                each.stop(lambda: self._after(_ROLL_US, lambda: self._start_again(each)))
                self._after(_ROLL_US, lambda: wait(each, each.lives))
            else:
                self._after(_ROLL_US, go_on)

        def wait(each: Host, life: int) -> None:
            if each.up and each.lives == life and not self._ended:
                self._after(_ROLL_US, lambda: wait(each, life))
            else:
                go_on()

        go_on()
        return True

    def _crash_mid_turn(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_die(host):
            return False
        host.crash_in(int(fault.detail * 12))
        life = host.lives

        def mend() -> None:
            if host.lives == life:
                host.kill()  # nothing was written meanwhile
                self._start_again(host)

        self._after(fault.duration_us, mend)
        return True

    def _raise(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_die(host):
            return False
        plant = Plant(fault.detail)
        host.plant(plant)
        for path in host.directories:
            self._world.emit(DirectoryFailed(host.node_id, path))
        life = host.lives

        def mend() -> None:
            process = host.process
            if plant.raised:
                self._world.counts[f"raised: {plant.place}"] += 1
            if plant.hidden:
                self._world.emit(PlantedRaised(host.node_id, plant.place, reported=False))
            if host.lives != life or process is None:
                return
            process.plant = None
            if host.up and plant.raised and not host.frozen:
                self._world.emit(PlantedRaised(host.node_id, plant.place, plant.reported))
            if host.up:
                host.kill()  # a directory may be offline, and the ends of the others' logs are to be read again
            self._start_again(host)

        self._after(fault.duration_us, mend)
        return True

    def _power_loss(self, fault: Fault, host: Host, other: Host) -> bool:
        # Also of a node that is down: its page cache is still there.
        if not host.powered or not (
            self._may_die(host, lossy=True) if host.up else self._is_promised(host, lossy=True)
        ):
            return False
        host.lose_power()
        self._after(fault.duration_us, lambda: self._start_again(host))
        return True

    def _blackout(self, fault: Fault, host: Host, other: Host) -> bool:
        struck = self._power_loss(fault, host, other)
        if struck:
            self._power_loss(fault, other, host)
        return struck

    def _reborn(self, fault: Fault, host: Host, other: Host) -> bool:
        """Its last messages arrive when it runs again, and is perhaps registered again."""
        if not self._may_die(host):
            return False
        links, link = self._world.network.conditions.slow_links, (host.name, other.name)
        links[link] = _LATE_US[int(fault.detail * len(_LATE_US))]

        def die() -> None:
            host.kill()
            links.pop(link, None)
            self._after(_REBORN_US, lambda: self._start_again(host))

        self._after(_REBORN_US, die)
        return True

    def _stop(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_go_down(host):
            return False

        def stopped() -> None:
            if fault.detail < 0.3 and (host.lives in host.clean_ends or self._is_promised(host, lossy=True)):
                host.lose_power()
            self._after(fault.duration_us, lambda: self._start_again(host))

        host.stop(stopped)
        return True

    def _lost_log(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_go_down(host) or not self._is_promised(host, lossy=True):
            return False

        def stopped() -> None:
            if self._is_promised(host, lossy=True):
                # (Not the first directory, which has the metadata log.)
                spare = host.directories[1:]
                if spare and fault.detail < 0.5:
                    replace_disk(self._world, self._oracle, host, spare[int(2 * fault.detail * len(spare))])
                else:
                    lose_folder(self._world, self._oracle, host, fault.detail)
            self._after(fault.duration_us, lambda: self._start_again(host))

        host.stop(stopped)
        return True

    def _pause(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_go_down(host):
            return False
        host.freeze()
        self._after(fault.duration_us, host.thaw)
        return True

    def _skew(self, fault: Fault, host: Host, other: Host) -> bool:
        host.skew((-60_000, -500, 500, 60_000)[int(fault.detail * 4)])
        return True

    # -- disks

    def _disk_slow(self, fault: Fault, host: Host, other: Host) -> bool:
        host.disk.sync_us = (20_000, 400_000)
        self._world.emit(SyncsSlowed(host.node_id))

        def mend() -> None:
            host.disk.sync_us = (200, 3_000)

        self._after(fault.duration_us, mend)
        return True

    def _metadata_disk(self, fault: Fault, host: Host, other: Host) -> bool:
        voters = self._voters
        if voters is None or not host.votes or host.disk.fails:
            return False
        if not self._may_die(host) or not voters.may_lose_disk(host.node_id):
            return False
        host.kill()
        host.replace_metadata_disk()
        self._after(fault.duration_us, lambda: self._start_again(host))
        return True

    def _disk_failed(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_die(host):
            return False
        host.disk.failing.extend(host.folders)
        self._world.emit(DiskFailed(host.node_id))

        def mend() -> None:
            host.disk.failing.clear()
            self._world.emit(DiskMended(host.node_id))
            self._restart_if_failed(host)
            self._after(_HEARD_US, lambda: self._restart_if_failed(host))  # it may hear of its last failure only now

        self._after(fault.duration_us, mend)
        return True

    def _disk_full(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_die(host):
            return False
        host.disk.full = True
        self._world.emit(DiskFilled(host.node_id, tuple(host.directories)))

        def mend() -> None:
            host.disk.full = False
            self._world.emit(DiskFreed(host.node_id))
            self._restart_if_failed(host)
            self._after(_HEARD_US, lambda: self._restart_if_failed(host))  # it may hear of its last failure only now

        self._after(fault.duration_us, mend)
        return True

    def _rot(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._is_promised(host, lossy=True) or not self._rotten.strike(host, fault.detail):
            return False
        self._after(fault.duration_us, lambda: self._renew(host))
        return True

    def _renew(self, host: Host) -> None:
        """An operator has seen CRC errors: delete the rotten logs, so that they are fetched from other replicas."""
        if not self._rotten.is_rotten(host.node_id):
            return
        if host.disk.fails:
            self._after(_ROLL_US, lambda: self._renew(host))  # it cannot be repaired now
        else:
            host.kill()
            self._rotten.throw_away(host)
            self._start_again(host)

    def _log_dir_failed(self, fault: Fault, host: Host, other: Host) -> bool:
        if len(host.directories) < 2 or not self._may_die(host):
            return False
        # (Not the first one, which has the metadata log: its failure equals that of the whole disk.)
        path = host.directories[1 + int(fault.detail * (len(host.directories) - 1))]
        host.disk.failing.append(path)
        self._world.emit(DirectoryFailed(host.node_id, path))
        life = host.lives

        def mend() -> None:
            host.disk.failing.clear()
            self._world.emit(DirectoryMended(host.node_id, path))
            if host.lives == life:
                host.kill()
            if host.lives == life or host.fatal is not None:  # it may have tried to start meanwhile
                self._start_again(host)

        self._after(fault.duration_us, mend)
        return True
