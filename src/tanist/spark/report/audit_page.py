"""The audit's report: one HTML file for somebody who was not there.

Owns the order in which things are told: what was found, then each partition that has something (its replicas, the way
of its high watermark, its findings, what the controllers decided), then the others in a line. No script, no font and no
picture from elsewhere; everything that came from a cluster is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from tanist.log.salvage_manifest import timestamp_text
from tanist.spark.jobs.audit import AuditResult
from tanist.spark.jobs.audit_logs import Place
from tanist.spark.jobs.findings import Finding, Kind
from tanist.spark.report import high_watermarks, rails

PARTITIONS_MAX: Final = 24
FINDINGS_MAX: Final = 200
_CHANGES_MAX: Final = 60

STYLE: Final = """
body{font:15px/1.5 system-ui,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;color:#1a1a1a;
  max-width:1120px;margin:28px auto;padding:0 20px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:19px;margin:36px 0 6px;border-top:1px solid #ddd;padding-top:18px}
h3{font-size:15px;margin:18px 0 4px}p{margin:6px 0}.quiet{color:#555}.bad{color:#b00000}.good{color:#14724a}
.verdict{font-size:18px;font-weight:600;margin:14px 0}svg{max-width:100%;height:auto;display:block}
table{border-collapse:collapse;width:100%;font-size:13.5px;margin:8px 0}
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid #eee;vertical-align:top}
th{font-weight:600;color:#555}td.number,th.number{text-align:right;padding-right:18px}
code{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:12.5px}
"""


def write_page(path: Path, result: AuditResult, *, title: str) -> None:
    path.write_text(page(result, title=title), encoding="utf-8")


def page(result: AuditResult, *, title: str) -> str:
    """The whole file."""
    body = "\n".join([*_head(result, title), *_partitions(result), *_foot(result)])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f"<title>Audit of {escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _head(result: AuditResult, title: str) -> Iterable[str]:
    replicas = {(rail.topic, rail.partition, rail.replica) for rail in result.rails}
    yield f"<h1>Audit of {escape(title)}</h1>"
    yield (
        f'<p class="quiet">{result.records:,} records in {len(replicas)} replicas of {len(result.facts)} partitions, '
        f"held against each other and against {result.sends:,} acknowledged sends and {result.polled:,} polled "
        "records.</p>"
    )
    kinds = [kind for kind in Kind if result.count(kind)]
    if not kinds:
        yield '<p class="verdict good">Nothing is wrong.</p>'
        return
    lost = result.count(Kind.LOST)
    first = f"{lost:,} acknowledged records are lost." if lost else f"{len(kinds)} kinds of findings; nothing is lost."
    yield f'<p class="verdict bad">{first}</p>'
    rows = [
        (f"<b>{kind.value}</b>", f"{result.count(kind):,}", escape(kind.meaning), escape(_where(result, kind)))
        for kind in kinds
    ]
    yield table(("What", "#How many", "Meaning", "Where"), rows)


def _where(result: AuditResult, kind: Kind) -> str:
    places = [f"{topic}-{partition}" for each, topic, partition in result.counts if each is kind]
    return ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")


def _partitions(result: AuditResult) -> Iterable[str]:
    wrong = list(dict.fromkeys((topic, partition) for _, topic, partition in result.counts if partition is not None))
    shown = [place for place in wrong if place in result.facts]
    saved = [place for place in result.facts if place not in shown and rails.saved_of(result, place)]
    if shown or saved:
        yield rails.legend()
    for place in (shown + saved)[:PARTITIONS_MAX]:
        yield from _partition(result, place)
    more = len(shown) + len(saved) - PARTITIONS_MAX
    if more > 0:
        yield f'<p class="quiet">{more} more partitions are in the Parquet result only.</p>'
    quiet = len(result.facts) - len(shown) - len(saved)
    if quiet:
        yield f'<p class="quiet">{quiet} partitions have nothing to show: their replicas agree, nothing is lost.</p>'


def _partition(result: AuditResult, place: Place) -> Iterable[str]:
    name = f"{place[0]}-{place[1]}"
    yield f"<h2>{escape(name)}</h2>"
    told = [each for each in result.findings if (each.topic, each.partition) == place]
    causes = dict.fromkeys(each.explained for each in told if each.explained)
    for cause in causes:
        yield f"<p>What the metadata log says of it: {escape(cause)}.</p>"
    seen = rails.whole(result, place)
    yield "<h3>Who holds what</h3>"
    yield rails.picture(result, place, seen, f"The replicas of {name}")
    near = rails.closer(result, place, seen)
    if near is not None:
        yield f"<h3>The same, closer: offsets {near.first:,} to {near.last:,}</h3>"
        yield rails.picture(result, place, near, f"The replicas of {name}, around what is wrong")
    chart = high_watermarks.chart(result, place)
    if chart is not None:
        yield "<h3>How far clients were told that it had come</h3>"
        yield chart
    if told:
        yield "<h3>Findings</h3>"
        yield _findings(told)
    yield from _changes(result, place)
    yield from _saved(result, place)


def _findings(findings: Sequence[Finding]) -> str:
    rows = [
        (
            f"<b>{each.kind.value}</b>", f"{first:,}" if first == last else f"{first:,} to {last:,}", f"{records:,}",
            escape(", ".join(map(str, each.epochs))), escape(", ".join(map(str, each.replicas))),
            f"<code>{escape(value)}</code>", escape(each.detail),
        )
        for each, first, last, records, value in _alike(findings)[:FINDINGS_MAX]
    ]  # fmt: skip
    return table(("What", "#Offset", "#Records", "Epoch", "Replicas", "Value", "Detail"), rows)


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


def _changes(result: AuditResult, place: Place) -> Iterable[str]:
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
    yield table(("When", "#Metadata offset", "#Leader epoch", "Leader", "ISR", "ELR"), rows)


def _saved(result: AuditResult, place: Place) -> Iterable[str]:
    entries = rails.saved_of(result, place)
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
    yield table(("When", "Broker", "#Offsets", "Epochs", "Why", "Entry"), rows)


def _foot(result: AuditResult) -> Iterable[str]:
    told = "; ".join(f"{name}: {how}" for name, how in result.plan.items())
    seconds = sum(result.seconds.values())
    yield f'<p class="quiet">Plan: {escape(told)}. The audit took {seconds:.0f} s.</p>'


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML; a heading that begins with # is that of numbers."""
    numbers = [head.startswith("#") for head in heads]

    def cells(tag: str, values: Iterable[str]) -> str:
        return "".join(
            f'<{tag} class="number">{value}</{tag}>' if number else f"<{tag}>{value}</{tag}>"
            for value, number in zip(values, numbers)
        )

    head = cells("th", (escape(head.lstrip("#")) for head in heads))
    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>"
