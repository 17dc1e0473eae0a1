"""Printing: a table for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from uuid import UUID

import click

from tanist.wire.ids import id_text


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, default=_plain))


def print_json_line(value: Any) -> None:
    """One value of many: a line each, as programs read a stream."""
    click.echo(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    """What results hold beside JSON's own types."""
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
    """Columns under headings. On a terminal `rich` draws it; in a pipe it is plain text, one line a row."""
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*header, box=None, header_style="bold", pad_edge=False)
        for row in cells:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for row in [list(header), *cells]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def ids(brokers: Sequence[int] | None) -> str:
    """Broker ids as people write them: `1,2,3`."""
    return "?" if brokers is None else ",".join(map(str, brokers)) or "-"
