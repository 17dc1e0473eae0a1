"""The table of faults: what it takes, what it does, where it works, and its price in what-if.

Commands, `tanist.testing`, the live view, `tanist jepsen`, the simulator and docs/faults.md are made from these rows.
Owns names, parameters and sentences. Injects nothing, and must never import anything of tanist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Final, Literal, TypeAlias

Unit: TypeAlias = Literal["", "ms", "bytes"]


class Price(Enum):
    """What a fault is in the budget of `tanist what-if`."""

    UNCLEAN = "unclean shutdown"
    CLEAN = "clean shutdown"
    FENCING = "fencing"
    NOTHING = "nothing"


class Where(Flag):
    """The places where a fault can be injected."""

    LIVE = auto()
    """A command, and a method of `tanist.testing`."""
    PAGE = auto()
    """A button of the live view, and of the lab in the browser."""
    JEPSEN = auto()
    """`tanist jepsen`."""
    SEEDS = auto()
    """The simulator, in any run."""
    SOME_SEEDS = auto()
    """The simulator, in the runs of some profiles (`sim.run.profiles.EXTRAS`)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a fault takes beside nodes."""

    name: str
    does: str
    default: bool | int | str | None = False
    unit: Unit = ""
    opposite: str = ""
    """Of a flag that is neither on nor off by default: the option that turns it off."""

    @property
    def option(self) -> str:
        """Of a command, where a time or a size is written with its unit."""
        return f"--{self.name.replace('_', '-')}{f'/--{self.opposite}' if self.opposite else ''}"

    @property
    def argument(self) -> str:
        """Of a method of `tanist.testing`, where times are in seconds."""
        return f"{self.name}_s" if self.unit == "ms" else self.field

    @property
    def field(self) -> str:
        """In JSON."""
        return f"{self.name}_{self.unit}" if self.unit else self.name


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A row."""

    name: str
    does: str
    price: Price
    where: Where
    command: str = ""
    """On a live cluster."""
    takes: tuple[Parameter, ...] = ()
    method: str = ""
    """Of `tanist.testing`, if it has not the command's name."""
    formerly: str = ""
    """Its name in scenario files up to version 2, if that was another one."""


_UNCLEAN, _CLEAN, _FENCING, _NOTHING = Price
_LIVE, _PAGE, _JEPSEN, _SEEDS, _SOME_SEEDS = Where
_ALL = _LIVE | _PAGE | _JEPSEN | _SEEDS
_ONE_WAY = Parameter("one_way", "Only from A to B; the other direction works.")
_CLIENTS = Parameter("clients", "Clients join A's side or, if only one side is named, the other side.")
_LINKS = (_ONE_WAY, _CLIENTS)
_LATENCY = Parameter("latency", "Each way, such as 200ms or 1.5s.", 0, "ms")
_JITTER = Parameter("jitter", "Add a random time from 0 to this.", 0, "ms")
_RATE = Parameter("rate", "Bytes a second for each connection, each way, such as 1MB or 512KiB.", 0, "bytes")
_LOG_DIR = Parameter("log_dir", "Only one of the node's log directories: its path, or its last part.", None)
_SYNC = Parameter("latency", "How slow each sync is.", 100, "ms")
_WRITES = Parameter("writes", "Slow down writes, too, not only syncs; the whole node waits for each below 128 KB.")
_AFTER = Parameter("after", "Carry the request out all the same, or do not.", None, opposite="before")

