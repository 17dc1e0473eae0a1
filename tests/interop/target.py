"""Which broker a test runs against: tanist, or Apache Kafka to prove that the test itself holds water.

TANIST_TEST_TARGET=apache python -m pytest tests/clients -m clients
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.interop.apache import ApacheCluster
from tests.interop.cluster import Cluster
from tests.interop.tanist_cluster import TanistCluster

TARGETS = ("tanist", "apache")


def chosen() -> str:
    """The target the environment names; tanist if it names none."""
    target = os.environ.get("TANIST_TEST_TARGET", "tanist")
    if target not in TARGETS:
        raise ValueError(f"TANIST_TEST_TARGET is {target!r}, which is none of {', '.join(TARGETS)}")
    return target


def make(
    target: str, directory: Path, *, nodes: int = 3, properties: Mapping[str, str] | None = None, heap: str = "512m"
) -> Cluster:
    """A cluster of the target's nodes, not yet started."""
    if target == "apache":
        return ApacheCluster(directory, nodes=nodes, properties=properties or {}, heap=heap)
    if target == "tanist":
        return TanistCluster(directory, nodes=nodes, properties=properties or {})
    raise ValueError(f"no such target: {target}")
