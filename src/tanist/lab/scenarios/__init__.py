"""Behaviour scenarios: facts about Apache Kafka 4.3, played against tanist's own packages.

`load(paths)` reads files, `run(item)` gives the `ScenarioResult` of one scenario, `report` prints results.
Every kind of the schema has a player in `KINDS`. A player raises for an unexpected result, and returns the differences
that exist on purpose. The scenarios state KIP-966's first phase, so the controller is played with
`unclean.recovery.manager.enabled=false`.
"""

from __future__ import annotations

from tanist.lab.scenarios.files import Item, ScenarioFileError, load, load_file
from tanist.lab.scenarios.outcome import Difference, ScenarioResult, Verdict
from tanist.lab.scenarios.players import KINDS, run

__all__ = ["KINDS", "Difference", "Item", "ScenarioFileError", "ScenarioResult", "Verdict", "load", "load_file", "run"]
