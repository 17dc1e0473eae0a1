"""Modules that Spark's processes for the driver's questions load: each is a Python of its own that imports them anew.

PySpark is stood in for, so that this is asked without it: what it loads itself is not ours to choose.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
DECODER = ("numpy", "pandas", "pyarrow")

LOAD = """
import json, sys
from types import ModuleType

class Stood(ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})

for name in ("pyspark", "pyspark.sql", "pyspark.sql.datasource", "pyspark.sql.streaming.datasource",
             "pyspark.sql.streaming", "pyspark.sql.types"):
    sys.modules[name] = Stood(name)
before = set(sys.modules)
for name in sys.argv[1:]:
    __import__(name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded(*modules: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *modules],
        env=os.environ | {"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return set(found)


@pytest.mark.parametrize("source", ["topic_source", "segments.source", "metadata.source"])
def test_a_source_is_made_of_its_own_module_alone(source: str) -> None:
    package = f"tanist.spark.{source}".rpartition(".")[0]
    own = {"tanist", "tanist.spark", package, f"tanist.spark.{source}"}
    assert {each for each in loaded(f"tanist.spark.{source}") if each.startswith(("tanist", *DECODER))} == own


@pytest.mark.parametrize(
    "planning",
    [
        ["tanist.spark.topic_source", "tanist.spark.topic.batch"],
        ["tanist.spark.topic_source", "tanist.spark.topic.stream"],
        ["tanist.spark.topic_source", "tanist.spark.sink.sink", "tanist.spark.sink.options"],
        ["tanist.spark.metadata.source", "tanist.spark.metadata.planning"],
    ],
    ids=lambda each: each[-1],
)
def test_planning_needs_no_decoder(planning: list[str]) -> None:
    found = loaded(*planning)
    assert not [each for each in found if each.startswith((*DECODER, "tanist.spark.segments.arrow", "asyncio"))]
    assert set(planning) <= found


@pytest.mark.parametrize("worker", [True, False])
def test_only_a_worker_sets_aside_what_is_imported(worker: bool) -> None:
    """The collector is the program's own, but in a Python that Spark has started."""
    named = {"SPARK_REUSE_WORKER": "1"} if worker else {}
    environment = {name: each for name, each in os.environ.items() if name != "SPARK_REUSE_WORKER"} | named
    asked = "import gc, tanist.spark; print(gc.get_freeze_count() > 1000)"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env=environment | {"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == str(worker), done.stderr
