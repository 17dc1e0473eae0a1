"""The share coordinator of a broker: the states of share partitions in the partitions of `__share_group_state` that it
leads.

Owns what these need of the coordinators' runtime: the encoding of their records, and the upkeep of their log.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.coordinator_runtime.runtime import CoordinatorRuntime, ShardKind
from tanist.broker.metadata.image_queries import TopicsOfImage
from tanist.coordinator.share.state_shard import Outcome, ShareStateShard, StateAppend
from tanist.wire.batch import NewRecord
from tanist.wire.coordinator_records import encode_key, encode_value
from tanist.wire.internal_topics import SHARE_STATE_TOPIC
from tanist.wire.share_state_records import decode_share_state_record

StatePartition: TypeAlias = CoordinatorPartition[ShareStateShard]

_WORTH_PRUNING: Final = 10
"""A log is pruned when it has so many records for each state."""


class ShareStateCoordinator:
    """The states of this broker."""

    def __init__(self, components: CoordinatorComponents) -> None:
        context = self._context = components.context
        config = context.config
        topics = TopicsOfImage(components.metadata)
        runtime = self._runtime = CoordinatorRuntime(
            components,
            ShardKind(
                topic=SHARE_STATE_TOPIC,
                make_shard=lambda hosted: ShareStateShard(
                    topics, config.share_coordinator_snapshot_update_records_per_snapshot
                ),
                decode=decode_share_state_record,
                encode=_records_of,
                append_timeout_ms=config.share_coordinator_write_timeout_ms,
                entries="share partitions",
                count=lambda shard: len(shard.states),
                loaded=ShareStateShard.forget_missing,
                carry_out=_nothing_else,
            ),
        )
        self.find = runtime.find
        self.partitions = runtime.partitions
        self.carry_out = runtime.carry_out
        self.role_changed = runtime.role_changed
        self.load_time = runtime.load_time
        self._mark_dirty = components.turn.mark_dirty
        interval_ms = config.share_coordinator_state_topic_prune_interval_ms
        self._upkeep = context.clock.call_at(context.clock.now_ms() + interval_ms, self._prune_all)
        runtime.start()

    def topics_deleted(self) -> None:
        """Topics are gone, and with them the states of their share partitions."""
        for partition in list(self._runtime.partitions()):
            if partition.ready:
                self.carry_out(partition, partition.shard.forget_missing)

    def _prune_all(self) -> None:
        clock, config = self._context.clock, self._context.config
        interval_ms = config.share_coordinator_state_topic_prune_interval_ms
        self._upkeep = clock.call_at(clock.now_ms() + interval_ms, self._prune_all)
        for partition in list(self._runtime.partitions()):
            log = partition.hosted.log
            written = log.log_end_offset - log.log_start_offset
            if partition.ready and written > _WORTH_PRUNING * (len(partition.shard.states) + 1):
                self._prune(partition)

    def _prune(self, partition: StatePartition) -> None:
        """Write a snapshot of each state; when they are committed, what lies before them goes."""
        log = partition.hosted.log
        end_offset = log.log_end_offset

        def prune(outcome: Outcome) -> None:
            leader = partition.hosted.leader
            if outcome.error or leader is None or leader.high_watermark <= end_offset:
                return
            try:
                log.advance_log_start_offset(end_offset)
            except OSError as failure:
                partition.hosted.disk_failed(failure)
                return
            self._mark_dirty(partition.hosted)

        self.carry_out(partition, partial(partition.shard.snapshot_all, prune, self._context.clock.wall_ms()))

    def close(self) -> None:
        """The broker is going down."""
        self._runtime.close()
        self._upkeep.cancel()


def _nothing_else(partition: StatePartition, effect: Any) -> None:
    raise AssertionError(f"states of share partitions have no such effect: {effect}")


def _records_of(appends: Sequence[StateAppend], wall_ms: int) -> list[NewRecord]:
    return [
        NewRecord(timestamp=wall_ms, key=encode_key(key), value=None if value is None else encode_value(value))
        for append in appends
        for key, value in append.records
    ]
