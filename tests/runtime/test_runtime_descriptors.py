"""The process's table of file descriptors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_SHOW = """
import resource
from tanist.runtime.ports.descriptors import widen_table
resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))
widen_table()
(size,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("FDSize:")]
print(size)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it is shown by Linux only")
@pytest.mark.parametrize("limit", [300, 1_000, 4_096])
def test_the_table_is_as_large_as_the_limit_from_the_start(limit: int) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", _SHOW.format(limit=limit)], check=True, capture_output=True, text=True, timeout=60
    )
    assert limit <= int(shown.stdout) < 2 * limit
