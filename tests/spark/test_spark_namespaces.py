"""The pipeline on hosts of their own: a master, two workers, a driver and a Kafka cluster, each with an address.

Workers have Spark and a Python without a package. What they need comes from `tanist spark package`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.cluster.processes import wait_until
from tanist.spark.worker_archive import FOLDER
from tests.spark.namespaces import Namespaces
from tests.spark.spark_standalone import Standalone

pytestmark = pytest.mark.slow

QUERY = Path(__file__).with_name("spark_standalone_query.py")
HOSTS = ("kafka", "master", "worker-0", "worker-1", "driver")
PORT = 9092
PATIENCE_S = 3600
"""Of a machine that has other work: Spark starts eight processes of Java and Python."""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Namespaces]:
    with Namespaces(*HOSTS) as found:
        yield found


@pytest.fixture(scope="module")
def spark_cluster(hosts: Namespaces, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("standalone"), random.randint(40001, 60000), hosts=hosts) as found:
        yield found


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without a package, of the driver's version."""
    folder = tmp_path_factory.mktemp("bare")
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    subprocess.run([str(base), "-m", "venv", "--without-pip", str(folder)], check=True)
    found = str(folder / "bin" / "python3")
    assert subprocess.run([found, "-c", "import tanist"], capture_output=True, check=False).returncode
    return found


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What `tanist spark package` says that a job needs."""
    archive = tmp_path_factory.mktemp("archive") / "tanist-env.tar.gz"
    done = subprocess.run(
        [sys.executable, "-m", "tanist.cli.main", "spark", "package", str(archive), "--json"],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    written: dict[str, Any] = json.loads(done.stdout)
    assert written["size_bytes"] == archive.stat().st_size
    found: dict[str, str] = written["conf"]
    return found


@contextmanager
def kafka(hosts: Namespaces, folder: Path) -> Iterator[str]:
    """A cluster of three brokers on its host; its bootstrap address."""
    tanist = [sys.executable, "-m", "tanist.cli.main"]
    address = hosts.address("kafka")
    up = [*tanist, "up", "--detach", "--host", address, "--port", str(PORT), "--data", str(folder)]
    subprocess.run(hosts.on("kafka", *up), check=True)
    try:
        yield f"{address}:{PORT}"
    finally:
        subprocess.run(hosts.on("kafka", *tanist, "down", "--data", str(folder)), check=True)


def driver(hosts: Namespaces, python: str, *command: str) -> subprocess.Popen[str]:
    """A command on the driver's host. Nothing says which address it has."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
    return subprocess.Popen(
        hosts.on("driver", sys.executable, *command), env=environment | {"PYSPARK_PYTHON": python},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_topics_and_files_are_read_and_written_by_workers_that_had_nothing(
    hosts: Namespaces, spark_cluster: Standalone, bare_python: str, conf: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    with kafka(hosts, folder) as bootstrap:
        create = [sys.executable, "-m", "tanist.cli.main", "topics", "create", "--partitions", "4"]
        for topic in ("written", "streamed"):
            subprocess.run(hosts.on("driver", *create, topic, "--bootstrap", bootstrap), check=True)
        place = (spark_cluster.master, bootstrap, str(folder), str(tmp_path / "scratch"))
        with driver(
            hosts, bare_python, str(QUERY), *place, *(f"{name}={value}" for name, value in conf.items())
        ) as job:
            printed, problem = job.communicate(timeout=PATIENCE_S)
        assert job.returncode == 0, problem[-4000:]
        options = ("--master", spark_cluster.master, "--data", str(folder), "--json", *settings(conf))
        with driver(hosts, bare_python, "-m", "tanist.cli.main", "spark", "audit", *options) as job:
            audited, problem = job.communicate(timeout=PATIENCE_S)
        assert job.returncode == 0, problem[-4000:] + audited
    assert json.loads(audited)["counts"] == []
    found = json.loads(printed.splitlines()[-1])
    assert found["topic"] == [20_000, 20_000, sum(range(20_000))]
    assert found["segments"][1] == 20_000
    assert found["metadata"] == 4
    assert found["driver"] == hosts.address("driver")
    assert len(found["executors"]) == 2
    for folder_of_executor, code in found["executors"].items():
        assert Path(code).is_relative_to(Path(folder_of_executor) / FOLDER)


def test_a_host_dies_while_its_worker_plays_seeds(
    hosts: Namespaces, spark_cluster: Standalone, bare_python: str, conf: dict[str, str], tmp_path: Path
) -> None:
    """Two blocks, one for each worker. The other one plays both in the end."""
    table = tmp_path / "seeds"
    command = ("-m", "tanist.cli.main", "spark", "seeds", "--master", spark_cluster.master, "--seeds", "85..114")
    options = ("--kind", "groups", "--fault", "crash", "--output", str(table), "--json")
    before = unpacked(spark_cluster)
    with driver(hosts, bare_python, *command, *options, *settings(conf)) as job:
        assert wait_until(lambda: len(unpacked(spark_cluster) - before) == 2 or job.poll() is not None, 300)
        for process in hosts.processes("worker-0"):
            os.kill(process, signal.SIGKILL)
        printed, problem = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0, problem[-4000:]
    (kind,) = json.loads(printed)["kinds"]
    assert (kind["kind"], kind["seeds"], kind["violations"]) == ("groups", 30, {})


def settings(conf: dict[str, str]) -> list[str]:
    """The options of a command."""
    small = {"spark.executor.memory": "500m", "spark.driver.memory": "512m", "spark.executor.cores": "1"}
    return [part for each in (conf | small).items() for part in ("--conf", "=".join(each))]


def unpacked(cluster: Standalone) -> set[Path]:
    """The archives that executors have, each in its working directory."""
    return set(cluster.folder.glob(f"work-*/app-*/*/{FOLDER}/tanist/__init__.py"))
