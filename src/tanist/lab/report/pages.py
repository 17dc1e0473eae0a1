"""A report as a page: Markdown with a picture beside it, and HTML (report.html) that has the picture in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from tanist.lab.pages import chart, templates
from tanist.lab.report.facts import Facts, Played
from tanist.text import counted

Table = tuple[Mapping[str, str], Sequence[Sequence[str]]]
"""Columns with their kinds, as parts.html has them, and rows."""
Block = str | Table
"""A paragraph, a heading (`## ...`), a picture as `Markup`, or a table."""

TITLE = "The simulator's report"
_SUMS = dict.fromkeys(
    ("Seeds", "Violations", "Virtual hours", "Faults", "Events", "Records acknowledged", "Given up*", "Took"), "number"
)
_WIDTH_PX, _ROW = 760.0, 22.0
_LEFT, _RIGHT = 0.27, 0.9
"""Where the bars of the picture begin, and where the longest ends."""


def markdown(facts: Facts, picture: str) -> str:
    """`picture` is the address of the picture from the page."""
    return "\n\n".join(_as_markdown(block) for block in _blocks(facts, f"![Faults by kind]({picture})")) + "\n"


def html(facts: Facts) -> str:
    drawn = chart.strip(_ROW * len(facts.faults()), _bars(facts.faults()))
    return templates.render("lab/report/report.html", title=TITLE, blocks=_blocks(facts, drawn))


def picture(faults: Sequence[tuple[str, str, int]], title: str) -> str:
    """A bar for each kind of fault, as a file of its own. `faults` are kind, meaning, and count."""
    head, height = 44.0, _ROW * len(faults)
    marks = [chart.label(0.016, 26, title, "strong title"), chart.strip(height, _bars(faults), y=head)]
    return chart.document(_WIDTH_PX, head + height + 12, title, marks)


def _bars(faults: Sequence[tuple[str, str, int]]) -> Iterator[Markup]:
    most = max((count for _, _, count in faults), default=0) or 1
    for index, (kind, _, count) in enumerate(faults):
        end, y = _LEFT + (_RIGHT - _LEFT) * count / most, _ROW * index
        yield chart.label(_LEFT, y + 14, kind, anchor="end", dx=-8.0)
        if count:
            yield chart.bar(_LEFT, end, y + 2, _ROW - 6, "bar")
        yield chart.label(end, y + 14, f"{count:,}", anchor="start", dx=6.0)


def _blocks(facts: Facts, picture: str) -> Iterator[Block]:
    yield f"# {TITLE}"
    commit = f" (commit {facts.commit})" if facts.commit else ""
    yield (
        "For everyone who asks how much the simulator has tested: fresh seeds, what they did, and what they never "
        f"reached. `tanist lab report` of tanist {facts.version}{commit} wrote this page on {facts.date}. A seed gives "
        "the same run on every machine, so these commands play the same again:"
    )
    yield from (f"`{played.command}`" for played in facts.played)
    rows: list[Sequence[str]] = [_sums(played) for played in facts.played]
    yield {"": ""} | _SUMS, rows
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
        yield (
            {"": "", "Violated property": ""},
            [(number, facts.properties.get(number, "")) for number in facts.violated],
        )
    yield "## Faults"
    yield picture
    yield from _mutations(facts)
    yield "## Situations"
    yield "A run proves nothing about a rule whose situation it has not reached. `sim/situations.py` explains them."
    for played in facts.played:
        missing = [name for name, _, count in played.situations if not count]
        total = len(played.situations)
        names = f" Not reached: {'; '.join(missing)}." if missing else ""
        yield f"{played.title}: {total - len(missing)} of {counted(total, 'situation')} reached.{names}"


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
        yield {"": "", "Rule, as broken": "", "Seeds tried": "number"}, rows


def _as_markdown(block: Block) -> str:
    if isinstance(block, str):
        return f"\\{block}" if block.startswith("*") else block
    columns, rows = block
    lines = [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
