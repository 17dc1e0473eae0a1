"""ControllerRegistrationRequest: API key 70, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class Listener(Struct):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("host", "string", (0, 0)),
        Field("port", "uint16", (0, 0)),
        Field("security_protocol", "int16", (0, 0)),
    )


class Feature(Struct):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("min_supported_version", "int16", (0, 0)),
        Field("max_supported_version", "int16", (0, 0)),
    )


class ControllerRegistrationRequest(Request):
    controller_id: int = 0
    incarnation_id: UUID = ZERO_UUID
    zk_migration_ready: bool = False
    listeners: tuple[Listener, ...] = ()
    features: tuple[Feature, ...] = ()

    API_KEY: ClassVar[int] = 70
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("controller_id", "int32", (0, 0)),
        Field("incarnation_id", "uuid", (0, 0)),
        Field("zk_migration_ready", "bool", (0, 0)),
        Field("listeners", Array(Listener), (0, 0)),
        Field("features", Array(Feature), (0, 0)),
    )
