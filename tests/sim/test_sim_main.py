"""The command that plays seeds again."""

from __future__ import annotations

import pytest

from tanist.replica.leader import LeaderState
from tanist.sim.__main__ import main

# A seed by which a broken rule of the high watermark is caught early: see sim_mutants.py.
_CATCHES = 22


def test_a_seed_that_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("seed 2: ok, ")
    assert "1 of 1 seeds, 0 violations" in printed


def test_a_trace_is_the_plan_and_what_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2", "--trace"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("seed 2: ChaosConfig(")
    assert lines[1].startswith("  planned at ")
    assert any("quorum leader is" in line for line in lines)
    assert lines[-1].startswith("seed 2: ok, ")


def test_a_violation_is_shown_with_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LeaderState, "_may_advance", lambda self: True)
    assert main([f"{_CATCHES}..200"]) == 1
    printed = capsys.readouterr().out
    assert f"seed {_CATCHES}: VIOLATION S4 at " in printed
    assert f"see it again: python -m tanist.sim {_CATCHES} --trace" in printed
    assert f"1 of {200 - _CATCHES + 1} seeds, 1 violations" in printed, "the first one ends it"


def test_no_seed_begins_after_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1..500", "--budget", "0"]) == 0
    assert "0 of 500 seeds" in capsys.readouterr().out
    assert main(["1..500", "--budget", "0", "--jobs", "2"]) == 0
    assert "0 of 500 seeds" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["many"], ["5..4"], ["1..2", "--trace"], []])
def test_arguments_that_make_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m tanist.sim" in capsys.readouterr().err
