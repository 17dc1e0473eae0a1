"""Marks: protocol situations, seen from outside, and counted by name.

What a run comes by is told by the functions of the nodes that decide it: for the time of a run each is wrapped by one
that looks at what went in and what came out, and counts. The product knows nothing of it, and outside of runs it costs
nothing. Nobody who looks may change anything: the same seed gives the same bytes with marks and without.

    situation_marks, one table a room: name -> what is meant
    `watching(counts)`: wraps, and takes the wrappers off again, whatever has happened in between
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Look: TypeAlias = Callable[..., None]
"""(what came out, *what went in)"""


class Marks:
    """The wrappers of one run."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts
        self._undo: list[tuple[Any, str, Any]] = []

    def hit(self, name: str) -> None:
        self.counts[name] += 1

    def after(self, owner: Any, name: str, look: Look) -> None:
        """Have `look` see each call of the function when it has returned."""
        original = _own(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            look(result, *args)
            return result

        self._replace(owner, name, original, watched)

    def before(self, owner: Any, name: str, look: Callable[..., None]) -> None:
        """Have `look` see what goes into each call of the function, before anything has changed."""
        original = _own(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            look(*args)
            return original(*args, **kwargs)

        self._replace(owner, name, original, watched)

    def around(self, owner: Any, name: str, read: Callable[..., Any], look: Look) -> None:
        """Have `read` see what goes in; what it keeps goes to `look` with what came out: (kept, result, *arguments)."""
        original = _own(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            kept = read(*args)
            result = original(*args, **kwargs)
            look(kept, result, *args)
            return result

        self._replace(owner, name, original, watched)

    def take_off(self) -> None:
        while self._undo:
            owner, name, original = self._undo.pop()
            setattr(owner, name, original)

    def _replace(self, owner: Any, name: str, original: Any, watched: Any) -> None:
        self._undo.append((owner, name, original))
        setattr(owner, name, watched)


def _own(owner: Any, name: str) -> Any:
    """The function as the class or module itself has it: one that is renamed must be noticed."""
    found = vars(owner).get(name)
    if not callable(found):
        raise AttributeError(f"{owner!r} has no function {name} of its own to watch")
    return found


@contextmanager
def watching(counts: Counter[str], *rooms: Callable[[Marks], None]) -> Iterator[None]:
    """Watch the functions that each of the rooms names."""
    marks = Marks(counts)
    try:
        for room in rooms:
            room(marks)
        yield
    finally:
        marks.take_off()
