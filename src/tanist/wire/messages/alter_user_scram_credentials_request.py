"""AlterUserScramCredentialsRequest: API key 51, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class ScramCredentialDeletion(Struct):
    name: str = ""
    mechanism: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("mechanism", "int8", (0, 0)),
    )


class ScramCredentialUpsertion(Struct):
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("mechanism", "int8", (0, 0)),
        Field("iterations", "int32", (0, 0)),
        Field("salt", "bytes", (0, 0)),
        Field("salted_password", "bytes", (0, 0)),
    )


class AlterUserScramCredentialsRequest(Request):
    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("deletions", Array(ScramCredentialDeletion), (0, 0)),
        Field("upsertions", Array(ScramCredentialUpsertion), (0, 0)),
    )
