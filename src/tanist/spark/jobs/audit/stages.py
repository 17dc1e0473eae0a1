"""The stages of an audit, whatever engine does the work. Owns their order, and what is decided between them. They are

1. sums of every replica's records, one row a bucket of offsets; `facts`: the reference of each partition, where logs
   begin, high watermarks;
2. replicas against the reference; what transactions have aborted in it, or is open;
3. how much the clients did, and whether that can be judged; their acknowledged and polled values against the log; each
   producer's order; how far partitions had come;
4. the verdict; `lost`: who still has the lost records; `explanations`: the controllers' decision behind each finding.

An engine gives sums, counts, and a bounded number of findings; records stay where they are. `rules` are those that
both engines run.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol
from uuid import uuid4

from tanist import __version__, installed
from tanist.client.topic_partition import TopicPartition
from tanist.log.names import parse_folder
from tanist.spark.jobs import Progress
from tanist.spark.jobs.audit import lost
from tanist.spark.jobs.audit.explanations import Explanations, explanations
from tanist.spark.jobs.audit.facts import EpochRange, Facts, partition_facts
from tanist.spark.jobs.audit.findings import Counts, Finding
from tanist.spark.jobs.audit.findings_table import FindingsTable, Run, Write
from tanist.spark.jobs.audit.log_files import Holder, Known, Stretch
from tanist.spark.jobs.audit.metadata import NOTHING, Metadata
from tanist.spark.jobs.audit.result import AuditResult, ClientCounts, HighWatermarkPoint, OpenTransaction
from tanist.spark.jobs.audit.rules import MOMENTS
from tanist.spark.jobs.preconditions import NothingToJudge, listed


class Engine(Protocol):
    """The work of one audit, a stage after the other. It keeps the findings of each."""

    has_history: bool

    def known(self) -> Known: ...

    def epoch_ranges(self) -> list[EpochRange]:
        """Reads all logs."""
        ...

    def damaged(self) -> list[Holder]:
        """The replicas that have damage."""
        ...

    def read_damage(self, where: Sequence[Holder]) -> None: ...

    def compare_replicas(self, facts: Facts, progress: Progress) -> str:
        """Gives its plan."""
        ...

    def transactional(self) -> set[Holder]:
        """The replicas that have records of transactions."""
        ...

    def transactions(self, where: Collection[Holder]) -> list[OpenTransaction]:
        """Follows those of these logs; aborted records are known from then on."""
        ...

    def count_clients(self, begun: Mapping[TopicPartition, int]) -> ClientCounts: ...

    def compare_values(self, facts: Facts, progress: Progress) -> str:
        """Gives its plan."""
        ...

    def check_order(self, facts: Facts) -> None: ...

    def moments(self, step_ns: int) -> list[tuple[str, int, int]]:
        """Place, moment, and the greatest offset that clients knew by then."""
        ...

    def counts(self) -> Counts: ...

    def first_findings(self) -> list[Finding]:
        """Of each kind, `findings.merged`."""
        ...

    def search(self, wanted: Sequence[Finding], near: Sequence[Stretch]) -> Iterable[lost.Copy]: ...

    def write(self, explained: Explanations) -> Write:
        """All findings."""
        ...

    def close(self) -> None: ...


def judged(
    engine: Engine,
    known: Known,
    metadata: Metadata = NOTHING,
    *,
    findings: FindingsTable | None = None,
    data: str | None = None,
    progress: Progress = lambda _: None,
) -> AuditResult:
    """What the engine finds; `findings` gets all of it, as a run over `data`. The engine is closed."""
    try:
        if findings is not None:
            findings.check()
        steps, begun = _Steps(progress), datetime.now(UTC)
        result = AuditResult(known=known, metadata=metadata, has_history=engine.has_history)
        _judge_replicas(engine, result, steps)
        if engine.has_history:
            _judge_clients(engine, result, steps)
        explained = _verdict(engine, result, steps)
        if not engine.has_history and not result.records and result.clean:
            raise NothingToJudge("no replica has a record, and there is no history")
        if findings is not None:
            steps.begin("adding the findings to their table")
            run = Run(str(uuid4()), begun, installed.commit() or __version__, data)
            findings.append(None if result.clean else engine.write(explained), run)
            result.run_id = run.run_id
    finally:
        engine.close()
    result.seconds = steps.end()
    return result


def _judge_replicas(engine: Engine, result: AuditResult, steps: _Steps) -> None:
    steps.begin("summing up every replica")
    result.epoch_ranges = engine.epoch_ranges()
    result.records = sum(held.records for held in result.epoch_ranges)
    result.facts = partition_facts(result.known, result.metadata, result.epoch_ranges)
    damaged = engine.damaged()
    if damaged:
        steps.begin("reading what is damaged")
        engine.read_damage(damaged)
    if result.facts:
        steps.begin("comparing replicas")
        result.plan["replicas"] = engine.compare_replicas(result.facts, steps.begin)
    holders = {(topic, partition, each.reference) for (topic, partition), each in result.facts.items()}
    holders &= engine.transactional()
    if holders:
        steps.begin("following the transactions")
        result.open_transactions = engine.transactions(holders)


def _judge_clients(engine: Engine, result: AuditResult, steps: _Steps) -> None:
    steps.begin("reading the clients' history")
    counts = engine.count_clients(result.begun)
    result.sends, result.expired, result.polled = counts.sends, counts.expired, counts.polled
    _require_judgeable(counts, result.facts)
    steps.begin("comparing the history with the log")
    result.plan["values"] = engine.compare_values(result.facts, steps.begin)
    steps.begin("checking each producer's order")
    engine.check_order(result.facts)
    steps.begin("following the high watermark")
    result.high_watermarks = _high_watermarks(engine, counts, result.facts)


def _require_judgeable(counts: ClientCounts, facts: Facts) -> None:
    """`NothingToJudge` if the clients did nothing, or did all of it on other topics."""
    here = listed(sorted({topic for topic, _ in facts}))
    if not counts.partitions and not counts.unplaced:
        raise NothingToJudge(f"the history has no acknowledged send to {here}, and no record polled from there")
    if counts.partitions and counts.partitions.isdisjoint(f"{topic}-{partition}" for topic, partition in facts):
        named = listed(sorted(counts.partitions))
        raise NothingToJudge(f"the history speaks of {named}, and the replicas are of {here}")


def _high_watermarks(engine: Engine, counts: ClientCounts, facts: Facts) -> list[HighWatermarkPoint]:
    """How far each partition had come by when, as clients knew it."""
    if counts.first_ns is None or counts.last_ns is None:
        return []
    step_ns = max(1, (counts.last_ns - counts.first_ns) // MOMENTS)
    points = []
    for name, at_ns, offset in engine.moments(step_ns):
        place = parse_folder(name)
        if place is not None and place in facts:
            points.append(HighWatermarkPoint(*place, at_ns, offset))
    return points


def _verdict(engine: Engine, result: AuditResult, steps: _Steps) -> Explanations:
    """The counts and the first findings of all, explained; and the explanations, for the rest of them."""
    steps.begin("collecting findings")
    result.counts = engine.counts()
    found = [] if result.clean else engine.first_findings()
    if any(lost.can_be_located(each) for each in found):
        steps.begin("looking for what is lost in other replicas and in the salvage")
        found = lost.located(found, engine.search)
    concerned = {(topic, partition) for _, topic, partition in result.counts if partition is not None}
    explained = explanations(result.metadata, result.known.salvage, result.epoch_ranges, result.facts, concerned)
    result.findings = [replace(each, explained=explained.of(each)) for each in found]
    return explained


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
