"""The features that a node names when it registers, with the levels that it can work at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tanist.controller.features import KEPT_FEATURES, SUPPORTED_FEATURES, TOLERATED_FEATURES

TANIST_VERSION: Final = "tanist.version"
"""A feature that is never finalized. Its name in a registration says: a node of tanist, whose listeners are open."""

Ranges = dict[str, tuple[int, int]]

CONTROLLER_FEATURES: Final[Ranges] = {
    **SUPPORTED_FEATURES,
    **KEPT_FEATURES,
    **TOLERATED_FEATURES,
    TANIST_VERSION: (0, 1),
}
"""A controller keeps levels that others need."""


def broker_features(finalized: Mapping[str, int]) -> Ranges:
    """A broker's. It has no share.version 2.

    Where the cluster has a higher level already (a cluster of Apache Kafka that takes in a broker of ours, or a folder
    that changes hands), the broker names that level: it would be refused otherwise. Its clients are refused instead.
    """
    kept = {
        name: (0, max(SUPPORTED_FEATURES.get(name, (0, 0))[1], min(high, finalized.get(name, 0))))
        for name, (_, high) in KEPT_FEATURES.items()
    }
    return {**SUPPORTED_FEATURES, **kept, **TOLERATED_FEATURES, TANIST_VERSION: (0, 1)}
