"""The numbers of a report, as they are played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tanist.faults import FAULTS
from tanist.lab.mutations.examination import Row
from tanist.lab.simulation.running import Terms, Totals
from tanist.sim.faults.schedule import KINDS

_FAULT = "fault: "


@dataclass(frozen=True, slots=True)
class Played:
    """Seeds of one kind: of clusters, or of clusters with consumer groups."""

    title: str
    option: str
    """What `tanist lab run` needs to play these."""
    seeds: range
    terms: Terms
    totals: Totals
    seconds: float

    @property
    def command(self) -> str:
        """The command that plays the same again."""
        return f"tanist lab run --seeds {self.seeds.start}..{self.seeds.stop - 1}{self.option}"

    @property
    def situations(self) -> list[tuple[str, str, int]]:
        """Name, meaning and count of all that seeds are to reach, but for faults."""
        counts = self.totals.situations
        names = {**self.terms.expected, **{name: "" for name in counts if name not in self.terms.expected}}
        return [(name, text, counts[name]) for name, text in names.items() if not name.startswith(_FAULT)]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a report has."""

    version: str
    commit: str
    """Empty if it is not known."""
    date: str
    played: Sequence[Played]
    properties: Mapping[str, str]
    """Number of a property -> its meaning."""
    mutations: Sequence[Row]
    """Empty if none was tried."""

    @property
    def violations(self) -> list[str]:
        """A line for each seed that violated a property."""
        return [
            f"seed {each.seed} violates {each.violation.property_id} (`{played.command}`)"
            for played in self.played
            for each in played.totals.failed
            if each.violation is not None
        ]

    @property
    def violated(self) -> list[str]:
        """The numbers of the properties that seeds violated."""
        failed = (each for played in self.played for each in played.totals.failed)
        return sorted({each.violation.property_id for each in failed if each.violation is not None})

    def faults(self) -> list[tuple[str, str, int]]:
        """Kind, meaning and count over all seeds, the most frequent first."""
        counted = {kind: sum(played.totals.situations[f"{_FAULT}{kind}"] for played in self.played) for kind in KINDS}
        return sorted(((kind, FAULTS[kind].does, count) for kind, count in counted.items()), key=lambda row: -row[2])
