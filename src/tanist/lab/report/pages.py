"""A report as a page: Markdown with a picture beside it, and HTML that has the picture in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from tanist.lab.report.facts import Facts, Played
from tanist.text import counted

Table = tuple[Sequence[str], list[Sequence[str]]]
Block = str | Table
"""A paragraph, a heading (`## ...`), or a table."""

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}td,th{border:1px solid #8888;padding:.2rem .6rem;"
    "text-align:left}td.number{text-align:right}svg{max-width:100%;height:auto}code{font-size:.9em}"
)


def markdown(facts: Facts, picture: str) -> str:
    """`picture` is the address of the picture from the page."""
    return "\n\n".join(_as_markdown(block) for block in _blocks(facts, f"![{_CAPTION}]({picture})")) + "\n"


def html(facts: Facts, picture: str) -> str:
    """`picture` is the SVG."""
    body = "\n".join(picture if block == _PICTURE else _as_html(block) for block in _blocks(facts, _PICTURE))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_TITLE}</title><style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


_TITLE = "The simulator's report"
_CAPTION = "Faults by kind"
_PICTURE = "\0picture"


def _blocks(facts: Facts, picture: str) -> Iterator[Block]:
    yield f"# {_TITLE}"
    commit = f" (commit {facts.commit})" if facts.commit else ""
    yield (
        "For everyone who asks how much the simulator has tested: fresh seeds, what they did, and what they never "
        f"reached. `tanist lab report` of tanist {facts.version}{commit} wrote this page on {facts.date}. A seed gives "
        "the same run on every machine, so these commands play the same again:"
    )
    yield from (f"`{played.command}`" for played in facts.played)
    rows: list[Sequence[str]] = [_sums(played) for played in facts.played]
    yield (
        ("", "Seeds", "Violations", "Virtual hours", "Faults", "Events", "Records acknowledged", "Given up*", "Took"),
        rows,
    )
    yield (
        "*Acknowledged records that an unclean election lost, where the settings allowed it and the controller "
        "reported it. Any other loss is a violation."
    )
    yield (
        f"The simulator checks {counted(len(facts.properties), 'property')}: safety after every step of every node, "
        "liveness when the faults are over."
    )
    if facts.violations:
        yield "## Violations"
        yield from facts.violations
        yield ("", "Violated property"), [(number, facts.properties.get(number, "")) for number in facts.violated]
    yield "## Faults"
    yield picture
    yield from _mutations(facts)
    yield "## Situations"
    yield "A run proves nothing about a rule whose situation it has not reached."
    for played in facts.played:
        missing: list[Sequence[str]] = [(name, text) for name, text, count in played.situations if not count]
        total = len(played.situations)
        yield f"{played.title}: {total - len(missing)} of {counted(total, 'situation')} reached."
        if missing:
            yield ("Not reached", "Meaning"), missing


def _sums(played: Played) -> Sequence[str]:
    totals = played.totals
    return (
        played.title,
        f"{totals.seeds:,}",
        str(len(totals.failed)),
        f"{totals.virtual_hours:.2f}",
        f"{totals.faults:,}",
        f"{totals.events:,}",
        f"{totals.acknowledged:,}",
        f"{totals.given_up:,}",
        f"{played.seconds:,.0f} s",
    )


def _mutations(facts: Facts) -> Iterator[Block]:
    if not facts.mutations:
        return
    yield "## Broken rules"
    equivalent = [row for row in facts.mutations if row.equivalent and row.simulated is None]
    caught = [row for row in facts.mutations if row.simulated is not None]
    missed = [row.name for row in facts.mutations if row.missed]
    names = f": {', '.join(missed)}" if missed else ""
    unseen = f"; {len(equivalent)} more change nothing that can be seen" if equivalent else ""
    yield (
        f"Each rule of the protocol is broken by itself, and the simulator must notice: {len(caught)} of "
        f"{len(facts.mutations) - len(equivalent)} noticed, {len(missed)} missed{names}{unseen}."
    )
    rows: list[Sequence[str]] = [(row.name, row.rule, f"{row.seeds_tried:,}") for row in facts.mutations if row.missed]
    if rows:
        yield ("", "Rule, as broken", "Seeds tried"), rows


def _as_markdown(block: Block) -> str:
    if isinstance(block, str):
        return re.sub(r"^\*", r"\\*", block)
    head, rows = block
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _as_html(block: Block) -> str:
    if isinstance(block, str):
        marks, _, text = block.partition(" ")
        if set(marks) == {"#"}:
            return f"<h{len(marks)}>{_inline(text)}</h{len(marks)}>"
        return f"<p>{_inline(block)}</p>"
    head, rows = block
    return f"<table>{_row(head, 'th')}{''.join(_row(row, 'td') for row in rows)}</table>"


def _row(cells: Iterable[str], tag: str) -> str:
    made = (
        f"<{tag}{' class=number' if re.fullmatch(r'[0-9][0-9,.]*( s)?', cell) else ''}>{_inline(cell)}</{tag}>"
        for cell in cells
    )
    return f"<tr>{''.join(made)}</tr>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
