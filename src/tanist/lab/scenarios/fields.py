"""The fields of a scenario: required names, optional names, and names that no player has read.

Owns the reading of mappings from a file. An expectation that the player does not understand must never count as met,
and a setting that it does not understand must never be ignored. So every mapping remembers which of its names were
read, and `require_all_read` fails the scenario for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class NotUnderstood(Exception):
    """A scenario has a field that its player does not know, or lacks one that the player needs."""


class Fields:
    """One mapping of a scenario. `where` names it in messages."""

    __slots__ = ("_inner", "_read", "_values", "where")

    def __init__(self, values: object, where: str = "") -> None:
        if not isinstance(values, Mapping):
            raise NotUnderstood(f"{where or 'the scenario'} is not a mapping but {values!r}")
        self.where = where
        self._values: Mapping[Any, Any] = values
        self._read: set[Any] = set()
        self._inner: dict[Any, list[Fields]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __getitem__(self, name: str) -> Any:
        """A required value."""
        if name not in self._values:
            raise NotUnderstood(f"{self._at(name)} is missing")
        self._read.add(name)
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        self._read.add(name)
        return self._values.get(name, default)

    def given(self, *names: str) -> Any:
        """The value under the first of these names that exists, None if none does: for fields with several names."""
        for name in names:
            if name in self._values:
                return self[name]
        return None

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number; without a default it is required."""
        value = self[name] if default is None else self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise NotUnderstood(f"{self._at(name)} is not a whole number but {value!r}")
        return value

    def ids(self, name: str) -> tuple[int, ...]:
        """A list of broker ids; empty if it is missing."""
        return ids(self.get(name), self._at(name))

    def inner(self, name: str) -> Fields:
        """The mapping under a name; empty if it is missing."""
        value = self.get(name)
        if name not in self._inner:
            self._inner[name] = [Fields({} if value is None else value, self._at(name))]
        return self._inner[name][0]

    def each(self, name: str) -> list[Fields]:
        """The mappings listed under a required name."""
        values = self[name]
        if not isinstance(values, list):
            raise NotUnderstood(f"{self._at(name)} is not a list but {values!r}")
        if name not in self._inner:
            self._inner[name] = [Fields(value, f"{self._at(name)}[{at}]") for at, value in enumerate(values)]
        return self._inner[name]

    def plain(self) -> dict[Any, Any]:
        """The whole mapping, as read."""
        self._read.update(self._values)
        return dict(self._values)

    def skip(self, *names: str) -> None:
        """These need no reading: notes, sources."""
        self._read.update(names)

    def require_all_read(self) -> None:
        unread = self._unread()
        if unread:
            raise NotUnderstood(f"not understood: {', '.join(unread)}")

    def _unread(self) -> list[str]:
        own = [self._at(name) for name in self._values if name not in self._read and name != "note"]
        return own + [name for inners in self._inner.values() for inner in inners for name in inner._unread()]

    def _at(self, name: object) -> str:
        return f"{self.where}.{name}" if self.where else str(name)


def ids(value: object, where: str) -> tuple[int, ...]:
    """A list of whole numbers as a tuple; None is the empty list."""
    if value is None:
        return ()
    if not isinstance(value, list) or any(isinstance(each, bool) or not isinstance(each, int) for each in value):
        raise NotUnderstood(f"{where} is not a list of ids but {value!r}")
    return tuple(value)


def event_of(fields: Fields) -> tuple[str, Any]:
    """Name and argument of a single-key mapping, as events are written."""
    names = [name for name in fields if name != "note"]
    if len(names) != 1:
        raise NotUnderstood(f"{fields.where} is not one event but {len(names)}: {', '.join(map(str, names))}")
    return names[0], fields[names[0]]
