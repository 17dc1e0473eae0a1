"""The audit: what a fault lost, duplicated, reordered or left different, out of replicas' logs and clients' histories.

`audit(logs, history, ...)` is the whole of it over DataFrames; `audit_folder` reads a cluster's data folder. Owns the
order of the stages and nothing else: each stage is a function that returns a value. They are

1. `replicas.buckets`: sums of every replica's records, one row a bucket of offsets; `facts`: the reference of each
   partition, where logs begin, high watermarks;
2. `replicas.compare`: replicas against the reference; `transactions`: what was aborted in it, or is open;
3. `values.folded`: the first pass over the history; `clients`: how much the clients did, and whether that can be
   judged;
4. `values.compare`: the clients' acknowledged and polled values against the log;
5. `order.check`: each producer's order;
6. `clients.high_watermark_points`: how far partitions had come;
7. `findings.counted`, `findings.first_of_each_kind`: the verdict; `lost`: who still has the lost records;
   `explanations`: the controllers' decision behind each finding.

The driver gets sums by bucket where they differ, counts, and a bounded number of findings; records stay where they are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist import __version__, installed
from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs import Progress, preconditions
from tanist.spark.jobs.audit import clients, lost, transactions
from tanist.spark.jobs.audit import findings as audit_findings
from tanist.spark.jobs.audit import order as audit_order
from tanist.spark.jobs.audit import replicas as audit_replicas
from tanist.spark.jobs.audit import values as audit_values
from tanist.spark.jobs.audit.explanations import Explanations, explanations
from tanist.spark.jobs.audit.facts import partition_facts
from tanist.spark.jobs.audit.findings_table import FindingsTable, Run, nothing_found
from tanist.spark.jobs.audit.history import History, read_history
from tanist.spark.jobs.audit.logs import Known, Logs, SegmentLogs
from tanist.spark.jobs.audit.metadata import NOTHING, Metadata, read_metadata
from tanist.spark.jobs.audit.result import AuditResult
from tanist.spark.jobs.preconditions import NothingToJudge, Unfit

PLANS: Final = ("auto", "two-level", "flat")


def audit_folder(
    spark: SparkSession,
    folder: str | Path,
    histories: Sequence[str | Path] = (),
    *,
    topics: Sequence[str] = (),
    high_watermarks: Mapping[TopicPartition, int] | None = None,
    findings: FindingsTable | None = None,
    plan: str = "auto",
    progress: Progress = lambda _: None,
) -> AuditResult:
    """Of a cluster's data folder. Its nodes may run; the records that they write meanwhile are partly seen.

    `Unfit` if there is nothing to judge: no replica of a topic, or records of neither replicas nor clients.
    """
    preconditions.audit(folder, topics, histories)
    progress("looking for replicas and reading the metadata log")
    # Before the logs: nodes may run, and what a history has was in a log before.
    whole = read_history(spark, histories) if histories else None
    history = whole.of_topics(topics) if whole is not None and topics else whole
    try:
        logs = SegmentLogs(spark, folder, topics)
        known = logs.known()
        if high_watermarks is not None:
            known = replace(known, high_watermarks={**known.high_watermarks, **high_watermarks})
        return audit(
            logs, history, known=known, metadata=read_metadata(folder), findings=findings, data=str(folder), plan=plan,
            progress=progress,
        )  # fmt: skip
    finally:
        if whole is not None:  # else the next audit of this session would take it for the file as it is then
            whole.events.unpersist()


def audit(
    logs: Logs,
    history: History | None = None,
    *,
    known: Known,
    metadata: Metadata = NOTHING,
    findings: FindingsTable | None = None,
    data: str | None = None,
    plan: str = "auto",
    progress: Progress = lambda _: None,
) -> AuditResult:
    """Audit logs against each other, and against clients' histories.

    `findings` gets all that is found, as a run over `data`.
    """
    if plan not in PLANS:
        raise Unfit(f"the plan is one of {', '.join(PLANS)}, not {plan!r}")
    if findings is not None:
        findings.check()
    steps, frames, begun = _Steps(progress), _Frames(), datetime.now(UTC)
    result = AuditResult(known=known, metadata=metadata, has_history=history is not None)
    try:
        steps.begin("summing up every replica")
        # Of values, too, if there is a history: they are read and hashed where they lie.
        with_values = history is not None and plan != "flat"
        level_one = frames.keep(audit_replicas.buckets(logs, values=with_values))
        found = _judge_replicas(logs, level_one, plan, result, steps, frames)
        aborted = _judge_transactions(logs, level_one, result, steps, frames)
        if history is not None:
            found += _judge_clients(logs, history, level_one, aborted, plan, result, steps, frames)
        elif not result.records and not found:
            raise NothingToJudge("no replica has a record, and there is no history")
        rows = level_one.sparkSession.createDataFrame([], f"{audit_findings.SCHEMA}, explained string")
        if found:
            steps.begin("collecting findings")
            together = frames.keep(reduce(DataFrame.unionByName, found))
            rows = _explained(together, _verdict(logs, together, result, steps))
        if findings is not None:
            steps.begin("adding the findings to their table")
            run = Run(str(uuid4()), begun, installed.commit() or __version__, data)
            findings.append(nothing_found(rows) if result.clean else rows, run)
            result.run_id = run.run_id
    finally:
        frames.release()
    result.seconds = steps.end()
    return result


def _judge_replicas(
    logs: Logs, level_one: DataFrame, plan: str, result: AuditResult, steps: _Steps, frames: _Frames
) -> list[DataFrame]:
    """Replicas against each other: the findings."""
    result.epoch_ranges = audit_replicas.epoch_ranges(level_one)
    result.records = sum(held.records for held in result.epoch_ranges)
    result.facts = partition_facts(result.known, result.metadata, result.epoch_ranges)
    found = []
    holders = audit_replicas.damaged_holders(level_one)
    if holders:
        steps.begin("reading what is damaged")
        found.append(audit_replicas.damaged(logs, holders))
    if result.facts:
        steps.begin("comparing replicas")
        compared = audit_replicas.compare(
            logs, level_one, result.facts, plan=plan, keep=frames.keep, progress=steps.begin
        )
        result.plan["replicas"] = compared.plan
        if compared.findings is not None:
            found.append(compared.findings)
    return found


def _judge_transactions(
    logs: Logs, level_one: DataFrame, result: AuditResult, steps: _Steps, frames: _Frames
) -> DataFrame | None:
    """The transactions of the references: where their aborted records stand; None without transactions."""
    rows = level_one.where("transactional > 0").select("topic", "partition", "replica").distinct().collect()
    holders = {(topic, partition, each.reference) for (topic, partition), each in result.facts.items()}
    holders &= {(row.topic, row.partition, row.replica) for row in rows}
    if not holders:
        return None
    steps.begin("following the transactions")
    outcomes = frames.keep(transactions.outcomes(logs, holders))
    result.open_transactions = transactions.open_transactions(outcomes)
    return transactions.aborted_places(outcomes)


def _judge_clients(
    logs: Logs,
    history: History,
    level_one: DataFrame,
    aborted: DataFrame | None,
    plan: str,
    result: AuditResult,
    steps: _Steps,
    frames: _Frames,
) -> list[DataFrame]:
    """Clients against the log: the findings."""
    steps.begin("comparing the clients' history with the log")
    log_sums = audit_values.log_sums(level_one, result.facts)
    folded = audit_values.folded(
        history, result.begun, None if plan == "flat" else log_sums, plan=plan, keep=frames.keep
    )
    counts = clients.counted(folded.sums)
    result.sends, result.expired, result.polled = counts.sends, counts.expired, counts.polled
    clients.require_judgeable(counts, history, result.facts)
    steps.begin("looking into where the history differs from the log")
    compared = audit_values.compare(
        logs, history, log_sums, folded, result.facts, aborted, plan=plan, keep=frames.keep, progress=steps.begin
    )
    result.plan["values"] = compared.plan
    steps.begin("checking each producer's order")
    reordered = audit_order.check(logs, history, folded.blocks, compared.suspects, result.facts, keep=frames.keep)
    steps.begin("following the high watermark")
    result.high_watermarks = clients.high_watermark_points(history, folded.sums, counts, result.facts)
    return [each for each in (compared.findings, reordered) if each is not None]


def _verdict(logs: Logs, together: DataFrame, result: AuditResult, steps: _Steps) -> Explanations:
    """The counts and the first findings of all, explained; and the explanations, for the rest of them."""
    result.counts = audit_findings.counted(together)
    findings = audit_findings.first_of_each_kind(together)
    if any(lost.can_be_located(each) for each in findings):
        steps.begin("looking for what is lost in other replicas and in the salvage")
        findings = lost.located(together.sparkSession, logs, findings)
    concerned = {(topic, partition) for _, topic, partition in result.counts if partition is not None}
    explained = explanations(result.metadata, result.known.salvage, result.epoch_ranges, result.facts, concerned)
    result.findings = [replace(each, explained=explained.of(each)) for each in findings]
    return explained


def _explained(together: DataFrame, explained: Explanations) -> DataFrame:
    explain = F.udf(explained.explain, "string", useArrow=False)
    return together.withColumn("explained", explain("kind", "topic", "partition", "first_offset", "epochs", "replicas"))


class _Steps:
    """The steps of an audit: each is announced as it begins, and timed."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seconds: dict[str, float] = {}
        self._step: tuple[str, float] | None = None

    def begin(self, step: str) -> None:
        self.end()
        self._step = (step, time.monotonic())
        self._progress(step)

    def end(self) -> dict[str, float]:
        """The seconds that each step took."""
        if self._step is not None:
            name, began_s = self._step
            self._seconds[name] = round(time.monotonic() - began_s, 2)
            self._step = None
        return self._seconds


class _Frames:
    """The DataFrames that an audit looks at more than once."""

    def __init__(self) -> None:
        self._cached: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        self._cached.append(frame.cache())
        return self._cached[-1]

    def release(self) -> None:
        for frame in self._cached:
            frame.unpersist()
