"""ElectLeadersResponse: API key 43, versions 0 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class PartitionResult(Struct):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_id", "int32", (0, 3)),
        Field("error_code", "int16", (0, 3)),
        Field("error_message", "string", (0, 3), nullable=(0, 3)),
    )


class ReplicaElectionResult(Struct):
    topic: str = ""
    partition_result: tuple[PartitionResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 3)),
        Field("partition_result", Array(PartitionResult), (0, 3)),
    )


class ElectLeadersResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 3)),
        Field("error_code", "int16", (1, 3)),
        Field("replica_election_results", Array(ReplicaElectionResult), (0, 3)),
    )
