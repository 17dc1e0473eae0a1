"""An audit by DuckDB: its stages over tables, in this process."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs import Progress
from tanist.spark.jobs.audit.by_duckdb import clients, replicas
from tanist.spark.jobs.audit.by_duckdb.history import read_history
from tanist.spark.jobs.audit.by_duckdb.session import Database, DuckDB
from tanist.spark.jobs.audit.by_duckdb.tables import Logs, findings_table
from tanist.spark.jobs.audit.explanations import Explanations
from tanist.spark.jobs.audit.facts import EpochRange, Facts
from tanist.spark.jobs.audit.findings import FINDINGS_MAX, RANKED, Counts, Finding, counts_of, finding_of, merged
from tanist.spark.jobs.audit.findings_table import Write, Writer
from tanist.spark.jobs.audit.log_files import Holder, Known, LogFiles, Stretch
from tanist.spark.jobs.audit.lost import Copy
from tanist.spark.jobs.audit.result import ClientCounts, OpenTransaction


class DuckDBEngine:
    def __init__(self, database: Database, files: LogFiles, *, has_history: bool) -> None:
        self.has_history = has_history
        self._database = database
        self._files = files
        self._logs = Logs(database, files)
        database.run('create temp table aborted (place varchar, "offset" bigint)')
        findings_table(database)

    @staticmethod
    def of_folder(
        session: DuckDB, folder: str | Path, histories: Sequence[str | Path], topics: Sequence[str]
    ) -> DuckDBEngine:
        database = session.database()
        try:
            # Before the logs: nodes may run, and what a history has was in a log before.
            if histories:
                read_history(database, histories, topics)
            return DuckDBEngine(database, LogFiles(folder, topics), has_history=bool(histories))
        except BaseException:
            database.close()
            raise

    def known(self) -> Known:
        return self._files.known()

    def epoch_ranges(self) -> list[EpochRange]:
        return replicas.sum_up(self._database, self._logs)

    def damaged(self) -> list[Holder]:
        return replicas.holders(self._database, "damages")

    def read_damage(self, where: Sequence[Holder]) -> None:
        replicas.add_damage(self._database, self._logs, where)

    def compare_replicas(self, facts: Facts, progress: Progress) -> str:
        return replicas.compare(self._database, self._logs, facts, progress)

    def transactional(self) -> set[Holder]:
        return set(replicas.holders(self._database, "transactional"))

    def transactions(self, where: Collection[Holder]) -> list[OpenTransaction]:
        return replicas.follow_transactions(self._database, self._logs, where)

    def count_clients(self, begun: Mapping[TopicPartition, int]) -> ClientCounts:
        return clients.counted(self._database, begun)

    def compare_values(self, facts: Facts, progress: Progress) -> str:
        return clients.compare(self._database, self._logs, facts, progress)

    def check_order(self, facts: Facts) -> None:
        clients.check_order(self._database)

    def moments(self, step_ns: int) -> list[tuple[str, int, int]]:
        return clients.moments(self._database, step_ns)

    def counts(self) -> Counts:
        rows = self._database.rows(
            'select kind, topic, "partition", cast(sum(records) as bigint) from findings group by all'
        )
        return counts_of((kind, topic, partition, records) for kind, topic, partition, records in rows)

    def first_findings(self) -> list[Finding]:
        rows = self._database.dicts(f"""
            from findings qualify {FINDINGS_MAX} >= row_number() over (
                partition by kind order by {", ".join(f'"{name}"' for name in RANKED)})""")
        return merged(map(finding_of, rows))

    def search(self, wanted: Sequence[Finding], near: Sequence[Stretch]) -> Iterator[Copy]:
        names = ("topic", "partition", "offset", "leader_epoch", "replica", "salvage_id", "value", "damage")
        values = {(each.topic, each.partition, each.first_offset, each.value) for each in wanted}
        self._logs.load("living", names, near=near)
        self._logs.load_salvage("saved", names, near)
        for row in self._database.dicts("from living union all from saved"):
            copy = Copy(*(row[name] for name in names[:6]))
            value = row["value"]
            place = (copy.topic, copy.partition, copy.offset)
            if row["damage"] is None and value is not None and (*place, value.decode(errors="replace")) in values:
                yield copy

    def write(self, explained: Explanations) -> Write:
        def write(writer: Writer) -> list[dict[str, Any]]:
            batches = (_explained(batch, explained) for batch in self._database.batches("from findings"))
            return [row for written in writer(batches) for row in written.to_pylist()]

        return write

    def close(self) -> None:
        self._database.close()


def _explained(batch: Any, explained: Explanations) -> Any:
    import pyarrow as pa

    names = ("kind", "topic", "partition", "first_offset", "epochs", "replicas")
    columns = (batch.column(name).to_pylist() for name in names)
    texts = [explained.explain(*row) for row in zip(*columns, strict=True)]
    return batch.append_column("explained", pa.array(texts, pa.string()))
