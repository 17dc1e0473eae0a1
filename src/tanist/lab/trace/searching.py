"""The search of all states: the public model with lost suffixes and unclean recovery, at a size that ends.

Owns the configuration of `Search.tla`, and what TLC says at the end. The rules that can be broken are named here, with
the property that finds each; docs/proof.md has the counts.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tanist.lab.trace.steps import MODEL_VALUES
from tanist.lab.trace.tlc import EXTENSION, Tools, command, write_modules

RULES: Final = {
    "clean-mark": ("the mark of a clean end is there while the broker runs", "CandidatesAreComplete"),
    "last-known": ("LastKnownElr is not recorded", "LastKnownIsKept"),
    "forgets": ("an unclean election keeps LastKnownElr", "LastKnownIsKept"),
    "eligible": ("recoveries do not wait for the ELR", "NeverBesideTheEligible"),
    "all-last-known": ("Balanced asks those of LastKnownElr who are there", "BalancedLosesWhatAllHaveLost"),
    "broker-epoch": ("an answer counts after a restart of who gave it", "BalancedLosesWhatAllHaveLost"),
}
"""Rule -> what is so instead, and the property that Balanced violates with two replicas."""
_INVARIANTS: Final = (
    *("NeverBesideTheEligible", "BalancedLosesWhatAllHaveLost", "AggressiveElectsTheForemost", "LastKnownIsKept"),
    *("LogsMatch", "LeaderIsComplete", "CandidatesAreComplete", "ReadsAreConsistent"),
    *("ReplicationQuorumSupersetProperty", "ValidReplicaState", "ValidControllerState", "ValidControllerIsrAndElr"),
)
_PROMPT: Final = ("fetch", "alter", "register", "metadata")
_JAVA: Final = ("-Xmx3g", "-XX:+UseParallelGC")
_STATES: Final = re.compile(r"([\d,]+) states generated, ([\d,]+) distinct states found, 0 states left on queue")
_DEPTH: Final = re.compile(r"The depth of the complete state graph search is (\d+)")
_VIOLATED: Final = re.compile(r"Error: Invariant (\w+) is violated")


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched."""

    strategy: str = "Balanced"
    replicas: int = 3
    records: int = 1
    crashes: int = 2
    """Each loses any part of the log's end, or nothing."""
    stops: int = 0
    """Clean ones."""
    broken: str = ""
    """One of `RULES`."""
    any_order: bool = False
    """Messages and metadata arrive whenever they like; else before anything else happens."""

    def configuration(self) -> str:
        constants = {
            "BrokerCount": self.replicas,
            "InitReplicationFactor": self.replicas,
            "InitIsrSize": self.replicas,
            "MinISR": 2,
            "Values": f"{{{', '.join(str(n) for n in range(1, self.records + 1))}}}",
            "NoDataLossShutdownLimit": self.stops,
            "DataLossShutdownLimit": self.crashes,
            **dict.fromkeys(("FenceBrokerLimit", "LeaderShrinkIsrLimit", "ReassignmentLimit"), 0),
            "Strategy": f'"{self.strategy}"',
            "Prompt": _names(() if self.any_order else _PROMPT),
            "Broken": _names((self.broken,) if self.broken else ()),
            **{name: name for name in MODEL_VALUES},
        }
        return "\n".join(
            (
                "CONSTANTS",
                *(f"    {name} = {value}" for name, value in constants.items()),
                "    ApplyPartitionChange <- ApplyWithLastKnown",
                "    TruncateToSafePoint <- Truncated",
                "    PreviouslySent <- NeverSent",
                "INIT SearchInit",
                "NEXT SearchNext",
                "VIEW SearchView",
                "INVARIANTS",
                *(f"    {name}" for name in _INVARIANTS),
                "",
            )
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What TLC has found."""

    violated: str
    """The property; "": none, in all states."""
    generated: int
    distinct: int
    depth: int


def write(search: Search, folder: Path) -> None:
    write_modules(("Search.tla", *EXTENSION), folder)
    (folder / "Search.cfg").write_text(search.configuration())


def run(search: Search, tools: Tools, say: Callable[[str], None] = lambda _: None) -> Found:
    """Have TLC search to the end, or to a violation. `say` hears its lines. `RuntimeError` if it comes to neither."""
    with tempfile.TemporaryDirectory(prefix="tanist-search-") as name:
        folder = Path(name)
        write(search, folder)
        lines = []
        with subprocess.Popen(
            command(tools, folder, "Search", _JAVA), cwd=folder, stdout=subprocess.PIPE, text=True
        ) as process:
            for line in process.stdout or ():
                lines.append(line)
                say(line.rstrip())
    return found("".join(lines))


def found(printed: str) -> Found:
    """What TLC has printed of a search."""
    if violated := _VIOLATED.search(printed):
        return Found(violated[1], 0, 0, 0)
    states, depth = _STATES.search(printed), _DEPTH.search(printed)
    if states is None or depth is None:
        raise RuntimeError(f"TLC comes to no end:\n{printed[-4000:]}")
    generated, distinct = (int(each.replace(",", "")) for each in states.groups())
    return Found("", generated, distinct, int(depth[1]))


def _names(names: tuple[str, ...]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"{{{quoted}}}"
