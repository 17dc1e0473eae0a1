"""The faults of a run, as a list that is drawn before the run begins.

The list has its own random stream, and nothing in it depends on the cluster's behaviour. So a run can be played again
without some of its faults, and the others happen at the same times.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tanist.sim.world.scheduler import MICROSECONDS

KINDS: dict[str, str] = {
    "kill": "SIGKILL between two turns, and a start after the duration",
    "crash": "SIGKILL in the n-th change to the disk, in the middle of a turn, and a start after the duration",
    "leader": "SIGKILL of the leader of a partition",
    "controller": "SIGKILL of the quorum's leader",
    "power": "a loss of power, with what was not synced, and a start after the duration",
    "blackout": "a loss of power of several machines at once",
    "stop": "a controlled shutdown, perhaps a loss of power behind it, and a start after the duration",
    "freeze": "nothing runs for the duration, as in a long pause of a virtual machine",
    "partition": "cut off from all, from one, or with some from the rest, in both directions",
    "one_way": "packets to one other node do not arrive",
    "slow": "packets to one other node are late",
    "reset": "the connections to one other node break",
    "disk_slow": "syncs take long",
    "disk_error": "the disk fails; if the node gives up it starts again when the disk is mended",
    "directory": "one of several log directories fails; the node is started again when it is mended",
    "skew": "the time of day jumps",
}
"""Kinds that any run may draw."""

RARE_KINDS: dict[str, str] = {
    "mute": "no node hears this one, which hears all",
    "deaf": "the node hears no other, and all hear it",
    "clients": "some clients and the node do not hear each other, in one direction or both",
    "flap": "the links to one other node go down and up, again and again",
    "lossy": "packets to and from one other node get lost, and come late",
    "strand": "connections to another node break at one end, with bytes under way that arrive after those of new ones",
    "strand_clients": "the same of clients' connections",
    "reborn": "SIGKILL and a start at once, while what the former life has sent to another node is still under way",
    "disk_full": "no space: writes fail, perhaps half done; the node is started again when there is space",
    "rot": "a bit of a synced batch flips; an operator notices, and the replica's log is deleted or restored",
    "lost_log": "a controlled shutdown, and a start that misses a log, or all of one of several directories",
    "quorum": "most controllers die, or no longer hear each other",
    "rolling": "all nodes are restarted cleanly, one after the other",
    "raise": "an exception in the n-th call into the log, the replica, the quorum, ..., and a start after the duration",
    "metadata_disk": "SIGKILL of a controller, whose metadata log is lost with its disk; it starts with an empty one",
}
"""Kinds that only some profiles draw (`profiles.EXTRAS`)."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `detail` is a random number in [0, 1) for the choices of its kind."""

    at_us: int
    kind: str
    host: int
    other: int
    duration_us: int
    detail: float

    def __str__(self) -> str:
        return f"{self.kind} of node {self.host} (other: {self.other}) for {self.duration_us // MICROSECONDS} ms"


def draw_faults(
    rng: random.Random, kinds: Sequence[str], hosts: list[int], time_us: int, pause_us: tuple[int, int]
) -> list[Fault]:
    """A list of faults of these kinds, in order of time, over `time_us`."""
    faults: list[Fault] = []
    at_us = 0
    while True:
        at_us += rng.randint(*pause_us)
        if at_us >= time_us:
            return faults
        host, other = rng.sample(hosts, 2)
        faults.append(
            Fault(
                at_us,
                rng.choice(kinds),
                host,
                other,
                rng.choice((50_000, 400_000, 1_500_000, 4_000_000)),
                rng.random(),
            )
        )
