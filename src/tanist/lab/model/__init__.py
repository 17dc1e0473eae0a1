"""The model checker: an exhaustive search over what the real core objects do in a small cluster.

`check(configuration)` searches; `CONFIGURATIONS` are those that are shipped; `report` puts an outcome into words. See
docs/model-checker.md.
"""

from __future__ import annotations

from tanist.lab.model.checking import Checked, check
from tanist.lab.model.configurations import CONFIGURATIONS
from tanist.lab.model.search import Limits

__all__ = ["CONFIGURATIONS", "Checked", "Limits", "check"]
