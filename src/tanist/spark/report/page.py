"""The parts of every report: a file that stands alone, a table, and marks whose positions are per cent.

Owns the style, in which each colour has a name and two values, one for light and one for dark, and the two layouts, for
500 pixels and for a screen. Nothing has a fixed width: pictures take what there is, and their text keeps its size. No
script, no font and no picture from elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Final

from tanist.lab.jepsen import svg

LIGHT: Final[Mapping[str, str]] = {
    "paper": "#ffffff", "ink": "#1a1a1a", "quiet": "#555555", "rule": "#dddddd", "grid": "#e8e8e8", "axis": "#999999",
    "bad": "#b00000", "good": "#14724a", "held-a": "#8fadc8", "held-b": "#bdd0e0", "on-held": "#10202e",
    "saved": "#1b8a5a", "lost": "#d00000", "divergent": "#e69f00", "line": "#0072b2", "outage": "#b87700",
}  # fmt: skip
DARK: Final[Mapping[str, str]] = {
    "paper": "#14171a", "ink": "#e6e6e6", "quiet": "#a3a9b0", "rule": "#3a4047", "grid": "#2a2f35", "axis": "#7a828a",
    "bad": "#ff8077", "good": "#5cc79a", "held-a": "#4a6a88", "held-b": "#35506a", "on-held": "#f0f4f8",
    "saved": "#35b57c", "lost": "#ff5a4f", "divergent": "#f0b429", "line": "#5ab0e6", "outage": "#f0b429",
}  # fmt: skip
NARROW_PX: Final = 900
"""Below, what is in two columns stands in one, and labels that do not fit are left out."""


def _colours(values: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in values.items())


MARKS: Final = """
text{font:12px system-ui,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;fill:var(--quiet)}
.on{fill:var(--on-held)}.strong{font-weight:600;fill:var(--ink)}
.halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.on.a{stroke:var(--held-a)}.on.b{stroke:var(--held-b)}
.grid{stroke:var(--grid)}.axis{stroke:var(--axis)}.election{stroke:var(--axis);stroke-dasharray:4 3}
.held.a{fill:var(--held-a)}.held.b{fill:var(--held-b)}.saved{fill:var(--saved)}.lost{fill:var(--lost)}
.divergent{fill:var(--divergent)}.damaged{fill:var(--ink)}
.missing{fill:var(--paper);stroke:var(--lost);stroke-dasharray:3 2}
.high-watermark{stroke:var(--ink);stroke-dasharray:5 3}.unclean{stroke:var(--lost);stroke-width:2;stroke-dasharray:4 3}
.way{fill:none;stroke:var(--line);stroke-width:2;vector-effect:non-scaling-stroke}
.loss{stroke:var(--lost);fill:var(--lost)}.outage{stroke:var(--outage);fill:var(--outage)}
"""
COLOURS: Final = (
    f":root{{color-scheme:light dark;{_colours(LIGHT)}}}\n"
    f"@media (prefers-color-scheme:dark){{:root{{{_colours(DARK)}}}}}\n"
)
STYLE: Final = f"""{COLOURS}
*{{box-sizing:border-box}}
body{{font:15px/1.5 system-ui,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;color:var(--ink);
  background:var(--paper);max-width:1120px;margin:28px auto;padding:0 20px;overflow-wrap:break-word}}
