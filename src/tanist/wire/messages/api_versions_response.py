"""ApiVersionsResponse: API key 18, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class ApiVersion(Struct):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("api_key", "int16", (0, 5)),
        Field("min_version", "int16", (0, 5)),
        Field("max_version", "int16", (0, 5)),
    )


class SupportedFeatureKey(Struct):
    name: str = ""
    min_version: int = 0
    max_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 5)),
        Field("min_version", "int16", (3, 5)),
        Field("max_version", "int16", (3, 5)),
    )


class FinalizedFeatureKey(Struct):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 5)),
        Field("max_version_level", "int16", (3, 5)),
        Field("min_version_level", "int16", (3, 5)),
    )


class ApiVersionsResponse(Response):
    error_code: int = 0
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: int = 0
    supported_features: tuple[SupportedFeatureKey, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[FinalizedFeatureKey, ...] = ()
    zk_migration_ready: bool = False

    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 5)),
        Field("api_keys", Array(ApiVersion), (0, 5)),
        Field("throttle_time_ms", "int32", (1, 5)),
        Field("supported_features", Array(SupportedFeatureKey), (3, 5), tag=0, tagged=(3, 5)),
        Field("finalized_features_epoch", "int64", (3, 5), tag=1, tagged=(3, 5)),
        Field("finalized_features", Array(FinalizedFeatureKey), (3, 5), tag=2, tagged=(3, 5)),
        Field("zk_migration_ready", "bool", (3, 5), tag=3, tagged=(3, 5)),
    )
