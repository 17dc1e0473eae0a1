"""An audit by Spark: its stages over DataFrames.

Also of logs and histories that are DataFrames (`audit`): with the columns of `tanist-segments`, and of
docs/history.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs import Progress
from tanist.spark.jobs.audit.by_spark import clients, lost, transactions
from tanist.spark.jobs.audit.by_spark import findings as audit_findings
from tanist.spark.jobs.audit.by_spark import order as audit_order
from tanist.spark.jobs.audit.by_spark import replicas as audit_replicas
from tanist.spark.jobs.audit.by_spark import values as audit_values
from tanist.spark.jobs.audit.by_spark.history import History, read_history
from tanist.spark.jobs.audit.by_spark.logs import Logs, SegmentLogs
from tanist.spark.jobs.audit.explanations import Explanations
from tanist.spark.jobs.audit.facts import EpochRange, Facts
from tanist.spark.jobs.audit.findings import Counts, Finding
from tanist.spark.jobs.audit.findings_table import Write
from tanist.spark.jobs.audit.log_files import Holder, Known, Stretch
from tanist.spark.jobs.audit.lost import Copy
from tanist.spark.jobs.audit.result import AuditResult, ClientCounts, OpenTransaction
from tanist.spark.jobs.audit.stages import judged


def audit(logs: Logs, history: History | None = None, *, known: Known, **settings: Any) -> AuditResult:
    """Audit logs against each other, and against clients' histories. `settings` are those of `judged`."""
    return judged(SparkEngine(logs, history), known, **settings)


class SparkEngine:
    def __init__(self, logs: Logs, history: History | None) -> None:
        self._logs = logs
        self._given = history
        self.has_history = history is not None
        self._cached: list[DataFrame] = []
        self._found: list[DataFrame] = []
        self._aborted: DataFrame | None = None
        self._suspects: DataFrame | None = None
        self._level_one = self._keep(audit_replicas.buckets(logs))

    @staticmethod
    def of_folder(
        spark: SparkSession, folder: str | Path, histories: Sequence[str | Path], topics: Sequence[str]
    ) -> SparkEngine:
        # Before the logs: nodes may run, and what a history has was in a log before.
        whole = read_history(spark, histories) if histories else None
        history = whole.of_topics(topics) if whole is not None and topics else whole
        engine = SparkEngine(SegmentLogs(spark, folder, topics), history)
        if whole is not None:  # else the next audit of this session would take it for the file as it is then
            engine._cached.append(whole.events)
        return engine

    def known(self) -> Known:
        return self._logs.known()

    def epoch_ranges(self) -> list[EpochRange]:
        return audit_replicas.epoch_ranges(self._level_one)

    def damaged(self) -> list[Holder]:
        return audit_replicas.holders(self._level_one, "damages")

    def read_damage(self, where: Sequence[Holder]) -> None:
        self._found.append(audit_replicas.damaged(self._logs, where))

    def compare_replicas(self, facts: Facts, progress: Progress) -> str:
        compared = audit_replicas.compare(self._logs, self._level_one, facts, keep=self._keep, progress=progress)
        self._add(compared.findings)
        return compared.plan

    def transactional(self) -> set[Holder]:
        return set(audit_replicas.holders(self._level_one, "transactional"))

    def transactions(self, where: Collection[Holder]) -> list[OpenTransaction]:
        outcomes = self._keep(transactions.outcomes(self._logs, where))
        self._aborted = transactions.aborted_places(outcomes)
        return transactions.open_transactions(outcomes)

    @property
    def _history(self) -> History:
        if self._given is None:
            raise ValueError("there is no history")
        return self._given

    def count_clients(self, begun: Mapping[TopicPartition, int]) -> ClientCounts:
        return clients.counted(self._history, begun)

    def compare_values(self, facts: Facts, progress: Progress) -> str:
        compared = audit_values.compare(
            self._logs, self._history, facts, self._aborted, keep=self._keep, progress=progress
        )
        self._suspects = compared.suspects
        self._add(compared.findings)
        return compared.plan

    def check_order(self, facts: Facts) -> None:
        self._add(audit_order.check(self._logs, self._history, self._suspects, facts, keep=self._keep))

    def moments(self, step_ns: int) -> list[tuple[str, int, int]]:
        return clients.moments(self._history, step_ns)

    def counts(self) -> Counts:
        if not self._found:
            return {}
        self._found = [self._keep(reduce(DataFrame.unionByName, self._found))]
        return audit_findings.counted(self._found[0])

    def first_findings(self) -> list[Finding]:
        return audit_findings.first_of_each_kind(self._found[0])

    def search(self, wanted: Sequence[Finding], near: Sequence[Stretch]) -> Iterator[Copy]:
        return lost.copies(self._level_one.sparkSession, self._logs, wanted, near)

    def write(self, explained: Explanations) -> Write:
        explain = F.udf(explained.explain, "string", useArrow=False)
        columns = ("kind", "topic", "partition", "first_offset", "epochs", "replicas")
        return audit_findings.written(self._found[0].withColumn("explained", explain(*columns)))

    def close(self) -> None:
        for frame in self._cached:
            frame.unpersist()

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._cached.append(frame.cache())
        return self._cached[-1]

    def _add(self, findings: DataFrame | None) -> None:
        if findings is not None:
            self._found.append(findings)
