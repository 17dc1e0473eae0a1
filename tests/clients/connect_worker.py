"""Kafka Connect as a process: a worker in distributed mode, its REST interface, and connectors that run in it."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.clients.exactly_once import SETTLE_S
from tests.interop.waiting import wait_for

WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextmanager
def worker(folder: Path, jars: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The worker that the folder's `worker.properties` describe, as a process, until the end of the block."""
    command = ["java", *FLAGS, "-cp", f"{jars}/*", WORKER, "worker.properties"]
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ask(address: str, body: str | None = None) -> Any:
    """The worker's answer; None while it has none, or is busy with a rebalance."""
    request = urllib.request.Request(address, headers={"Content-Type": "application/json"})
    if body is not None:
        request.data, request.method = body.encode(), "PUT"
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return None


def put_connector(address: str, name: str, settings: Mapping[str, str], log: Path) -> None:
    """Have the worker run a connector, as soon as it takes one."""
    put = partial(ask, f"{address}/connectors/{name}/config", json.dumps(settings))
    wait_for(put, f"connector {name}, see {log}", timeout_s=SETTLE_S)


def task_states(address: str, name: str) -> list[str]:
    """RUNNING, FAILED, ... of each task of a connector."""
    status = ask(f"{address}/connectors/{name}/status")
    return [task["state"] for task in status["tasks"]] if status is not None else []
