"""UpdateRaftVoterRequest: API key 82, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct, own


class Listener(Struct):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("host", "string", (0, 0)),
        Field("port", "uint16", (0, 0)),
    )


class KRaftVersionFeature(Struct):
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("min_supported_version", "int16", (0, 0)),
        Field("max_supported_version", "int16", (0, 0)),
    )


class UpdateRaftVoterRequest(Request):
    cluster_id: str | None = ""
    current_leader_epoch: int = 0
    voter_id: int = 0
    voter_directory_id: UUID = ZERO_UUID
    listeners: tuple[Listener, ...] = ()
    k_raft_version_feature: KRaftVersionFeature = own(KRaftVersionFeature)

    API_KEY: ClassVar[int] = 82
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 0), nullable=(0, 0)),
        Field("current_leader_epoch", "int32", (0, 0)),
        Field("voter_id", "int32", (0, 0)),
        Field("voter_directory_id", "uuid", (0, 0)),
        Field("listeners", Array(Listener), (0, 0)),
        Field("k_raft_version_feature", KRaftVersionFeature, (0, 0)),
    )
