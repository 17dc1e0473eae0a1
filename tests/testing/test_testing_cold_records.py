"""Records that have left the page cache: a node in a process reads them for a client that has been away."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

import pytest

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.layout import metrics_address
from tanist.testing import Kafka
from tests.testing.conftest import Send, values

COUNT = 60
VALUE_BYTES = 200_000


def cold_reads(folder: Path, node: int) -> int:
    cluster = load_existing(folder)
    address = metrics_address(cluster, cluster.node(node))
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return int(next(line for line in lines if line.startswith("tanist_cold_reads_total ")).split()[1])


def drop_from_memory(path: Path) -> None:
    """Let the kernel drop a file's pages, as a full memory would; skips where it does not."""
    with path.open("rb") as file:
        fd = file.fileno()
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return
        except OSError:
            pass
    pytest.skip("this file system keeps files in memory, or can't say")


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="the system cannot be asked what is in memory")
def test_a_client_that_has_been_away_gets_what_has_left_memory(kafka: Kafka, send: Send) -> None:
    topic = kafka.create_topic(kafka.topic("orders"), assignment=[(1,)])
    sent = [f"{number:06d}".ljust(VALUE_BYTES, "x") for number in range(COUNT)]
    for value in sent:
        send(topic, [value])
    (log,) = (kafka.data / "node-1" / "data" / f"{topic}-0").glob("*.log")
    assert log.stat().st_size > COUNT * VALUE_BYTES
    drop_from_memory(log)
    before = cold_reads(kafka.data, 1)
    assert values(kafka, topic) == sent
    assert cold_reads(kafka.data, 1) > before
