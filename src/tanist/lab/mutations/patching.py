"""Patches that break a rule: attributes of the product's classes and modules, replaced while a block runs.

The product has no switch for it, so no branch and no cost. A function is `replaced` in this process only, and is
restored afterwards in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_INHERITED = object()
"""In place of an attribute that the owner inherits."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One attribute of a class or a module, and its replacement."""

    owner: Any
    name: str
    replacement: Any


Breaks = Callable[[], tuple[Patch, ...]]
"""Makes the patches of a rule. Called when the rule is broken, because a replacement may call the original."""


@contextmanager
def replaced(patches: Iterable[Patch]) -> Iterator[None]:
    """Apply the patches while the block runs. `AttributeError` for a name that is not there: nothing would break."""
    undo: list[Patch] = []
    try:
        for patch in patches:
            getattr(patch.owner, patch.name)
            undo.append(Patch(patch.owner, patch.name, vars(patch.owner).get(patch.name, _INHERITED)))
            setattr(patch.owner, patch.name, patch.replacement)
        yield
    finally:
        for patch in reversed(undo):
            if patch.replacement is _INHERITED:
                delattr(patch.owner, patch.name)
            else:
                setattr(patch.owner, patch.name, patch.replacement)


def fixed(owner: Any, name: str, replacement: Any) -> Breaks:
    """One attribute, and a replacement that does not call the original."""
    return lambda: (Patch(owner, name, replacement),)


def always(value: Any) -> Callable[..., Any]:
    """A rule that always gives the same answer. It is the same object, so it must be immutable."""
    return lambda *_, **__: value


def no_records(*_: Any, **__: Any) -> list[Any]:
    """A rule that decides nothing. A new list each time, because callers add to it."""
    return []
