"""Some seeds' digests, as they are written down in `digests.txt`: the same bytes as when somebody looked last.

A change of what nodes do, say or write changes them, and so does one of the simulator or of what it draws. That is no
defect, but has to be meant: `make digests` writes them down anew, and the commit shows that they are others.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.interpreters.play_seeds import lines

WRITTEN = Path(__file__).with_name("digests.txt")
SEEDS = ("chaos:1..4", "groups:1..2")
"""Of these, chaos 2 and 4 once had others under WebAssembly."""


def written() -> list[str]:
    return WRITTEN.read_text().splitlines()


def test_the_digests_are_those_written_down() -> None:
    played = list(lines(SEEDS))
    if os.environ.get("DIGESTS") == "rewrite":
        WRITTEN.write_text("".join(f"{line}\n" for line in played))
        pytest.skip("written down")
    assert played == written(), "other digests than in digests.txt; if that is meant: make digests"
