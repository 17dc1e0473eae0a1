"""Apache Kafka's own classes, and the client that writes what they are to read."""

from __future__ import annotations

import pytest

from tests.clients import install
from tests.interop import apache
from tests.interop.cluster import interrupt_on_sigterm

interrupt_on_sigterm()


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
