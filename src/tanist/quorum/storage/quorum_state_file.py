"""The `quorum-state` file: the election state that a node must remember across restarts.

Owns the file's two formats, as Kafka writes them: version 0 (static voters) and version 1 (kraft.version 1, which has
the voted directory). Reads both. `node_state.Quorum` decides which state is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tanist.ports import Disk
from tanist.quorum.voters import ReplicaKey
from tanist.wire.ids import ZERO_UUID, id_from_text, id_text

FILE_NAME = "quorum-state"


class UnreadableState(Exception):
    """The file is not one that Kafka or tanist has written. Guessing would risk a second vote."""


@dataclass(frozen=True, slots=True)
class ElectionState:
    """Rule 133: the state that is stored before the node acts on it."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None


def encode_election_state(state: ElectionState, *, version: int, voter_ids: Sequence[int] = ()) -> bytes:
    leader_id = -1 if state.leader_id is None else state.leader_id
    voted_id = -1 if state.voted is None else state.voted.node_id
    fields: dict[str, Any]
    if version == 0:
        # Kafka leaves the cluster id empty and the applied offset zero here; both are from before KIP-630.
        fields = {
            "clusterId": "",
            "leaderId": leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
        }
    elif version == 1:
        directory_id = ZERO_UUID if state.voted is None else state.voted.directory_id
        fields = {
            "leaderId": leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted_id,
            "votedDirectoryId": id_text(directory_id),
        }
    else:
        raise ValueError(f"quorum-state has no version {version}")
    fields["data_version"] = version
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_election_state(data: bytes) -> ElectionState:
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise UnreadableState(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise UnreadableState("not a JSON object")
    version = fields.get("data_version")
    if version not in (0, 1):
        raise UnreadableState(f"data_version is {version!r}, not 0 or 1")
    voted_id = _number(fields, "votedId", -1)
    directory_id = ZERO_UUID
    if version == 1:
        try:
            directory_id = id_from_text(str(fields["votedDirectoryId"]))
        except (KeyError, ValueError) as error:
            raise UnreadableState(f"votedDirectoryId: {error}") from error
    leader_id = _number(fields, "leaderId", -1)
    epoch = _number(fields, "leaderEpoch", None)
    if epoch < 0:
        raise UnreadableState(f"leaderEpoch is {epoch}")
    return ElectionState(
        epoch=epoch,
        leader_id=None if leader_id < 0 else leader_id,
        voted=None if voted_id < 0 else ReplicaKey(voted_id, directory_id),
    )


def _number(fields: dict[str, Any], name: str, default: int | None) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableState(f"{name} is {value!r}")
    return value


class QuorumStateFile:
    """`quorum-state` in the metadata log's folder."""

    __slots__ = ("_disk", "_path", "_version", "_voter_ids")

    def __init__(self, disk: Disk, folder: str, voter_ids: Sequence[int], *, version: int = 0) -> None:
        """`version`: the lowest that is written."""
        if version not in (0, 1):
            raise ValueError(f"quorum-state has no version {version}")
        self._disk = disk
        self._path = f"{folder}/{FILE_NAME}"
        self._version = version
        self._voter_ids = tuple(voter_ids)

    @property
    def exists(self) -> bool:
        """False of a new node, which has no metadata log either."""
        return self._disk.exists(self._path)

    def load(self) -> ElectionState:
        """The state saved last; a new node's state if there is none."""
        if not self.exists:
            return ElectionState()
        return decode_election_state(self._disk.read_file(self._path))

    def save(self, state: ElectionState, kraft_version: int = 0) -> None:
        """Durable on return (`SaveElectionState`). The file's version is that of kraft.version."""
        data = encode_election_state(
            state, version=max(self._version, min(kraft_version, 1)), voter_ids=self._voter_ids
        )
        self._disk.write_file(self._path, data, sync=True)
