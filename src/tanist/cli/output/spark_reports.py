"""The results of the pipeline's jobs, in words and tables for people, and as JSON for programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tanist.cli.output.tables import print_table
from tanist.text import counted

if TYPE_CHECKING:
    from tanist.spark.jobs.audit.result import AuditResult, OpenTransaction
    from tanist.spark.jobs.ingest import IngestResult
    from tanist.spark.jobs.merge_back import MergeResult
    from tanist.spark.jobs.seeds.summary import Summary
    from tanist.spark.jobs.seeds.table import SeedTable
    from tanist.spark.worker_archive import WorkerArchive

_VERDICTS = ("lost", "re-sent", "kept", "superseded", "aborted", "undecided", "expired")
many = partial(counted, separator=",")
_SHOWN_MAX = 10
"""Findings of each kind that are printed; the Parquet result has all."""


def echo(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def ingest_line(result: IngestResult) -> str:
    known = f"; {many(result.known, 'batch')} were there already" if result.known else ""
    return f"{many(result.records, 'record')} in {many(result.batches, 'batch')}{known}"


def tell_seeds(table: SeedTable, found: Sequence[Summary]) -> None:
    """What the table says, for people."""
    print_table(
        ("KIND", "SEEDS", "VIOLATIONS", "SITUATIONS", "EVENTS/S", "CORE HOURS FOR 1,000"),
        [
            (
                each.lot.name,
                f"{each.seeds:,}",
                each.violating,
                f"{each.situations} of {each.expected}" if each.expected else None,
                f"{each.events_per_s:,.0f}",
                f"{each.core_hours:.2f}",
            )
            for each in found
        ],
    )
    settings = [each for each in found if not each.expected]
    if settings:
        click.echo()
        print_table(
            ("SETTING", "RUNS", "LOST RECORDS IN", "UNAVAILABLE IN", "TIME UNAVAILABLE", "SEEDS THAT LOST"),
            [
                (
                    each.lot.name,
                    each.seeds,
                    each.loss,
                    each.outage,
                    f"{100 * each.outage_share:.1f} %",
                    ", ".join(map(str, each.losing_seeds)) or None,
                )
                for each in settings
            ],
        )
    for each in found:
        for violated in each.violations:
            click.echo(
                f"{each.lot.name}: {many(violated.seeds, 'seed')} violated {violated.property_id}, first "
                f"{violated.first_seed}: {violated.text}",
                err=True,
            )
    echo(f"tanist lab replay {path}" for each in found for path in each.scenarios(table))


def audit_lines(result: AuditResult) -> list[str]:
    """The summary for people."""
    clients = f"{many(result.sends, 'acknowledged send')}, {many(result.polled, 'record')} polled"
    lines = [
        f"{many(result.records, 'record')} in {many(result.replicas, 'replica')} of "
        f"{many(len(result.facts), 'partition')}; {clients if result.has_history else 'no history of clients'}"
    ]
    if result.begun:
        lines.append(expired_line(result))
    counts: dict[Any, int] = {}
    for (kind, _, _), count in result.counts.items():
        counts[kind] = counts.get(kind, 0) + count
    for kind, count in counts.items():
        lines += ["", f"{kind.title}: {count:,}, {kind.meaning}"]
        found = result.findings_of(kind)
        for each in _runs_of(found)[:_SHOWN_MAX]:
            lines.append(f"  {each}")
        if len(found) > _SHOWN_MAX and len(_runs_of(found)) > _SHOWN_MAX:
            lines.append(f"  and {len(_runs_of(found)) - _SHOWN_MAX} more like these")
        for explained in dict.fromkeys(each.explained for each in found if each.explained):
            lines.append(f"  because of {explained}")
    if result.open_transactions:
        lines += ["", *_open_lines(result.open_transactions)]
    kinds = ", ".join(kind.title for kind in counts)
    lines += ["", _clean(result) if result.clean else f"{many(len(counts), 'kind')} of findings: {kinds}"]
    return lines


def _open_lines(found: Sequence[OpenTransaction]) -> list[str]:
    records = many(sum(each.records for each in found), "record")
    lines = [f"open transactions: {len(found)}, with {records} that readers of committed records do not get yet"]
    lines += [f"  {each}" for each in found[:_SHOWN_MAX]]
    return lines + [f"  and {len(found) - _SHOWN_MAX} more like these"] * (len(found) > _SHOWN_MAX)


def _clean(result: AuditResult) -> str:
    return "nothing is wrong" if result.has_history else "the replicas agree; to find lost records, add --history"


def expired_line(result: AuditResult) -> str:
    """The records that cannot be judged any more: retention, or a deletion, has moved the log's start."""
    (topic, partition), start = max(result.begun.items(), key=lambda item: item[1])
    more = "" if len(result.begun) == 1 else f", and {many(len(result.begun) - 1, 'other partition')} likewise"
    sends = f"; {many(result.expired, 'acknowledged send')} from before are not judged" if result.expired else ""
    return f"{topic}-{partition} begins at offset {start:,}, for older records have expired{more}{sends}"


