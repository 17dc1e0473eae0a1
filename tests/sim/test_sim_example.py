"""`examples/simulation` runs, gives the same run for the same seed, and is the code in docs/simulator.md."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/simulation/power_loss.py"


def _printed(seed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), seed])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    return capsys.readouterr().out


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    first = _printed("7", monkeypatch, capsys)
    assert first.startswith("seed 7: ")
    assert " acknowledged records, all read; digest " in first
    assert _printed("7", monkeypatch, capsys) == first


def test_the_page_shows_it() -> None:
    assert f"```python\n{EXAMPLE.read_text()}```" in (ROOT / "docs/simulator.md").read_text()
