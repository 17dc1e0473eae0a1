"""UpdateFeaturesRequest: API key 57, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class FeatureUpdateKey(Struct):
    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("feature", "string", (0, 2)),
        Field("max_version_level", "int16", (0, 2)),
        Field("allow_downgrade", "bool", (0, 0)),
        Field("upgrade_type", "int8", (1, 2)),
    )


class UpdateFeaturesRequest(Request):
    timeout_ms: int = 60000
    feature_updates: tuple[FeatureUpdateKey, ...] = ()
    validate_only: bool = False

    API_KEY: ClassVar[int] = 57
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", (0, 2)),
        Field("feature_updates", Array(FeatureUpdateKey), (0, 2)),
        Field("validate_only", "bool", (1, 2)),
    )