def _runs_of(findings: list[Any]) -> list[str]:
    """Findings in words; neighbouring ones that say the same are one line."""
    lines: list[tuple[Any, ...]] = []
    for each in findings:
        key = (each.topic, each.partition, each.kind, each.replicas, each.epochs, each.detail)
        last = lines[-1] if lines else None
        if last is not None and last[0] == key and each.first_offset is not None and last[2] + 1 == each.first_offset:
            lines[-1] = (key, last[1], each.last_offset or each.first_offset, last[3] + each.records, last[4])
        else:
            first = -1 if each.first_offset is None else each.first_offset
            lines.append(
                (key, first, first if each.last_offset is None else each.last_offset, each.records, each.value)
            )
    texts = []
    for (topic, partition, _, replicas, epochs, detail), first, last, records, value in lines:
        where = "" if first < 0 else f" offset {first}" if first == last else f" offsets {first}..{last}"
        epoch = f", epoch {', '.join(map(str, epochs))}" if epochs else ""
        who = f", replica {', '.join(map(str, replicas))}" if replicas else ""
        what = f", {value}" if value is not None and records == 1 else f", {records} records"
        texts.append(f"{topic}-{partition}{where}{epoch}{who}{what}: {detail}")
    return texts


def audit_json(result: AuditResult) -> dict[str, Any]:
    return {
        "records": result.records,
        "acknowledged": result.sends,
        "expired": result.expired,
        "polled": result.polled,
        "counts": [
            {"kind": kind.value, "topic": topic, "partition": partition, "count": count}
            for (kind, topic, partition), count in result.counts.items()
        ],
        "findings": [each.as_json() for each in result.findings],
        "open_transactions": [each.as_json() for each in result.open_transactions],
        "run_id": result.run_id,
        "plan": result.plan,
        "seconds": result.seconds,
    }


def tell_merge(result: MergeResult) -> None:
    """The summary for people."""
    print_table(
        ("PARTITION", "LOST", "RE-SENT", "KEPT", "SUPERSEDED", "ABORTED", "UNDECIDED", "EXPIRED", "RESTORED"),
        [
            (
                f"{each.topic}-{each.partition}",
                *(each.verdicts.get(name, 0) for name in _VERDICTS),
                each.restored if result.applied else "-",
            )
            for each in result.places
        ],
    )
    lines = []
    if result.left_out:
        lines.append(f"without {many(result.left_out, 'entry')} of which most records will have expired")
    if not result.applied and result.count("lost"):
        lines.append(f"a dry run: --apply puts {many(result.count('lost'), 'lost record')} back")
    echo(lines + [f"not done: {problem}" for problem in result.problems])


def tell_package(archive: WorkerArchive, python: str, machine: str) -> None:
    """What it has, what a worker needs beside it, and the options of a job."""
    conf = " \\\n".join(f"    --conf {shlex.quote(f'{name}={value}')}" for name, value in archive.conf.items())
    echo(
        (
            f"{archive.path}: {many(len(archive.packages), 'package')}, {archive.size_bytes / 1e6:.0f} MB",
            f"workers need {python} on {machine}, and Spark. A job gets it by",
            f"  PYSPARK_PYTHON={python} tanist spark ... --master spark://HOST:7077 \\",
            conf,
        )
    )
