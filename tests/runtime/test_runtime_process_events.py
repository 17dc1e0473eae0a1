"""The events of a node's process: emitted by `serve` in processes of their own, where they begin, end and run short.

Each process prints its events as JSON instead of the operator's lines.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tanist.events import process
from tanist.events.event import KIND, Event, from_json
from tanist.events.process import (
    BrokerReady,
    CertificateRefused,
    CertificateTaken,
    ClusterIdIgnored,
    ConfigWarned,
    ConnectionsExhausted,
    Crashed,
    DescriptorLimitLow,
    DescriptorLimitReached,
    FolderFormatted,
    FolderMissing,
    FormatFailed,
    MetricsNotServed,
    MetricsServed,
    NodeStarted,
    ServerStarted,
    ShutdownBegun,
    ShutdownDone,
    SignalReceived,
    StartFailed,
    TlsHandshakeFailed,
)
from tanist.runtime.ports.descriptors import NEEDED, PLENTY
from tests.certificates import CertificateAuthority

_SCRIPT = """
import json, os, resource, sys
from tanist.broker.node import Node
from tanist.events import process
from tanist.events.event import to_json
from tanist.runtime.ports.descriptors import opening
from tanist.runtime.process import serve

def tell(event, now_ms=None):
    print(json.dumps(to_json(event)), flush=True)

class Behaving(Node):
    def start(self):
        super().start()
        if do == "raise":
            self.context.clock.call_at(0, lambda: 1 // 0)
        if do == "open":
            self.context.clock.call_at(0, self.open_all)

    def open_all(self):
        held = []
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            held.append(opening(lambda: os.open(os.devnull, os.O_RDONLY)))
        for each in held:
            os.close(each)

    def stop(self, done):
        if do != "stay":
            super().stop(done)

do, limit, *arguments = sys.argv[1:]
if limit != "0":
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(limit), int(limit)))
serve.print_event = tell
if do == "serve only":
    from tanist.runtime.process.environment import properties_from
    config = serve.NodeConfig.from_properties(properties_from(None, os.environ))
    raise SystemExit(serve.serve(config, Behaving))
