"""DescribeDelegationTokenRequest: API key 41, versions 1 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = ""
    principal_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", (1, 3)),
        Field("principal_name", "string", (1, 3)),
    )


class DescribeDelegationTokenRequest(Request):
    owners: tuple[DescribeDelegationTokenOwner, ...] | None = ()

    API_KEY: ClassVar[int] = 41
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owners", Array(DescribeDelegationTokenOwner), (1, 3), nullable=(1, 3)),
    )
