"""The transaction coordinator of a broker: the transactional ids of the partitions of `__transaction_state` it leads.

Owns what transactions need of the coordinators' runtime (`coordinator_runtime.runtime`): their settings, the encoding
of their records, the new producer ids, the markers of transactions that are prepared, and the two periodic scans (for
transactions that take too long, and for unused ids). Nothing of it is imported before a broker has a transactional id
to see to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.coordinator_runtime.runtime import CoordinatorRuntime, ShardKind
from tanist.broker.metadata.barrier import MetadataBarrier
from tanist.broker.metadata.producer_ids import ProducerIds
from tanist.broker.network.call import Continuation
from tanist.broker.transactions.marker_sender import MarkerSender
from tanist.broker.transactions.marker_writes import MarkerWrites
from tanist.controller.features import TRANSACTION_VERSION
from tanist.coordinator.transactions.effects import TransactionAppend, TransactionEffect, WriteMarkers
from tanist.coordinator.transactions.state import NO_PRODUCER_ID, TopicIndex, record_of
from tanist.coordinator.transactions.transaction_shard import TransactionSettings, TransactionShard
from tanist.ports import Timer
from tanist.wire.batch import NewRecord
from tanist.wire.coordinator_records import encode_key, encode_value
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import TRANSACTIONS_TOPIC
from tanist.wire.transaction_records import decode_transaction_record

APPEND_TIMEOUT_MS = 30_000
"""Kafka's default of `request.timeout.ms`."""

TransactionPartition: TypeAlias = CoordinatorPartition[TransactionShard]


class TransactionCoordinator:
    """The transactional ids of this broker."""

    def __init__(
        self,
        components: CoordinatorComponents,
        producer_ids: ProducerIds,
        writes: MarkerWrites,
        barrier: MetadataBarrier,
    ) -> None:
        context = self._context = components.context
        config = context.config
        self._metadata = components.metadata
        self._producer_ids = producer_ids
        self._settings = TransactionSettings(
            max_timeout_ms=config.transaction_max_timeout_ms,
            id_expiration_ms=config.transactional_id_expiration_ms,
            two_phase_commit=config.transaction_two_phase_commit_enable,
            first_epoch=config.transactional_first_epoch,
        )
        runtime = self._runtime = CoordinatorRuntime(
            components,
            ShardKind(
                topic=TRANSACTIONS_TOPIC,
                make_shard=lambda hosted: TransactionShard(self._settings, hosted.leader_epoch, context.events),
                decode=decode_transaction_record,
                encode=self._records_of,
                append_timeout_ms=APPEND_TIMEOUT_MS,
                entries="transactional ids",
                count=lambda shard: len(shard.transactions),
                loaded=lambda shard: (),
                carry_out=self._write_markers,
            ),
        )
        self.find = runtime.find
        self.when_sure = runtime.when_sure
        self.partitions = runtime.partitions
        self.role_changed = runtime.role_changed
        self.carry_out = runtime.carry_out
        self.load_time = runtime.load_time
        self.markers = MarkerSender(
            context, components.metadata, barrier, writes, runtime.is_served, self._marker_written
        )
        self._timeouts_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._expiry_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
        self._timeouts: Timer = self._later(self._timeouts_ms, self._abort_timed_out)
        self._expiry: Timer = self._later(self._expiry_ms, self._expire)
        self.start = runtime.start

    # -- requests

    def with_producer_id(self, transactional_id: str, then: Continuation[[TransactionPartition | int, int]]) -> None:
        """Call `then` with the partition of an id, or why it is not here, and a new producer id if it may need one.

        `then` gets -1 for the producer id if none is needed, and COORDINATOR_LOAD_IN_PROGRESS if none can be had.
        """
        found = self.find(transactional_id)
        if isinstance(found, int) or not found.shard.needs_producer_id(transactional_id):
            then(found, NO_PRODUCER_ID)
            return

        def given(producer_id: int | None) -> None:
            if producer_id is None:
                then(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NO_PRODUCER_ID)
            else:
                then(self.find(transactional_id), producer_id)  # it may have moved meanwhile

        self._producer_ids.next(then.after(given))

    # -- markers

    def _write_markers(self, partition: TransactionPartition, effect: TransactionEffect) -> None:
        assert isinstance(effect, WriteMarkers)
        self.markers.begin(partition, effect)

    def _marker_written(
        self, partition: TransactionPartition, markers: WriteMarkers, written: Sequence[TopicIndex]
    ) -> None:
        wall_ms = self._context.clock.wall_ms()
        self.carry_out(partition, partial(partition.shard.marker_written, markers, written, wall_ms))

    # -- records

    def _records_of(self, appends: Sequence[TransactionAppend], wall_ms: int) -> list[NewRecord]:
        """Version 1 of the value has KIP-890's fields; `transaction.version` says that all brokers can read it."""
        version = 1 if self._metadata.image.features.get(TRANSACTION_VERSION, 0) >= 1 else 0
        records: list[NewRecord] = []
        for append in appends:
            key, value = record_of(append.transactional_id, append.values)
            encoded = None if value is None else encode_value(value, version)
            records.append(NewRecord(timestamp=wall_ms, key=encode_key(key), value=encoded))
        return records

    # -- time

    def _later(self, delay_ms: int, then: Callable[[], None]) -> Timer:
        return self._context.clock.call_at(self._context.clock.now_ms() + delay_ms, then)

    def _abort_timed_out(self) -> None:
        self._timeouts = self._later(self._timeouts_ms, self._abort_timed_out)
        self._scan(lambda shard: shard.abort_timed_out(self._context.clock.wall_ms()))

    def _expire(self) -> None:
        self._expiry = self._later(self._expiry_ms, self._expire)
        self._scan(lambda shard: shard.expire(self._context.clock.wall_ms()))

    def _scan(self, effects_of: Callable[[TransactionShard], Sequence[TransactionEffect]]) -> None:
        for partition in list(self.partitions()):
            if partition.ready:
                self.carry_out(partition, partial(effects_of, partition.shard))

    def close(self) -> None:
        """The broker is going down; its connections close with it."""
        self._runtime.close()
        self.markers.close()
        self._timeouts.cancel()
        self._expiry.cancel()
