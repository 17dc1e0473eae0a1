"""The sources through Spark Connect: a server with a Java, and a client of it that has none."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.processes import wait_until
from tests.spark import spark_short_lived

pytestmark = pytest.mark.skipif(find_spec("grpc") is None, reason="Spark Connect needs grpcio: make spark installs it")

QUERY = Path(__file__).with_name("spark_connect_query.py")
PATIENCE_S = 1_200
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    environment = spark_short_lived.environment()
    port = random.randint(20000, 60000)
    settings = {
        "spark.master": "local[2]", "spark.connect.grpc.binding.port": port, "spark.driver.memory": "1g",
        "spark.connect.grpc.binding.address": "127.0.0.1", "spark.ui.enabled": "false", "spark.local.dir": tmp_path,
        "spark.sql.warehouse.dir": tmp_path / "warehouse", "spark.log.level": "INFO",
        "spark.python.daemon.module": "tanist.spark.worker_daemon",
    }  # fmt: skip
    command = [f"{environment['SPARK_HOME']}/bin/spark-submit", "--class", SERVER]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    log = tmp_path / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "spark-internal"], env=environment, stdout=output, stderr=output)
    try:
        ready = wait_until(lambda: process.poll() is not None or "server started at" in log.read_text(), PATIENCE_S)
        assert ready, log.read_text()[-3000:]
        assert process.poll() is None, log.read_text()[-3000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_a_client_without_java_reads_and_writes(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    cluster = LocalCluster(folder)
    bootstrap = bootstrap_of(cluster.up(brokers=1, port=random.randint(20000, 60000)))
    try:
        with Client(parse_bootstrap(bootstrap)) as client:
            for topic in ("written", "streamed"):
                create_topic(client, topic, partitions=3)
        # No Java of the client's: neither found on the PATH nor named.
        environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": "/nowhere"}
        command = [sys.executable, str(QUERY), server, bootstrap, str(folder), str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    finally:
        cluster.down()
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        "client": "pyspark.sql.connect.session", "topic": [5000, 5000, sum(range(5000))], "segments": 5000,
        "metadata": True, "java": False,
    }  # fmt: skip