# fmt: off
_ROWS = (
    # The order of those that seeds draw counts: another order would give each seed another meaning.
    FaultKind("crash", "Kill nodes with SIGKILL: they flush nothing.", _UNCLEAN, _ALL,
              "crash ID", formerly="kill"),
    FaultKind("crash-mid-turn", "Kill a node in a change to its disk.", _UNCLEAN, _SEEDS, formerly="crash"),
    FaultKind("crash-leader", "Kill the leader of a partition.", _UNCLEAN, _SEEDS, formerly="leader"),
    FaultKind("crash-controller", "Kill the quorum's leader.", _UNCLEAN, _SEEDS, formerly="controller"),
    FaultKind("power-loss", "Kill nodes, and lose what was not synced.", _UNCLEAN, _ALL,
              "crash ID --lose page-cache", formerly="power"),
    FaultKind("blackout", "Let several machines lose power at once.", _UNCLEAN, _SEEDS),
    FaultKind("stop", "Shut nodes down cleanly: they hand their leaderships over.", _CLEAN, _LIVE | _PAGE | _SEEDS,
              "stop ID"),
    FaultKind("pause", "Freeze nodes (SIGSTOP): their connections stay open.", _FENCING, _ALL,
              "pause ID", formerly="freeze"),
    FaultKind("partition", "Cut the links between two groups of nodes.", _FENCING, _ALL,
              "partition A|B", _LINKS),
    FaultKind("partition-one-way", "Cut links in one direction.", _FENCING, _LIVE | _JEPSEN | _SEEDS,
              "partition A|B --one-way", _LINKS, formerly="one_way"),
    FaultKind("slow", "Make the links between two groups of nodes slow.", _NOTHING, _ALL,
              "slow A|B", (_LATENCY, _JITTER, _RATE, _ONE_WAY, _CLIENTS)),
    FaultKind("reset", "Break the connections between two nodes.", _NOTHING, _SEEDS),
    FaultKind("disk-slow", "Let each sync take longer.", _NOTHING, _LIVE | _JEPSEN | _SEEDS,
              "disk ID slow", (_LOG_DIR, _SYNC, _WRITES), formerly="disk_slow"),
    FaultKind("disk-failed", "Fail every access to the disk (EIO).", _UNCLEAN, _LIVE | _JEPSEN | _SEEDS,
              "disk ID failed", (_LOG_DIR,), formerly="disk_error"),
    FaultKind("log-dir-failed", "Fail every access to one of several log directories.", _UNCLEAN, _LIVE | _SEEDS,
              "disk ID failed --log-dir DIR", (_LOG_DIR,), formerly="directory"),
    FaultKind("skew", "Let the time of day jump.", _NOTHING, _SEEDS),
    FaultKind("mute", "Drop all packets that a node sends.", _FENCING, _SOME_SEEDS),
    FaultKind("deaf", "Drop all packets to a node.", _FENCING, _SOME_SEEDS),
    FaultKind("partition-clients", "Cut links between clients and a node.", _NOTHING, _LIVE | _SOME_SEEDS,
              "partition A|clients", _LINKS, formerly="clients"),
    FaultKind("flap", "Cut and mend the links between two nodes, again and again.", _FENCING, _SOME_SEEDS),
    FaultKind("lossy", "Lose some packets between two nodes; others come late.", _NOTHING, _SOME_SEEDS),
    FaultKind("strand", "Break connections at one end, with bytes still under way.", _NOTHING, _SOME_SEEDS),
    FaultKind("strand-clients", "Break clients' connections at one end.", _NOTHING, _SOME_SEEDS,
              formerly="strand_clients"),
    FaultKind("reborn", "Kill a node, and start it while its last messages are under way.", _UNCLEAN, _SOME_SEEDS),
    FaultKind("disk-full", "Fail what needs space on a disk (ENOSPC).", _UNCLEAN, _LIVE | _PAGE | _JEPSEN | _SOME_SEEDS,
              "disk ID full", (_LOG_DIR,), formerly="disk_full"),
    FaultKind("rot", "Flip a bit of a synced batch; an operator mends the log.", _UNCLEAN, _SOME_SEEDS),
    FaultKind("lost-log", "Stop a node, and start it without a log.", _UNCLEAN, _SOME_SEEDS, formerly="lost_log"),
    FaultKind("quorum", "Kill most controllers, or cut them off from each other.", _UNCLEAN, _SOME_SEEDS),
    FaultKind("rolling", "Restart all nodes cleanly, one after the other.", _CLEAN, _SOME_SEEDS),
    FaultKind("raise", "Raise an exception in the log, the replica, the quorum, ...", _UNCLEAN, _SOME_SEEDS),
    FaultKind("metadata-disk", "Kill a controller; its metadata log is lost.", _UNCLEAN, _SOME_SEEDS,
              formerly="metadata_disk"),
    FaultKind("disk-read-only", "Fail every change to the disk (EROFS).", _UNCLEAN, _LIVE,
              "disk ID read-only", (_LOG_DIR,)),
    FaultKind("error", "Answer requests of an API with an error.", _NOTHING, _LIVE,
              "faults inject error API ERROR", (_AFTER,), "inject_error"),
    FaultKind("delay", "Hold answers back.", _NOTHING, _LIVE, "faults inject delay API TIME", method="delay_on"),
    FaultKind("disconnect", "End the connection in place of the answer.", _NOTHING, _LIVE,
              "faults inject disconnect API", method="disconnect_on"),
    FaultKind("blackhole", "Drop the requests of some clients.", _NOTHING, _LIVE,
              "faults inject blackhole CLIENT", method="blackhole_client"),
)
# fmt: on
FAULTS: Final = {row.name: row for row in _ROWS}


def names_of(where: Where) -> tuple[str, ...]:
    """The faults that one of these can inject."""
    return tuple(row.name for row in _ROWS if row.where & where)


def in_drawing_order(kinds: Iterable[str]) -> tuple[str, ...]:
    """Each kind once, in the order that counts when a seed draws: that of the former names."""
    return tuple(sorted(set(kinds), key=lambda kind: FAULTS[kind].formerly or kind))
