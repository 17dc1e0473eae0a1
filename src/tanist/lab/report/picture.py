"""The picture of a report: a bar for each kind of fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tanist.lab.jepsen import svg

_WIDTH, _LEFT, _RIGHT = 760.0, 130.0, 90.0
_HEAD, _ROW, _FOOT = 44.0, 22.0, 12.0
_STYLE = (
    "text{font:13px system-ui,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;fill:#1a1a1a}"
    ".title{font-size:16px;font-weight:600}.back{fill:#fff}.bar{fill:#0072B2}"
)


def draw(faults: Sequence[tuple[str, str, int]], title: str) -> str:
    """An SVG document. `faults` are kind, meaning, and count."""
    height = _HEAD + _ROW * len(faults) + _FOOT
    return svg.document(_WIDTH, height, _STYLE, _elements(faults, title, height), title)


def _elements(faults: Sequence[tuple[str, str, int]], title: str, height: float) -> Iterator[str]:
    yield svg.rectangle(0, 0, _WIDTH, height, class_="back")
    yield svg.text(12, 26, title, class_="title")
    most = max((count for _, _, count in faults), default=0) or 1
    for index, (kind, _, count) in enumerate(faults):
        y = _HEAD + _ROW * index
        length = (_WIDTH - _LEFT - _RIGHT) * count / most
        yield svg.text(_LEFT - 8, y + 14, kind, text_anchor="end")
        yield svg.rectangle(_LEFT, y + 2, length, _ROW - 6, class_="bar")
        yield svg.text(_LEFT + length + 6, y + 14, f"{count:,}")
