"""The sets of voters that the metadata log names, and the `kraft.version` that goes with them (KIP-853).

Owns which set is in force: the last one in the log, committed or not. A log that is cut takes its sets back. A log
without any leaves the static set of the configuration. Sets below a snapshot are in the snapshot.

Owns the first set, too: the snapshot `0-0` of a controller that is formatted with dynamic voters. It has kraft.version
1 and the set, and no metadata. The first leader writes both into the metadata log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tanist.quorum.storage.metadata_log import FOLDER
from tanist.quorum.storage.raft_log import RaftLog, VoterMessage
from tanist.quorum.storage.snapshots import encode_snapshot, file_name
from tanist.quorum.voters import Endpoint, Listener, ReplicaKey, SnapshotId, Voter, VoterSet
from tanist.wire.control import KRaftVersionRecord, VotersRecord
from tanist.wire.messages import voters_record

FROM_BOOTSTRAP = -1
"""The offset of a set that comes from the snapshot with which a node was formatted."""


class VoterHistory:
    __slots__ = ("_listener_name", "_sets", "_static", "_versions")

    def __init__(self, static: VoterSet, listener_name: str) -> None:
        self._static = static
        self._listener_name = listener_name
        self._sets: list[tuple[int, VoterSet]] = []
        self._versions: list[tuple[int, int]] = []

    # -- what is in force

    @property
    def voters(self) -> VoterSet:
        return self._sets[-1][1] if self._sets else self._static

    @property
    def offset(self) -> int | None:
        """Where the log names the set in force; None for the static set."""
        return self._sets[-1][0] if self._sets else None

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1] if self._versions else 0

    def may_be_voter(self, key: ReplicaKey, high_watermark: int) -> bool:
        """Whether `key` is in the set in force, or in one that is not known to be superseded for good."""
        for offset, voters in reversed(self._sets):
            if voters.is_voter(key):
                return True
            if offset < high_watermark:
                return False
        return self._static.is_voter(key)

    def committed(self, high_watermark: int) -> VoterSet:
        """The last set below the high watermark."""
        return next((voters for offset, voters in reversed(self._sets) if offset < high_watermark), self._static)

    def as_of(self, end_offset: int) -> tuple[VoterMessage, ...]:
        """The records that a snapshot of everything below `end_offset` begins with; none with kraft.version 0."""
        version = next((level for offset, level in reversed(self._versions) if offset < end_offset), 0)
        voters = next((voters for offset, voters in reversed(self._sets) if offset < end_offset), None)
        if version == 0 or voters is None:
            return ()
        return (KRaftVersionRecord(k_raft_version=version), to_record(voters, self._listener_name))

    # -- changes

    def load(self, log: RaftLog) -> None:
        """From the latest snapshot and the log after it."""
        self._sets.clear()
        self._versions.clear()
        begin = log.start_offset
        latest = log.latest_snapshot_id
        if latest is not None:
            self._snapshot(log, latest)
            begin = max(begin, latest.end_offset)
        self.add(log.voter_records(begin))

    def _snapshot(self, log: RaftLog, snapshot_id: SnapshotId) -> None:
        self.add((snapshot_id.end_offset - 1, message) for message in log.snapshot_voter_records(snapshot_id))

    def add(self, records: Iterable[tuple[int, VoterMessage]]) -> bool:
        """Records of the log, by their offsets. True: there were some."""
        changed = False
        for offset, message in records:
            changed = True
            if isinstance(message, VotersRecord):
                self._sets.append((offset, of_record(message, self._listener_name)))
            else:
                self._versions.append((offset, message.k_raft_version))
        return changed

    def truncate_to(self, end_offset: int) -> bool:
        """The log was cut. True: sets were cut off."""
        before = len(self._sets) + len(self._versions)
        self._sets = [entry for entry in self._sets if entry[0] < end_offset]
        self._versions = [entry for entry in self._versions if entry[0] < end_offset]
        return len(self._sets) + len(self._versions) < before


def to_record(voters: VoterSet, listener_name: str) -> VotersRecord:
    """The set as the log has it. A static voter has the one endpoint that the configuration gives it."""
    return VotersRecord(
        voters=tuple(
            voters_record.Voter(
                voter_id=voter.node_id,
                voter_directory_id=voter.directory_id,
                endpoints=tuple(
                    voters_record.Endpoint(name=listener.name, host=listener.host, port=listener.port)
                    for listener in voter.listeners or (Listener(listener_name, voter.host, voter.port),)
                ),
                k_raft_version_feature=voters_record.KRaftVersionFeature(
                    min_supported_version=voter.kraft_versions[0], max_supported_version=voter.kraft_versions[1]
                ),
            )
            for voter in voters
        )
    )


def of_record(record: VotersRecord, listener_name: str) -> VoterSet:
    """The set that a record names."""
    voters = []
    for voter in record.voters:
        listeners = tuple(Listener(each.name, each.host, each.port) for each in voter.endpoints)
        feature = voter.k_raft_version_feature
        versions = (feature.min_supported_version, feature.max_supported_version)
        host, port = address(listeners, listener_name)
        voters.append(Voter(voter.voter_id, voter.voter_directory_id, host, port, listeners, versions))
    return VoterSet(voters)


def address(listeners: Sequence[Listener], listener_name: str) -> Endpoint:
    """The endpoint of the quorum's listener, or else of the first one."""
    for listener in (*(each for each in listeners if each.name == listener_name), *listeners):
        return Endpoint(listener.host, listener.port)
    return Endpoint("", 0)


def first_snapshot(voters: VoterSet, listener_name: str, wall_ms: int) -> tuple[str, bytes]:
    """The snapshot's path below the folder of `metadata.log.dir`, and its content."""
    records = (KRaftVersionRecord(k_raft_version=1), to_record(voters, listener_name))
    snapshot_id = SnapshotId(0, 0)
    # Its age is that of the formatting: with time 0 the next snapshot would find it overdue, and cut the log at once.
    content = b"".join(
        encode_snapshot(snapshot_id, (), wall_ms=wall_ms, last_contained_log_timestamp=wall_ms, voters=records)
    )
    return f"{FOLDER}/{file_name(snapshot_id)}", content
