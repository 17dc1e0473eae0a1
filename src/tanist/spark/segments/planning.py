"""What a query over replicas' segment files reads (docs/spark.md).

Owns the options of `tanist-segments`, which filters are kept from the files, and the plan: one Spark partition for each
stretch of a segment. Spark does not tell Python sources which columns a query needs; it gives them the schema that the
user asked for, so `.schema("offset bigint, fingerprint bigint")` is how columns are left out. The content of a file is
never an exception; a path or an option that can't be is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from tanist.spark.segments.arrow_rows import TYPES, Origin
from tanist.spark.segments.ranges import STRETCH_BYTES, Bounds, stretches
from tanist.spark.segments.replica_files import METADATA_TOPIC, Contents, NothingThere, SegmentFile, segment_files

_CONTENTS: Final = ("log", "salvage", "all")
_OPTIONS: Final = {"path", "contents", "replica", "stretchbytes", "indexes", "includemetadata"}
_EXACT: Final = ("topic", "partition", "replica")


@dataclass
class Stretch(InputPartition):
    """The pieces that one task reads."""

    path: str
    start: int
    end: int
    origin: Origin


class SegmentsReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        named = {name.lower(): value for name, value in options.items()}
        unknown = sorted(set(named) - _OPTIONS)
        if unknown:
            raise ValueError(
                f"tanist-segments has no option {', '.join(unknown)}; it has {', '.join(sorted(_OPTIONS))}"
            )
        if "path" not in named:
            raise ValueError('tanist-segments needs a folder: .load("PATH")')
        self._path = named["path"]
        contents = named.get("contents", "log")
        if contents not in _CONTENTS:
            raise ValueError(f"contents is one of {', '.join(_CONTENTS)}, not {contents!r}")
        self._contents = cast(Contents, contents)
        self._replica = int(named["replica"]) if "replica" in named else None
        self._stretch_bytes = _positive("stretchBytes", named.get("stretchbytes", str(STRETCH_BYTES)))
        self._indexes = _boolean("indexes", named.get("indexes", "true"))
        self._metadata = _boolean("includeMetadata", named.get("includemetadata", "false"))
        self._columns = _columns(schema)
        self._exact: dict[str, set[Any]] = {}
        self._bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (PySpark's name)
        """Topic, partition and replica are settled by the files; offset and time only narrow what is read."""
        for found in filters:
            attribute = getattr(found, "attribute", ())
            if attribute and attribute[0] in _EXACT and isinstance(found, EqualTo | In):
                values = {found.value} if isinstance(found, EqualTo) else set(found.value)
                known = self._exact.get(attribute[0])
                self._exact[attribute[0]] = values if known is None else known & values
            else:
                self._bounds = narrowed(self._bounds, found)
                yield found

    def partitions(self) -> Sequence[InputPartition]:
        found: list[InputPartition] = []
        files = segment_files(self._path, contents=self._contents, replica=self._replica)
        if not files:
            raise NothingThere(f"no replica's segments are below {self._path}")
        for file in files:
            if file.topic == METADATA_TOPIC and not self._metadata:
                continue
            if all(getattr(file, name) in values for name, values in self._exact.items()):
                found += self._stretches_of(file)
        # A source without partitions is asked to read one that is None.
        return found or [Stretch("", 0, 0, Origin("", 0, None, 0, None))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Stretch):
            raise TypeError(f"{type(partition).__name__} is no stretch of a segment")
        if not partition.path:
            return
        # The decoder is imported where it runs: planning does not need it.
        from tanist.spark.segments.reading import Wanted, read_stretch

        bounds = self._bounds
        wanted = Wanted(bounds.least_offset, bounds.most_offset, bounds.least_timestamp_ms)
        yield from read_stretch(partition.path, partition.start, partition.end, partition.origin, self._columns, wanted)

    def _stretches_of(self, file: SegmentFile) -> Iterator[Stretch]:
        origin = Origin(file.topic, file.partition, file.replica, file.base_offset, file.salvage_id)
        for start, end in stretches(file, self._bounds, target_bytes=self._stretch_bytes, indexes=self._indexes):
            yield Stretch(file.path, start, end, origin)


def narrowed(bounds: Bounds, found: Filter) -> Bounds:
    """The bounds, as far as this filter says something about them."""
    if not isinstance(found, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return bounds
    least = most = None
    if isinstance(found, EqualTo):
        least = most = found.value
    elif isinstance(found, GreaterThan | GreaterThanOrEqual):
        least = found.value
    else:
        most = found.value
    if found.attribute == ("offset",):
        # `>` and `>=` alike: one row more or less is Spark's, who looks at each row again.
        return replace(
            bounds,
            least_offset=_chosen(max, bounds.least_offset, least),
            most_offset=_chosen(min, bounds.most_offset, most),
        )
    if found.attribute == ("timestamp",) and isinstance(least, datetime):
        moment = least if least.tzinfo is not None else least.replace(tzinfo=UTC)
        # A millisecond early: Spark's times have microseconds, and floats round.
        at_ms = int(moment.timestamp() * 1000) - 1
        return replace(bounds, least_timestamp_ms=_chosen(max, bounds.least_timestamp_ms, at_ms))
    return bounds


def _chosen(choose: Callable[..., int | None], *bounds: int | None) -> int | None:
    """Of those that are bounds."""
    return choose((each for each in bounds if each is not None), default=None)


def _columns(schema: StructType) -> list[str]:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    for name, kind in zip(schema.names, to_arrow_schema(schema, timezone="UTC").types):
        if name not in TYPES:
            raise ValueError(f"tanist-segments has no column {name}; it has {', '.join(TYPES)}")
        if kind != TYPES[name] and not pa.types.is_nested(kind):
            raise ValueError(f"the column {name} of tanist-segments is {TYPES[name]}, not {kind}")
    return list(schema.names)


def _positive(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{name} is a number of bytes, not {text!r}")
    return int(text)


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{name} is true or false, not {text!r}")
    return text.lower() == "true"
