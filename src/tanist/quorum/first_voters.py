"""The first voters of a cluster with dynamic voters (KIP-853), as the metadata log's folder has them.

Owns the snapshot `0-0` of a controller that is formatted with them: kraft.version 1 and the set, and no metadata. The
first leader writes both into the metadata log.
"""

from __future__ import annotations

from tanist.quorum.log import FOLDER
from tanist.quorum.snapshots import encode_snapshot, file_name
from tanist.quorum.voter_history import to_record
from tanist.quorum.voters import SnapshotId, VoterSet
from tanist.wire.control import KRaftVersionRecord


def first_snapshot(voters: VoterSet, listener_name: str, wall_ms: int) -> tuple[str, bytes]:
    """The snapshot's path below the folder of `metadata.log.dir`, and its content."""
    records = (KRaftVersionRecord(k_raft_version=1), to_record(voters, listener_name))
    snapshot_id = SnapshotId(0, 0)
    # Its age is that of the formatting: with time 0 the next snapshot would find it overdue, and cut the log at once.
    content = b"".join(
        encode_snapshot(snapshot_id, (), wall_ms=wall_ms, last_contained_log_timestamp=wall_ms, voters=records)
    )
    return f"{FOLDER}/{file_name(snapshot_id)}", content
