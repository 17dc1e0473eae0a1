"""The features that a node names when it registers."""

from __future__ import annotations

from typing import Final

from tanist.controller.features import SUPPORTED_FEATURES, TOLERATED_FEATURES

TANIST_VERSION: Final = "tanist.version"
"""A feature that is never finalized. Its name in a registration says: a node of tanist, whose listeners are open."""

REGISTERED_FEATURES: Final[dict[str, tuple[int, int]]] = {
    **SUPPORTED_FEATURES,
    **TOLERATED_FEATURES,
    TANIST_VERSION: (0, 1),
}
"""More than clients see (ApiVersions): also levels that concern nothing a node has, and so cannot hurt it."""
