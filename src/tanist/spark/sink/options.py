"""The options of `format("tanist")` for writing, and the columns that a row may have.

Named as those of Spark's own Kafka sink. acks and idempotence are always `all` and on, whatever is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from tanist.spark.topic.options import (
    KAFKA,
    Connecting,
    OptionError,
    boolean,
    connecting,
    number,
    separated,
    take_unknown,
)
from tanist.wire.compression import Compression

_PASSED: Final = {
    "bootstrap.servers", "client.id", "request.timeout.ms", "compression.type", "batch.size", "transaction.timeout.ms",
    "max.block.ms",
}  # fmt: skip
_RESERVED: Final = {"transactional.id", "key.serializer", "value.serializer", "interceptor.classes"}
_ALWAYS: Final = {"kafka.acks": ("all", "-1"), "kafka.enable.idempotence": ("true",)}
_OWN: Final = {
    "topic", "includeheaders", "exactlyonce", "transactionalidprefix", "checkpointlocation", "queryname", "path",
}  # fmt: skip
_TRANSACTION_TIMEOUT_MS: Final = 60_000
"""The default of Kafka's producers."""
_BATCH_BYTES: Final = 512 * 1024
"""Half of what a broker takes by default (message.max.bytes)."""
_TEXT_OR_BYTES: Final = (BinaryType, StringType)


class Guarantee(Enum):
    """How often a row of a stream is in the topic."""

    AT_LEAST_ONCE = auto()
    EXACTLY_ONCE = auto()
    """Rows that an earlier run has written are left out."""
    TRANSACTION = auto()
    """A micro-batch is one transaction."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    connecting: Connecting
    topic: str | None
    compression: int
    batch_bytes: int
    guarantee: Guarantee
    """Of a stream."""
    transactional_id_prefix: str
    transaction_timeout_ms: int
    max_block_s: float = 60.0
    """How long a topic that is not there is waited for."""
    without_effect: tuple[str, ...] = ()

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        named, kafka, idle = separated(options, _PASSED, _RESERVED)
        idle = [each for each in idle if kafka[each.removeprefix(KAFKA)].lower() not in _ALWAYS.get(each, ())]
        idle += take_unknown(named, _OWN)
        compression = kafka.get("compression.type", "none").upper()
        if compression not in Compression.__members__:
            names = ", ".join(each.name.lower() for each in Compression)
            raise OptionError(f"kafka.compression.type is one of {names}, not {compression.lower()!r}")
        return cls(
            connecting(kafka),
            named.get("topic"),
            Compression[compression],
            number("kafka.batch.size", kafka.get("batch.size", str(_BATCH_BYTES))),
            _guarantee(named.get("exactlyonce", "true")),
            named.get("transactionalidprefix", "tanist-sink"),
            number("kafka.transaction.timeout.ms", kafka.get("transaction.timeout.ms", str(_TRANSACTION_TIMEOUT_MS))),
            number("kafka.max.block.ms", kafka.get("max.block.ms", "60000")) / 1000,
            tuple(sorted(idle)),
        )


def _guarantee(text: str) -> Guarantee:
    if text.lower() == "transaction":
        return Guarantee.TRANSACTION
    try:
        return Guarantee.EXACTLY_ONCE if boolean("exactlyOnce", text) else Guarantee.AT_LEAST_ONCE
    except OptionError:
        raise OptionError(f"exactlyOnce is true, false or transaction, not {text!r}") from None


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """`OptionError` for a column that is missing, or of a type that a record cannot hold. Others are left out."""
    kinds: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    if "value" not in kinds:
        raise OptionError("a row to be written has a column value")
    if options.topic is None and "topic" not in kinds:
        raise OptionError("where to write to is said by the option topic or a column topic")
    for name in ("key", "value"):
        if name in kinds and not isinstance(kinds[name], _TEXT_OR_BYTES):
            raise OptionError(f"the column {name} is a string or binary, not {kinds[name].simpleString()}")
    if "topic" in kinds and not isinstance(kinds["topic"], StringType):
        raise OptionError(f"the column topic is a string, not {kinds['topic'].simpleString()}")
    if "partition" in kinds and not isinstance(kinds["partition"], IntegerType):
        raise OptionError(f"the column partition is an int, not {kinds['partition'].simpleString()}")
    if "headers" in kinds and not _is_headers(kinds["headers"]):
        raise OptionError(
            f"the column headers is array<struct<key:string,value:binary>>, not {kinds['headers'].simpleString()}"
        )


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, field.dataType) for field in kind.elementType.fields]
    return (
        [name for name, _ in fields] == ["key", "value"]
        and isinstance(fields[0][1], StringType)
        and isinstance(fields[1][1], BinaryType)
    )
