"""AddPartitionsToTxnResponse: API key 24, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = 0
    partition_error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 5)),
        Field("partition_error_code", "int16", (0, 5)),
    )


class AddPartitionsToTxnTopicResult(Struct):
    name: str = ""
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 5)),
        Field("results_by_partition", Array(AddPartitionsToTxnPartitionResult), (0, 5)),
    )


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = ""
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (4, 5)),
        Field("topic_results", Array(AddPartitionsToTxnTopicResult), (4, 5)),
    )


class AddPartitionsToTxnResponse(Response):
    throttle_time_ms: int = 0
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = ()
    error_code: int = 0
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = ()

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 5)),
        Field("results_by_topic_v3_and_below", Array(AddPartitionsToTxnTopicResult), (0, 3)),
        Field("error_code", "int16", (4, 5)),
        Field("results_by_transaction", Array(AddPartitionsToTxnResult), (4, 5)),
    )
