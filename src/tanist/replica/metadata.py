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
RESERVED_DIRECTORIES = 100
"""Smaller ids of directories are no directories' (KIP-858): not assigned, lost, being moved."""


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
    last_unclean_epoch: int = -1
    """The leader epoch that last began with an unclean election; -1: none, or it is not known (Apache Kafka)."""
    directories: tuple[UUID, ...] = ()
    """Where each of `replicas` lies on its broker (KIP-858); empty before that is known."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def directory_of(self, broker_id: int) -> UUID | None:
        if len(self.directories) != len(self.replicas) or broker_id not in self.replicas:
            return None
        return self.directories[self.replicas.index(broker_id)]


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """A broker's registration as the metadata log says it is."""

    epoch: int
    fenced: bool
    shutting_down: bool
    rack: str | None = None
    directories: tuple[UUID, ...] = ()
    """Those that work; empty if the broker has not named them."""

    def has_failed(self, directory: UUID | None) -> bool:
        """Whether a replica in this directory of the broker is offline."""
        if directory is None or directory.int < RESERVED_DIRECTORIES or not self.directories:
            return False
        return directory not in self.directories


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
