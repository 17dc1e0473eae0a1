"""The one place where the process tests wait: a condition, polled until it holds or a deadline passes.

Nothing here waits for a length of time and hopes. A condition that never holds raises with what was last seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02


class NeverCame(AssertionError):
    """The condition did not come to hold before the deadline."""


def wait_for(condition: Callable[[], T | None], what: str, *, timeout_s: float = 120.0, poll_s: float = POLL_S) -> T:
    """The first result of `condition` that is neither None nor False.

    An `OSError` counts as "not yet": it is what a node that is starting or dying gives. The last one is reported.
    """
    deadline = time.monotonic() + timeout_s
    last_error: OSError | None = None
    while True:
        try:
            result = condition()
            last_error = None
        except OSError as error:
            result, last_error = None, error
        if result is not None and result is not False:
            return result
        if time.monotonic() >= deadline:
            raise NeverCame(f"{what}: not within {timeout_s:g} s (last error: {last_error!r})")
        time.sleep(poll_s)
