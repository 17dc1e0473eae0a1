"""The field table: a message's shape on the wire.

A message is a plain mutable object. Its class says names, types and defaults of its fields, in the manner of a
dataclass, plus `FIELDS`: for each of them its wire type and the versions that have it. One class serves all versions of
a message: a field that a version lacks keeps its default when that version is read, and is dropped when it is written.
`codec` turns the table into code; nothing here encodes.

The class has the defaults, and the table has none. The class is read here without `dataclass`, which makes no
difference to type checkers: a node imports many of these, and making dataclasses of them took 60 ms of the start of
each process, where this takes 2.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, TypeVar, dataclass_transform
from uuid import UUID

T = TypeVar("T")

ZERO_UUID: Final = UUID(int=0)
"""Kafka's "no id". A uuid on the wire is never null."""

Primitive: TypeAlias = Literal[
    "bool", "int8", "int16", "uint16", "int32", "int64", "float64", "string", "bytes", "records", "uuid"
]

Versions: TypeAlias = tuple[int, int]
"""First and last version, both included."""


class _Own(NamedTuple):
    kind: type[Struct]


def own(kind: type[T]) -> T:
    """The default of a field that is a struct: every message has one of its own."""
    return _Own(kind)  # type: ignore[return-value, arg-type]  # constructors put one in its place


SECRET = frozenset({"auth_bytes", "hmac", "salt", "salted_password", "server_key", "stored_key"})
"""Fields whose values are shown nowhere: who has them can say that he is somebody else."""


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Takes the defaults out of a class's body, and makes slots of its fields."""

    def __new__(mcls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> StructType:
        body["DEFAULTS"] = {field.name: body.pop(field.name) for field in body.get("FIELDS", ())}
        body["__slots__"] = names = tuple(body["DEFAULTS"])
        body["_values"] = attrgetter(*names) if names else type
        return super().__new__(mcls, name, bases, body)


class _DataclassFields:
    """The fields of a class for `dataclasses.replace` and its like, computed at first use."""

    def __get__(self, instance: object, owner: type[Struct]) -> dict[str, Any]:
        import dataclasses

        described = [(name, Any, dataclasses.field(default=None)) for name in owner.DEFAULTS]
        found: dict[str, Any] = vars(dataclasses.make_dataclass(owner.__name__, described))["__dataclass_fields__"]
        return found


class Struct(metaclass=StructType):
    """An object with a field table: a message, or a part of one.

    Its fields are keyword arguments of the constructor.
    """

    FIELDS: ClassVar[tuple[Field, ...]]

    DEFAULTS: ClassVar[dict[str, Any]]
    """By name of the field, as the class's body has it: ask `default_of`."""

    __dataclass_fields__: ClassVar[Any] = _DataclassFields()

    _values: ClassVar[Callable[[Any], Any]]
    """Returns the values of all fields, for comparisons."""

    def __init__(self, **values: Any) -> None:
        """The first construction of a class writes the constructor that all others use."""
        cls = type(self)
        if "FIELDS" not in cls.__dict__:  # a kind of messages: all messages would inherit a constructor written for it
            if values:
                raise TypeError(f"{cls.__name__} has no fields")
            return
        cls.__init__ = _constructor_of(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        values = type(self)._values
        return bool(values(self) == values(other))

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}=..." if name in SECRET else f"{name}={getattr(self, name)!r}" for name in self.DEFAULTS
        )
        return f"{type(self).__name__}({fields})"

    @classmethod
    def owned_kind(cls, name: str) -> type[Struct] | None:
        """The class of a field whose default is a struct of its own; None of all others."""
        default = cls.DEFAULTS[name]
        return default.kind if type(default) is _Own else None

    @classmethod
    def default_of(cls, name: str) -> Any:
        """The value of a field that is not given."""
        kind = cls.owned_kind(name)
        return cls.DEFAULTS[name] if kind is None else kind()


def _constructor_of(cls: type[Struct]) -> Callable[..., None]:
    namespace: dict[str, Any] = {}
    parameters, lines = [], []
    for name, default in cls.DEFAULTS.items():
        namespace[f"_{name}"] = default
        parameters.append(f"{name}=_{name}")
        if type(default) is _Own:
            namespace[f"_new_{name}"] = default.kind
            lines.append(f"    self.{name} = _new_{name}() if {name} is _{name} else {name}")
        else:
            lines.append(f"    self.{name} = {name}")
    head = f"def __init__(self, *, {', '.join(parameters)}):" if parameters else "def __init__(self): pass"
    exec("\n".join([head, *lines]), namespace)
    constructor: Callable[..., None] = namespace["__init__"]
    constructor.__qualname__ = f"{cls.__name__}.__init__"
    return constructor


class Message(Struct):
    """A struct that stands on its own: a request, a response, a record, a header."""

    VERSIONS: ClassVar[Versions]
    """The versions that can be read and written."""

    FLEXIBLE_FROM: ClassVar[int | None]
    """First version with compact lengths and tagged fields (KIP-482); None: no version has them."""

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM


class ApiMessage(Message):
    """A request or a response."""

    API_KEY: ClassVar[int]


class Request(ApiMessage):
    """A client's message."""


class Response(ApiMessage):
    """A node's answer."""


class MetadataRecord(Message):
    """A record of the metadata log."""

    RECORD_KEY: ClassVar[int]
    """Kafka calls it the api key of the record; it has nothing to do with the keys of requests."""


class Array(NamedTuple):
    """The wire type of a `tuple[element, ...]`."""

    element: Primitive | type[Struct]


class Field(NamedTuple):
    """One field of a struct, on the wire."""

    name: str
    type: Primitive | type[Struct] | Array
    versions: Versions
    nullable: Versions | None = None
    """Versions in which None can be written."""
    tag: int | None = None
    tagged: Versions | None = None
    """Versions in which the field stands among the tagged ones, so that it is absent when it has its default."""
    compact: bool = True
    """False for the one field that keeps its old encoding in flexible versions: RequestHeader's client id."""
