"""`write.format("tanist")` and `writeStream.format("tanist")`: rows into topics (docs/spark.md).

Owns the way of a task's rows: by topic, by partition, into batches, to the producer. A batch's task has a producer id
from the cluster, and a task that Spark tries again writes again: at least once, as Spark's own sink. A stream's task
has a producer of its own making (`sink.already_written`), and writes what is not in the topic yet: exactly once. Or the
driver writes the whole micro-batch in one transaction (`sink.transaction`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client, KafkaError
from tanist.spark.sink.options import Guarantee, SinkOptions, check_columns
from tanist.spark.sink.written import TaskWritten
from tanist.spark.topic.options import OptionError, warn

if TYPE_CHECKING:
    from tanist.spark.sink.already_written import Before, Identity, Written
    from tanist.spark.sink.transaction import TaskStaged

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
"""Local properties by which Spark tells a task of a stream whose it is."""
_ENCODED_BYTES = 32 << 20


class TopicWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("a topic cannot be overwritten: mode is append")
        check_columns(schema, options)
        warn(options.without_effect)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return write_rows(iterator, self._options, None)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_columns(schema, options)
        warn(options.without_effect)
        self._options = options
        self._before: Before | None = None

    def __getstate__(self) -> dict[str, Any]:
        """On its way from the driver to the tasks it takes along what is in the topic before they begin."""
        if self._before is None and self._options.guarantee is Guarantee.EXACTLY_ONCE:
            self._before = _producers_before(self._options)
        return self.__dict__

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        match self._options.guarantee:
            case Guarantee.AT_LEAST_ONCE:
                return write_rows(iterator, self._options, None)
            case Guarantee.EXACTLY_ONCE:
                return write_rows(iterator, self._options, _task(), self._before)
            case Guarantee.TRANSACTION:
                return stage_rows(iterator, self._options, _task()[0])

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (PySpark's name)
        from tanist.spark.sink.missing_rows import write_missing

        if self._options.guarantee is Guarantee.TRANSACTION:
            self._commit_transaction(messages, batchId)
            return
        written = [each for each in messages if isinstance(each, TaskWritten)]
        if any(each.earlier for each in written):
            with self._options.connecting.client() as client:
                write_missing(client, written, self._options.compression)

    def _commit_transaction(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        from tanist.spark.sink.transaction import TaskStaged, write_transaction

        options, staged = self._options, [each for each in messages if isinstance(each, TaskStaged)]
        with options.connecting.client() as client:
            write_transaction(client, staged, batch_id, options.transactional_id_prefix, options.transaction_timeout_ms)


def _producers_before(options: SinkOptions) -> Before:
    """Into the one topic that is written to. Which topics a column names is not known before there are rows."""
    from tanist.spark.sink.already_written import before

    topic = options.topic
    if topic is None:
        return {}
    with options.connecting.client() as client:
        count = _partitions(client, topic, options)
        return before(client, [(topic, number) for number in range(count)])


def _task() -> tuple[str, int, int]:
    """The query, the task and the micro-batch."""
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(_QUERY_ID)
    batch = None if context is None else context.getLocalProperty(_BATCH_ID)
    if context is None or query is None or batch is None:
        raise OptionError("this Spark does not tell its tasks of which micro-batch they are: set exactlyOnce=false")
    return query, context.partitionId(), int(batch)


def write_rows(
    batches: Iterator[Any], options: SinkOptions, task: tuple[str, int, int] | None, before: Before | None = None
) -> TaskWritten:
    """All rows, acknowledged by all in-sync replicas. `task`: whose rows they are, if some may be there already;
    `before`: what was there when the micro-batch began.
    """
    from tanist.spark.sink.already_written import identity, of_earlier_runs
    from tanist.spark.sink.producer import TaskProducer

    who = None if task is None else identity(*task)
    earlier = {} if who is None or before is None else of_earlier_runs(before, who)
    with options.connecting.client() as client:
        writing: _Writing | None = None
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                if writing is None:
                    if who is None:
                        producer = TaskProducer.fresh(client)
                    else:
                        producer = TaskProducer(client, who.producer_id, who.producer_epoch)
                    writing = _Writing(client, options, producer, who, earlier)
                writing.write(batch)
            return TaskWritten(0, 0, who, earlier) if writing is None else writing.finish()
        finally:
            if writing is not None:
                writing.producer.close()


def stage_rows(batches: Iterator[Any], options: SinkOptions, query: str) -> TaskStaged:
    """All rows as batches without a producer, for the driver's transaction."""
    from tanist.spark.sink.transaction import Stage, TaskStaged

    stage = Stage()
    with options.connecting.client() as client:
        writing = _Writing(client, options, stage, None, {})
        for batch in batches:
            if batch.num_rows:
                writing.write(batch)
    return TaskStaged(query, stage.batches)


