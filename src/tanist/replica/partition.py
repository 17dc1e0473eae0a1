"""One replica of one partition, whatever its role.

Owns the changes of role that the metadata log prescribes (rule 22), and the state that outlives them: the log and the
high watermark. The rest is in `LeaderState` and `FollowerState`, which are made anew with each change, so that no state
of an old role leaks into the next.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.events.replication import BecameFollower, BecameLeader, StoppedReplicating
from tanist.events.stream import NOBODY, Events
from tanist.invariants import InvariantError
from tanist.replica.effects import Effect, ProposeIsr
from tanist.replica.follower import FollowerState
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.leader import LeaderState
from tanist.replica.metadata import (
    NO_EPOCH,
    BrokerStatus,
    BrokerView,
    InvalidMetadata,
    PartitionMetadata,
    ReplicaConfig,
)
from tanist.replica.ports import ReplicaLog

__all__ = ["BrokerStatus", "BrokerView", "InvalidMetadata", "Partition", "PartitionMetadata", "ReplicaConfig"]


class Partition:
    """A replica. `role` is a `LeaderState`, a `FollowerState`, or None when this broker is not one of the replicas."""

    __slots__ = ("_config", "_high_watermark", "_metadata", "broker_id", "brokers", "events", "log", "role")

    leader_class: ClassVar[type[LeaderState]] = LeaderState
    follower_class: ClassVar[type[FollowerState]] = FollowerState

    def __init__(
        self,
        broker_id: int,
        log: ReplicaLog,
        config: ReplicaConfig,
        brokers: BrokerView,
        events: Events = NOBODY,
    ) -> None:
        self.broker_id = broker_id
        self.events = events
        self.log = log
        self.brokers = brokers
        self.role: LeaderState | FollowerState | None = None
        self._config = config
        self._metadata: PartitionMetadata | None = None
        self._high_watermark = log.log_start_offset

    # ---- what others read

    @property
    def leader(self) -> LeaderState | None:
        """The role, if it is that of the leader."""
        return self.role if isinstance(self.role, LeaderState) else None

    @property
    def follower(self) -> FollowerState | None:
        return self.role if isinstance(self.role, FollowerState) else None

    @property
    def metadata(self) -> PartitionMetadata | None:
        """The latest known, which an answered AlterPartition may have brought before the metadata log did."""
        return self._metadata if self.role is None else self.role.metadata

    @property
    def leader_epoch(self) -> int:
        metadata = self.metadata
        return NO_EPOCH if metadata is None else metadata.leader_epoch

    @property
    def partition_epoch(self) -> int:
        metadata = self.metadata
        return NO_EPOCH if metadata is None else metadata.partition_epoch

    @property
    def high_watermark(self) -> int:
        return self._high_watermark if self.role is None else self.role.high_watermark

    @property
    def config(self) -> ReplicaConfig:
        return self._config if self.role is None else self.role.config

    # ---- events

    def restore_high_watermark(self, checkpointed: int) -> None:
        """After a restart, before any role is taken: the checkpointed high watermark (rule 117)."""
        if self.role is not None:
            raise RuntimeError(f"replica {self.broker_id} has a role already, and a high watermark with it")
        self._high_watermark = self._recovered_high_watermark(checkpointed)

    def apply_metadata(self, metadata: PartitionMetadata, now_ms: int) -> list[Effect]:
        """Apply metadata. Older metadata than the last is ignored (rule 22)."""
        known = self.metadata
        if known is not None and not self._is_current(known, metadata):
            return []
        new_epoch = known is None or metadata.leader_epoch > known.leader_epoch
        if metadata.leader == self.broker_id:
            return self._lead(metadata, now_ms, new_epoch=new_epoch)
        if self.broker_id in metadata.replicas:
            return self._follow(metadata, new_epoch=new_epoch)
        return self._stop(metadata)

    def alter_partition_done(self, proposal: ProposeIsr, result: AlterPartitionResult, now_ms: int) -> list[Effect]:
        """The controller has answered; ignored if this replica no longer leads."""
        return [] if self.leader is None else self.leader.alter_partition_done(proposal, result, now_ms)

    def alter_partition_failed(self, proposal: ProposeIsr, now_ms: int) -> list[Effect]:
        return [] if self.leader is None else self.leader.alter_partition_failed(proposal, now_ms)

    def set_config(self, config: ReplicaConfig) -> list[Effect]:
        """The topic's or the broker's settings have changed."""
        self._config = config
        if isinstance(self.role, LeaderState):
            return self.role.set_config(config)
        if isinstance(self.role, FollowerState):
            self.role.config = config
        return []

    def replace_log(self, log: ReplicaLog) -> None:
        """The same records lie in another log from now on."""
        self.log = log
        if self.role is not None:
            self.role.log = log

    # ---- rules

    def _recovered_high_watermark(self, checkpointed: int) -> int:
        """A crash may have cost records that the checkpoint counts as committed (rule 117)."""
        return max(self.log.log_start_offset, min(checkpointed, self.log.log_end_offset))

    def _is_current(self, known: PartitionMetadata, metadata: PartitionMetadata) -> bool:
        if metadata.topic_id != known.topic_id or metadata.partition != known.partition:
            raise InvalidMetadata(f"{metadata.topic}-{metadata.partition} of another topic id: {metadata.topic_id}")
        if metadata.partition_epoch < known.partition_epoch:
            return False
        if metadata.leader_epoch < known.leader_epoch:
            raise InvalidMetadata(
                f"{metadata.topic}-{metadata.partition}: leader epoch goes back "
                f"from {known.leader_epoch} to {metadata.leader_epoch}"
            )
        if metadata.leader_epoch == known.leader_epoch and metadata.leader != known.leader:
            raise InvalidMetadata(
                f"{metadata.topic}-{metadata.partition}: both {known.leader} and {metadata.leader} "
                f"lead in epoch {metadata.leader_epoch}"
            )
        return True

    # ---- from role to role

    def _lead(self, metadata: PartitionMetadata, now_ms: int, *, new_epoch: bool) -> list[Effect]:
        if isinstance(self.role, LeaderState):
            effects = self.role.apply_metadata(metadata, now_ms)
            leader = self.role
        else:
            leader = self.leader_class(
                self.broker_id,
                self.log,
                self.config,
                self.brokers,
                metadata,
                self._inherited_high_watermark(),
                now_ms,
                self.events,
            )
            self.role = leader
            effects = leader.started(now_ms)
        if new_epoch:
            return [BecameLeader(metadata.name, leader.leader_epoch, leader.leader_epoch_start_offset), *effects]
        return effects

    def _follow(self, metadata: PartitionMetadata, *, new_epoch: bool) -> list[Effect]:
        if isinstance(self.role, FollowerState) and not new_epoch:
            return self.role.apply_metadata(metadata)
        follower = self.follower_class(
            self.broker_id, self.log, self.config, metadata, self._inherited_high_watermark(), self.events
        )
        self.role = follower
        return [BecameFollower(metadata.name, metadata.leader, metadata.leader_epoch), *follower.started()]

    def _inherited_high_watermark(self) -> int:
        """The one that the next role begins with. Whatever was cut or deleted, it has stayed within the log."""
        log, high_watermark = self.log, self.high_watermark
        if not log.log_start_offset <= high_watermark <= log.log_end_offset:
            raise InvariantError(
                "the high watermark is between the log's start and its end",
                high_watermark=high_watermark,
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
            )
        return high_watermark

    def _stop(self, metadata: PartitionMetadata) -> list[Effect]:
        was_replica = self.role is not None
        self._high_watermark = self.high_watermark
        self._config = self.config
        self._metadata = metadata
        self.role = None
        return [StoppedReplicating(metadata.name, metadata.leader_epoch)] if was_replica else []
