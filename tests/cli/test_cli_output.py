"""Tables on a terminal that is too narrow for them."""

from __future__ import annotations

import io
import sys

import click
import pytest

from tanist.cli.output.tables import print_table

HEADER = ("NODE", "ROLES", "ADDRESS", "STATE", "PID", "RACK", "METRICS")
ROWS = [
    (number, "broker+controller*", f"127.0.0.1:{21300 + number}", state, 31337, None, "127.0.0.1:23300")
    for number, state in ((1, "running"), (2, "crashed, and not started again"))
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for name, value in {"COLUMNS": str(columns), "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    print_table(HEADER, ROWS)
    return click.unstyle(terminal.getvalue()).splitlines()


@pytest.mark.parametrize("cell", ["[/var/lib]", "a:key:b", "[red]", "two  spaces"])
def test_a_cell_is_shown_as_it_is(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Markup of a library for terminals, and its names for pictures, mean nothing in a client's id or a path."""
    monkeypatch.setattr(f"{__name__}.ROWS", [(cell, *ROWS[0][1:])])
    assert shown(100, monkeypatch)[1].startswith(f"{cell} ")


@pytest.mark.parametrize(("term", "bold"), [("xterm", True), ("dumb", False)])
def test_headings_are_bold_where_the_terminal_can(term: str, bold: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "100")
    print_table(HEADER, ROWS)
    assert ("\x1b[1mNODE" in terminal.getvalue()) is bold
    assert terminal.getvalue().count("\x1b[1m") == bold


def test_in_a_pipe_a_row_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("CLIENT", "STATE"), [("a\tb\nc", "long " * 60), ("", None)])
    assert capsys.readouterr().out.splitlines() == [
        "CLIENT  STATE", "a b c   " + ("long " * 60).rstrip(), "        -"
    ]  # fmt: skip


def test_words_move_to_the_next_line_of_their_column(monkeypatch: pytest.MonkeyPatch) -> None:
    crashed, more = shown(90, monkeypatch)[-2:]
    assert "crashed, and not" in crashed
    assert more.strip() == "started again"
    assert more.index("started") == crashed.index("crashed")


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_an_address_is_never_broken(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(columns, monkeypatch)
    assert max(map(len, lines)) <= columns
    for word in ("127.0.0.1:21301", "127.0.0.1:21302", "127.0.0.1:23300", "broker+controller*", "31337"):
        assert any(word in line.split() for line in lines), lines


def test_the_nodes_of_a_healthy_cluster_take_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROWS", [(number, *ROWS[0][1:]) for number in (1, 2, 3)])
    lines = shown(80, monkeypatch)
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines] == ["NODE", "1", "2", "3"]


def test_where_not_even_the_words_have_space_a_row_is_a_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(40, monkeypatch)
    assert max(map(len, lines)) <= 40
    assert lines[:3] == ["NODE     1", "ROLES    broker+controller*", "ADDRESS  127.0.0.1:21301"]
    assert lines[len(HEADER) : len(HEADER) + 2] == ["", "NODE     2"]
