"""The audit's report: one HTML file for somebody who was not there.

Owns what a partition's part of the page has, and its rows; audit.html has the order and the words: what was found, then
each partition that has something (its replicas, the way of its high watermark, its findings, what the controllers
decided), then the others in a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import OF_AUDITS, Anomaly
from tanist.lab.pages import templates
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.result import AuditResult
from tanist.spark.report import high_watermarks, replica_bars
from tanist.text import timestamp_text

PARTITIONS_MAX: Final = 24
FINDINGS_MAX: Final = 200
_CHANGES_MAX: Final = 60
_UNCLEAN: Final = Markup('{} <b class="bad">elected uncleanly</b>')


def write_page(path: Path, result: AuditResult, *, title: str) -> None:
    path.write_text(page(result, title=title), encoding="utf-8")


def page(result: AuditResult, *, title: str) -> str:
    """The whole file."""
    wrong = list(dict.fromkeys((topic, partition) for _, topic, partition in result.counts if partition is not None))
    shown = [place for place in wrong if place in result.facts]
    shown += [place for place in result.facts if place not in shown and replica_bars.saved_of(result, place)]
    elsewhere = [place for place in wrong if place not in result.facts]
    return templates.render(
        "spark/report/audit.html",
        title=f"Audit of {title}",
        result=result,
        kinds=list(_kinds(result)),
        lost=result.count(Anomaly.LOST_WRITE),
        open_transactions=[(str(each), each.records) for each in result.open_transactions[:FINDINGS_MAX]],
        marks=replica_bars.MARKS,
        partitions=[_partition(result, place) for place in shown[:PARTITIONS_MAX]],
        more=len(shown) - PARTITIONS_MAX,
        quiet=len(result.facts) - len(shown),
        elsewhere=[(_name(place), _findings(result, place)) for place in elsewhere[:PARTITIONS_MAX]],
    )  # fmt: skip


def _name(place: tuple[str, int | None]) -> str:
    return f"{place[0]}-{place[1]}"


def _kinds(result: AuditResult) -> Iterator[tuple[Any, ...]]:
    for kind in OF_AUDITS:
        if result.count(kind):
            yield kind.title, result.count(kind), kind.meaning, _where(result, kind)


def _where(result: AuditResult, kind: Anomaly) -> str:
    places = [_name((topic, partition)) for each, topic, partition in result.counts if each is kind]
    return ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")


def _partition(result: AuditResult, place: TopicPartition) -> dict[str, Any]:
    """What the template shows of one."""
    whole = replica_bars.whole(result, place)
    near = replica_bars.closer(result, place, whole)
    causes = [each.explained for each in _of(result, place) if each.explained]
    return {
        "name": _name(place),
        "causes": list(dict.fromkeys(causes)),
        "replicas": replica_bars.rows(result, place, whole),
        "near": near,
        "replicas_near": replica_bars.rows(result, place, near) if near is not None else (),
        "high_watermark": high_watermarks.row(result, place),
        "findings": _findings(result, place),
        "changes": list(_changes(result, place)),
        "saved": list(_saved(result, place)),
    }


def _of(result: AuditResult, place: tuple[str, int | None]) -> list[Finding]:
    return [each for each in result.findings if (each.topic, each.partition) == place]


def _findings(result: AuditResult, place: tuple[str, int | None]) -> list[tuple[Any, ...]]:
    return [
        (each.kind.title, _offsets(first, last), records, each.epochs, each.replicas, value, each.detail)
        for each, first, last, records, value in _alike(_of(result, place))[:FINDINGS_MAX]
    ]


def _offsets(first: int, last: int) -> str:
    return "" if first < 0 else f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _alike(findings: Sequence[Finding]) -> list[tuple[Finding, int, int, int, str]]:
    """Neighbouring records that have the same said of them are one line."""
    lines: list[tuple[Finding, int, int, int, str]] = []
    for each in findings:
        first = -1 if each.first_offset is None else each.first_offset
        last = first if each.last_offset is None else each.last_offset
        value = each.value or ""
        if lines:
            before, begun, ended, records, values = lines[-1]
            same = (before.kind, before.epochs, before.replicas, before.detail, before.process) == (
                each.kind, each.epochs, each.replicas, each.detail, each.process,
            )  # fmt: skip
            if same and first == ended + 1:
                both = values.split(" … ")[0] + " … " + value if values and value else values or value
                lines[-1] = (before, begun, last, records + each.records, both)
                continue
        lines.append((each, first, last, each.records, value))
    return lines


def _changes(result: AuditResult, place: TopicPartition) -> Iterator[tuple[Any, ...]]:
    for change in result.metadata.changes.get(place, ())[-_CHANGES_MAX:]:
        leader = "none" if change.leader < 0 else str(change.leader)
        shown = _UNCLEAN.format(leader) if change.unclean else leader
        when = timestamp_text(change.wall_ms)
        yield when, change.offset, change.leader_epoch, shown, change.isr, change.elr or "-"


def _saved(result: AuditResult, place: TopicPartition) -> Iterator[tuple[Any, ...]]:
    for each in replica_bars.saved_of(result, place):
        offsets = f"{each.from_offset:,} to {each.to_offset - 1:,}"
        epochs = [f"{epoch} from {start:,}" for epoch, start in each.epochs]
        yield timestamp_text(each.wall_ms), each.broker_id, offsets, epochs, each.why.value, each.entry_id
