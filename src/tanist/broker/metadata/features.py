"""The features that a node names when it registers, with the levels that it can work at."""

from __future__ import annotations

from typing import Final

from tanist.controller.features import SUPPORTED_FEATURES, TOLERATED_FEATURES

TANIST_VERSION: Final = "tanist.version"
"""A feature that is never finalized. Its name in a registration says: a node of tanist, whose listeners are open."""

NODE_FEATURES: Final[dict[str, tuple[int, int]]] = {**SUPPORTED_FEATURES, **TOLERATED_FEATURES, TANIST_VERSION: (0, 1)}
"""A broker's and a controller's."""
