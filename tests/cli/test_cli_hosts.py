"""One node a host: three `tanist serve` processes on addresses of their own, each with its own server.properties."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.records import Producer, read
from tanist.wire.batch import NewRecord

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")


def tanist(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tanist.cli.main", *arguments]


def free_port() -> int:
    """A port that is free on all hosts."""
    while True:
        with socket.socket() as first:
            first.bind((HOSTS[0], 0))
            port: int = first.getsockname()[1]
            try:
                for host in HOSTS[1:]:
                    with socket.socket() as other:
                        other.bind((host, port))
            except OSError:
                continue
            return port


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[tuple[str, int]]]:
    """Three nodes, formatted and serving; their addresses."""
    port, controller_port = free_port(), free_port()
    voters = ",".join(f"{number}@{host}:{controller_port}" for number, host in enumerate(HOSTS, 1))
    cluster_id = subprocess.run(tanist("random-uuid"), capture_output=True, text=True, check=True).stdout.strip()
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number, host in enumerate(HOSTS, 1):
            folder = tmp_path / f"host{number}"
            folder.mkdir()
            properties = folder / "server.properties"
            properties.write_text(
                f"process.roles=broker,controller\nnode.id={number}\n"
                f"listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}\n"
                f"controller.listener.names=CONTROLLER\ncontroller.quorum.voters={voters}\n"
                f"log.dirs={folder}/data\nmin.insync.replicas=2\n"
            )
            subprocess.run(tanist("format", "-c", str(properties), "-t", cluster_id), check=True, capture_output=True)
            log = (folder / "log").open("wb")
            running.append(subprocess.Popen(tanist("serve", str(properties)), stdout=log, stderr=log))
        yield [(host, port) for host in HOSTS]
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_nodes_on_different_hosts_are_one_cluster(hosts: list[tuple[str, int]]) -> None:
    client = Client(hosts, timeout_s=10)
    deadline = time.monotonic() + 60

    def topic_with_three_replicas() -> None:
        create_topic(client, "t", partitions=1, replication_factor=3)

    while True:
        try:
            client.persist(topic_with_three_replicas, timeout_s=10)
            break
        except (KafkaError, Unreachable):
            if time.monotonic() > deadline:
                raise
    producer = Producer(client, acks=-1)
    for number in range(20):
        producer.send("t", 0, [NewRecord(value=b"%d" % number)])
    found = [record.value for record in read(client, "t", 0, 0, 20)]
    assert found == [b"%d" % number for number in range(20)]
    assert {broker.host for broker in client.metadata(["t"]).brokers.values()} == set(HOSTS)