class _Writing:
    def __init__(
        self,
        client: Client,
        options: SinkOptions,
        producer: Any,
        who: Identity | None,
        earlier: dict[TopicPartition, Written],
    ) -> None:
        self.producer = producer
        self._client = client
        self._options = options
        self._who = who
        self._earlier = earlier
        self._known_before: dict[TopicPartition, Any] = {}
        """The fingerprints of what earlier runs wrote."""
        self._left_out: dict[TopicPartition, list[bytes]] = {}
        self._partitions: dict[str, int] = {}
        self._earlier_attempts: dict[TopicPartition, Any] = {}
        self._records = self._known = 0

    def write(self, batch: Any) -> None:
        for topic, rows, named in self._by_topic(batch):
            self._write_topic(topic, rows, named)

    def finish(self) -> TaskWritten:
        from tanist.spark.sink.already_written import check_nothing_left

        self.producer.flush()
        check_nothing_left(self._earlier_attempts)
        left_out = {where: b"".join(each) for where, each in self._left_out.items()}
        return TaskWritten(self._records, self._known, self._who, self._earlier, left_out)

    def _by_topic(self, batch: Any) -> Iterator[tuple[str, Any, Any]]:
        """Topic, rows, and the column `partition` if there is one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from tanist.spark.sink.encoding import NoRecord, Rows

        columns = dict(zip(batch.schema.names, batch.columns))
        key = columns["key"].cast(pa.binary()) if "key" in columns else None
        rows = Rows(key, columns["value"].cast(pa.binary()), columns.get("headers"))
        named = columns.get("partition")
        if self._options.topic is not None:
            yield self._options.topic, rows, named
            return
        topics = columns["topic"]
        if topics.null_count:
            raise NoRecord("a row has null as its topic")
        for topic in sorted(pc.unique(topics).to_pylist()):
            which = pc.indices_nonzero(pc.equal(topics, topic)).to_numpy()
            yield topic, rows.take(which), None if named is None else named.take(pa.array(which))

    def _write_topic(self, topic: str, rows: Any, named: Any) -> None:
        """All rows in one pass: in the order of their partitions, cut into batches, encoded together."""
        import numpy as np

        from tanist.spark.sink.encoding import cuts, encode, sizes_of
        from tanist.spark.sink.partitions import choose

        count = self._partitions.get(topic)
        if count is None:
            count = self._partitions[topic] = self._begin_topic(topic)
        chosen = choose(rows, named, count)
        # Stable: rows of one partition stay in their order.
        order = np.argsort(chosen, kind="stable")
        ordered, chosen = rows.take(order), chosen[order]
        edges = np.flatnonzero(np.diff(chosen)) + 1
        sizes = sizes_of(ordered)
        batches = [
            (first + begin, first + end)
            for first, last in pairwise([0, *edges.tolist(), len(order)])
            for begin, end in cuts(sizes[first:last], self._options.batch_bytes)
        ]
        deltas = np.arange(len(order)) - np.repeat([first for first, _ in batches], [b - a for a, b in batches])
        # Records that are encoded together have offsets of 32 bits, and stay in memory until they are acknowledged.
        for first, last in cuts([sizes[a:b].sum() for a, b in batches], _ENCODED_BYTES):
            begin, end = batches[first][0], batches[last - 1][1]
            records = encode(ordered.cut(begin, end), deltas[begin:end])
            for a, b in batches[first:last]:
                self._send((topic, int(chosen[a])), ordered.cut(a, b), records.cut(a - begin, b - begin))

    def _send(self, where: TopicPartition, rows: Any, records: memoryview) -> None:
        from tanist.spark.sink.encoding import encode, seal

        if where in self._earlier or where in self._earlier_attempts:
            import numpy as np

            kept = np.flatnonzero(self._not_there(where, records, len(rows)))
            self._known += len(rows) - len(kept)
            if not len(kept):
                return
            if len(kept) < len(rows):
                rows = rows.take(kept)
                records = encode(rows, np.arange(len(rows))).cut(0, len(rows))
        producer = self.producer
        now_ms, compression = time.time_ns() // 1_000_000, self._options.compression
        sealed = seal(records, len(rows), producer.sealing(where), timestamp_ms=now_ms, compression=compression)
        producer.send(where, sealed)
        self._records += len(rows)

    def _not_there(self, where: TopicPartition, records: memoryview, count: int) -> Any:
        """Which rows have still to be written."""
        import numpy as np

        from tanist.spark.sink.already_written import fingerprints_of, read_back, still_to_write, tally

        fingerprints = fingerprints_of(records, count)
        missing = np.ones(count, bool)
        if where in self._earlier:
            if where not in self._known_before:
                read = read_back(self._client, where, self._earlier[where], self.producer.sequences.producer[1])
                self._known_before[where] = tally(read)[0]
            missing = ~np.isin(fingerprints, self._known_before[where])
            self._left_out.setdefault(where, []).append(fingerprints[~missing].tobytes())
        if where in self._earlier_attempts:
            rest = np.flatnonzero(missing)
            missing[rest] = still_to_write(fingerprints[rest], self._earlier_attempts[where].fingerprints)
        return missing

    def _begin_topic(self, topic: str) -> int:
        """How many partitions the topic has; and what of this micro-batch is in them."""
        from tanist.spark.sink.already_written import earlier_attempts

        count = _partitions(self._client, topic, self._options)
        if self._who is not None:
            places: Sequence[TopicPartition] = [(topic, number) for number in range(count)]
            attempts = earlier_attempts(self._client, places, self._who, self._earlier)
            self._earlier_attempts |= attempts
            for where, each in attempts.items():
                self.producer.sequences.continue_at(where, each.next_sequence)
        return count


def _partitions(client: Client, topic: str, options: SinkOptions) -> int:
    """How many the topic has. One that is not there is asked for, as Kafka's producers do: brokers with
    auto.create.topics.enable make it. Others never do, which no answer says: it is waited for as long as Kafka's do.
    """
    from tanist.wire.errors import ErrorCode
    from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
    from tanist.wire.messages.metadata_response import MetadataResponse

    def count() -> int:
        metadata = client.metadata([topic]).topics.get(topic)
        code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if metadata is None else metadata.error_code
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            client.ask(
                MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=True),
                MetadataResponse,
            )
        if metadata is None or code:
            raise KafkaError(code, topic)
        return len(metadata.partitions)

    return client.persist(count, timeout_s=options.max_block_s)
