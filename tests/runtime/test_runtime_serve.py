"""A node's process: signals, exit codes, what it says. With a stand-in for the node, in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_STAND_IN = """
import asyncio, os, signal, sys
from tanist.events.process import ConfigWarned, NodeFailed
from tanist.runtime.process.serve import load_config, serve

class Node:
    def __init__(self, config, clock, disk, network, random, events, on_fatal, on_crash, read_url):
        self.clock, self.emit, self.on_fatal = clock, events.emit, on_fatal
        self.behaviour = sys.argv[2]
        if self.behaviour == "bad-folder":
            raise ValueError("meta.properties is missing: format the folder first")
        self.network, self.config = network, config

    def start(self):
        if self.behaviour == "stopped-when-the-loop-has-run":  # as to open the port for the metrics
            self.clock.aio.run_until_complete(asyncio.sleep(0))
        if self.behaviour.startswith("stopped"):
            os.kill(os.getpid(), signal.SIGTERM)
        endpoint = self.config.listeners[0]
        self.listener = self.network.bind(endpoint.host, endpoint.port, lambda _: None, max_frame_bytes=100)
        self.listener.open()
        if self.behaviour == "fatal":
            self.clock.call_at(0, lambda: (self.emit(NodeFailed("no disk")), self.on_fatal("no disk")))
        if self.behaviour == "bug":
            self.clock.call_at(0, lambda: 1 // 0)
        self.clock.call_at(self.clock.now_ms() + 1, lambda: self.emit(ConfigWarned("listening")))

    def crash(self, place, error):
        pass

    def status(self):
        return {"state": "RUNNING"}

    def stop(self, done):
        self.emit(ConfigWarned("asked to stop"))
        if self.behaviour != "never-stops":
            self.clock.call_at(self.clock.now_ms() + 1, done)

raise SystemExit(serve(load_config(sys.argv[1], {}), Node))
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    script = tmp_path / "stand_in.py"
    script.write_text(_STAND_IN)
    data = tmp_path / "data"
    data.mkdir()
    properties = tmp_path / "server.properties"
    processes: list[subprocess.Popen[str]] = []

    def begin(behaviour: str = "plain", port: int = 0, log_dirs: Path = data) -> subprocess.Popen[str]:
        properties.write_text(
            "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0\nlog.dirs={log_dirs}\n"
            "controller.quorum.voters=7@127.0.0.1:9093\nno.such.setting=1\n"
        )
        process = subprocess.Popen(
            [sys.executable, str(script), str(properties), behaviour], stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], word: str) -> list[str]:
    """The lines up to the one with the word."""
    lines: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if word in line:
            return lines
    pytest.fail(f"no line with {word!r} but {lines}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_an_orderly_way(start: Start, number: int) -> None:
    process = start()
    lines = wait_for(process, "listening")
    assert any("WARN no.such.setting" in line for line in lines)
    assert any("node 7 (broker and controller" in line and "started in" in line for line in lines)
    process.send_signal(number)
    out, _ = process.communicate(timeout=120)
    assert "asked to stop" in out
    assert process.returncode == 0


@pytest.mark.parametrize("when", ["stopped-as-it-starts", "stopped-when-the-loop-has-run"])
def test_a_signal_that_comes_while_it_starts_is_not_lost(start: Start, when: str) -> None:
    out, _ = start(when).communicate(timeout=120)
    assert "SIGTERM: shutting down" in out
    assert "asked to stop" in out


def test_a_second_signal_ends_it_at_once(start: Start) -> None:
    process = start("never-stops")
    wait_for(process, "listening")
    process.terminate()
    wait_for(process, "asked to stop")
    process.terminate()
    out, _ = process.communicate(timeout=120)
    assert "at once" in out
    assert process.returncode == 128 + signal.SIGTERM


def test_a_fatal_error_ends_it_with_a_code(start: Start) -> None:
    process = start("fatal")
    out, _ = process.communicate(timeout=120)
    assert "ERROR no disk" in out
    assert process.returncode == 1


def test_what_comes_through_to_the_loop_ends_the_process_with_a_crash_report(start: Start, tmp_path: Path) -> None:
    process = start("bug")
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    (report,) = (tmp_path / "data").glob("crash-report-*.txt")
    assert "ERROR unexpected error in timer: ZeroDivisionError" in out
    assert f"see the crash report {report}" in out
    assert "Traceback" in report.read_text()


def test_a_taken_port_is_said(start: Start) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start(port=taken.getsockname()[1])
        out, _ = process.communicate(timeout=120)
    assert "cannot start" in out
    assert "in use" in out
    assert process.returncode == 1


def test_what_the_node_refuses_is_said(start: Start) -> None:
    process = start("bad-folder")
    out, _ = process.communicate(timeout=120)
    assert "format the folder first" in out
    assert process.returncode == 1


def test_a_missing_folder_is_said(start: Start, tmp_path: Path) -> None:
    process = start(log_dirs=tmp_path / "none")
    out, _ = process.communicate(timeout=120)
    assert "tanist format" in out
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "properties file"),
        (["a", "b"], "'b'"),
        (["--what"], "--what"),
        (["a", "--override", "novalue"], "KEY=VALUE"),
        (["/no/such/file"], "No such file"),
    ],
)
def test_usage(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "tanist.runtime.process.serve", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert said in result.stderr
    assert result.returncode == 2


def test_a_bad_setting_is_said(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\n")
    command = [sys.executable, "-m", "tanist.runtime.process.serve", str(path), "--override=process.roles=baker"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "process.roles" in result.stderr
    assert result.returncode == 2


def test_serving_does_not_import_what_only_the_command_line_needs() -> None:
    costly = "{'click', 'jinja2', 'kio', 'hypothesis'}"
    code = f"import tanist.runtime.process.serve, sys; print(*sorted({costly} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
