"""What long commands say on standard error: how long it will be, and how far they are."""

from __future__ import annotations

import io
import json
import math
import sys

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.cli.output.progress import Progress, announce, duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("seconds", "words"), [(1, "5 s"), (22, "20 s"), (44, "45 s"), (130, "2 min"), (3000, "50 min"), (9000, "2 h")]
)
def test_a_duration_is_rough(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_what_is_short_is_not_announced(capsys: pytest.CaptureFixture[str]) -> None:
    announce("1 seed", 0.7)
    announce("100 seeds", 70)
    announce("all states", 45, at_most=True)
    announce("for ever", float("inf"))
    assert capsys.readouterr().err == "100 seeds: about 70 s\nall states: at most about 45 s\n"


def test_in_a_pipe_it_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now_s = 0.0
    with Progress(lambda: now_s) as show:
        for second in range(31):
            now_s = float(second)
            show(f"{second} s")
    captured = capsys.readouterr()
    assert captured.err == "10 s\n20 s\n30 s\n"
    assert captured.out == ""


def test_on_a_terminal_it_is_one_line_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    with Progress() as show:
        show("one of a hundred seeds, which is too long")
        show("two")
    first, second, cleared, rest = terminal.getvalue().split("\r")[1:]
    assert first == "one of a hundred se"
    assert second == "two".ljust(19)
    assert (cleared.strip(), rest) == ("", "")


def test_a_line_that_stays_takes_the_place_of_one_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress() as show:
        show("half")
        show.line("seed 3 violates S1")
    assert terminal.getvalue() == "\rhalf\r    \rseed 3 violates S1\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("what-if --rf 1 --min-isr 1 --unclean 0 --depth 2 --states 20", "5 cells of up to 20 states: at most about"),
        ("lab check --seconds 0.1", None),
        ("lab check --config slow-followers --states 100", "up to 100 states: at most about 5 s"),
        ("lab mutants A1 A2 --by model --jobs 1", "2 rules to break: about 5 s"),
        ("lab run --seeds 1..1000 --minutes 0.001", None),
    ],
)
def test_commands_say_beforehand_how_long_they_take(
    monkeypatch: pytest.MonkeyPatch, typed: str, said: str | None
) -> None:
    """Little is announced here as much would be, and how long it takes is the machine's affair."""
    if said:
        monkeypatch.setattr("tanist.cli.output.progress._WORTH_SAYING_S", 0.0)
    monkeypatch.setattr("tanist.cli.output.progress._LINE_EVERY_S", math.inf)
    done = CliRunner().invoke(app, [*typed.split(), "--json"])
    assert done.exit_code == 0, done.output
    json.loads(done.stdout)
    assert done.stderr.startswith(said) if said else done.stderr == ""
