"""AddPartitionsToTxnRequest: API key 24, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class AddPartitionsToTxnTopic(Struct):
    name: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 5)),
        Field("partitions", Array("int32"), (0, 5)),
    )


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: tuple[AddPartitionsToTxnTopic, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (4, 5)),
        Field("producer_id", "int64", (4, 5)),
        Field("producer_epoch", "int16", (4, 5)),
        Field("verify_only", "bool", (4, 5)),
        Field("topics", Array(AddPartitionsToTxnTopic), (4, 5)),
    )


class AddPartitionsToTxnRequest(Request):
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = ()
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = ()

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("v3_and_below_transactional_id", "string", (0, 3)),
        Field("v3_and_below_producer_id", "int64", (0, 3)),
        Field("v3_and_below_producer_epoch", "int16", (0, 3)),
        Field("v3_and_below_topics", Array(AddPartitionsToTxnTopic), (0, 3)),
        Field("transactions", Array(AddPartitionsToTxnTransaction), (4, 5)),
    )
