"""`readStream.format("tanist")`: a stream's triggers, planned by offsets and leader epochs.

Owns the questions of a trigger to the cluster, in which order and how often. A trigger with nothing amiss costs one
ListOffsets to each leader; after a change of leader the new one is asked where the old epoch ends; where retention has
come to is only asked if there is something to read. Nothing is fetched here, and nothing is kept that is not in the
checkpoint but the connection and when partitions were last looked for. A position is never dropped: a topic that is not
there may be back.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from tanist.client.positions import EARLIEST, LATEST
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client, KafkaError
from tanist.spark.topic.offsets import OffsetAndEpoch, epoch_ends, list_offsets
from tanist.spark.topic.options import TopicOptions, warn
from tanist.spark.topic.plan import DataLoss, There, partitions_of, resolved, split, together
from tanist.spark.topic.positions import (
    Begin,
    Position,
    Positions,
    advanced,
    deleted,
    doubtful,
    expired,
    from_json,
    made_anew,
    ranges_between,
    to_json,
    truncated,
)
from tanist.spark.topic.tasks import Task, read_task
from tanist.wire.errors import ErrorCode


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: TopicOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = list(columns)
        self._connected: Client | None = None
        self._there = There([], {})
        self._found_at_s: float | None = None
        self._until: dict[TopicPartition, int] | None = None
        """Where a query with `availableNow` ends."""
        self._latest: dict[TopicPartition, OffsetAndEpoch] = {}
        self._last_batch_s: float | None = None

    # -- what Spark asks on the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (PySpark's names)
        there = self._find_partitions({})
        client = self._client()
        firsts = list_offsets(client, dict.fromkeys(there.partitions, EARLIEST))
        lasts = self._lasts(there.partitions)
        starts = resolved(client, "starting", self._options.starting, firsts, lasts)
        return to_json(
            {
                where: Position(starts[where], lasts[where].epoch, topic_id=there.topic_ids.get(where[0]))
                for where in there.partitions
            }
        )

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = {where: last.offset for where, last in self._lasts(self._find_partitions({}).partitions).items()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        options = self._options
        at = from_json(start)
        partitions, latest = self._partitions_and_lasts(at)
        self._latest = latest
        ends = latest
        if self._until is not None:
            # Those that have come since are the next query's.
            latest = {where: each for where, each in latest.items() if where in at or where in self._until}
            until = {where: self._until.setdefault(where, each.offset) for where, each in latest.items()}
            ends = {where: OffsetAndEpoch(min(each.offset, until[where]), each.epoch) for where, each in latest.items()}
        begins = self._begins(at, latest, ends)
        gone = self._gone(at, partitions)
        waiting = sum(max(0, ends[where].offset - begin.offset) for where, begin in begins.items())
        least = options.min_offsets_per_trigger
        limited = not isinstance(limit, ReadAllAvailable)
        hurried = self._until is not None or bool(gone) or any(begin.lost is not None for begin in begins.values())
        if limited and not hurried and least is not None and waiting < least and not self._overdue():
            return start
        most = options.max_offsets_per_trigger if limited else None
        positions = advanced(at, begins, ends, most=most, topic_ids=self._there.topic_ids, gone=gone)
        if positions != at:
            self._last_batch_s = time.monotonic()
        return to_json(positions)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return to_json({where: Position(each.offset, each.epoch) for where, each in self._latest.items()}) or None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        planned = ranges_between(from_json(start), from_json(end))
        options = self._options
        cut = split(planned, options.min_partitions, options.max_records_per_partition)
        if options.min_partitions is not None:
            return [Task((each,)) for each in cut]
        return [Task(each) for each in together(cut)]

    def stop(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    # -- in a task

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(partition, self._options, self._columns)

    # -- inner

    def _client(self) -> Client:
        if self._connected is None:
            warn(self._options.without_effect)
            self._connected = self._options.connecting.client()
        return self._connected

    def _find_partitions(self, at: Positions) -> There:
        """The partitions that there are, looked for from time to time. `at` are those that were read."""
        now = time.monotonic()
        if self._found_at_s is None or now - self._found_at_s > self._options.metadata_max_age_s:
            known = {where: each.topic_id for where, each in at.items() if not each.gone}
            gone = {topic for (topic, _), each in at.items() if each.gone}
            self._there = partitions_of(self._client(), self._options, known, gone)
            self._found_at_s = now
        return self._there

    def _partitions_and_lasts(self, at: Positions) -> tuple[list[TopicPartition], dict[TopicPartition, OffsetAndEpoch]]:
        try:
            partitions = self._find_partitions(at).partitions
            return partitions, self._lasts(partitions)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        # A topic has gone since partitions were looked for.
        self._found_at_s = None
        partitions = self._find_partitions(at).partitions
        return partitions, self._lasts(partitions)

    def _lasts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetAndEpoch]:
        committed = self._options.read_committed
        return list_offsets(self._client(), dict.fromkeys(partitions, LATEST), committed=committed)

    def _begins(
        self, at: Positions, latest: dict[TopicPartition, OffsetAndEpoch], ends: dict[TopicPartition, OffsetAndEpoch]
    ) -> dict[TopicPartition, Begin]:
        """Where each partition is to be read from. `DataLoss` if that is not where the stream had come to."""
        topic_ids = self._there.topic_ids
        known = {w: at[w] for w in latest if w in at and not made_anew(w, at[w], topic_ids)}
        doubted = {where: each for where, each in known.items() if doubtful(each, latest[where])}
        asked = {where: each.epoch for where, each in doubted.items() if each.epoch >= 0}
        epochs = epoch_ends(self._client(), asked) if asked else {}
        begins = {where: Begin(each.offset) for where, each in known.items()}
        for where, each in doubted.items():
            begin = truncated(where, each, latest[where], epochs.get(where, OffsetAndEpoch(-1, -1)))
            if begin is not None:
                begins[where] = self._lossy(begin)
        # A partition that has come since the query began is read from its beginning, as Spark's source does.
        unread = [w for w in latest if w not in begins or ends[w].offset > begins[w].offset]
        firsts = list_offsets(self._client(), dict.fromkeys(unread, EARLIEST)) if unread else {}
        for where, first in firsts.items():
            if where not in begins:
                again = where in at and not at[where].gone
                begins[where] = self._lossy(deleted(where, at[where], first.offset)) if again else Begin(first.offset)
            elif first.offset > begins[where].offset:
                begins[where] = self._lossy(expired(where, at[where], first.offset))
        return begins

    def _gone(self, at: Positions, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        """The partitions that are gone since the last trigger, each with what is said of it."""
        gone = sorted(where for where in set(at) - set(partitions) if not at[where].gone)
        if not gone:
            return {}
        said = {
            (topic, partition): f"{topic}-{partition}, read up to offset {at[topic, partition].offset}"
            for topic, partition in gone
        }
        self._report(f"partitions are gone: {', '.join(said.values())}", "without them, until they are back")
        return {where: f"gone: {each}" for where, each in said.items()}

    def _lossy(self, begin: Begin) -> Begin:
        self._report(str(begin.lost), f"from offset {begin.offset}")
        return begin

    def _report(self, lost: str, going_on: str) -> None:
        """Stop; or go on, and say so where the driver logs. The loss is in the query's progress, too."""
        if self._options.fail_on_data_loss:
            raise DataLoss(f"{lost}. failOnDataLoss=false goes on, {going_on}")
        print(f"tanist: {lost}; going on {going_on}", file=sys.stderr)

    def _overdue(self) -> bool:
        """Whether records have waited for company long enough (minOffsetsPerTrigger, maxTriggerDelay)."""
        now = time.monotonic()
        if self._last_batch_s is None:
            self._last_batch_s = now
        return now - self._last_batch_s > self._options.max_trigger_delay_s
