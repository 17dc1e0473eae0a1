"""The registrations of brokers and controllers in the metadata log.

Owns the values, and what records make of them; `brokers` decides on registrations, `image` holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from tanist.wire.ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from tanist.wire.metadata import BrokerRegistrationChangeRecord, RegisterBrokerRecord, RegisterControllerRecord


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


def broker_of(record: RegisterBrokerRecord) -> BrokerRegistration:
    return BrokerRegistration(
        id=record.broker_id,
        incarnation_id=record.incarnation_id,
        epoch=record.broker_epoch,
        endpoints=_endpoints(record),
        features=_features(record),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        directories=tuple(record.log_dirs),
        cordoned_directories=tuple(record.cordoned_log_dirs or ()),
    )


def changed_broker(before: BrokerRegistration, record: BrokerRegistrationChangeRecord) -> BrokerRegistration:
    """`ValueError`: the record has a change that there is not."""
    if record.fenced not in (-1, 0, 1):
        raise ValueError(f"illegal fencing change {record.fenced}")
    if record.in_controlled_shutdown not in (0, 1):  # no value ends a controlled shutdown (rule 76)
        raise ValueError(f"illegal controlled shutdown change {record.in_controlled_shutdown}")
    cordoned = record.cordoned_log_dirs
    return replace(
        before,
        fenced=before.fenced if record.fenced == 0 else record.fenced == 1,
        in_controlled_shutdown=before.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        directories=tuple(record.log_dirs) or before.directories,
        cordoned_directories=before.cordoned_directories if cordoned is None else tuple(cordoned),
    )


def controller_of(record: RegisterControllerRecord) -> ControllerRegistration:
    return ControllerRegistration(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        endpoints=_endpoints(record),
        features=_features(record),
    )


def _endpoints(record: RegisterBrokerRecord | RegisterControllerRecord) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(each.name, each.host, each.port, each.security_protocol) for each in record.end_points)


def _features(record: RegisterBrokerRecord | RegisterControllerRecord) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in record.features}
