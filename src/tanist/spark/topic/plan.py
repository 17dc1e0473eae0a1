"""Which offsets a query reads, and how they are cut into tasks.

Owns the decisions before anything is read: partitions, where a query starts and ends. Its results are plain ranges
of offsets, so that a task that fails reads exactly its own again. Each range knows the leader epoch at its planning:
what is read of it later must not be of a later epoch (`topic.reading`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from tanist.client.metadata import ClusterView
from tanist.client.positions import EARLIEST, LATEST
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.quorum import metadata_age_ms
from tanist.spark.topic.offsets import UNKNOWN, OffsetAndEpoch, list_offsets
from tanist.spark.topic.options import Offsets, OptionError, TopicOptions
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import id_text

_FEW_RECORDS = 100


class DataLoss(RuntimeError):
    """Offsets that were asked for are not there any more, or not there again."""


@dataclass(frozen=True)
class There:
    """The partitions that a query reads, as the cluster has them."""

    partitions: list[TopicPartition]
    topic_ids: dict[str, str]
    """By topic; without those of a cluster that is older than ids."""


@dataclass(frozen=True)
class OffsetRange:
    """[start, end) of a partition."""

    topic: str
    partition: int
    start: int
    end: int
    epoch: int = UNKNOWN
    """The leader epoch in which `end` was committed: no record of the range has a later one."""


def ranges(client: Client, options: TopicOptions) -> list[OffsetRange]:
    """The ranges that a batch reads. Partitions without anything to read are left out."""
    planned = []
    partitions = partitions_of(client, options).partitions
    firsts = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    lasts = list_offsets(client, dict.fromkeys(partitions, LATEST), committed=options.read_committed)
    starts = resolved(client, "starting", options.starting, firsts, lasts)
    ends = resolved(client, "ending", options.ending, firsts, lasts)
    for topic, partition in partitions:
        where = topic, partition
        first, last = firsts[where].offset, lasts[where].offset
        start, end = starts[where], ends[where]
        if first <= end < start <= last:
            raise OptionError(f"{topic}-{partition} cannot be read from offset {start} to {end}, which is before it")
        if start < first or end > last or start > end:
            message = f"{topic}-{partition}: offsets {start} to {end} were asked for, and the log has {first} to {last}"
            if options.fail_on_data_loss:
                raise DataLoss(
                    f"{message}, in leader epoch {lasts[where].epoch}. They have expired, or the log was truncated;"
                    " failOnDataLoss=false goes on"
                )
            start, end = max(start, first), min(end, last)
        if start < end:
            planned.append(OffsetRange(topic, partition, start, end, lasts[where].epoch))
    return planned


def resolved(
    client: Client,
    which: str,
    offsets: Offsets,
    firsts: dict[TopicPartition, OffsetAndEpoch],
    lasts: dict[TopicPartition, OffsetAndEpoch],
) -> dict[TopicPartition, int]:
    """The offsets that an option means. `firsts` and `lasts` are those of the partitions that are read."""
    said = _said(f"{which}Offsets" + ("ByTimestamp" if offsets.by_time else ""), offsets, lasts)
    if not offsets.by_time:
        return {
            where: firsts[where].offset if said[where] == EARLIEST
            else lasts[where].offset if said[where] == LATEST
            else said[where]
            for where in lasts
        }  # fmt: skip
    by_time = list_offsets(client, said)
    for (topic, partition), each in by_time.items():
        if each.offset < 0 and not offsets.or_latest:
            raise OptionError(
                f"{topic}-{partition} has no record of {said[topic, partition]} ms or later to start at;"
                " startingOffsetsByTimestampStrategy=latest starts at its end"
            )
    # Open transactions and records that are not committed yet lie beyond the last offset.
    return {
        where: last.offset if by_time[where].offset < 0 else min(by_time[where].offset, last.offset)
        for where, last in lasts.items()
    }


def partitions_of(
    client: Client,
    options: TopicOptions,
    known: Mapping[TopicPartition, str | None] = MappingProxyType({}),
    gone: Collection[str] = (),
) -> There:
    """The partitions that the options name. A topic that is not there is an error; a pattern may match none.

    `known`: those that a stream reads, with the ids of their topics, and no error if they are gone. That is only
    believed while a controller is active, and of a topic that is still the same not at all, for partitions stay.
    `gone`: topics of which it is known already.
    """
    client.known_topics |= {topic for topic, _ in known}

    def find() -> There:
        there = _find_partitions(client, options, {topic for topic, _ in known}.union(gone))
        lacking = sorted(known.keys() - set(there.partitions))
        for topic, partition in lacking:
            if topic in there.topic_ids and there.topic_ids[topic] == known[topic, partition]:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition}, which was read before")
        if lacking and metadata_age_ms(client) is not None:
            raise Unreachable(f"no controller is active: whether {lacking[0][0]} is gone is not known")
        return there

    return client.persist(find)


def _find_partitions(client: Client, options: TopicOptions, known: Collection[str]) -> There:
    if options.pattern is not None:
        view = client.metadata(None)
        # Java's consumer leaves internal topics out of a pattern.
        names = sorted(
            each.name for each in view.topics.values() if options.pattern.fullmatch(each.name) and not each.internal
        )
    else:
        names = list(options.assigned) if options.assigned is not None else list(options.topics)
        view = client.metadata(names)
        names = [name for name in names if name not in known or not _is_gone(view, name)]
    _check(view, names)
    partitions: list[TopicPartition] = []
    for name in names:
        there = sorted(view.topics[name].partitions)
        wanted = there if options.assigned is None else options.assigned[name]
        missing = sorted(set(wanted) - set(there))
        if missing:
            raise OptionError(f"{name} has no partition {', '.join(map(str, missing))}")
        partitions += [(name, number) for number in wanted]
    ids = {name: view.topics[name].topic_id for name in names}
    return There(partitions, {name: id_text(topic_id) for name, topic_id in ids.items() if topic_id.int})


def split(
    planned: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None = None
) -> list[OffsetRange]:
    """No range longer than `max_records`; then at least so many ranges, in proportion to how much is in each."""
    if max_records is not None:
        planned = [part for each in planned for part in _cut(each, -(-(each.end - each.start) // max_records))]
    total = sum(each.end - each.start for each in planned)
    if min_partitions is None or min_partitions <= len(planned) or not total:
        return list(planned)
    return [
        part for each in planned for part in _cut(each, max(1, -(-(each.end - each.start) * min_partitions // total)))
    ]


def together(planned: Sequence[OffsetRange]) -> list[tuple[OffsetRange, ...]]:
    """A task for each range, but one for several that have few records altogether: a trigger that reads a handful from
    many partitions would spend its time on starting tasks.
    """
    tasks: list[tuple[OffsetRange, ...]] = []
    records = _FEW_RECORDS
    for each in planned:
        size = each.end - each.start
        if records + size <= _FEW_RECORDS:
            tasks[-1] += (each,)
            records += size
        else:
            tasks.append((each,))
            records = size
    return tasks


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    size = whole.end - whole.start
    parts = min(size, parts)
    edges = [whole.start + size * number // parts for number in range(parts + 1)]
    return [OffsetRange(whole.topic, whole.partition, a, b, whole.epoch) for a, b in pairwise(edges)]


def _is_gone(view: ClusterView, name: str) -> bool:
    topic = view.topics.get(name)
    return topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _check(view: ClusterView, names: Iterable[str]) -> None:
    for name in names:
        if _is_gone(view, name):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, final=True)
        if code := view.topics[name].error_code:
            raise KafkaError(code, name)


def _said(name: str, offsets: Offsets, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Offsets that are said one by one must be said for all, and for no others."""
    if offsets.everywhere is not None:
        return dict.fromkeys(partitions, offsets.everywhere)
    differing = set(offsets.of).symmetric_difference(partitions)
    if differing:
        listed = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(differing))
        raise OptionError(f"{name} has to say each partition that is read, and no other: {listed}")
    return dict(offsets.of)
