"""Processes of a cluster: who they are, and how they are launched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tanist.runtime.cluster.processes import Launcher, LaunchFailed, ProcessMark, start_time, wait_until
from tanist.runtime.readiness import Readiness


def test_a_process_id_that_was_used_again_is_never_signalled() -> None:
    own = ProcessMark(os.getpid(), "another time")
    assert not own.alive
    assert not own.signal(signal.SIGKILL)  # or this would be the end of the tests
    assert ProcessMark(os.getpid(), start_time(os.getpid()) or "").alive


MAIN_THREAD_ENDS_FIRST = """
import ctypes, sys, threading
def other():
    print("runs", flush=True)
    sys.stdin.read()
threading.Thread(target=other).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system has no zombies with threads")
def test_a_process_whose_main_thread_has_ended_lives_on_in_the_others() -> None:
    """After a SIGKILL a thread may be in a sync for seconds: the files are open and their locks held until it ends."""
    command = [sys.executable, "-c", MAIN_THREAD_ENDS_FIRST]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"runs\n"
        mark = ProcessMark(child.pid, start_time(child.pid) or "ended")
        status = Path(f"/proc/{child.pid}/stat")
        assert wait_until(lambda: status.read_text().rsplit(")", 1)[1].split()[0] == "Z", 120)
        assert mark.alive
        assert not mark.paused
        mark.kill()
        assert not mark.alive


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    mark = ProcessMark(child.pid, start_time(child.pid) or "ended")
    assert wait_until(lambda: not mark.alive, 120)
    assert Path(f"/proc/{child.pid}").exists()
    child.wait()


def test_a_launcher_that_fails_is_reported() -> None:
    command = [sys.executable, "-c", "import sys; print('what a pity', file=sys.stderr); sys.exit(3)"]
    with Launcher(command, {}) as launcher, pytest.raises(LaunchFailed, match=r"(?s)ended with 3:.*what a pity"):
        launcher.launch([])


def test_a_launcher_that_is_not_used_leaves_nothing() -> None:
    with Launcher([sys.executable, "-c", "import sys; sys.stdin.read()"], {}) as launcher:
        process = launcher._process
    assert process.returncode == -signal.SIGKILL


def test_readiness_is_heard_from_any_process() -> None:
    tell = "from tanist.runtime.readiness import tell_ready; tell_ready()"
    with Readiness() as readiness:
        environment = os.environ | readiness.environment
        teller = subprocess.Popen([sys.executable, "-c", tell], env=environment)
        assert wait_until(lambda: readiness.is_ready(teller.pid), 120)
        assert not readiness.is_ready(os.getpid())
        teller.wait()
    subprocess.run([sys.executable, "-c", tell], env=environment, check=True)  # nobody listens any more
