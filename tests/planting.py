"""Exceptions in the middle of a node's own code: raised once, before a method's n-th call or after it.

In the simulator by a fixture of pytest; in processes of their own by `sitecustomize` (`tests/runtime/planted`), which
reads from the environment where, and by files when: one node of those that find it takes a file away, and raises.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import partial
from typing import Any

PLACES, TRIGGERS = "TANIST_TEST_PLACES", "TANIST_TEST_TRIGGERS"
"""The places, with a space in between; the folder of the files."""


class Plant:
    """One exception. `place` is `module:Class.method` or `module:function`."""

    def __init__(self, place: str, error: Callable[[], Exception], *, after: bool = False) -> None:
        self.module, _, self.name = place.partition(":")
        self._error = error
        self._after = after
        self.armed = 0
        """Raise in this many calls."""
        self.raised = 0

    def install(self, put: Callable[[Any, str, Any], None], armed: Callable[[], bool] | None = None) -> None:
        """`put` replaces an attribute; `armed` says when, if not `self.armed` does."""
        owner: Any = importlib.import_module(self.module)
        *path, last = self.name.split(".")
        for each in path:
            owner = getattr(owner, each)
        before = getattr(owner, last)

        def planted(*args: Any, **kwargs: Any) -> Any:
            due = self.armed > self.raised if armed is None else armed()
            if due and not self._after:
                self._raise()
            result = before(*args, **kwargs)
            if due and self._after:
                self._raise()
            return result

        put(owner, last, planted)

    def _raise(self) -> None:
        self.raised += 1
        raise self._error()


def install_from_environment() -> None:
    """In a node's own process."""
    folder = os.environ.get(TRIGGERS, "")
    for place in os.environ.get(PLACES, "").split():
        Plant(place, lambda: IndexError("planted")).install(setattr, partial(_taken, trigger(folder, place)))


def trigger(folder: str, place: str) -> str:
    """The file that makes a node raise there."""
    return f"{folder}/{place}"


def _taken(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
