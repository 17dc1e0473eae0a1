"""The base of all events, and events as JSON.

An event is immutable: its class names the fields, and has nothing else. They are values of their own (numbers, texts,
tuples of these), never an object of the node that goes on changing. It has no time and no node: its listeners know
both. Its class is its kind, and the name of the class is its name everywhere: in JSON, on the command line, in docs.

Events are written like dataclasses, and are none: there are more than a hundred kinds, each process imports all of
them, and a frozen dataclass costs a millisecond to make.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, dataclass_transform

_put = object.__setattr__


@dataclass_transform(frozen_default=True)
class _Kind(type):
    """The class of a kind: its annotations become slots, in order, and what stands behind `=` defaults."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Kind:
        own = tuple(each for each in namespace.get("__annotations__", {}) if each != "kinds")
        defaults = {each: namespace.pop(each) for each in own if each in namespace}
        fields = (*(each for base in bases for each in getattr(base, "fields", ())), *own)
        cls = super().__new__(mcs, name, bases, namespace | {"__slots__": own, "__match_args__": fields})
        cls.fields = fields
        cls._defaults = {**getattr(cls, "_defaults", {}), **defaults}
        return cls

    fields: tuple[str, ...]
    _defaults: dict[str, Any]


class Event(metaclass=_Kind):
    """What a node has decided or seen."""

    kinds: ClassVar[dict[str, type[Event]]] = {}
    """Every kind of event, by its name."""

    def __init__(self, *values: Any, **named: Any) -> None:
        """`TypeError` if a field has no value, or something else has."""
        kind = type(self)
        fields = kind.fields
        if len(values) == len(fields) and not named:
            for name, value in zip(fields, values, strict=True):
                _put(self, name, value)
            return
        given = dict(zip(fields, values, strict=False))
        if len(values) > len(fields) or given.keys() & named.keys() or named.keys() - set(fields):
            raise TypeError(f"{kind.__name__} has the fields {', '.join(fields)}, not {values} and {named}")
        given = {**kind._defaults, **given, **named}
        for name in fields:
            if name not in given:
                raise TypeError(f"{kind.__name__} lacks {name}")
            _put(self, name, given[name])

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.__name__] = cls

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name}: an event does not change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name}: an event does not change")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash((type(self), *_values(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in type(self).fields)})"

    def __reduce__(self) -> tuple[type[Event], tuple[Any, ...]]:
        return type(self), _values(self)


KIND: Final = "event"
"""The key of the kind in JSON."""


def to_json(event: Event) -> dict[str, Any]:
    """The event as a JSON object: its kind as `event`, and its fields."""
    return {KIND: type(event).__name__, **{name: _plain(getattr(event, name)) for name in type(event).fields}}


def from_json(document: dict[str, Any]) -> Event:
    """The event of such an object; keys that are no fields are left out. `ValueError` if it is none."""
    kind = Event.kinds.get(str(document.get(KIND)))
    if kind is None:
        raise ValueError(f"{document.get(KIND)!r} is no kind of event")
    try:
        return kind(**{name: _frozen(value) for name, value in document.items() if name in kind.fields})
    except TypeError as error:
        raise ValueError(str(error)) from error


def _values(event: Event) -> tuple[Any, ...]:
    return tuple(getattr(event, name) for name in type(event).fields)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | float):
        return value
    return int(value) if isinstance(value, int) else str(value)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
