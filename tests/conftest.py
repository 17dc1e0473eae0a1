"""How tests run: property tests as in CONTRIBUTING.md, signs of life from the beginning, processes that Ctrl-C ends.

A shell that runs pytest in the background has it ignore SIGINT, and so do the processes that tests start.
"""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests import collecting

settings.register_profile(
    "tanist",
    settings.get_profile("default"),
    derandomize=False,  # where CI is set, Hypothesis draws the same examples in every run, and finds nothing new
    print_blob=True,
    deadline=None,  # a busy machine is no defect
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tanist")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    collecting.register(config)