raise SystemExit(serve.run_environment(None, {}, os.environ, Behaving))
"""

Begin = Callable[..., "Served"]
LIMIT = 400
OF_A_PROCESS = {name for name, kind in Event.kinds.items() if kind.__module__ == process.__name__}


class Served:
    """A node's process, and what it has emitted."""

    def __init__(self, served: subprocess.Popen[str]) -> None:
        self.process = served
        self.heard: list[Event] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, kind: type[Event]) -> Any:
        """The first event of the kind; what comes before is read."""
        for event in self._read():
            if isinstance(event, kind):
                return event
        raise AssertionError(f"no {kind.__name__} but {self.heard}")

    def end(self) -> int:
        """All the rest, and the exit code."""
        for _ in self._read():
            pass
        return self.process.wait(timeout=120)

    def of(self, *kinds: type[Event]) -> list[Event]:
        return [event for event in self.heard if isinstance(event, kinds)]

    def _read(self) -> Iterator[Event]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            document = json.loads(line) if line.startswith("{") else {}
            if document.get(KIND) in OF_A_PROCESS:
                self.heard.append(from_json(document))
                yield self.heard[-1]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    script, started = tmp_path / "served.py", list[Served]()
    script.write_text(_SCRIPT)

    def start(do: str = "", limit: int = 0, cluster_id: str = "wanted", **properties: str) -> Served:
        given = {
            "node.id": "7",
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"7@127.0.0.1:{free_port()}",
            "log.dirs": str(tmp_path / "data"),
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        controller = given["controller.quorum.voters"].partition("@")[2]
        given["listeners"] = f"PLAINTEXT://127.0.0.1:{free_port()},CONTROLLER://{controller}"
        named = {f"KAFKA_{name.replace('.', '_').upper()}": value for name, value in given.items()}
        environment = {**os.environ, "CLUSTER_ID": cluster_id, **named}
        command = [sys.executable, str(script), do, str(limit)]
        started.append(Served(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)))
        hangs = threading.Timer(60, started[-1].process.kill)  # so that who reads its events does not wait for ever
        hangs.daemon = True
        hangs.start()
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_life(begin: Begin, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    node = begin(no_such_setting="1", tanist_metrics_listener="127.0.0.1:0")
    node.until(ServerStarted)
    node.process.terminate()
    assert node.end() == 0
    lived = node.of(
        FolderFormatted, ConfigWarned, MetricsServed, NodeStarted, BrokerReady, ServerStarted, SignalReceived,
        ShutdownBegun, ShutdownDone,
    )  # fmt: skip
    formatted, warned, metrics, started, *rest = lived
    assert formatted == FolderFormatted(data, 7, "wanted")
    assert isinstance(warned, ConfigWarned)
    assert "no.such.setting" in warned.warning
    assert isinstance(metrics, MetricsServed)
    assert metrics.host == "127.0.0.1"
    assert metrics.port > 0
    assert isinstance(started, NodeStarted)
    assert (started.node_id, started.roles, started.process_id) == (7, ("broker", "controller"), node.pid)
    assert [listener.partition("://")[0] for listener in started.listeners] == ["PLAINTEXT", "CONTROLLER"]
    assert started.took_ms > 0
    assert rest == [
        BrokerReady(7), ServerStarted(7), SignalReceived("SIGTERM", again=False), ShutdownBegun(7), ShutdownDone(7),
    ]  # fmt: skip


def test_it_is_asked_again_to_stop(begin: Begin) -> None:
    node = begin("stay")
    node.until(NodeStarted)
    for number, again in ((signal.SIGINT, False), (signal.SIGTERM, True)):
        node.process.send_signal(number)
        assert node.until(SignalReceived) == SignalReceived(number.name, again)
    assert node.end() == 128 + signal.SIGTERM


def test_ports_that_others_have(begin: Begin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        node = begin(tanist_metrics_listener=f"127.0.0.1:{port}")
        refused = node.until(MetricsNotServed)
        assert (refused.host, refused.port) == ("127.0.0.1", port)
        assert "address already in use" in refused.problem
        node.until(NodeStarted)
        node.process.kill()
        node = begin(controller_quorum_voters=f"7@127.0.0.1:{port}")
        failed = node.until(StartFailed)
        assert node.end() == 1
        assert isinstance(failed, StartFailed)
        assert failed.node_id == 7
        assert "Address already in use" in failed.problem
        assert node.of(NodeStarted) == []


def test_folders_that_are_not_to_be_had(begin: Begin, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    missing = begin("serve only")
    assert missing.end() == 1
    assert missing.heard == [FolderMissing(folder)]
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "data")
    failed = begin(log_dirs=folder)
    assert failed.end() == 1
    assert failed.heard == [FormatFailed((folder,), f"Not a directory: {folder}/meta.properties")]


def test_a_folder_keeps_its_cluster(begin: Begin, tmp_path: Path) -> None:
    node = begin()
    node.until(NodeStarted)
    node.process.terminate()
    node.end()
    again = begin(cluster_id="another")
    again.until(NodeStarted)
    assert again.of(ClusterIdIgnored, FolderFormatted) == [
        ClusterIdIgnored(str(tmp_path / "data"), "wanted", "CLUSTER_ID", "another")
    ]


def test_what_comes_through_to_the_loop(begin: Begin, tmp_path: Path) -> None:
    node = begin("raise")
    crashed = node.until(Crashed)
    assert node.end() == 1
    (report,) = (tmp_path / "data").glob("crash-report-*.txt")
    assert crashed == Crashed(crashed.reason, str(report))
    assert "unexpected error in timer: ZeroDivisionError(" in crashed.reason
    assert node.of(ShutdownBegun, ShutdownDone) == []


def test_files_run_short(begin: Begin) -> None:
    assert NEEDED < LIMIT < PLENTY
    node = begin("open", LIMIT)
    assert node.until(DescriptorLimitLow) == DescriptorLimitLow(LIMIT, PLENTY)
    assert node.until(DescriptorLimitReached) == DescriptorLimitReached(LIMIT)


def test_too_few_files_for_a_node(begin: Begin) -> None:
    node = begin("", NEEDED - 56)
    assert node.end() == 1
    (failed,) = node.of(StartFailed)
    assert isinstance(failed, StartFailed)
    assert failed.problem.startswith("the limit of open files is 200, and a node needs 256")


def test_connections_run_short(begin: Begin) -> None:
    node = begin(max_connections="3")
    started = node.until(NodeStarted)
    node.until(ServerStarted)
    port = int(started.listeners[0].rpartition(":")[2])
    with ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        exhausted = node.until(ConnectionsExhausted)
    assert isinstance(exhausted, ConnectionsExhausted)
    assert exhausted.open == 3
    assert exhausted.problem


def test_a_client_without_tls_and_certificates_that_change(begin: Begin, tmp_path: Path) -> None:
    authority = CertificateAuthority()
    store = tmp_path / "node.pem"
    stores = authority.issue("first").pem_files(tmp_path)
    node = begin(
        listener_security_protocol_map="PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
        tanist_ssl_watch_interval_ms="20",
        **{name.replace(".", "_"): value for name, value in stores.items()},
    )
    taken = node.until(CertificateTaken)
    assert (taken.listener, taken.subject) == ("PLAINTEXT", "CN=first,O=tanist\\, tests")
    started = node.until(NodeStarted)
    node.until(ServerStarted)
    with socket.create_connection(("127.0.0.1", int(started.listeners[0].rpartition(":")[2]))) as client:
        client.sendall(b"\0\0\0\4\0\0\0\0")
        failed = node.until(TlsHandshakeFailed)
        assert client.recv(100) == b""
    assert (failed.listener, failed.dialled) == ("PLAINTEXT", False)
    assert "without TLS" in failed.problem
    other = authority.issue("second")
    written = tmp_path / "written"
    written.write_text(other.key_pem() + other.chain_pem)
    os.replace(written, store)
    refused = node.until(CertificateRefused)
    assert "ssl.allow.dn.changes" in refused.problem
    again = authority.issue("first")
    written.write_text(again.key_pem() + again.chain_pem)
    os.replace(written, store)
    assert node.until(CertificateTaken).subject == taken.subject
