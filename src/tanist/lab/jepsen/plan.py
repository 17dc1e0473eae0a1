"""The plan of a worker process: one JSON object on its command line, and as whom it connects on its standard input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from tanist.lab.history import HistoryWriter
from tanist.runtime.client.client import Address, Client
from tanist.runtime.client.identity import security_by

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
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """As whom its clients connect: properties of a Kafka client."""

    def encode(self) -> str:
        """All but the properties: a command line is everybody's to read, and a password may be among them."""
        encoded = asdict(self)
        del encoded["properties"]
        return json.dumps(encoded)

    @classmethod
    def decode(cls, text: str, properties: Mapping[str, str]) -> Plan:
        found: dict[str, Any] = json.loads(text)
        addresses = tuple((host, port) for host, port in found["addresses"])
        return cls(**found | {"addresses": addresses, "properties": properties})

    def connect(self, turn: int, timeout_s: float) -> Client:
        """A client of tanist's own; another address comes first in each turn, when the last could not be reached."""
        at = turn % len(self.addresses)
        addresses = [*self.addresses[at:], *self.addresses[:at]]
        return Client(addresses, client_id=self.name, timeout_s=timeout_s, security=security_by(self.properties))

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
