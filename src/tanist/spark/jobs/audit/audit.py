"""The audit: what a fault lost, doubled, disordered or left different, out of replicas' logs and clients' histories.

`audit(logs, history, ...)` is the whole of it over DataFrames; `audit_folder` reads a cluster's data folder. Owns the
order of the work and the choice between its two plans. The driver gets sums by bucket where they differ, counts, and a
bounded number of findings; records stay where they are.

The truth of a partition is the log of its leader, by the metadata log; without that, of the replica whose log ends in
the greatest epoch, at the greatest offset.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tanist.log.names import parse_folder
from tanist.spark.jobs import preconditions
from tanist.spark.jobs.audit import order as audit_order
from tanist.spark.jobs.audit import replicas as audit_replicas
from tanist.spark.jobs.audit import values as audit_values
from tanist.spark.jobs.audit.findings import FINDINGS_MAX, Finding, Kind, finding_of, merged
from tanist.spark.jobs.audit.history import History, read_history
from tanist.spark.jobs.audit.logs import Known, Logs, Place, SegmentLogs, Stretch
from tanist.spark.jobs.audit.metadata import NOTHING, Metadata, read_metadata
from tanist.spark.jobs.audit.replicas import PartitionFacts, Rail
from tanist.spark.jobs.preconditions import NothingToJudge, Unfit, listed

PLANS: Final = ("auto", "two-level", "flat")
_EACH_MOMENT_MAX: Final = 2_000_000
_MOMENTS: Final = 200
"""In how many steps the way of the high watermark is told."""
_LOST_STRETCHES_MAX: Final = 10_000

Progress = Callable[[str], None]
"""Is told what is being done."""


@dataclass(frozen=True, slots=True)
class HighWatermarkPoint:
    """What clients had been told up to a moment: the high watermark was at least one above."""

    topic: str
    partition: int
    at_ns: int
    offset: int


@dataclass(slots=True)
class AuditResult:
    """What was found. `findings` are the first of each kind; `counts` are of all."""

    counts: dict[tuple[Kind, str, int | None], int] = field(default_factory=dict)
    """By kind, topic and partition, in records or offsets."""
    findings: list[Finding] = field(default_factory=list)
    rails: list[Rail] = field(default_factory=list)
    facts: dict[Place, PartitionFacts] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    metadata: Metadata = NOTHING
    high_watermarks: list[HighWatermarkPoint] = field(default_factory=list)
    records: int = 0
    """In all replicas."""
    heard: bool = False
    """Whether there was a history: without one, replicas that agree may all have lost the same."""
    sends: int = 0
    expired: int = 0
    """Of those, the ones from before the log's start: retention or a deletion took them, and nobody judges them."""
    polled: int = 0
    plan: dict[str, str] = field(default_factory=dict)
    """Which plan each part took, and why."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        return not self.counts

    @property
    def replicas(self) -> int:
        """How many there are, with records or without."""
        known = {(*place, replica) for place, replicas in self.known.replicas.items() for replica in replicas}
        return len(known | {(rail.topic, rail.partition, rail.replica) for rail in self.rails})

    @property
    def begun(self) -> dict[Place, int]:
        """Partitions whose logs begin above offset 0, and where."""
        return {place: facts.start for place, facts in self.facts.items() if facts.start > 0}

    def count(self, kind: Kind) -> int:
        return sum(count for (each, _, _), count in self.counts.items() if each is kind)

    def told(self, kind: Kind) -> list[Finding]:
        return [each for each in self.findings if each.kind is kind]


def audit_folder(
    spark: SparkSession,
    folder: str | Path,
    histories: Sequence[str | Path] = (),
    *,
    topics: Sequence[str] = (),
    high_watermarks: Mapping[Place, int] | None = None,
    output: str | Path | None = None,
    plan: str = "auto",
    progress: Progress = lambda _: None,
) -> AuditResult:
    """Of a cluster's data folder. Its nodes may run; what they write meanwhile is partly seen.

    `Unfit` if there is nothing to judge: no replica of a topic, or records of neither replicas nor clients.
    """
    preconditions.audit(folder, topics, histories)
    progress("looking for replicas and reading the metadata log")
    logs = SegmentLogs(spark, folder, topics)
    known = logs.known()
    if high_watermarks is not None:
        known = replace(known, high_watermarks={**known.high_watermarks, **high_watermarks})
    history = read_history(spark, histories) if histories else None
    if history is not None and topics:
        history = history.of_topics(topics)
    return audit(
        logs, history, known=known, metadata=read_metadata(folder), output=output, plan=plan, progress=progress
    )


def audit(
    logs: Logs,
    history: History | None = None,
    *,
    known: Known,
    metadata: Metadata = NOTHING,
    output: str | Path | None = None,
    plan: str = "auto",
    progress: Progress = lambda _: None,
) -> AuditResult:
    """Audit logs against each other, and against what clients were told. `output`: a folder for the Parquet result."""
    if plan not in PLANS:
        raise Unfit(f"the plan is one of {', '.join(PLANS)}, not {plan!r}")
    work = _Audit(logs, history, known, metadata, plan, progress)
    return work.run(output)


class _Audit:
    def __init__(
        self, logs: Logs, history: History | None, known: Known, metadata: Metadata, plan: str, progress: Progress
    ) -> None:
        self._logs = logs
        self._history = history
        self._known = known
        self._metadata = metadata
        self._plan = plan
        self._progress = progress
        self._result = AuditResult(known=known, metadata=metadata, heard=history is not None)
        self._step: tuple[str, float] | None = None
        self._cached: list[DataFrame] = []

    def run(self, output: str | Path | None) -> AuditResult:
        try:
            found, level_one = self._replicas()
            if self._history is not None:
                found += self._values(self._history, level_one)
            elif not self._result.records and not found:
                raise NothingToJudge("no replica has a record, and there is no history")
            self._collect(found, output)
        finally:
            for frame in self._cached:
                frame.unpersist()
        self._begin("")
        return self._result

    def _begin(self, step: str) -> None:
        now_s = time.monotonic()
        if self._step is not None:
            name, began_s = self._step
            self._result.seconds[name] = round(now_s - began_s, 2)
        self._step = (step, now_s)
        if step:
            self._progress(step)

    # -- replicas against each other

    def _replicas(self) -> tuple[list[DataFrame], DataFrame]:
        """The findings, and level one."""
        result = self._result
        self._begin("summing up every replica")
        # Of values, too, if there is something to compare them with: they are read and hashed where they lie.
        values = self._history is not None and self._plan != "flat"
        level_one = audit_replicas.buckets(self._logs, values=values).cache()
        self._cached.append(level_one)
        result.rails = audit_replicas.rails(level_one)
        result.records = sum(rail.records for rail in result.rails)
        result.facts = self._facts()
        found = self._damaged(level_one)
        if not result.facts:
            return found, level_one
        self._begin("comparing replicas")
        spark = level_one.sparkSession
        wanted = audit_replicas.expected(spark, result.facts)
        differing = audit_replicas.differing(level_one, wanted).cache()
        self._cached.append(differing)
        count, total = differing.count(), max(audit_replicas.buckets_of(result.facts), 1)
        again: list[Stretch] | None = None
        flat = self._plan == "flat" or (self._plan == "auto" and count > audit_replicas.FLAT_SHARE * total)
        if not flat:
            again = audit_replicas.stretches_of(differing)
        result.plan["replicas"] = f"{'flat' if again is None else 'two-level'}: {count} of {total} buckets differ"
        if count:
            self._begin(f"looking into {count} of {total} stretches of {audit_replicas.BUCKET_OFFSETS} offsets")
            there = audit_replicas.held(self._logs, differing, again)
            if again is not None:
                # Little, and looked at twice: for what differs and for what is missing.
                there = there.cache()
                self._cached.append(there)
            found.append(audit_replicas.compared(spark, result.facts, there, differing))
        return found, level_one

    def _facts(self) -> dict[Place, PartitionFacts]:
        by_place: dict[Place, list[Rail]] = {place: [] for place in self._known.replicas}
        for rail in self._result.rails:
            by_place.setdefault((rail.topic, rail.partition), []).append(rail)
        return {place: self._facts_of(place, rails) for place, rails in sorted(by_place.items())}

    def _facts_of(self, place: Place, rails: Sequence[Rail]) -> PartitionFacts:
        """A log without a record counts as any other: a leader may have lost all that it had."""
        holders = {rail.replica for rail in rails} | set(self._known.replicas.get(place, ()))
        leader = self._metadata.leader(place)
        if leader is not None and leader in holders:
            reference = leader
        else:
            reference = _most_advanced(rails) if rails else min(holders)
        judged = place[0] not in self._metadata.compacted
        start = self._start(place, reference, rails, judged=judged)
        end = max((rail.last_offset + 1 for rail in rails if rail.replica == reference), default=start)
        replicas = self._metadata.replicas(place) or self._known.replicas.get(place, ()) or tuple(sorted(holders))
        return PartitionFacts(
            replicas, reference, start, self._known.high_watermarks.get(place, end),
            {each: self._start(place, each, rails, judged=judged, otherwise=start) for each in replicas}, judged,
        )  # fmt: skip

    def _start(self, place: Place, replica: int, rails: Sequence[Rail], *, judged: bool, otherwise: int = 0) -> int:
        """Where the log begins, by its files; in a compacted one, and where no file is known, at its first record."""
        held = min((rail.first_offset for rail in rails if rail.replica == replica), default=None)
        known = self._known.starts.get((*place, replica))
        if held is not None and (known is None or not judged):
            return held
        return otherwise if known is None else known

    def _damaged(self, level_one: DataFrame) -> list[DataFrame]:
        rows = level_one.where("damages > 0").select("topic", "partition", "replica").distinct().collect()
        if not rows:
            return []
        self._begin("reading what is damaged")
        return [audit_replicas.damaged(self._logs, [(row.topic, row.partition, row.replica) for row in rows])]

    # -- clients against the log

    def _values(self, history: History, level_one: DataFrame) -> list[DataFrame]:
        result, facts = self._result, self._result.facts
        self._begin("comparing what clients were told with the log")
        sums = audit_values.summed(history, result.begun).cache()
        self._cached.append(sums)
        self._count_clients(history, sums)
        suspects = audit_values.suspects(self._logs, history, level_one, sums, facts, plan=self._plan)
        values = suspects.values.cache()
        self._cached.append(values)
        count = values.count()
        result.plan["values"] = f"{suspects.level}; {count} values looked at one by one"
        known = None
        found = []
        if count:
            self._begin(f"putting together what is known of {count} values")
            log = audit_values.reference(self._logs, facts)
            known = audit_values.evidence(log, history, values).cache()
            self._cached.append(known)
            known.count()
            found.append(audit_values.judged(values.sparkSession, known, facts))
        self._begin("checking each producer's order")
        sends = audit_order.placed(history, known)
        producers = audit_order.suspected(sends).cache()
        self._cached.append(producers)
        if producers.count():
            reordered = audit_order.reordered(sends, producers).cache()
            self._cached.append(reordered)
            if reordered.count():
                log = audit_values.reference(self._logs, facts, audit_order.places(reordered))
                found.append(audit_order.findings(reordered, log, history))
        self._begin("following the high watermark")
        self._follow(history, sums)
        return found

    def _count_clients(self, history: History, sums: DataFrame) -> None:
        """How much clients did. `NothingToJudge` if that was nothing, or all of it on other topics."""
        result = self._result
        counted = sums.groupBy("place").agg(
            F.sum("acknowledged").alias("sends"), F.sum("expired").alias("expired"),
            F.sum(F.expr("if(reader is null, 0, records)")).alias("polls"),
        ).collect()  # fmt: skip
        result.sends, result.polled = sum(row.sends for row in counted), sum(row.polls for row in counted)
        result.expired = sum(row.expired for row in counted)
        here = listed(sorted({topic for topic, _ in result.facts}))
        if not counted and not history.sends.where("outcome = 'ok'").limit(1).count():
            raise NothingToJudge(f"the history has no acknowledged send to {here}, and no record polled from there")
        places = {row.place for row in counted}
        if places and places.isdisjoint(f"{topic}-{partition}" for topic, partition in result.facts):
            raise NothingToJudge(f"the history speaks of {listed(sorted(places))}, and the replicas are of {here}")

    def _follow(self, history: History, sums: DataFrame) -> None:
        """How far each partition had come by when."""
        result = self._result
        moments = sums.select("place", "at_ns", "offset")
        if result.sends + result.polled <= _EACH_MOMENT_MAX:
            # By the buckets alone a small history would be a single point.
            told = audit_values.told(history)
            moments = told.select("place", F.col("ended_ns").alias("at_ns"), "offset")
        moments = moments.where("at_ns is not null")
        span = moments.agg(F.min("at_ns").alias("first"), F.max("at_ns").alias("last")).first()
        step = 1 if span is None or span["first"] is None else max(1, (span["last"] - span["first"]) // _MOMENTS)
        points = (
            moments.groupBy("place", F.expr(f"at_ns div {step} * {step}").alias("at_ns"))
            .agg(F.max("offset").alias("offset"))
            .orderBy("place", "at_ns")
            .collect()
        )
        for row in points:
            place = parse_folder(row.place)
            if place is not None and place in result.facts:
                result.high_watermarks.append(HighWatermarkPoint(*place, row.at_ns, row.offset))

    # -- findings

    def _collect(self, frames: list[DataFrame], output: str | Path | None) -> None:
        result = self._result
        if not frames:
            return
        self._begin("collecting findings")
        together = reduce(DataFrame.unionByName, frames).cache()
        self._cached.append(together)
        counted = together.groupBy("kind", "topic", "partition").agg(F.sum("records").alias("records")).collect()
        order = list(Kind)
        for row in sorted(counted, key=lambda row: (order.index(Kind(row.kind)), row.topic, row.partition or 0)):
            result.counts[Kind(row.kind), row.topic, row.partition] = row.records
        first = Window.partitionBy("kind").orderBy("topic", "partition", "first_offset")
        numbered = together.withColumn("_number", F.row_number().over(first))
        rows = numbered.where(F.col("_number") <= FINDINGS_MAX).drop("_number").collect()
        findings = merged(finding_of(row.asDict()) for row in rows)
        findings = self._where_lost_records_are(findings)
        result.findings = [replace(each, explained=self._explained(each)) for each in findings]
        if output is not None:
            self._begin("writing the result")
            explained = F.udf(self._explanations(), "string", useArrow=False)
            told = together.withColumn(
                "explained", explained("kind", "topic", "partition", "first_offset", "epochs", "replicas")
            )
            told.write.mode("overwrite").parquet(str(output))

    def _where_lost_records_are(self, findings: list[Finding]) -> list[Finding]:
        """Which replicas, or whose salvage, still hold what is lost: by offset and value."""
        lost = [each for each in findings if each.kind is Kind.LOST and each.first_offset is not None]
        if not lost:
            return findings
        self._begin("looking for what is lost in other replicas and in the salvage")
        stretches = [
            Stretch(each.topic, each.partition, each.first_offset, each.first_offset)
            for each in lost[:_LOST_STRETCHES_MAX]
            if each.first_offset is not None
        ]
        names = ("topic", "partition", "replica", "leader_epoch", "offset", "value", "salvage_id", "damage")
        spark = self._cached[0].sparkSession
        wanted = spark.createDataFrame(
            [(each.topic, each.partition, each.first_offset, each.value) for each in lost],
            "topic string, partition int, offset bigint, lost string",
        )
        wanted = wanted.withColumn("hash", F.xxhash64("lost")).drop("lost")
        places: dict[tuple[str, int, int], list[Any]] = {}
        for rows in (self._logs.rows(names, near=stretches), self._logs.salvaged(names, stretches)):
            if rows is None:
                continue
            sound = rows.where("damage is null").withColumn("hash", F.xxhash64("value"))
            for row in sound.join(F.broadcast(wanted), ["topic", "partition", "offset", "hash"], "left_semi").collect():
                places.setdefault((row.topic, row.partition, row.offset), []).append(row)
        told = []
        for each in findings:
            found = places.get((each.topic, each.partition, each.first_offset or -1), [])
            if each.kind is Kind.LOST and found:
                each = replace(
                    each,
                    epochs=tuple(sorted({row.leader_epoch for row in found})),
                    replicas=tuple(sorted({row.replica for row in found if row.replica is not None})),
                    detail=f"{each.detail}; {_holders(found)}",
                )
            told.append(each)
        return told

    def _explained(self, finding: Finding) -> str | None:
        explanations = self._explanations()
        return explanations(
            finding.kind.value, finding.topic, finding.partition, finding.first_offset, list(finding.epochs),
            list(finding.replicas),
        )  # fmt: skip

    def _explanations(
        self,
    ) -> Callable[[str, str, int | None, int | None, list[int] | None, list[int] | None], str | None]:
        """What explains a finding, as a function that workers can have: only of the partitions that have findings."""
        concerned = {(topic, partition) for _, topic, partition in self._result.counts if partition is not None}
        metadata = replace(
            self._metadata, changes={place: self._metadata.changes.get(place, ()) for place in concerned}
        )
        dropped_for: dict[Place, list[tuple[int, int, int]]] = {}
        for entry in self._known.salvage:
            place = entry.topic, entry.partition
            dropped_for.setdefault(place, []).append((entry.from_offset, entry.to_offset, entry.leader_epoch))
        epochs = _EpochsOfReference(self._result.rails, self._result.facts)

        def explain(
            kind: str,
            topic: str,
            partition: int | None,
            offset: int | None,
            of: list[int] | None,
            who: list[int] | None,
        ) -> str | None:
            if partition is None:
                return None
            place = (topic, partition)
            if kind == Kind.MISSING.value:
                return metadata.explain(place, None, who or ())
            if kind == Kind.LOST.value and offset is not None:
                # The leader for which a replica dropped the record is known, if the record was saved.
                dropped = [since for first, end, since in dropped_for.get(place, ()) if first <= offset < end]
                told = metadata.of_epoch(place, max(dropped)) if dropped else None
                if told is not None:
                    return told
            epoch = min(of) if of and kind != Kind.READ_LOST.value else epochs.before(place, offset)
            return metadata.explain(place, epoch, who or ())

        return explain


def _most_advanced(rails: Sequence[Rail]) -> int:
    """The replica whose last record has the greatest epoch, then the greatest offset."""
    ends: dict[int, Rail] = {}
    for rail in rails:
        if rail.replica not in ends or rail.last_offset > ends[rail.replica].last_offset:
            ends[rail.replica] = rail
    return max(ends.values(), key=lambda rail: (rail.epoch, rail.last_offset, -rail.replica)).replica


class _EpochsOfReference:
    """Which epoch the reference had when an offset was written: that of the last record before it."""

    def __init__(self, rails: Sequence[Rail], facts: Mapping[Place, PartitionFacts]) -> None:
        self._ends: dict[Place, list[tuple[int, int]]] = {}
        for rail in rails:
            place = (rail.topic, rail.partition)
            if place in facts and rail.replica == facts[place].reference:
                self._ends.setdefault(place, []).append((rail.first_offset, rail.epoch))

    def before(self, place: Place, offset: int | None) -> int | None:
        if offset is None:
            return None
        epochs = [epoch for first, epoch in self._ends.get(place, ()) if first < offset]
        return max(epochs, default=-1)


def _holders(rows: Sequence[Any]) -> str:
    replicas = sorted({row.replica for row in rows if row.salvage_id is None and row.replica is not None})
    salvages = sorted({(row.replica, row.salvage_id) for row in rows if row.salvage_id is not None})
    told = []
    if replicas:
        told.append(f"replica {', '.join(map(str, replicas))} still has it")
    if salvages:
        told.append("saved by " + ", ".join(f"broker {replica} ({entry})" for replica, entry in salvages))
    return "; ".join(told)
