"""CreateDelegationTokenRequest: API key 38, versions 1 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class CreatableRenewers(Struct):
    principal_type: str = ""
    principal_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", (1, 3)),
        Field("principal_name", "string", (1, 3)),
    )


class CreateDelegationTokenRequest(Request):
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: tuple[CreatableRenewers, ...] = ()
    max_lifetime_ms: int = 0

    API_KEY: ClassVar[int] = 38
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owner_principal_type", "string", (3, 3), nullable=(3, 3)),
        Field("owner_principal_name", "string", (3, 3), nullable=(3, 3)),
        Field("renewers", Array(CreatableRenewers), (1, 3)),
        Field("max_lifetime_ms", "int64", (1, 3)),
    )
