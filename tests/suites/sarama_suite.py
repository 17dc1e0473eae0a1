"""sarama's functional tests, from its Go module, on five nodes that are started for them.

They come through toxiproxy, which breaks connections for them, at the addresses that the nodes advertise; and they stop
and start nodes by `docker compose`, for which a program of ours stands in.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from tests.clients import builds
from tests.clients.install import CACHE
from tests.interop import apache
from tests.interop.cluster import HOST, free_ports
from tests.interop.waiting import wait_for
from tests.suites.nodes import Nodes
from tests.suites.results import Result, from_go

NAME: Final = "sarama"
HERE: Final = Path(__file__).with_name("sarama")
PACKAGE: Final = "github.com/IBM/sarama"
PROXY: Final = "github.com/Shopify/toxiproxy/v2/cmd/server"
FIRST_PORT: Final = 29091
"""Where its tests look for brokers."""
TESTS: Final = "TestFunc|TestConsumer|TestVersionMatrix|TestReadOnly|TestInterceptors|TestJava|TestAsyncProducerRemote"
LISTENERS: Final = {"INTERNAL": "PLAINTEXT", "LOCAL": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}


@dataclass(slots=True)
class ProxiedNodes(Nodes):
    """Nodes that tell clients the proxy's addresses."""

    def properties(self, node_id: int) -> dict[str, str]:
        internal = f"INTERNAL://{HOST}:{self.port(node_id, 'INTERNAL')}"
        return {
            **Nodes.properties(self, node_id),
            "advertised.listeners": f"{internal},LOCAL://{HOST}:{FIRST_PORT + node_id - 1}",
            "broker.rack": str(node_id),
        }


def run(target: str, *, only: str | None, limit_s: float) -> list[Result]:
    if (reason := builds.missing_go() or (apache.missing() if target == "apache" else None)) is not None:
        return [Result(PACKAGE, "skipped", reason)]
    with tempfile.TemporaryDirectory(prefix="suites-") as scratch:
        folder = Path(scratch)
        more = {
            "default.replication.factor": "2",
            "offsets.topic.replication.factor": "2",
            "transaction.state.log.replication.factor": "2",
            "transaction.state.log.min.isr": "1",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
        }
        nodes = ProxiedNodes(target, folder, LISTENERS, "INTERNAL", nodes=5, more=more)
        program = folder / "bin" / "docker"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "docker.py"} "$@"\n')
        program.chmod(0o755)
        try:
            nodes.start()
            with _toxiproxy(nodes) as proxy, _compose(nodes) as compose:
                environment = {
                    "TOXIPROXY_ADDR": proxy,
                    "KAFKA_VERSION": apache.VERSION,
                    "PATH": f"{program.parent}:{os.environ['PATH']}",
                    "SUITES_NODES": compose,
                }
                return _tests(environment, only or TESTS, limit_s)
        finally:
            nodes.stop()


def _tests(environment: Mapping[str, str], only: str, limit_s: float) -> list[Result]:
    command = [
        "go", "test", "-json", "-mod=readonly", "-count=1", "-tags=functional", f"-timeout={limit_s:.0f}s",
        "-run", only, PACKAGE,
    ]  # fmt: skip
    log = CACHE / "suites-sarama.log"
    with log.open("w") as output:
        subprocess.run(
            command, cwd=HERE, env={**builds.go_environment(), **environment}, stdout=output,
            stderr=subprocess.STDOUT, check=False, timeout=2 * limit_s + builds.INSTALL_S,
        )  # fmt: skip
    results = from_go(log.read_text(errors="replace").splitlines())
    return results or [Result(PACKAGE, "failed", f"no test ran: see {log.relative_to(CACHE.parent)}")]


@contextmanager
def _toxiproxy(nodes: Nodes) -> Iterator[str]:
    """Its address; it has a proxy before each node."""
    built = nodes.folder / "toxiproxy"
    go = dict(builds.go_environment())
    subprocess.run(["go", "build", "-mod=readonly", "-o", str(built), PROXY], cwd=HERE, env=go, check=True)
    config = nodes.folder / "toxiproxy.json"
    config.write_text(
        json.dumps(
            [
                {
                    "name": f"kafka{node_id}",
                    "listen": f"{HOST}:{FIRST_PORT + node_id - 1}",
                    "upstream": f"{HOST}:{nodes.port(node_id, 'LOCAL')}",
                    "enabled": True,
                }
                for node_id in nodes.node_ids
            ]
        )
    )
    port = free_ports(1)
    with (nodes.folder / "toxiproxy.log").open("wb") as log:
        process = subprocess.Popen(
            [str(built), "-host", HOST, "-port", str(port), "-config", str(config)], stdout=log, stderr=log
        )
    try:
        proxied = (HOST, FIRST_PORT + nodes.nodes - 1)
        wait_for(lambda: _answers(proxied, process), "toxiproxy listens")
        yield f"http://{HOST}:{port}"
    finally:
        process.terminate()
        process.wait()


def _answers(address: tuple[str, int], process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is not None:
        raise AssertionError(f"toxiproxy has ended with {process.returncode}")
    with socket.create_connection(address, timeout=5.0):
        return True


@contextmanager
def _compose(nodes: Nodes) -> Iterator[str]:
    """The address where `docker.py` asks for a node to be started or stopped, or for its log."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            what, name = self.path.strip("/").split("/")
            node_id, answer = int(name.removeprefix("kafka-")), b""
            if what == "stop":
                nodes.stop_node(node_id)
            elif what == "start" and nodes.pid(node_id) is None:
                nodes.start_node(node_id)
            elif what == "logs":
                answer = nodes.log(node_id).read_bytes()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
