"""A micro-batch that is run again, its rows shared out in another way: each row once, as many as are equal."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from tanist.client.positions import LATEST
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import list_offset
from tanist.runtime.client.records import read as read_records
from tanist.spark.sink import sink as topic_sink
from tanist.spark.sink.already_written import Before, NotTheSame, before
from tanist.spark.sink.missing_rows import write_missing
from tanist.spark.sink.options import SinkOptions
from tanist.spark.sink.sink import TopicStreamWriter, write_rows
from tanist.spark.sink.written import TaskWritten

PARTITIONS = 2
BATCH = 7


class Sink:
    """One topic, written by runs of a micro-batch."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.client = Client(parse_bootstrap(bootstrap))
        create_topic(self.client, topic, partitions=PARTITIONS)
        place = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "kafka.batch.size": "150"}
        self.options = SinkOptions.parse(place)

    def before(self) -> Before:
        return before(self.client, [(self.topic, number) for number in range(PARTITIONS)])

    def run(
        self, shares: Sequence[Sequence[str]], cut: Sequence[int | None] = (), commits: bool = True,
        batch: int = BATCH, query: str = "query",
    ) -> int:  # fmt: skip
        """One run: each task has its share of the rows, and writes all of it or ends behind so many batches. Gives how
        many records the driver had to write.
        """
        known = self.before()
        messages: list[TaskWritten] = []
        for task, share in enumerate(shares):
            after = cut[task] if task < len(cut) else None
            try:
                messages.append(write_rows(arriving(share, after), self.options, (query, task, batch), known))
            except KeyboardInterrupt:
                continue
        if len(messages) < len(shares) or not commits:
            return 0
        return write_missing(self.client, messages, self.options.compression)

    def content(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for partition in range(PARTITIONS):
            end = list_offset(self.client, self.topic, partition, LATEST)
            found.update(
                (each.value or b"").decode() for each in read_records(self.client, self.topic, partition, 0, end)
            )
        return found


def arriving(values: Sequence[str], after: int | None) -> Iterator[pa.RecordBatch]:
    """Five rows at a time; the task ends there, if it is to."""
    for first in range(0, len(values), 5):
        if after is not None and first >= 5 * after:
            raise KeyboardInterrupt
        yield pa.record_batch({"value": pa.array([each.encode() for each in values[first : first + 5]], pa.binary())})
    if after is not None:
        raise KeyboardInterrupt


def test_fewer_tasks_and_one_without_rows(bootstrap: str) -> None:
    sink = Sink(bootstrap, "fewer")
    rows = [f"row {number}" for number in range(100)]
    sink.run([rows[number::4] for number in range(4)], [3, 2, None, 1])
    assert 25 < sink.content().total() < 100
    assert sink.run([[], rows]) == 0
    assert sink.content() == Counter(rows)
    assert sink.run([rows[:10], rows[10:20], rows[20:]]) == 0
    assert sink.content() == Counter(rows)


def test_equal_rows_of_which_not_all_had_come_so_far(bootstrap: str) -> None:
    """Both tasks take the one that is there for theirs; the driver writes the other. Its own are known, too."""
    sink = Sink(bootstrap, "equal")
    sink.run([["same"] * 5, ["same"] * 5], [1, 0])
    assert sink.content() == {"same": 5}
    assert sink.run([["same"] * 5, ["same"] * 5]) == 5
    assert sink.content() == {"same": 10}
    assert sink.run([["same"] * 5, ["same"] * 5]) == 0
    assert sink.content() == {"same": 10}


def test_a_task_that_is_tried_again_within_the_run(bootstrap: str) -> None:
    """What it wrote itself is not what an earlier run wrote: equal rows of other tasks are still to come."""
    sink = Sink(bootstrap, "tried-again")
    sink.run([["a", "b"]], [1])
    known = sink.before()
    shares = [["c"] * 5 + ["a"], ["c"] * 3 + ["b"]]
    with pytest.raises(KeyboardInterrupt):
        write_rows(arriving(shares[0], 1), sink.options, ("query", 0, BATCH), known)
    messages = [
        write_rows(arriving(share, None), sink.options, ("query", task, BATCH), known)
        for task, share in enumerate(shares)
    ]
    assert [(each.records, each.known) for each in messages] == [(0, 6), (3, 1)]
    assert write_missing(sink.client, messages, sink.options.compression) == 0
    assert sink.content() == Counter(shares[0] + shares[1])


def test_other_rows_are_refused_whichever_task_wrote_them(bootstrap: str) -> None:
    sink = Sink(bootstrap, "other-rows")
    sink.run([["a"], ["b"], ["c"]], commits=False)
    with pytest.raises(NotTheSame, match="1 records that this micro-batch wrote before"):
        sink.run([["a", "c"]])
    with pytest.raises(NotTheSame, match="wrote before it was run again"):
        sink.run([[], []])


def test_the_writer_takes_along_what_is_there(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark has it: made on the driver, sent to the tasks; what they give comes to another one, on the driver."""
    sink = Sink(bootstrap, "taken-along")
    sink.run([["a"] * 2, ["b"]], [None, 1], commits=False)
    schema = StructType().add("value", "string")
    sent = pickle.loads(cloudpickle.dumps(TopicStreamWriter(sink.options, schema)))
    sink.run([["other"]], batch=BATCH - 1, query="another")
    messages: list[WriterCommitMessage | None] = []
    for task, share in enumerate([[], ["b", "c", "a"], ["a", "a"]]):
        monkeypatch.setattr(topic_sink, "_task", lambda task=task: ("query", task, BATCH))
        messages.append(pickle.loads(pickle.dumps(sent.write(arriving(share, None)))))
    TopicStreamWriter(sink.options, schema).commit(messages, BATCH)
    assert sink.content() == {"a": 3, "b": 1, "c": 1, "other": 1}


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_runs_and_wherever_they_end(bootstrap: str, seed: int) -> None:
    """Runs with any number of tasks, cut short anywhere, before or behind the balance; then one that goes through."""
    rng = random.Random(seed)
    sink = Sink(bootstrap, f"rng-{seed}")
    rows = [f"row {rng.randrange(40)}" for _ in range(90)]

    def shares() -> list[list[str]]:
        found: list[list[str]] = [[] for _ in range(rng.randint(1, 5))]
        for row in rng.sample(rows, len(rows)):
            rng.choice(found).append(row)
        return found

    for _ in range(4):
        shared = shares()
        kind = rng.choice(("tasks", "tasks", "uncommitted", "committed"))
        cut = [rng.choice((None, 0, 1, 3)) for _ in shared] if kind == "tasks" else []
        sink.run(shared, cut, commits=kind != "uncommitted")
        assert not sink.content() - Counter(rows)
    sink.run(shares())
    assert sink.content() == Counter(rows)
