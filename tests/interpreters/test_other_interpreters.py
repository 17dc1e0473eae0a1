"""The same seed gives the same bytes under every Python there is, and under WebAssembly (`make interpreters`).

SEEDS="chaos:1..60 groups:1..20" plays these, and compares with what the interpreter of the tests says of them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.clients import builds
from tests.interpreters import play_seeds, test_digests
from tools.pythons import VERSIONS, interpreter

pytestmark = pytest.mark.interpreters

HERE = Path(__file__).parent
PATHS = [HERE.parents[1] / "src", HERE, HERE.parents[1] / "web" / "stand_ins"]
"""The libraries' extension modules are of one interpreter; what stands in for them is Python."""
PYODIDE = HERE / "pyodide"
TIMEOUT_S = 3_600
SEEDS = tuple(os.environ.get("SEEDS", "").split())


@cache
def expected() -> list[str]:
    return list(play_seeds.lines(SEEDS)) if SEEDS else test_digests.written()


def _printed(command: Sequence[str]) -> list[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATHS)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("version", VERSIONS)
def test_another_python(version: str) -> None:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"there is no Python {version} on PATH, nor of pyenv")
    assert _printed([found, str(HERE / "play_seeds.py"), *(SEEDS or test_digests.SEEDS)]) == expected()


def test_webassembly() -> None:
    """Pyodide: CPython 3.14 for 32 bits, with other error numbers, hashes of other widths, and another libc."""
    reason = builds.missing_node()
    if reason is not None:
        pytest.skip(reason)
    packages = builds.node_modules(PYODIDE, "pyodide")
    played = _printed(
        [
            "node",
            str(PYODIDE / "play.mjs"),
            str(packages),
            "play_seeds",
            ":".join(map(str, PATHS)),
            *(SEEDS or test_digests.SEEDS),
        ]
    )
    assert played == expected()
