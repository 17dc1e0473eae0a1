"""LeaderChangeMessage: versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Message, Struct


class Voter(Struct):
    voter_id: int = 0
    voter_directory_id: UUID = ZERO_UUID

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("voter_id", "int32", (0, 1)),
        Field("voter_directory_id", "uuid", (1, 1)),
    )


class LeaderChangeMessage(Message):
    version: int = 0
    leader_id: int = 0
    voters: tuple[Voter, ...] = ()
    granting_voters: tuple[Voter, ...] = ()

    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", (0, 1)),
        Field("leader_id", "int32", (0, 1)),
        Field("voters", Array(Voter), (0, 1)),
        Field("granting_voters", Array(Voter), (0, 1)),
    )
