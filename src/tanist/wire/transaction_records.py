"""The records of `__transaction_state`: the state of each transactional id (KIP-98, KIP-890, KIP-915).

A key begins with its kind and a value with its version, two bytes each. The log is compacted by key: the last value
counts, and no value is a tombstone. Version 1 of the value is flexible; its tagged fields are KIP-890's, and the last
epoch (tag 4, KAFKA-20357), which Apache Kafka writes after 4.4. Tag 3 is KIP-939's, and not used here.
"""

from __future__ import annotations

from typing import ClassVar, Final

from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue, RecordKinds
from tanist.wire.schema import Array, Field, Struct


class TransactionKey(CoordinatorKey):
    """The transactional id."""

    transactional_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (0,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("transactional_id", "string", (0, 0)),)


class TransactionPartitions(Struct):
    """The partitions of one topic in a transaction."""

    topic: str = ""
    partition_ids: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 1)),
        Field("partition_ids", Array("int32"), (0, 1)),
    )


class TransactionValue(CoordinatorValue):
    """The state of a transactional id. Times are wall clock milliseconds; -1 is none."""

    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: tuple[TransactionPartitions, ...] | None = ()
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0
    last_producer_epoch: int = -1

    WRITTEN: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (0, 1)),
        Field("previous_producer_id", "int64", (1, 1), tag=0, tagged=(1, 1)),
        Field("next_producer_id", "int64", (1, 1), tag=1, tagged=(1, 1)),
        Field("producer_epoch", "int16", (0, 1)),
        Field("transaction_timeout_ms", "int32", (0, 1)),
        Field("transaction_status", "int8", (0, 1)),
        Field("transaction_partitions", Array(TransactionPartitions), (0, 1), nullable=(0, 1)),
        Field("transaction_last_update_timestamp_ms", "int64", (0, 1)),
        Field("transaction_start_timestamp_ms", "int64", (0, 1)),
        Field("client_transaction_version", "int16", (1, 1), tag=2, tagged=(1, 1)),
        Field("last_producer_epoch", "int16", (1, 1), tag=4, tagged=(1, 1)),
    )


_KINDS: Final = RecordKinds("transaction", ((TransactionKey, TransactionValue),))
decode_transaction_record: Final = _KINDS.decode
"""A record of `__transaction_state`: its key and value, None for a kind that is not known."""
