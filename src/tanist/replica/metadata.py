"""The inputs of a replica: its partition's metadata, the brokers' registrations, its own settings.

Owns three values, all frozen. The controller's decisions reach a replica only as `PartitionMetadata`. It has no ELR,
because eligibility is the controller's business and a broker decides by the ISR alone (KIP-966, "Broker behaviors").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

NO_LEADER = -1
NO_EPOCH = -1
"""A leader epoch or broker epoch that was not given, or is not known."""
UNKNOWN_OFFSET = -1


class InvalidMetadata(ValueError):
    """Metadata that no correct controller writes, such as two leaders in one epoch. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition as the metadata log says it is."""

    topic: str
    topic_id: UUID
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """A broker's registration as the metadata log says it is."""

    epoch: int
    fenced: bool
    shutting_down: bool
    rack: str | None = None


class BrokerView(Protocol):
    """The registrations a leader consults. The answer may change between two calls."""

    def registration(self, broker_id: int, /) -> BrokerStatus | None: ...


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """Settings that decide what a leader may do; defaults are Kafka's (rule 126)."""

    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = 30_000
    replica_fetch_backoff_ms: int = 1_000
    salvage: bool = False
    """Whether a follower's records are saved before it cuts them off; the caller must do that."""

    def __post_init__(self) -> None:
        if self.min_insync_replicas < 1:
            raise ValueError(f"min.insync.replicas is {self.min_insync_replicas}, must be at least 1")
        if self.replica_lag_time_max_ms < 0 or self.replica_fetch_backoff_ms < 0:
            raise ValueError("durations can't be negative")
