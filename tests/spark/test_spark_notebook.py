"""The cells of `examples/pipelines/lost_records.ipynb`, one after the other, as a reader runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

CELLS_IN_A_LOOP = """
import asyncio, json, sys

async def run():
    for cell in json.load(sys.stdin):
        exec(compile(cell, "cell", "exec"), globals())

asyncio.run(run())
"""
"""As in Jupyter: its kernel runs cells while its event loop runs."""
NOTEBOOK = Path(__file__).parents[2] / "examples" / "pipelines" / "lost_records.ipynb"


def test_the_notebook_finds_lost_records_and_puts_them_back(tmp_path: Path) -> None:
    cells = [each for each in json.loads(NOTEBOOK.read_text())["cells"] if each["cell_type"] == "code"]
    assert len(cells) == 10
    assert not any(each["outputs"] for each in cells)
    done = subprocess.run(
        [sys.executable, "-c", CELLS_IN_A_LOOP], input=json.dumps(["".join(each["source"]) for each in cells]),
        cwd=tmp_path, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "1120 acknowledged, 1000 in the topic, 120 lost\n" in done.stdout
    assert re.search(r"\|2 +\|\S+ *\|120 +\|1000 +\|1119 +\|\n", done.stdout), done.stdout
    assert done.stdout.endswith("120 restored\n0 lost\n")
