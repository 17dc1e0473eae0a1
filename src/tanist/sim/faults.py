"""Faults: what may go wrong in a run, as a list that is drawn before the run begins, and the nemesis that does it.

The list is drawn from its own stream of chance and nothing in it depends on what the cluster does, so a run can be
played again with some of its faults left out: what is left happens as it did.

What the protocol does not promise to survive is not done: a fault that would go beyond is passed over when its time
comes. At most `down_max` nodes are down at a time. A machine loses its power only while nobody else is down and every
replica is in sync; and until its replicas are in sync again nobody else dies uncleanly, because to the controller any
unclean death may have cost records, and with min.insync.replicas 2 it can do without one replica's word. A run that
`may_lose` breaks the last rule, and then may give up committed records; the checkers see to it that it says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tanist.sim.replica_checks import ReplicaChecks
from tanist.sim.scheduler import MICROSECONDS
from tanist.sim.world import DATA, Host, World

KINDS: dict[str, str] = {
    "kill": "SIGKILL between two turns, and a start after the duration",
    "crash": "SIGKILL in the n-th change to the disk, in the middle of a turn, and a start after the duration",
    "power": "a loss of power, with what was not synced, and a start after the duration",
    "stop": "a controlled shutdown, and a start after the duration",
    "freeze": "nothing runs for the duration, as in a long pause of a virtual machine",
    "partition": "cut off from the others, or from one, in both directions",
    "one_way": "packets to one other node do not arrive",
    "slow": "packets to one other node are late",
    "reset": "the connections to one other node break",
    "disk_slow": "syncs take long",
    "disk_error": "the disk fails; if the node gives up it starts again when the disk is mended",
    "skew": "the time of day jumps",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. `detail` is chance for what its kind has to choose, in [0, 1)."""

    at_us: int
    kind: str
    host: int
    other: int
    duration_us: int
    detail: float

    def __str__(self) -> str:
        return f"{self.kind} of node {self.host} (other: {self.other}) for {self.duration_us // MICROSECONDS} ms"


def draw_faults(
    chance: random.Random, kinds: tuple[str, ...], hosts: list[int], time_us: int, pause_us: tuple[int, int]
) -> list[Fault]:
    """A list of faults of these kinds, in order of time, over `time_us`."""
    faults: list[Fault] = []
    at_us = 0
    while True:
        at_us += chance.randint(*pause_us)
        if at_us >= time_us:
            return faults
        host, other = chance.sample(hosts, 2)
        faults.append(
            Fault(
                at_us,
                chance.choice(kinds),
                host,
                other,
                chance.choice((50_000, 400_000, 1_500_000, 4_000_000)),
                chance.random(),
            )
        )


