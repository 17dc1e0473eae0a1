"""The scenarios' node under test, with what tests of a node alone do besides, and the messages of snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tanist.lab.scenarios import quorum_node
from tanist.lab.scenarios.quorum_node import (
    CLUSTER_ID,
    EVERYBODY,
    ME,
    NodeUnderTest,
    directory,
    fetch,
    key,
    part_of,
)
from tanist.quorum import Effect, ElectionState, MemoryLog, Reply, SnapshotId, messages
from tanist.quorum.storage import batches as quorum_batches
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import METADATA_TOPIC
from tanist.wire.messages import fetch_snapshot_request, fetch_snapshot_response
from tanist.wire.schema import Response

SELF = key(ME)


class Kit(NodeUnderTest):
    """Node 0 among voters 0, 1 and 2, or others."""

    auto_sync = True
    """Whether syncs complete at once."""

    def __init__(self, voters: Sequence[int] = (0, 1, 2), **options: Any) -> None:
        super().__init__(voters, **options)

    def take(self, effects: list[Effect]) -> list[Effect]:
        if self.auto_sync:
            return super().take(effects)
        self.effects += effects
        return effects

    def of(self, kind: type[Effect]) -> list[Effect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def reply_to(self, effects: list[Effect], source: object) -> Response | None:
        for effect in effects:
            if isinstance(effect, Reply) and effect.source == source:
                return effect.response
        return None

    def commit_all(self, voter_ids: Sequence[int] | None = None) -> None:
        """The other voters fetch up to the end."""
        others = [voter.node_id for voter in self.node._quorum.voters if voter.node_id != ME]
        for voter_id in voter_ids if voter_ids is not None else others:
            self.ask(fetch(self.node.epoch, voter_id, self.log.end_offset, self.log.last_epoch, max_wait_ms=0))


def leader(epoch: int = 5, *, log: MemoryLog | None = None, **options: Any) -> Kit:
    kit = Kit(stored=ElectionState(epoch, None, SELF), log=log, **options)
    kit.become_leader()
    return kit


def elected(epoch: int = 5, **options: Any) -> Kit:
    kit = leader(epoch, **options)
    kit.commit_all()
    return kit


# -- messages


def fetch_snapshot(
    epoch: int,
    from_id: int,
    snapshot_id: SnapshotId,
    position: int,
    *,
    max_bytes: int = 2**31 - 1,
    name: str = METADATA_TOPIC,
) -> fetch_snapshot_request.FetchSnapshotRequest:
    part = fetch_snapshot_request.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot_request.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=directory(from_id),
    )
    return fetch_snapshot_request.FetchSnapshotRequest(
        cluster_id=CLUSTER_ID,
        replica_id=from_id,
        max_bytes=max_bytes,
        topics=(fetch_snapshot_request.TopicSnapshot(name=name, partitions=(part,)),),
    )


def snapshot_part(
    leader_id: int,
    epoch: int,
    snapshot_id: SnapshotId,
    *,
    size: int = 0,
    position: int = 0,
    data: bytes = b"",
    error: int = 0,
) -> fetch_snapshot_response.FetchSnapshotResponse:
    part = fetch_snapshot_response.PartitionSnapshot(
        error_code=error,
        snapshot_id=fetch_snapshot_response.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        size=size,
        position=position,
        unaligned_records=data,
    )
    return messages.snapshot_reply(EVERYBODY, leader_id, epoch, part)


def error_of(response: Any) -> str:
    """Name of the error of the response, or else of its partition."""
    return ErrorCode(quorum_node.error_of(response)).name


def records_of(response: Any) -> list[bytes]:
    view = memoryview(part_of(response).records)
    found = [
        quorum_batches.decode_values(view[at : at + header.size_bytes], header)
        for at, header in quorum_batches.read_headers(view)
    ]
    return [value for batch in found for value in batch.values]
