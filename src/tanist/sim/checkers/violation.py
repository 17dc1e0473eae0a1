"""The exception of a checker, and the violation made of an error that a node raises.

It carries values: the partition, states, registrations. Its text is part of a run's digest. So an error is described by
its type, its text and tanist's functions in its traceback, and never by files or line numbers, which depend on the
installation and on the Python version.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tanist.sim.event_text import value_text
from tanist.sim.events import Place

CRASH = "crash"
"""The property that an error of a node or a checker violates: none of them raises one."""

_PACKAGE = __name__.partition(".")[0] + "."
_FRAMES_MAX = 6
_INLINED = frozenset(("<listcomp>", "<dictcomp>", "<setcomp>"))
"""Functions of their own in Python 3.11, and none since 3.12."""


Said: TypeAlias = Sequence[object]
"""Parts of a message: texts, and values."""


class Violation(Exception):
    """A property does not hold. `property_id` is its name in the specification (S1-S35, L1-L17), or `CRASH`.

    `said` are the parts of its message: texts, and values that are rendered here, and only here.
    """

    def __init__(self, property_id: str, now_us: int, *said: object) -> None:
        self.property_id = property_id
        self.now_us = now_us
        self.said = said
        self.message = "".join(map(value_text, said))
        super().__init__(property_id, now_us, self.message)
        self.error: str | None = None
        """Of a crash: the error's type."""
        self.frames: tuple[str, ...] = ()
        """Of a crash: the innermost functions of tanist in the traceback, as `broker/node::start`."""
        self.traceback: str | None = None
        """Of a crash: Python's own traceback, with files and lines. Not part of the digest."""

    @classmethod
    def of_error(cls, error: Exception, now_us: int) -> Violation:
        """The violation of an error that no node may raise."""
        kind = type(error)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        frames = tuple(_frames(error))[-_FRAMES_MAX:]
        text = f"{name}: {error}" if str(error) else name
        violation = cls(CRASH, now_us, f"{text} (in {' > '.join(frames)})" if frames else text)
        violation.error, violation.frames = name, frames
        violation.traceback = "".join(traceback.format_exception(error, limit=-_FRAMES_MAX))
        return violation

    @property
    def partition(self) -> str | None:
        """The first partition that it names."""
        return next((each.partition for each in self.said if isinstance(each, Place)), None)

    def __str__(self) -> str:
        return f"{self.property_id} at {self.now_us / 1e6:.6f} s: {self.message}"


class CannotJudge(Exception):
    """The checkers do not know enough to judge the rest of a run: it ends here, without a violation."""


def _frames(error: Exception) -> Iterator[str]:
    """By modules' names, which do not depend on the folders that hold the package."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module, function = str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        if module.startswith(_PACKAGE) and function not in _INLINED:
            yield f"{module.removeprefix(_PACKAGE).replace('.', '/')}::{function}"
