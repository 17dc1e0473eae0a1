"""`pytest --mended` runs the tests with the mend of one line."""

from __future__ import annotations

import orders
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mended", action="store_true", help="the shop's topics have flush.messages=1")


@pytest.fixture(autouse=True)
def mended(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--mended"):
        monkeypatch.setitem(orders.TOPIC_SETTINGS, "flush.messages", "1")
