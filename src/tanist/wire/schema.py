"""How a message says what it looks like on the wire: the field table.

A message is a plain mutable dataclass whose fields have defaults, plus `FIELDS`: for each of them its wire type and the
versions that have it. One class serves all versions of a message: a field that a version lacks keeps its default when
that version is read, and is dropped when it is written. `codec` turns the table into code; nothing here encodes.

The table says nothing about defaults: the dataclass does, and there is one truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias
from uuid import UUID

ZERO_UUID: Final = UUID(int=0)
"""Kafka's "no id". A uuid on the wire is never null."""

Primitive: TypeAlias = Literal[
    "bool", "int8", "int16", "uint16", "int32", "int64", "float64", "string", "bytes", "records", "uuid"
]

Versions: TypeAlias = tuple[int, int]
"""First and last version, both included."""


class Struct:
    """A dataclass with a field table: a message, or a part of one."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]]


class Message(Struct):
    """A struct that stands on its own: a request, a response, a record, a header."""

    __slots__ = ()

    VERSIONS: ClassVar[Versions]
    """The versions that can be read and written."""

    FLEXIBLE_FROM: ClassVar[int | None]
    """First version with compact lengths and tagged fields (KIP-482); None: no version has them."""

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM


class ApiMessage(Message):
    """A request or a response."""

    __slots__ = ()

    API_KEY: ClassVar[int]


class Request(ApiMessage):
    __slots__ = ()


class Response(ApiMessage):
    __slots__ = ()


class MetadataRecord(Message):
    """A record of the metadata log."""

    __slots__ = ()

    RECORD_KEY: ClassVar[int]
    """Kafka calls it the api key of the record; it has nothing to do with the keys of requests."""


@dataclass(frozen=True, slots=True)
class Array:
    """The wire type of a `tuple[element, ...]`."""

    element: Primitive | type[Struct]


@dataclass(frozen=True, slots=True)
class Field:
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
