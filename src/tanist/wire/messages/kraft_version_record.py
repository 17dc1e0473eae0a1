"""KRaftVersionRecord: version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Message


class KRaftVersionRecord(Message):
    version: int = 0
    k_raft_version: int = 0

    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", (0, 0)),
        Field("k_raft_version", "int16", (0, 0)),
    )
