"""DescribeUserScramCredentialsResponse: API key 50, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class CredentialInfo(Struct):
    mechanism: int = 0
    iterations: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("mechanism", "int8", (0, 0)),
        Field("iterations", "int32", (0, 0)),
    )


class DescribeUserScramCredentialsResult(Struct):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: tuple[CredentialInfo, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("credential_infos", Array(CredentialInfo), (0, 0)),
    )


class DescribeUserScramCredentialsResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("results", Array(DescribeUserScramCredentialsResult), (0, 0)),
    )
