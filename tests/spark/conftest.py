"""The pipeline's tests, all marked `spark`: they need the extra of that name, and run by `make spark`.

One session serves them all: it takes ten seconds to start, and a source's first job five.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tests.spark.spark_object_store import object_store

if find_spec("pyspark") is None:
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.spark)
    # Files of few tests are the long ones: begun last, they would keep one worker busy and leave the other idle.
    count = Counter(item.path for item in items)
    items.sort(key=lambda item: count[item.path] if item.path.is_relative_to(here) else 0)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tanist.spark import session
    from tests.spark.spark_short_lived import JAVA_OPTIONS

    scratch = tmp_path_factory.mktemp("spark")
    made = session(
        master="local[2]",
        spark__driver__memory="1g",
        spark__sql__shuffle__partitions=2,
        spark__sql__warehouse__dir=str(scratch / "warehouse"),
        spark__local__dir=str(scratch),
        spark__driver__extraJavaOptions=JAVA_OPTIONS,
        # Java code that is generated and compiled for each query costs more than it saves with so few rows.
        spark__sql__codegen__wholeStage=False,
        spark__sql__codegen__factoryMode="NO_CODEGEN",
        # Tests look for passwords in the plans of all queries.
        spark__sql__ui__retainedExecutions=1000,
    )
    yield made
    made.stop()


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One broker, for modules that break nothing and have topics of their own names."""
    cluster = LocalCluster(tmp_path_factory.mktemp("brokers") / "c")
    yield bootstrap_of(cluster.up(brokers=1, port=random.randint(20000, 50000)))
    cluster.down()


@pytest.fixture
def three_brokers(tmp_path: Path) -> Iterator[tuple[LocalCluster, str]]:
    """Three brokers as processes, and where they are reached."""
    found = LocalCluster(tmp_path / "c")
    yield found, bootstrap_of(found.up(brokers=3, port=random.randint(20000, 50000)))
    found.down()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """S3, for this process and for Python workers: each is given the variables that this one has when it starts."""
    with object_store(tmp_path_factory.mktemp("store") / "log") as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def at_workers(spark: Any, store: None) -> Iterator[None]:
    """Python workers of this session get the variables of the store, which began after it."""
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment.update({name: value for name, value in os.environ.items() if name.startswith("AWS_")})
    yield
    environment.clear()
    environment.update(before)
