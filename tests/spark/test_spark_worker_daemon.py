"""The process that Python workers are forked from: what it has imported, and that a fork of it is safe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.spark import spark_home, worker_daemon

FORKS = """
import json, os, sys
from tanist.spark import worker_daemon

worker_daemon.import_all()
threads = worker_daemon.threads()
found = []
for _ in range(2):
    reading, writing = os.pipe()
    if not os.fork():
        import numpy as np, pandas as pd, pyarrow as pa, pyarrow.compute as pc
        # Enough for Arrow's threads, which this process has to start by itself.
        table = pa.table({"a": np.arange(1 << 20), "b": np.arange(1 << 20) % 7})
        sums = pa.TableGroupBy(table, "b", use_threads=True).aggregate([("a", "sum")])
        product = int((np.ones((300, 300)) @ np.ones((300, 300))).sum())
        said = {"sum": pc.sum(sums["a_sum"]).as_py(), "product": product, "drawn": np.random.random(),
                "pandas": int(table.to_pandas()["a"].sum()),
                "conf": os.environ.get("JE_ARROW_MALLOC_CONF")}
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as answer:
        found.append(json.load(answer))
print(json.dumps([threads, found]))
"""


def test_a_fork_has_arrow_and_numbers_of_its_own() -> None:
    command = [sys.executable, "-c", FORKS]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # as Spark has it
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    threads, forks = json.loads(done.stdout)
    assert threads == 1
    total = (1 << 20) * ((1 << 20) - 1) // 2
    assert [(each["sum"], each["pandas"], each["product"]) for each in forks] == [(total, total, 300**3)] * 2
    assert forks[0]["drawn"] != forks[1]["drawn"]
    assert [each["conf"] for each in forks] == [None, None]


def test_beside_a_thread_it_does_not_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that starts one when it is imported: PySpark's daemon does what it did, which is to import nothing."""

    class Replaced(Exception):
        pass

    def replaced(program: str, command: list[str]) -> None:
        raise Replaced(program, command)

    monkeypatch.setattr(worker_daemon, "import_all", lambda: None)
    monkeypatch.setattr(worker_daemon, "threads", lambda: 2)
    monkeypatch.setattr(os, "execv", replaced)
    monkeypatch.setattr(sys, "argv", ["worker_daemon.py", "pyspark.worker"])
    with pytest.raises(Replaced) as found:
        worker_daemon.main()
    assert found.value.args == (sys.executable, [sys.executable, "-m", "pyspark.daemon", "pyspark.worker"])


def test_workers_of_a_session_are_its_forks(spark: Any) -> None:
    def about(_rows: Iterator[int]) -> Iterator[tuple[str, bool, str]]:
        import pyspark

        command = Path(f"/proc/{os.getpid()}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        yield command, "pandas" in sys.modules, str(pyspark.__file__)

    found = spark.sparkContext.parallelize(range(2), 2).mapPartitions(about).collect()
    assert all("-m tanist.spark.worker_daemon pyspark.worker" in command for command, _, _ in found)
    assert all(pandas for _, pandas, _ in found)
    assert not [file for _, _, file in found if ".zip" in file]


def test_a_spark_home_has_all_but_the_zips(tmp_path: Path) -> None:
    import pyspark

    installed = Path(pyspark.__file__).parent
    home = Path(spark_home.linked(installed, tmp_path))
    assert spark_home.linked(installed, tmp_path) == str(home)
    assert (home / "bin" / "spark-submit").is_file()
    assert list((home / "jars").glob("spark-core_*.jar"))
    assert not (home / "python").exists()
    assert list(tmp_path.iterdir()) == [home]


@pytest.mark.parametrize(
    "said",
    [{"SPARK_HOME": "/opt/spark", "PYSPARK_PYTHON": sys.executable}, {"PYSPARK_PYTHON": "/usr/bin/another-python"}],
    ids=["a home", "a Python that need not have PySpark"],
)
def test_a_home_that_is_named_is_kept(said: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    with spark_home.without_zips():
        assert os.environ.get("SPARK_HOME") == said.get("SPARK_HOME")
    assert os.environ.get("SPARK_HOME") == said.get("SPARK_HOME")


def test_the_home_is_there_while_java_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with spark_home.without_zips():
        assert Path(os.environ["SPARK_HOME"]).parent == tmp_path / "tanist"
    assert "SPARK_HOME" not in os.environ
