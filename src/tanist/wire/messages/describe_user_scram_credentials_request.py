"""DescribeUserScramCredentialsRequest: API key 50, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class UserName(Struct):
    name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("name", "string", (0, 0)),)


class DescribeUserScramCredentialsRequest(Request):
    users: tuple[UserName, ...] | None = ()

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("users", Array(UserName), (0, 0), nullable=(0, 0)),)
