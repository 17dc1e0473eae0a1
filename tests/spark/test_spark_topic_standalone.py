"""The sources on a standalone master and two workers: other processes than the driver's, other executors."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tests.spark.spark_standalone import Standalone

pytestmark = pytest.mark.slow
DRIVER = "127.0.0.2"
QUERY = Path(__file__).with_name("spark_standalone_query.py")


def test_read_and_written_by_two_workers(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    cluster = LocalCluster(folder)
    bootstrap = bootstrap_of(cluster.up(brokers=1, port=random.randint(20000, 40000)))
    try:
        with Client(parse_bootstrap(bootstrap)) as client:
            for topic in ("written", "streamed"):
                create_topic(client, topic, partitions=4)
        with Standalone(tmp_path, random.randint(40001, 60000)) as spark:
            command = [sys.executable, str(QUERY), spark.master, bootstrap, str(folder), str(tmp_path / "scratch")]
            # Another address than the one to which a driver on one machine binds; still no other machine's.
            environment = os.environ | {"SPARK_LOCAL_IP": DRIVER}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["topic"] == [20_000, 20_000, sum(range(20_000))]
        assert found["segments"] == [20_000, 20_000]
        assert found["metadata"] == 4
        assert len(found["executors"]) == 2
        # Where the executors have dialled it; and no number of cores of this machine's.
        assert (found["driver"], found["shuffles"]) == (DRIVER, "200")
    finally:
        cluster.down()
