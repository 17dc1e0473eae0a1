"""Behaviour scenarios: facts about Apache Kafka 4.3, played against tanist's own packages.

`load(paths)` reads files, `run(item)` gives the `ScenarioResult` of one scenario, `report` prints results.
Every kind of the schema has a player in `KINDS`; each raises for what came out otherwise than expected, and gives the
differences that are there on purpose. They state KIP-966's first phase, so the controller is played with
`unclean.recovery.manager.enabled=false`.
"""

from __future__ import annotations

from tanist.lab.scenarios.files import Item, ScenarioFileError, load, load_file
from tanist.lab.scenarios.outcome import Difference, ScenarioResult, Verdict
from tanist.lab.scenarios.players import KINDS, run

__all__ = ["KINDS", "Difference", "Item", "ScenarioFileError", "ScenarioResult", "Verdict", "load", "load_file", "run"]
