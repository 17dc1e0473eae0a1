"""The jobs as a user runs them on a Spark cluster: `tanist spark ... --master spark://...`, with two workers."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.spark.jobs.seeds.job import played
from tanist.spark.jobs.seeds.lots import Lot
from tanist.spark.jobs.seeds.table import SeedTable
from tests.spark.spark_audit_samples import TOPIC, brute, plant, sound_scene
from tests.spark.spark_standalone import Standalone

pytestmark = pytest.mark.slow

SMALL = (
    "spark.driver.memory=512m", "spark.executor.memory=500m", "spark.executor.cores=1", "spark.cores.max=2",
    "spark.sql.shuffle.partitions=2",
)  # fmt: skip


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("standalone"), random.randint(40001, 60000)) as found:
        yield found


def tanist(cluster: Standalone, scratch: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = (*SMALL, f"spark.local.dir={scratch}", f"spark.sql.warehouse.dir={scratch / 'warehouse'}")
    conf = [part for each in settings for part in ("--conf", each)]
    command = [sys.executable, "-m", "tanist.cli.main", "spark", *arguments, "--master", cluster.master, *conf]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_the_audit_has_the_answers_of_the_plain_checker(spark_cluster: Standalone, tmp_path: Path) -> None:
    scene = plant(sound_scene(2, 6_000, seed=21), seed=22, faults=30)
    expected = brute(scene)
    scene.write(tmp_path)
    history, output = tmp_path / "history.jsonl", tmp_path / "findings"
    place = ("--data", str(tmp_path / "data"), "--history", str(history), "--findings", str(output), "--json")
    done = tanist(spark_cluster, tmp_path / "scratch", "audit", *place)
    assert done.returncode == 1, done.stderr[-4000:]
    found: dict[str, Counter[int]] = {}
    for each in json.loads(done.stdout)["counts"]:
        assert each["topic"] == TOPIC
        found.setdefault(each["kind"], Counter())[each["partition"]] = each["count"]
    assert found == expected
    from deltalake import DeltaTable

    assert set(DeltaTable(output).to_pyarrow_table()["kind"].to_pylist()) == set(expected)


def test_from_a_broken_cluster_to_a_mended_topic(spark_cluster: Standalone, tmp_path: Path) -> None:
    """Audit, merge-back and audit again, all by the two workers."""
    port = str(random.randint(20000, 39000))
    done = tanist(spark_cluster, tmp_path / "scratch", "story", "--port", port, "--keep", str(tmp_path / "kept"))
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-2000:]


def test_seeds_are_the_same_wherever_they_are_played(spark_cluster: Standalone, tmp_path: Path) -> None:
    """Two blocks, so that each worker has one. tests/spark/test_spark_jobs_seeds.py has the same of local[2]."""
    table = tmp_path / "table"
    options = ("--seeds", "99..100", "--kind", "groups", "--fault", "crash", "--output", str(table), "--json")
    done = tanist(spark_cluster, tmp_path / "scratch", "seeds", *options)
    assert done.returncode == 0, done.stderr[-4000:]
    (kind,) = json.loads(done.stdout)["kinds"]
    assert (kind["kind"], kind["seeds"], kind["violations"]) == ("groups", 2, {})
    lot = Lot.of("groups", faults=["crash"])
    for block, seed in ((0, 99), (1, 100)):
        (row,) = SeedTable(table).block(lot, block).to_pylist()
        mine = played(seed, lot)
        assert {**row, **mine} == {**row, "cpu_s": mine["cpu_s"]}
