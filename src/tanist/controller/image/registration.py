"""The registrations of brokers and controllers in the metadata log.

Owns the values only; `brokers` decides on registrations, `image` holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tanist.wire.ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker that registered and was not unregistered since; it may be long dead."""

    id: int
    incarnation_id: UUID
    epoch: int
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[UUID, ...] = ()
    cordoned_directories: tuple[UUID, ...] = ()
    """Cordoned directories, for no new replicas (KIP-1066). Passed on, without effect here."""

    @property
    def active(self) -> bool:
        """May lead and be in sync (rules 26, 30)."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online_directory(self, directory: UUID) -> bool:
        """Whether a replica kept there can be used (rule 30). A broker that names no directories is trusted."""
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        return not self.directories or directory in self.directories

    def default_directory(self) -> UUID:
        """The directory of a new replica: the only one, else the broker chooses (KIP-858)."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    id: int
    incarnation_id: UUID
    zk_migration_ready: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
