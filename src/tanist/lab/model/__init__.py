"""The model checker: an exhaustive search over the behaviour of the real core objects in a small cluster.

`check(configuration)` searches; `CONFIGURATIONS` are the shipped ones; `report` prints a result. See
docs/model-checker.md.
"""

from __future__ import annotations

from tanist.lab.model.checking import Checked, check
from tanist.lab.model.configurations import CONFIGURATIONS
from tanist.lab.model.search import Limits

__all__ = ["CONFIGURATIONS", "Checked", "Limits", "check"]
