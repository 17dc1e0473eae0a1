"""One three-broker cluster for all the client tests of a run, and the libraries that speak to it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients import builds, install
from tests.interop import apache, target
from tests.interop.cluster import Cluster, interrupt_on_sigterm

interrupt_on_sigterm()


@pytest.fixture(scope="session")
def libraries() -> None:
    """confluent-kafka, kafka-python and aiokafka can be imported from here on."""
    install.activate()


@pytest.fixture(scope="session")
def java() -> None:
    """Apache Kafka's own clients and tools can be run from here on."""
    reason = apache.missing()
    if reason is not None:
        pytest.skip(reason)
    apache.jars()


@pytest.fixture(scope="session")
def connect_jars() -> Path:
    """Kafka Connect and MirrorMaker 2 can be run from this folder."""
    reason = builds.missing_maven()
    if reason is not None:
        pytest.skip(reason)
    return builds.connect()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers with everything at its default."""
    if target.chosen() == "apache" and (reason := apache.missing()) is not None:
        pytest.skip(reason)
    running = target.make(target.chosen(), tmp_path_factory.mktemp("cluster"))
    running.start()
    try:
        yield running
    finally:
        running.stop()


_numbers = itertools.count(1)


@pytest.fixture
def new_topic_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Names for topics that no other test has, and that tell whose they are."""
    stem = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")[:80]
    return lambda: f"{stem}-{next(_numbers)}"


@pytest.fixture
def topic_name(new_topic_name: Callable[[], str]) -> str:
    """The name of a topic that does not exist yet."""
    return new_topic_name()
