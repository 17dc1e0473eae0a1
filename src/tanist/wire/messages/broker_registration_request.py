"""BrokerRegistrationRequest: API key 62, versions 0 to 4.

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
        Field("name", "string", (0, 4)),
        Field("host", "string", (0, 4)),
        Field("port", "uint16", (0, 4)),
        Field("security_protocol", "int16", (0, 4)),
    )


class Feature(Struct):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 4)),
        Field("min_supported_version", "int16", (0, 4)),
        Field("max_supported_version", "int16", (0, 4)),
    )


class BrokerRegistrationRequest(Request):
    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: UUID = ZERO_UUID
    listeners: tuple[Listener, ...] = ()
    features: tuple[Feature, ...] = ()
    rack: str | None = ""
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[UUID, ...] = ()
    previous_broker_epoch: int = -1

    API_KEY: ClassVar[int] = 62
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 4)),
        Field("cluster_id", "string", (0, 4)),
        Field("incarnation_id", "uuid", (0, 4)),
        Field("listeners", Array(Listener), (0, 4)),
        Field("features", Array(Feature), (0, 4)),
        Field("rack", "string", (0, 4), nullable=(0, 4)),
        Field("is_migrating_zk_broker", "bool", (1, 4)),
        Field("log_dirs", Array("uuid"), (2, 4)),
        Field("previous_broker_epoch", "int64", (3, 4)),
    )
