"""Marks: protocol situations, seen from outside, and counted by name.

For the time of a run, the functions of the nodes that decide a situation are wrapped. A wrapper looks at arguments and
results, and counts. The product does not know marks, and outside of runs they cost nothing. A wrapper must change
nothing: the same seed gives the same bytes with marks and without.

Each package has a table of its situations: name -> meaning. `watching(counts, ...)` wraps the functions, and unwraps
them in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Look: TypeAlias = Callable[..., None]
"""(result, *arguments)"""


class Marks:
    """The wrappers of one run."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts
        self._undo: list[tuple[Any, str, Any]] = []

    def hit(self, name: str) -> None:
        self.counts[name] += 1

    def after(self, owner: Any, name: str, look: Look) -> None:
        """Call `look` after each call of the function."""
        original = _own(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            look(result, *args)
            return result

        self._replace(owner, name, original, watched)

    def before(self, owner: Any, name: str, look: Callable[..., None]) -> None:
        """Call `look` with the arguments of each call of the function, before anything has changed."""
        original = _own(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            look(*args)
            return original(*args, **kwargs)

        self._replace(owner, name, original, watched)

    def around(self, owner: Any, name: str, read: Callable[..., Any], look: Look) -> None:
        """Call `read` with the arguments; its result goes to `look` with that of the function: (read, result,
        *arguments)."""
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
    """The function as the class or module itself defines it: a renamed one must be noticed."""
    found = vars(owner).get(name)
    if not callable(found):
        raise AttributeError(f"{owner!r} has no function {name} of its own to watch")
    return found


@contextmanager
def watching(counts: Counter[str], *tables: Callable[[Marks], None]) -> Iterator[None]:
    """Watch the functions that each table names."""
    marks = Marks(counts)
    try:
        for watch in tables:
            watch(marks)
        yield
    finally:
        marks.take_off()
