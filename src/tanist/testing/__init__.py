"""Kafka clusters for test suites: started in a second, broken on purpose, healed, and gone afterwards.

`Cluster` is for any test framework, `AsyncCluster` the same for asyncio. The pytest plugin has the
fixtures `kafka_cluster`, `kafka` and `kafka_async`.

Every name is loaded at its first use: pytest imports this package in every run, and most need nothing of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tanist.testing.aio import AsyncCluster as AsyncCluster
    from tanist.testing.cluster import Cluster as Cluster
    from tanist.testing.conditions import Condition as Condition
    from tanist.testing.conditions import in_sync as in_sync
    from tanist.testing.conditions import led as led
    from tanist.testing.errors import ClusterError as ClusterError
    from tanist.testing.errors import NotAvailable as NotAvailable
    from tanist.testing.errors import NotInTime as NotInTime
    from tanist.testing.namespace import Kafka as Kafka
    from tanist.testing.observations import PartitionState as PartitionState
    from tanist.testing.observations import SalvagedRecord as SalvagedRecord
    from tanist.testing.observations import SalvageEntry as SalvageEntry
    from tanist.testing.request_faults import InjectedFault as InjectedFault

_MODULES = {
    "AsyncCluster": "aio",
    "Cluster": "cluster",
    "ClusterError": "errors",
    "Condition": "conditions",
    "InjectedFault": "request_faults",
    "Kafka": "namespace",
    "NotAvailable": "errors",
    "NotInTime": "errors",
    "PartitionState": "observations",
    "SalvageEntry": "observations",
    "SalvagedRecord": "observations",
    "in_sync": "conditions",
    "led": "conditions",
}

__all__ = [
    "AsyncCluster",
    "Cluster",
    "ClusterError",
    "Condition",
    "InjectedFault",
    "Kafka",
    "NotAvailable",
    "NotInTime",
    "PartitionState",
    "SalvageEntry",
    "SalvagedRecord",
    "in_sync",
    "led",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
