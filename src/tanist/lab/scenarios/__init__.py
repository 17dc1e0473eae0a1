"""Behaviour scenarios: facts of Apache Kafka 4.3, played against our own rooms.

`load(paths)` reads files, `run(item)` plays one scenario and gives its `Outcome`, `report` puts outcomes into words.
Every kind of the schema has a player in `KINDS`; each raises for what came out otherwise than expected, and gives the
differences that are there on purpose. They state KIP-966's first phase, so the controller is played with
`unclean.recovery.manager.enabled=false`.
"""

from __future__ import annotations

from tanist.lab.scenarios.files import Item, ScenarioFileError, load, load_file
from tanist.lab.scenarios.outcome import Difference, Outcome, Verdict
from tanist.lab.scenarios.players import KINDS, run

__all__ = ["KINDS", "Difference", "Item", "Outcome", "ScenarioFileError", "Verdict", "load", "load_file", "run"]
