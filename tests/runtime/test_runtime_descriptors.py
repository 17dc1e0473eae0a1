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


_SHORT = """
import os, resource, socket, sys
from pathlib import Path
from tanist.runtime import readiness
from tanist.runtime.faults import request_counts
from tanist.runtime.ports.descriptors import keep_reserve
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
keep_reserve(128, lambda: None)
request_counts.create(Path("."), 1)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind("notify")
listener.settimeout(30)
os.environ["NOTIFY_SOCKET"] = "notify"
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
readiness.tell_status("waiting")
print(listener.recv(100).decode().partition("\\n")[0])
print(request_counts.call(Path("."), 1, lambda number: True))
"""


def test_a_node_without_descriptors_says_what_it_waits_for_and_counts_on(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", _SHORT], check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert (shown.stdout.splitlines(), shown.stderr) == (["STATUS=waiting", "True"], "")
