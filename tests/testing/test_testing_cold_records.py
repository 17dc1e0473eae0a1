"""Records that have left the page cache: a node in a process reads them for a client that has been away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.testing import Kafka
from tests.interop.tanist_cluster import node_metric
from tests.testing.conftest import Send, values

COUNT = 60
VALUE_BYTES = 200_000


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
    cluster = load_existing(kafka.data)
    before = node_metric(cluster, 1, "tanist_cold_reads_total", timeout_s=20)
    assert values(kafka, topic) == sent
    after = node_metric(cluster, 1, "tanist_cold_reads_total", timeout_s=20)
    assert before is not None
    assert after is not None
    assert after > before
