"""Lines over time as an SVG: one panel below the other, each with its own scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 760, 110, 60, 24, 34
_COLOURS = ("#2563a8", "#c05621", "#2f7d4f", "#7a3e9d")


@dataclass(frozen=True, slots=True)
class Line:
    """Points (seconds, value); None where there is none."""

    name: str
    points: Sequence[tuple[float, float | None]]


def picture(panels: Sequence[tuple[str, Sequence[Line]]]) -> str:
    """The whole picture."""
    height = _TOP + len(panels) * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 20}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (title, lines) in enumerate(panels):
        parts += _panel(title, lines, _TOP + number * (_HEIGHT + _GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(title: str, lines: Sequence[Line], top: float) -> list[str]:
    values = [value for line in lines for _, value in line.points if value is not None]
    last_s = max((at_s for line in lines for at_s, _ in line.points), default=1.0) or 1.0
    highest = max(values, default=1.0) or 1.0
    bottom = top + _HEIGHT
    parts = [
        f'<text x="{_LEFT}" y="{top - 6}" font-weight="bold">{escape(title)}</text>',
        f'<path d="M{_LEFT} {top}V{bottom}H{_LEFT + _WIDTH}" fill="none" stroke="#888"/>',
        f'<text x="{_LEFT - 6}" y="{top + 8}" text-anchor="end">{highest:.4g}</text>',
        f'<text x="{_LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{_LEFT + _WIDTH}" y="{bottom + 13}" text-anchor="end">{last_s / 60:.0f} min</text>',
    ]
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        path, pen = [], "M"
        for at_s, value in line.points:
            if value is None:
                pen = "M"
                continue
            path.append(f"{pen}{_LEFT + at_s / last_s * _WIDTH:.1f} {bottom - value / highest * _HEIGHT:.1f}")
            pen = "L"
        parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.2"/>')
        x = _LEFT + _WIDTH - 70 * (len(lines) - number)
        parts.append(f'<text x="{x}" y="{top - 6}" fill="{colour}">{escape(line.name)}</text>')
    return parts
