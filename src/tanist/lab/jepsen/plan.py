"""The plan of a worker process: one JSON object on its command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from tanist.lab.history import HistoryWriter
from tanist.runtime.client.client import Address

Role = Literal["writer", "reader", "transactor"]
ClientName = Literal["confluent", "tanist"]
Workload = Literal["records", "transactions"]
Isolation = Literal["read_committed", "read_uncommitted"]

SEND_PATIENCE_S = 8.0
"""Time after which the outcome of a record is unknown."""
REQUEST_PATIENCE_S = 3.0
"""Timeout of one request. An isolated broker does not answer, and another one must be asked then."""
REWIND_EVERY_S = (3.0, 8.0)
REWIND_RECORDS_MAX = 300
"""How often, and how far, readers go back."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One worker process."""

    role: Role
    name: str
    client: ClientName
    addresses: tuple[Address, ...]
    topic: str
    partitions: int
    rate: float
    """Records a second, over all partitions. Of a writer or a transactor."""
    seed: int
    isolation: Isolation = "read_committed"
    """What the consumer of a transactor asks for."""

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Plan:
        found: dict[str, Any] = json.loads(text)
        return cls(**found | {"addresses": tuple((host, port) for host, port in found["addresses"])})

    def partition_name(self, partition: int) -> str:
        """The partition's name in histories."""
        return f"{self.topic}-{partition}"


class Stopping(Protocol):
    """A `threading.Event`."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float) -> bool: ...


class SharedHistory(Protocol):
    """A `HistoryWriter` that several threads use."""

    def __enter__(self) -> HistoryWriter: ...

    def __exit__(self, *_: object) -> None: ...


class Worker(Protocol):
    """The work of the process until `stopping` is set; one for each kind of client."""

    def __call__(self, plan: Plan, history: SharedHistory, stopping: Stopping) -> None: ...
