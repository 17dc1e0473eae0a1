"""A mutation breaks its rule and nothing else: what replaces a function can be called as the function is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tanist.lab.mutations.catalogue import MUTANTS
from tanist.lab.mutations.patching import Patch

Parameter = inspect.Parameter


def _calls(function: Callable[..., Any]) -> Iterator[tuple[list[object], dict[str, object]]]:
    """The shortest call of a function, and the one with all that it takes, by place and by name."""
    parameters = inspect.signature(function).parameters.values()
    by_place = [
        each for each in parameters if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]
    by_name = [each for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
    for wanted in (lambda each: each.default is Parameter.empty, lambda each: True):
        yield [None] * len([*filter(wanted, by_place)]), {each.name: None for each in filter(wanted, by_name)}


def _refused(patch: Patch) -> str:
    original, replacement = getattr(patch.owner, patch.name), patch.replacement
    if isinstance(vars(patch.owner).get(patch.name), property) or not inspect.isroutine(original):
        return ""
    signature = inspect.signature(getattr(replacement, "__func__", replacement))
    bound = isinstance(replacement, classmethod)
    for places, names in _calls(original):
        try:
            signature.bind(*([None] if bound else []), *places, **names)
        except TypeError as error:
            return f"{getattr(patch.owner, '__qualname__', patch.owner)}.{patch.name}: {error}"
    return ""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_replacement_takes_what_the_function_takes(name: str) -> None:
    assert [refused for patch in MUTANTS[name].patches() if (refused := _refused(patch))] == []
