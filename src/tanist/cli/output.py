"""Printing: a table for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2))


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
