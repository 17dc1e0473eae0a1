"""Just enough SVG for a chart: elements as text, short numbers, escaped text. Knows nothing of the charts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def number(value: float) -> str:
    """A number with at most one decimal."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def element(name: str, content: str | None = None, /, **attributes: str | float) -> str:
    """`class_` is class, `text_anchor` is text-anchor. `content` is taken as it is."""
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{attribute_text}/>" if content is None else f"<{name}{attribute_text}>{content}</{name}>"


def text(x: float, y: float, content: str, **attributes: str | float) -> str:
    return element("text", escape(content), x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: str | float) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def rectangle(x: float, y: float, width: float, height: float, **attributes: str | float) -> str:
    return element("rect", x=x, y=y, width=width, height=height, **attributes)


def polyline(points: Iterable[tuple[float, float]], **attributes: str | float) -> str:
    return element("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), **attributes)


def dots(points: Iterable[tuple[float, float]], **attributes: str | float) -> str:
    """Many equal points as one path: strokes of no length, which round caps make dots."""
    return element("path", d="".join(f"M{number(x)} {number(y)}h0" for x, y in points), **attributes)


def crosses(points: Iterable[tuple[float, float]], arm: float, **attributes: str | float) -> str:
    drawn = (
        f"M{number(x - arm)} {number(y - arm)}l{number(2 * arm)} {number(2 * arm)}"
        f"M{number(x - arm)} {number(y + arm)}l{number(2 * arm)} {number(-2 * arm)}"
        for x, y in points
    )
    return element("path", d="".join(drawn), **attributes)


def document(width: float, height: float, style: str, elements: Iterable[str], title: str) -> str:
    body = "\n".join(elements)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" '
        f'width="{number(width)}" height="{number(height)}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n{body}\n</svg>\n"
    )
