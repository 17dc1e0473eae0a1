"""What the tests of this package share: every message class, and random objects of any of them."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tanist.wire import messages
from tanist.wire.schema import ZERO_UUID, Array, Field, Message, Struct

RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
TEXTS = ("", "a", "topic-1", "räksmörgås", "日本", "x" * 126, "y" * 127, "z" * 128, "w" * 300)


def all_message_classes() -> list[type[Message]]:
    found = []
    for info in pkgutil.iter_modules(messages.__path__):
        module = importlib.import_module(f"{messages.__name__}.{info.name}")
        root = [
            thing
            for thing in vars(module).values()
            if isinstance(thing, type)
            and issubclass(thing, Message)
            and thing.__module__ == module.__name__
            and "VERSIONS" in vars(thing)
        ]
        assert len(root) == 1, info.name
        found += root
    return found


def within(version: int, versions: tuple[int, int] | None) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]


class Builder:
    """Builds random objects that have, in a given version, nothing that would be dropped."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(repr(seed))

    def build(self, cls: type[Struct], version: int) -> Any:
        values = {}
        for field in cls.FIELDS:
            if within(version, field.versions):
                keep_default = within(version, field.tagged) and self.random.random() < 0.4
                if not keep_default:
                    values[field.name] = self.value(field, version)
        return cls(**values)

    def value(self, field: Field, version: int) -> Any:
        if within(version, field.nullable) and self.random.random() < 0.2:
            return None
        if isinstance(field.type, Array):
            longest = 3 if not isinstance(field.type.element, str) else 5
            count = self.random.choice((0, 1, self.random.randint(0, longest), 1))
            if isinstance(field.type.element, str) and self.random.random() < 0.03:
                count = 140
            return tuple(self.element(field.type.element, version, field.name) for _ in range(count))
        return self.element(field.type, version, field.name)

    def element(self, kind: Any, version: int, name: str) -> Any:
        if not isinstance(kind, str):
            return self.build(kind, version)
        if name.endswith("error_code"):
            return self.random.choice((0, -1, 3, 6, 35, 100, 107))
        if kind in RANGES:
            low, high = RANGES[kind]
            return self.random.choice((0, 1, 127, low, high, self.random.randint(low, high)))
        if kind == "bool":
            return self.random.random() < 0.5
        if kind == "float64":
            return self.random.choice((0.0, -1.5, 1e300, self.random.random()))
        if kind == "string":
            return self.random.choice(TEXTS)
        if kind == "uuid":
            return self.random.choice((ZERO_UUID, UUID(int=1), UUID(int=self.random.getrandbits(128))))
        return self.random.randbytes(self.random.choice((0, 1, 17, 200)))


@pytest.fixture(scope="session")
def builder() -> Callable[[object], Builder]:
    """`builder(seed).build(cls, version)` is a random object."""
    return Builder


def is_same(ours: Any, other: Any) -> bool:
    """Equality that looks into memoryviews."""
    if dataclasses.is_dataclass(ours):
        return type(ours) is type(other) and all(
            is_same(getattr(ours, f.name), getattr(other, f.name)) for f in dataclasses.fields(ours)
        )
    if isinstance(ours, tuple):
        return len(ours) == len(other) and all(map(is_same, ours, other))
    return bool(ours == other)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "message_class" in metafunc.fixturenames:
        metafunc.parametrize("message_class", all_message_classes(), ids=lambda cls: cls.__name__)