h1{{font-size:24px;line-height:1.25;margin:0 0 4px}}
h2{{font-size:19px;margin:36px 0 6px;border-top:1px solid var(--rule);padding-top:18px}}
h3{{font-size:15px;margin:22px 0 6px}}p{{margin:6px 0}}.quiet{{color:var(--quiet)}}.bad{{color:var(--bad)}}
.good{{color:var(--good)}}.verdict{{font-size:18px;font-weight:600;margin:14px 0}}
svg{{display:block;width:100%;overflow:visible}}
table{{border-collapse:collapse;width:100%;font-size:13.5px;margin:8px 0}}
th,td{{text-align:left;padding:4px 12px 4px 0;border-bottom:1px solid var(--rule);vertical-align:top}}
th{{font-weight:600;color:var(--quiet);white-space:nowrap}}.number{{text-align:right;padding-right:18px;white-space:nowrap}}
code{{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:12.5px;overflow-wrap:anywhere}}
figure{{margin:8px 0}}.row{{display:grid;grid-template-columns:12.5em minmax(0,1fr);column-gap:14px;margin:0 0 8px}}
.name{{text-align:right;font-size:13.5px;line-height:1.35}}.name .quiet{{display:block;font-size:12px}}
.legend{{display:flex;flex-wrap:wrap;gap:6px 22px;font-size:13.5px;padding:0;margin:14px 0;list-style:none}}
.legend li{{display:flex;align-items:center;gap:8px}}.legend svg{{width:24px;flex:none}}
{MARKS}
@media (max-width:{NARROW_PX - 1}px){{
body{{margin:18px auto;padding:0 14px}}.wide{{display:none}}
.row{{grid-template-columns:minmax(0,1fr);row-gap:2px}}.name{{text-align:left}}
.name .quiet{{display:inline;margin-left:6px}}
thead{{display:none}}tr{{display:block;border-bottom:1px solid var(--rule);padding:6px 0}}
td,td.number{{display:grid;grid-template-columns:8.5em minmax(0,1fr);border:0;padding:1px 0;text-align:left;
  white-space:normal}}
td:empty{{display:none}}td::before{{content:attr(data-head);color:var(--quiet)}}
}}
"""


def page(title: str, body: Iterable[str]) -> str:
    """The whole file."""
    content = "\n".join(body)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n{content}\n</body></html>\n"
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML; a heading that begins with # is that of numbers. Where it is narrow a row is a list."""
    names = [(escape(head.lstrip("#")), ' class="number"' if head.startswith("#") else "") for head in heads]
    head = "".join(f"<th{kind}>{name}</th>" for name, kind in names)
    body = "\n".join(
        "<tr>"
        # One element in each cell, so that what a cell has stays together beside its heading.
        + "".join(
            f'<td{kind} data-head="{name}">{value and f"<span>{value}</span>"}</td>'
            for value, (name, kind) in zip(row, names, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def row(name: str, picture: str) -> str:
    """A part of a picture with its name: beside it, or above it where it is narrow."""
    return f'<div class="row"><div class="name">{name}</div>{picture}</div>'


def figure(title: str, rows: Iterable[str]) -> str:
    return f'<figure role="img" aria-label="{escape(title)}">\n' + "\n".join(rows) + "\n</figure>"


def strip(height: float, drawn: Iterable[str]) -> str:
    """A picture as wide as the page allows; positions in it are in per cent."""
    return svg.element("svg", "".join(drawn), height=height)


def per_cent(share: float) -> str:
    """Of 0 to 1."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


def mark(share: float, end: float, y: float, height: float, kind: str) -> str:
    """A rectangle that is seen however small its part is."""
    width = max(end - share, 0.003)
    return svg.element(
        "rect", x=per_cent(min(share, 1 - width)), y=y, width=per_cent(width), height=height, class_=kind
    )


def upright(share: float, top: float, bottom: float, kind: str) -> str:
    return svg.element("line", x1=per_cent(share), y1=top, x2=per_cent(share), y2=bottom, class_=kind)


def label(share: float, y: float, content: str, *, kind: str = "", edge: float = 0.05) -> str:
    """Text about a place; near an end of the picture it stays within."""
    anchor = "start" if share < edge else "end" if share > 1 - edge else "middle"
    return svg.element(
        "text", escape(content), x=per_cent(share), y=y, text_anchor=anchor, **({"class_": kind} if kind else {})
    )


def spaced(places: Sequence[float], narrow: float, wide: float, *, first: Collection[int] = ()) -> dict[int, str]:
    """Which of these labels fit, by number: "" everywhere, "wide" only where it is wide.

    Those of `first` are placed before the others.
    """
    kept: dict[int, str] = {}
    for apart, kind in ((narrow, ""), (wide, "wide")):
        for number in sorted(range(len(places)), key=lambda number: (number not in first, number)):
            place = places[number]
            if number not in kept and all(abs(place - places[other]) >= apart for other in kept):
                kept[number] = kind
    return kept
