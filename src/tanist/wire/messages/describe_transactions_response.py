"""DescribeTransactionsResponse: API key 65, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class TopicData(Struct):
    topic: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 0)),
        Field("partitions", Array("int32"), (0, 0)),
    )


class TransactionState(Struct):
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[TopicData, ...] = ()
    client_transaction_version: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("transactional_id", "string", (0, 0)),
        Field("transaction_state", "string", (0, 0)),
        Field("transaction_timeout_ms", "int32", (0, 0)),
        Field("transaction_start_time_ms", "int64", (0, 0)),
        Field("producer_id", "int64", (0, 0)),
        Field("producer_epoch", "int16", (0, 0)),
        Field("topics", Array(TopicData), (0, 0)),
        Field("client_transaction_version", "int16", (0, 0), tag=966, tagged=(0, 0)),
    )


class DescribeTransactionsResponse(Response):
    throttle_time_ms: int = 0
    transaction_states: tuple[TransactionState, ...] = ()

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("transaction_states", Array(TransactionState), (0, 0)),
    )
