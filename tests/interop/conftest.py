"""Apache Kafka's own classes, and the client that writes what they are to read."""

from __future__ import annotations

import pytest

from tests.clients import install
from tests.interop import apache
from tests.interop.cluster import interrupt_on_sigterm

interrupt_on_sigterm()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Of the tests of mixed clusters (docs/mixed.md)."""
    parser.addoption("--mixed-rounds", type=int, default=1, help="how many rounds each test of a mixed cluster plays")
    parser.addoption("--mixed-report", default=None, metavar="FILE", help="add what each test tells of itself")


@pytest.fixture(scope="session")
def java() -> None:
    """Apache Kafka's classes can be run from here on."""
    reason = apache.missing()
    if reason is not None:
        pytest.skip(reason)
    apache.jars()


@pytest.fixture(scope="session")
def libraries() -> None:
    """confluent-kafka can be imported from here on."""
    install.activate()
