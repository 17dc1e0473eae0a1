"""The choice of the replica nearest to a consumer (KIP-392).

Owns `ReadReplica`, a replica from which a consumer could read, and the choice among several. A leader offers itself
and the members of its ISR; `reads` asks for the choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class ReadReplica(NamedTuple):
    """A replica from which a consumer could read."""

    broker_id: int
    rack: str | None
    log_end_offset: int
    caught_up_age_ms: int


def nearest_replica(client_rack: str | None, leader: ReadReplica, followers: Iterable[ReadReplica]) -> int:
    """The leader if it is in the client's rack or no replica is; else the one there with the highest end (KIP-392)."""
    if not client_rack or leader.rack == client_rack:
        return leader.broker_id
    near = [replica for replica in followers if replica.rack == client_rack]
    if not near:
        return leader.broker_id
    return max(
        near, key=lambda replica: (replica.log_end_offset, -replica.caught_up_age_ms, -replica.broker_id)
    ).broker_id
