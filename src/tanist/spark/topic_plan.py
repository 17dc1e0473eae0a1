"""Which offsets a query reads, and how they are cut into tasks.

Owns the questions to the cluster before anything is read: partitions, first and last offsets. What it gives are plain
ranges of offsets, so that a task that fails reads exactly its own again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tanist.runtime.client import Client, KafkaError, Unreachable
from tanist.runtime.records import EARLIEST, LATEST
from tanist.spark.topic_options import Offsets, OptionError, TopicOptions, TopicPartition
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tanist.wire.messages.list_offsets_response import ListOffsetsResponse

_REQUEST_TIMEOUT_MS = 10_000


class DataLoss(RuntimeError):
    """Offsets that were asked for are not there any more, or not there again."""


@dataclass(frozen=True)
class OffsetRange:
    """[start, end) of a partition."""

    topic: str
    partition: int
    start: int
    end: int


def ranges(client: Client, options: TopicOptions) -> list[OffsetRange]:
    """What the query reads. Partitions without anything to read are left out."""
    found = []
    partitions = partitions_of(client, options)
    for name, offsets in (("startingOffsets", options.starting), ("endingOffsets", options.ending)):
        _complete(name, offsets, partitions)
    for topic, partition in partitions:
        first = offset_at(client, topic, partition, EARLIEST)
        last = offset_at(client, topic, partition, LATEST, committed=options.read_committed)
        start = _resolved(options.starting, (topic, partition), first, last)
        end = _resolved(options.ending, (topic, partition), first, last)
        if start < first or end > last or start > end:
            message = f"{topic}-{partition}: offsets {start} to {end} were asked for, and the log has {first} to {last}"
            if options.fail_on_data_loss:
                raise DataLoss(f"{message}. They have expired, or the log was truncated; failOnDataLoss=false goes on")
            start, end = max(start, first), min(end, last)
        if start < end:
            found.append(OffsetRange(topic, partition, start, end))
    return found


def partitions_of(client: Client, options: TopicOptions) -> list[TopicPartition]:
    """The partitions that the options name. A topic that is not there is an error; a pattern may match none."""
    if options.pattern is not None:
        pattern = re.compile(options.pattern)
        topics = client.metadata(None).topics.values()
        # Java's consumer leaves internal topics out of a pattern.
        names = sorted(view.name for view in topics if pattern.fullmatch(view.name) and not view.internal)
    else:
        names = list(options.assigned) if options.assigned is not None else list(options.topics)
    found: list[TopicPartition] = []
    for name in names:
        there = client.persist(lambda name=name: _numbers(client, name))  # type: ignore[misc]
        wanted = there if options.assigned is None else options.assigned[name]
        missing = sorted(set(wanted) - set(there))
        if missing:
            raise OptionError(f"{name} has no partition {', '.join(map(str, missing))}")
        found += [(name, number) for number in wanted]
    return found


def split(found: Sequence[OffsetRange], min_partitions: int | None) -> list[OffsetRange]:
    """At least so many ranges, in proportion to how much is in each, as Spark's source does it."""
    total = sum(each.end - each.start for each in found)
    if min_partitions is None or min_partitions <= len(found) or not total:
        return list(found)
    cut: list[OffsetRange] = []
    for each in found:
        size = each.end - each.start
        parts = min(size, max(1, -(-size * min_partitions // total)))
        edges = [each.start + size * number // parts for number in range(parts + 1)]
        cut += [OffsetRange(each.topic, each.partition, a, b) for a, b in pairwise(edges)]
    return cut


def offset_at(client: Client, topic: str, partition: int, timestamp: int, *, committed: bool = False) -> int:
    """`EARLIEST` or `LATEST` of a partition; `committed`: not beyond the first transaction that is still open."""
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1 if committed else 0,
        topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),),
        timeout_ms=_REQUEST_TIMEOUT_MS,
    )

    def attempt() -> int:
        try:
            answer = client.ask(request, ListOffsetsResponse, node_id=client.leader_of(topic, partition))
        except Unreachable:
            client.forget(topic)
            raise
        found = answer.topics[0].partitions[0]
        if found.error_code:
            client.forget(topic)
            raise KafkaError(found.error_code, f"{topic}-{partition}")
        return found.offset

    return client.persist(attempt)


def _numbers(client: Client, topic: str) -> list[int]:
    view = client.metadata([topic]).topics.get(topic)
    if view is None or view.error_code:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error_code,
            topic,
            final=view is None or view.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
    return sorted(view.partitions)


def _complete(name: str, offsets: Offsets, partitions: Iterable[TopicPartition]) -> None:
    """Offsets that are said one by one must be said for all, and for no others."""
    if offsets.everywhere is not None:
        return
    differing = set(offsets.of).symmetric_difference(partitions)
    if differing:
        listed = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(differing))
        raise OptionError(f"{name} has to say each partition that is read, and no other: {listed}")


def _resolved(offsets: Offsets, where: TopicPartition, first: int, last: int) -> int:
    said = offsets.everywhere if offsets.everywhere is not None else offsets.of[where]
    return {EARLIEST: first, LATEST: last}.get(said, said)
