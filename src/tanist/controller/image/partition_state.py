"""One partition in the metadata log, and the effect of a change record on it.

Owns `PartitionState` and `merge`, the meaning of a PartitionChangeRecord (rules 65, 66). `partition_change` decides the
changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from tanist.wire.ids import MIGRATING_DIRECTORY, NO_LEADER
from tanist.wire.metadata import PartitionChangeRecord, PartitionRecord, record_version

NO_LEADER_CHANGE = -2
RECOVERED = 0
RECOVERING = 1
NO_RECOVERY_CHANGE = -1

ELR_RECORD_VERSION = 2
DIRECTORIES_RECORD_VERSION = 1
"""First versions of the change record that can carry these fields (rule 72)."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Replicas, leadership and epochs of one partition. `elr` and `last_known_elr` are sets kept as sorted tuples.

    `partition_epoch` counts changes, `leader_epoch` writes of the leader (also to none, also to the same one).
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    leader: int = NO_LEADER
    recovering: bool = False
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[UUID, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    last_unclean_epoch: int = -1
    """The last leader epoch that began with an unclean election, so with a possible loss; -1: none did."""

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def reassigning(self) -> bool:
        return bool(self.removing or self.adding)

    def directory_of(self, broker_id: int) -> UUID:
        """Where the broker keeps this partition. `ValueError` when it has no replica of it."""
        return self.directories[self.replicas.index(broker_id)]

    def with_directory(self, broker_id: int, directory: UUID) -> PartitionState:
        """The same, with the broker's replica in this directory."""
        return replace(
            self,
            directories=tuple(
                directory if replica == broker_id else known for replica, known in zip(self.replicas, self.directories)
            ),
        )


def state_of(record: PartitionRecord) -> PartitionState:
    """The partition a PartitionRecord declares. `ValueError` when it cannot be one."""
    replicas = tuple(record.replicas)
    _check_replicas(replicas)
    _check_leader(record.leader)
    if record.leader_epoch < 0 or record.partition_epoch < 0:
        raise ValueError("negative epoch")
    return PartitionState(
        replicas=replicas,
        isr=tuple(record.isr),
        removing=tuple(record.removing_replicas),
        adding=tuple(record.adding_replicas),
        leader=record.leader,
        recovering=_recovery(record.leader_recovery_state),
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        directories=_directories(replicas, tuple(record.directories)),
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
        last_unclean_epoch=record.last_unclean_epoch,
    )


def merge(before: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """The partition after a change record. `ValueError` when the record cannot apply; null fields mean "unchanged"."""
    replicas = before.replicas if record.replicas is None else tuple(record.replicas)
    if record.replicas is not None:
        _check_replicas(replicas)
    if record.directories is not None:
        directories = _directories(replicas, tuple(record.directories))
    elif replicas == before.replicas:
        directories = before.directories
    else:
        # Written before directories were assigned: remaining replicas keep theirs, a new one's is not known.
        known = dict(zip(before.replicas, before.directories))
        directories = tuple(known.get(broker_id, MIGRATING_DIRECTORY) for broker_id in replicas)
    leader, leader_epoch = before.leader, before.leader_epoch
    if record.leader != NO_LEADER_CHANGE:
        _check_leader(record.leader)
        leader = record.leader
        leader_epoch += 1  # rule 66: any write of the field, also of the same leader or of none
    recovering = before.recovering
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        recovering = _recovery(record.leader_recovery_state)
    unclean = recovering and record.leader >= 0 and record.leader_recovery_state != NO_RECOVERY_CHANGE
    return PartitionState(
        replicas=replicas,
        isr=before.isr if record.isr is None else tuple(record.isr),
        removing=before.removing if record.removing_replicas is None else tuple(record.removing_replicas),
        adding=before.adding if record.adding_replicas is None else tuple(record.adding_replicas),
        leader=leader,
        recovering=recovering,
        leader_epoch=leader_epoch,
        partition_epoch=before.partition_epoch + 1,  # rule 65
        directories=directories,
        elr=before.elr if record.eligible_leader_replicas is None else tuple(record.eligible_leader_replicas),
        last_known_elr=before.last_known_elr if record.last_known_elr is None else tuple(record.last_known_elr),
        last_unclean_epoch=leader_epoch if unclean else before.last_unclean_epoch,
    )


def _check_replicas(replicas: tuple[int, ...]) -> None:
    if not replicas:
        raise ValueError("a partition without replicas")
    if len(set(replicas)) != len(replicas):
        raise ValueError(f"duplicate replicas {list(replicas)}")


def _check_leader(leader: int) -> None:
    if leader < NO_LEADER:
        raise ValueError(f"illegal leader {leader}")


def _recovery(value: int) -> bool:
    if value not in (RECOVERED, RECOVERING):
        raise ValueError(f"illegal leader recovery state {value}")
    return value == RECOVERING


def _directories(replicas: tuple[int, ...], directories: tuple[UUID, ...]) -> tuple[UUID, ...]:
    if not directories:
        return (MIGRATING_DIRECTORY,) * len(replicas)
    if len(directories) != len(replicas):
        raise ValueError(f"{len(directories)} directories for {len(replicas)} replicas")
    return directories


def supports_elr(metadata_version: int) -> bool:
    """Whether records of this metadata version can carry an ELR."""
    return record_version(PartitionChangeRecord, metadata_version) >= ELR_RECORD_VERSION
