"""The metadata log's Raft (KRaft): one replica as a sans-IO state machine, its log, its snapshots, its stored votes."""

from __future__ import annotations

from tanist.events.quorum import (
    BecameQuorumLeader,
    MetadataLogTruncated,
    QuorumLeaderChanged,
    SnapshotDownloaded,
    SteppedDown,
)
from tanist.quorum.config import RaftConfig
from tanist.quorum.describe import QuorumInfo
from tanist.quorum.effects import (
    AppendOutcome,
    BatchTooLarge,
    Effect,
    HighWatermark,
    IllegalTransition,
    NotLeader,
    QuorumError,
    QuorumInconsistent,
    Reply,
    SaveElectionState,
    Send,
    SyncLog,
)
from tanist.quorum.raft import RaftNode
from tanist.quorum.state.rules import QuorumRules
from tanist.quorum.storage.memory_log import MemoryLog
from tanist.quorum.storage.quorum_state_file import ElectionState, QuorumStateFile, UnreadableState
from tanist.quorum.storage.raft_log import CorruptBatch, MetadataBatch, RaftLog
from tanist.quorum.voters import Endpoint, LogEnd, ReplicaKey, SnapshotId, Voter, VoterSet

__all__ = [
    "AppendOutcome",
    "BatchTooLarge",
    "BecameQuorumLeader",
    "CorruptBatch",
    "Effect",
    "ElectionState",
    "Endpoint",
    "HighWatermark",
    "IllegalTransition",
    "LogEnd",
    "MemoryLog",
    "MetadataBatch",
    "MetadataLogTruncated",
    "NotLeader",
    "QuorumError",
    "QuorumInconsistent",
    "QuorumInfo",
    "QuorumLeaderChanged",
    "QuorumRules",
    "QuorumStateFile",
    "RaftConfig",
    "RaftLog",
    "RaftNode",
    "ReplicaKey",
    "Reply",
    "SaveElectionState",
    "Send",
    "SnapshotDownloaded",
    "SnapshotId",
    "SteppedDown",
    "SyncLog",
    "UnreadableState",
    "Voter",
    "VoterSet",
]
