"""kcat, as Debian ships it: an old librdkafka (2.0.2) that tests exact API versions."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.clients.samples import COMPRESSIONS
from tests.interop.cluster import Cluster, metadata, wait_in_sync
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.clients

TIMEOUT_S = 60.0


@pytest.fixture(scope="session")
def kcat_binary() -> str:
    binary = shutil.which("kcat") or shutil.which("kafkacat")
    assert binary is not None, "kcat is not installed (Debian: apt-get install kcat)"
    return binary


def kcat(binary: str, cluster: Cluster, *arguments: str, stdin: bytes = b"") -> str:
    """Run kcat to its end; what it printed. It must be silent about problems."""
    command = [binary, "-b", cluster.bootstrap, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)
    complaints = done.stderr.decode()
    assert done.returncode == 0, complaints
    assert "ERROR" not in complaints, complaints
    # What librdkafka says when a broker does not advertise what it needs for a codec.
    assert "does not support" not in complaints, complaints
    return done.stdout.decode()


def lines(count: int) -> list[str]:
    return [f"key-{number % 7}:value number {number} {'x' * (number % 50)}" for number in range(count)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_produced_is_consumed(kcat_binary: str, cluster: Cluster, topic_name: str, compression: str) -> None:
    sent = lines(500)
    kcat(
        kcat_binary, cluster, "-P", "-t", topic_name, "-p", "0", "-K", ":", "-z", compression,
        "-H", "origin=kcat", "-H", "empty=", stdin="\n".join(sent).encode(),
    )  # fmt: skip
    shown = kcat(
        kcat_binary, cluster, "-C", "-t", topic_name, "-p", "0", "-o", "beginning", "-e", "-q",
        "-f", "%o %h %k:%s\n",
    )  # fmt: skip
    assert shown.splitlines() == [f"{offset} origin=kcat,empty= {line}" for offset, line in enumerate(sent)]


def test_an_idempotent_producer(kcat_binary: str, cluster: Cluster, topic_name: str) -> None:
    sent = lines(300)
    kcat(
        kcat_binary, cluster, "-P", "-t", topic_name, "-p", "0", "-X", "enable.idempotence=true",
        stdin="\n".join(sent).encode(),
    )  # fmt: skip
    shown = kcat(kcat_binary, cluster, "-C", "-t", topic_name, "-p", "0", "-o", "beginning", "-e", "-q")
    assert shown.splitlines() == sent


def test_offsets_from_the_end_and_by_timestamp(kcat_binary: str, cluster: Cluster, topic_name: str) -> None:
    before = lines(20)
    kcat(kcat_binary, cluster, "-P", "-t", topic_name, "-p", "0", stdin="\n".join(before).encode())
    stamps = kcat(
        kcat_binary, cluster, "-C", "-t", topic_name, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%T\n"
    ).split()
    assert len(stamps) == 20

    tail = kcat(kcat_binary, cluster, "-C", "-t", topic_name, "-p", "0", "-o", "-5", "-e", "-q", "-f", "%o\n")
    assert tail.split() == ["15", "16", "17", "18", "19"]

    queried = kcat(kcat_binary, cluster, "-Q", "-t", f"{topic_name}:0:{stamps[0]}")
    assert queried.split() == [topic_name, "[0]", "offset", "0"]
    ends = kcat(kcat_binary, cluster, "-Q", "-t", f"{topic_name}:0:-1")
    assert ends.split() == [topic_name, "[0]", "offset", "20"]

    later = f"s@{int(stamps[-1]) + 1}"
    kcat(kcat_binary, cluster, "-P", "-t", topic_name, "-p", "0", stdin=b"afterwards")
    fresh = kcat(kcat_binary, cluster, "-C", "-t", topic_name, "-p", "0", "-o", later, "-e", "-q", "-f", "%o %s\n")
    assert fresh.splitlines() == ["20 afterwards"]


def test_metadata_as_json(kcat_binary: str, cluster: Cluster, topic_name: str) -> None:
    kcat(kcat_binary, cluster, "-P", "-t", topic_name, stdin=b"so that it exists")
    wait_in_sync(cluster, topic_name)
    reported = json.loads(kcat(kcat_binary, cluster, "-L", "-J", "-t", topic_name))
    assert {broker["id"]: broker["name"] for broker in reported["brokers"]} == {
        node_id: "{}:{}".format(*cluster.address(node_id)) for node_id in cluster.node_ids
    }
    (topic,) = reported["topics"]
    (expected,) = metadata(cluster, cluster.node_ids[0], (topic_name,)).topics[topic_name]
    assert [partition["leader"] for partition in topic["partitions"]] == [expected.leader]


def test_a_broker_list_of_one_is_enough(kcat_binary: str, cluster: Cluster, topic_name: str) -> None:
    """Any broker leads a client to all of them."""
    kcat(kcat_binary, cluster, "-P", "-t", topic_name, stdin=b"so that it exists")
    for node_id in cluster.node_ids:
        address = "{}:{}".format(*cluster.address(node_id))

        def reads(address: str = address) -> bool:
            command = [kcat_binary, "-b", address, "-C", "-t", topic_name, "-o", "beginning", "-e", "-q"]
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
            return done.stdout == b"so that it exists\n"

        wait_for(reads, f"kcat reads through {address}")
