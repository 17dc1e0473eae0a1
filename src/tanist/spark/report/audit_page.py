"""The audit's report: one HTML file for somebody who was not there.

Owns the order of things: what was found, then each partition that has something (its replicas, the way
of its high watermark, its findings, what the controllers decided), then the others in a line. No script, no font and no
picture from elsewhere; everything that came from a cluster is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Final

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import OF_AUDITS, Anomaly
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.result import AuditResult
from tanist.spark.report import high_watermarks, replica_bars
from tanist.spark.report import page as html
from tanist.text import counted, timestamp_text

PARTITIONS_MAX: Final = 24
FINDINGS_MAX: Final = 200
_CHANGES_MAX: Final = 60

many = partial(counted, separator=",")


def write_page(path: Path, result: AuditResult, *, title: str) -> None:
    path.write_text(page(result, title=title), encoding="utf-8")


def page(result: AuditResult, *, title: str) -> str:
    """The whole file."""
    return html.page(f"Audit of {title}", [*_head(result, title), *_partitions(result), *_foot(result)])


def _head(result: AuditResult, title: str) -> Iterable[str]:
    yield f"<h1>Audit of {escape(title)}</h1>"
    clients = f"{many(result.sends, 'acknowledged send')} and {many(result.polled, 'polled record')}"
    yield (
        f'<p class="quiet">{many(result.records, "record")} in {many(result.replicas, "replica")} of '
        f"{many(len(result.facts), 'partition')}, compared with each other"
        f"{f', and with {clients}' if result.has_history else '. There was no history of clients'}.</p>"
    )
    if result.begun:
        sends = f": {many(result.expired, 'acknowledged send')} from there are not judged" if result.expired else ""
        yield (
            f'<p class="quiet">{many(len(result.begun), "partition")} '
            f"{'begins' if len(result.begun) == 1 else 'begin'} above offset 0, for older records have expired{sends}."
            "</p>"
        )
    kinds = [kind for kind in OF_AUDITS if result.count(kind)]
    if not kinds and result.has_history:
        yield '<p class="verdict good">Nothing is wrong.</p>'
    elif not kinds:
        yield '<p class="verdict good">The replicas agree.</p><p>Lost records can be found only with a history.</p>'
    else:
        yield f'<p class="verdict bad">{_verdict(result, kinds)}</p>'
        rows = [
            (f"<b>{kind.title}</b>", f"{result.count(kind):,}", escape(kind.meaning), escape(_where(result, kind)))
            for kind in kinds
        ]
        yield html.table(("What", "#How many", "Meaning", "Where"), rows)
    if result.open_transactions:
        yield "<h3>Open transactions</h3>"
        yield "<p>Readers of committed records do not get their records yet.</p>"
        yield html.table(
            ("Transaction", "#Records"),
            [(escape(str(each)), f"{each.records:,}") for each in result.open_transactions[:FINDINGS_MAX]],
        )


def _verdict(result: AuditResult, kinds: Sequence[Anomaly]) -> str:
    lost = result.count(Anomaly.LOST_WRITE)
    if lost:
        return f"{many(lost, 'acknowledged record')} {'is' if lost == 1 else 'are'} lost."
    summary = f"{many(len(kinds), 'kind')} of findings"
    return f"{summary}; no acknowledged record is lost." if result.has_history else f"{summary}."


def _where(result: AuditResult, kind: Anomaly) -> str:
    places = [f"{topic}-{partition}" for each, topic, partition in result.counts if each is kind]
    return ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")


def _partitions(result: AuditResult) -> Iterable[str]:
    wrong = list(dict.fromkeys((topic, partition) for _, topic, partition in result.counts if partition is not None))
    shown = [place for place in wrong if place in result.facts]
    saved = [place for place in result.facts if place not in shown and replica_bars.saved_of(result, place)]
    drawn = "\n".join(part for place in (shown + saved)[:PARTITIONS_MAX] for part in _partition(result, place))
    yield replica_bars.legend(drawn)
    yield drawn
    more = len(shown) + len(saved) - PARTITIONS_MAX
    if more > 0:
        yield f'<p class="quiet">{many(more, "partition")} more: see the Parquet result.</p>'
    quiet = len(result.facts) - len(shown) - len(saved)
    if quiet:
        yield (
            f'<p class="quiet">{many(quiet, "partition")} with nothing to show: '
            f"{'the' if quiet == 1 else 'their'} replicas agree.</p>"
        )
    elsewhere = [place for place in wrong if place not in result.facts]
    for place in elsewhere[:PARTITIONS_MAX]:
        yield f"<h2>{escape(f'{place[0]}-{place[1]}')}</h2><p>No replica of this partition is here.</p>"
        yield _findings([each for each in result.findings if (each.topic, each.partition) == place])


def _partition(result: AuditResult, place: TopicPartition) -> Iterable[str]:
    name = f"{place[0]}-{place[1]}"
    yield f"<h2>{escape(name)}</h2>"
    found = [each for each in result.findings if (each.topic, each.partition) == place]
    causes = dict.fromkeys(each.explained for each in found if each.explained)
    for cause in causes:
        yield f"<p>By the metadata log: {escape(cause)}.</p>"
    seen = replica_bars.whole(result, place)
    yield "<h3>Who holds what</h3>"
    yield replica_bars.picture(result, place, seen, f"The replicas of {name}")
    near = replica_bars.closer(result, place, seen)
    if near is not None:
        yield f"<h3>The same, closer: offsets {near.first:,} to {near.last:,}</h3>"
        yield replica_bars.picture(result, place, near, f"The replicas of {name}, around what is wrong")
    chart = high_watermarks.chart(result, place)
    if chart is not None:
        yield "<h3>How far it had come, as clients knew</h3>"
        yield chart
    if found:
        yield "<h3>Findings</h3>"
        yield _findings(found)
    yield from _changes(result, place)
    yield from _saved(result, place)


def _findings(findings: Sequence[Finding]) -> str:
    rows = [
        (
            f"<b>{each.kind.title}</b>", _offsets(first, last), f"{records:,}",
            escape(", ".join(map(str, each.epochs))), escape(", ".join(map(str, each.replicas))),
            f"<code>{escape(value)}</code>" if value else "", escape(each.detail),
        )
        for each, first, last, records, value in _alike(findings)[:FINDINGS_MAX]
    ]  # fmt: skip
    return html.table(("What", "#Offset", "#Records", "Epoch", "Replicas", "Value", "Detail"), rows)


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


def _changes(result: AuditResult, place: TopicPartition) -> Iterable[str]:
    changes = result.metadata.changes.get(place, ())
    if not changes:
        return
    yield "<h3>What the controllers decided</h3>"
    rows = []
    for change in changes[-_CHANGES_MAX:]:
        leader = "none" if change.leader < 0 else str(change.leader)
        unclean = ' <b class="bad">elected uncleanly</b>' if change.unclean else ""
        rows.append(
            (
                timestamp_text(change.wall_ms),
                f"{change.offset:,}",
                str(change.leader_epoch),
                leader + unclean,
                ", ".join(map(str, change.isr)),
                ", ".join(map(str, change.elr)) or "-",
            )
        )
    yield html.table(("When", "#Metadata offset", "#Leader epoch", "Leader", "ISR", "ELR"), rows)


def _saved(result: AuditResult, place: TopicPartition) -> Iterable[str]:
    entries = replica_bars.saved_of(result, place)
    if not entries:
        return
    yield "<h3>What replicas cut off, and saved</h3>"
    rows = [
        (
            timestamp_text(each.wall_ms), str(each.broker_id), f"{each.from_offset:,} to {each.to_offset - 1:,}",
            escape(", ".join(f"{epoch} from {start:,}" for epoch, start in each.epochs)), each.why.value,
            f"<code>{escape(each.entry_id)}</code>",
        )
        for each in entries
    ]  # fmt: skip
    yield html.table(("When", "Broker", "#Offsets", "Epochs", "Why", "Entry"), rows)


def _foot(result: AuditResult) -> Iterable[str]:
    plans = "; ".join(f"{name}: {how}" for name, how in result.plan.items())
    seconds = sum(result.seconds.values())
    yield f'<p class="quiet">Plan: {escape(plans)}. The audit took {seconds:.0f} s.</p>'
