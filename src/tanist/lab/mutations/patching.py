"""How a rule is broken: attributes of the product's classes and modules, replaced for as long as a block runs.

The product has no switch for it, and so no branch and no cost: a function is another one while it is `replaced`, in
this process only, and itself again afterwards, whatever happened in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_INHERITED = object()
"""In place of what an owner has from its base."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One attribute of a class or a module, and what stands in its place."""

    owner: Any
    name: str
    replacement: Any


Breaks = Callable[[], tuple[Patch, ...]]
"""Breaks a rule. Called when it is to be broken, for a replacement may call what it replaces."""


@contextmanager
def replaced(patches: Iterable[Patch]) -> Iterator[None]:
    """Have the replacements in place while the block runs."""
    undo: list[Patch] = []
    try:
        for patch in patches:
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
    """One attribute, and a replacement that needs nothing of what it replaces."""
    return lambda: (Patch(owner, name, replacement),)


def always(value: Any) -> Callable[..., Any]:
    """A rule that gives the same answer to everything. The same object, so nothing that anybody may change."""
    return lambda *_, **__: value


def no_records(*_: Any, **__: Any) -> list[Any]:
    """A rule that decides nothing. A list of its own each time, for whoever asks adds to it."""
    return []
