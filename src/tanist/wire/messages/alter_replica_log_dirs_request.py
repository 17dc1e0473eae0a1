"""AlterReplicaLogDirsRequest: API key 34, versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class AlterReplicaLogDirTopic(Struct):
    name: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 2)),
        Field("partitions", Array("int32"), (1, 2)),
    )


class AlterReplicaLogDir(Struct):
    path: str = ""
    topics: tuple[AlterReplicaLogDirTopic, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "string", (1, 2)),
        Field("topics", Array(AlterReplicaLogDirTopic), (1, 2)),
    )


class AlterReplicaLogDirsRequest(Request):
    dirs: tuple[AlterReplicaLogDir, ...] = ()

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("dirs", Array(AlterReplicaLogDir), (1, 2)),)
