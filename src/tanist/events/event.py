"""The base of all events, and events as JSON.

An event is a frozen dataclass with slots. Its fields are values of their own (numbers, texts, tuples of these), never
an object of the node that goes on changing. It has no time and no node: whoever listens to a node knows both. Its
class is its kind, and the name of the class is its name everywhere: in JSON, on the command line, in docs.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

Value = str | int | float | bool | None


class Event:
    """What a node has decided or seen."""

    __slots__ = ()

    kinds: ClassVar[dict[str, type[Event]]] = {}
    """Every kind of event, by its name."""

    def __init_subclass__(cls) -> None:
        Event.kinds[cls.__name__] = cls


@dataclasses.dataclass(frozen=True, slots=True)
class Reported(Event):
    """A line for the operator that no event of its own stands for yet."""

    level: str
    text: str


def to_json(event: Event) -> dict[str, Any]:
    """The event as a JSON object: its kind as `event`, and its fields."""
    return {"event": type(event).__name__, **{name: _plain(getattr(event, name)) for name in _names(event)}}


def from_json(document: dict[str, Any]) -> Event:
    """The event of such an object; keys that are no fields are left out. `ValueError` if it is none."""
    kind = Event.kinds.get(str(document.get("event")))
    if kind is None:
        raise ValueError(f"{document.get('event')!r} is no kind of event")
    fields = {each.name for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
    try:
        return kind(**{name: _frozen(value) for name, value in document.items() if name in fields})
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from error


def _names(event: Event) -> list[str]:
    return [each.name for each in dataclasses.fields(event)]  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | float):
        return value
    return int(value) if isinstance(value, int) else str(value)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
