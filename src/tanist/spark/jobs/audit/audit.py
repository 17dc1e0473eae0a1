"""The audit: what a fault lost, duplicated, reordered or left different, out of replicas' logs and clients' histories.

`audit_folder` reads a cluster's data folder. Owns the choice of the engine: `by_spark` on any number of machines,
`by_duckdb` in this process. Each has all of the `stages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs import Progress, preconditions
from tanist.spark.jobs.audit.by_duckdb.session import DuckDB
from tanist.spark.jobs.audit.findings_table import FindingsTable
from tanist.spark.jobs.audit.metadata import read_metadata
from tanist.spark.jobs.audit.result import AuditResult
from tanist.spark.jobs.audit.stages import Engine, judged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def audit_folder(
    session: SparkSession | DuckDB,
    folder: str | Path,
    histories: Sequence[str | Path] = (),
    *,
    topics: Sequence[str] = (),
    high_watermarks: Mapping[TopicPartition, int] | None = None,
    findings: FindingsTable | None = None,
    progress: Progress = lambda _: None,
) -> AuditResult:
    """Of a cluster's data folder. Its nodes may run; the records that they write meanwhile are partly seen.

    `Unfit` if there is nothing to judge: no replica of a topic, or records of neither replicas nor clients.
    """
    preconditions.audit(folder, topics, histories)
    progress("looking for replicas and reading the metadata log")
    engine = _engine(session, folder, histories, topics)
    known = engine.known()
    if high_watermarks is not None:
        known = replace(known, high_watermarks={**known.high_watermarks, **high_watermarks})
    return judged(
        engine, known, read_metadata(folder), findings=findings, data=str(folder), progress=progress
    )  # fmt: skip


def _engine(
    session: SparkSession | DuckDB, folder: str | Path, histories: Sequence[str | Path], topics: Sequence[str]
) -> Engine:
    if isinstance(session, DuckDB):
        from tanist.spark.jobs.audit.by_duckdb.engine import DuckDBEngine

        return DuckDBEngine.of_folder(session, folder, histories, topics)
    from tanist.spark.jobs.audit.by_spark.engine import SparkEngine

    return SparkEngine.of_folder(session, folder, histories, topics)
