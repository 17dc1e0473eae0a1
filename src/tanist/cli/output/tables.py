"""Printing: a table for people, JSON for programs.

On a terminal a table fits its width: words move to the next line, and where not even words fit, rows become paragraphs.
In a pipe a row is one line, however long.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import PurePath
from typing import Any
from uuid import UUID

import click

from tanist.cli.output.lines import say
from tanist.wire.ids import id_text


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    """JSON for the types in results that JSON does not have."""
    match value:
        case UUID():
            return id_text(value)
        case set() | frozenset():
            return sorted(value)
        case bytes():
            return value.decode(errors="replace")
        case PurePath():
            return str(value)
    raise TypeError(f"a {type(value).__name__} is in a result, and JSON has no form for it")


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns under headings, which are bold on a terminal."""
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    terminal = sys.stdout.isatty()
    available = shutil.get_terminal_size().columns if terminal else None
    widths, gap = _widths([header, *cells], available)
    if available is not None and sum(widths) + gap * (len(widths) - 1) > available:
        _print_records(header, cells)
        return
    bold = terminal and os.environ.get("TERM", "dumb") != "dumb"
    for number, row in enumerate([header, *cells]):
        for line in _row_lines(row, widths, gap):
            click.echo(click.style(line, bold=True) if bold and not number else line)


def _row_lines(row: Sequence[str], widths: Sequence[int], gap: int) -> Iterator[str]:
    columns = (
        textwrap.wrap(cell, max(width, 1), expand_tabs=False, break_long_words=False, break_on_hyphens=False) or [""]
        for cell, width in zip(row, widths, strict=True)
    )
    for parts in zip_longest(*columns, fillvalue=""):
        yield (" " * gap).join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()


def _print_records(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows that are too wide for the terminal: each as a paragraph, a line for each cell."""
    width = max(map(len, header)) + 2
    for number, row in enumerate(rows):
        if number:
            click.echo()
        for name, cell in zip(header, row, strict=True):
            say(f"{name:<{width}}{cell}", hang=width)


def _widths(lines: Sequence[Sequence[str]], available: int | None) -> tuple[list[int], int]:
    """The width of each column and the gap between two; without a limit, all that the cells want.

    Only words move to another line: half an address cannot be copied. Where not even the words fit, the widths are more
    than what is available.
    """
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    if available is None:
        return widths, 2
    least = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    gap = 2 if sum(least) + 2 * (len(least) - 1) <= available else 1
    while (over := sum(widths) + gap * (len(widths) - 1) - available) > 0 and widths != least:
        widest = max(range(len(widths)), key=lambda at: widths[at] - least[at])
        widths[widest] -= min(over, max(1, (widths[widest] - least[widest]) // 2))
    return widths, gap


def ids(brokers: Sequence[int] | None) -> str:
    """Broker ids as people write them: `1,2,3`."""
    return "?" if brokers is None else ",".join(map(str, brokers)) or "-"