class Nemesis:
    """Does what the list says, and mends it."""

    def __init__(self, world: World, faults: list[Fault], replicas: ReplicaChecks, *, down_max: int) -> None:
        self._world = world
        self._faults = faults
        self._replicas = replicas
        self._down_max = down_max
        self.done: list[Fault] = []
        """What was not passed over."""

    def start(self) -> None:
        now_us = self._world.now_us
        for fault in self._faults:
            self._world.scheduler.at(now_us + fault.at_us, lambda fault=fault: self._strike(fault))  # type: ignore[misc]

    def end(self) -> None:
        """Everything is mended at once, but for who is down: those start when their time comes."""
        self._world.network.conditions.slow_links.clear()
        self._world.network.heal()
        for host in self._world.hosts.values():
            host.thaw()
            host.disk.failing.clear()
            host.disk.sync_us = (200, 3_000)

    def _strike(self, fault: Fault) -> None:
        host, other = self._world.hosts[fault.host], self._world.hosts[fault.other]
        if getattr(self, f"_{fault.kind}")(fault, host, other):
            self.done.append(fault)

    def _after(self, duration_us: int, mend: Callable[[], None]) -> None:
        self._world.scheduler.after(duration_us, mend)

    def _may_go_down(self, host: Host) -> bool:
        down = sum(not each.up or each.frozen for each in self._world.hosts.values())
        return host.up and not host.frozen and down < self._down_max

    def _may_die(self, host: Host) -> bool:
        """Go down uncleanly, that is."""
        return self._may_go_down(host) and (self._replicas.may_lose or not self._replicas.is_lossy())

    def _is_doomed(self, host: Host) -> bool:
        """Down, or about to be."""
        return (
            not host.up
            or host.frozen
            or bool(host.disk.failing)
            or (host.process is not None and host.process.fuse >= 0)
        )

    def _start_again(self, host: Host) -> None:
        if not host.up:
            host.start()

    # -- processes and machines

    def _kill(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_die(host):
            return False
        host.kill()
        self._after(fault.duration_us, lambda: self._start_again(host))
        return True

    def _crash(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_die(host):
            return False
        host.crash_in(int(fault.detail * 12))
        life = host.lives

        def mend() -> None:
            if host.lives == life:
                host.kill()  # if nothing was written meanwhile
                self._start_again(host)

        self._after(fault.duration_us, mend)
        return True

    def _power(self, fault: Fault, host: Host, other: Host) -> bool:
        if any(self._is_doomed(each) for each in self._world.hosts.values()) or not self._replicas.is_whole():
            return False
        host.lose_power()
        self._after(fault.duration_us, lambda: self._start_again(host))
        return True

    def _stop(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_go_down(host):
            return False
        host.stop(lambda: self._after(fault.duration_us, lambda: self._start_again(host)))
        return True

    def _freeze(self, fault: Fault, host: Host, other: Host) -> bool:
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
        self._world.note(host.name, "FAULT", "syncs are slow")

        def mend() -> None:
            host.disk.sync_us = (200, 3_000)

        self._after(fault.duration_us, mend)
        return True

    def _disk_error(self, fault: Fault, host: Host, other: Host) -> bool:
        if not self._may_die(host):
            return False
        host.disk.failing.append(DATA)
        self._world.note(host.name, "FAULT", "the disk fails")

        def mend() -> None:
            host.disk.failing.clear()
            self._world.note(host.name, "FAULT", "the disk is mended")
            self._start_again(host)

        self._after(fault.duration_us, mend)
        return True

    # -- links

    def _partition(self, fault: Fault, host: Host, other: Host) -> bool:
        others = [each for each in self._world.hosts.values() if each is not host]
        cut = others if fault.detail < 0.5 else [other]
        network = self._world.network
        for there in cut:
            network.block(host.name, there.name)
            network.block(there.name, host.name)
        self._world.note(host.name, "FAULT", f"cut off from {', '.join(each.name for each in cut)}")

        def mend() -> None:
            for there in cut:
                network.heal(host.name, there.name)
                network.heal(there.name, host.name)
            self._world.note(host.name, "FAULT", "connected again")

        self._after(fault.duration_us, mend)
        return True

    def _one_way(self, fault: Fault, host: Host, other: Host) -> bool:
        self._world.network.block(host.name, other.name)
        self._world.note(host.name, "FAULT", f"cannot reach {other.name}")

        def mend() -> None:
            self._world.network.heal(host.name, other.name)
            self._world.note(host.name, "FAULT", f"can reach {other.name} again")

        self._after(fault.duration_us, mend)
        return True

    def _slow(self, fault: Fault, host: Host, other: Host) -> bool:
        links, link = self._world.network.conditions.slow_links, (host.name, other.name)
        links[link] = (5_000, 50_000, 400_000)[int(fault.detail * 3)]
        self._world.note(host.name, "FAULT", f"slow towards {other.name}")

        def mend() -> None:
            links.pop(link, None)

        self._after(fault.duration_us, mend)
        return True

    def _reset(self, fault: Fault, host: Host, other: Host) -> bool:
        self._world.network.reset_some(host.name, other.name)
        self._world.note(host.name, "FAULT", f"connections to {other.name} reset")
        return True
