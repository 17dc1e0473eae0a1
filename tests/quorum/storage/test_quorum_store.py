"""`quorum-state`: Kafka's two formats, read and written."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.quorum import ElectionState, QuorumStateFile, ReplicaKey, UnreadableState
from tanist.quorum.storage.quorum_state_file import decode_election_state, encode_election_state
from tanist.wire.ids import ZERO_UUID
from tests.quorum.quorum_disk import LossyDisk

DIRECTORY = UUID(int=0x0102030405060708090A0B0C0D0E0F10)
FOLDER = "/data/__cluster_metadata-0"


def test_version_0_as_kafka_writes_it() -> None:
    state = ElectionState(7, 2, ReplicaKey(1, DIRECTORY))
    assert encode_election_state(state, version=0, voter_ids=(1, 2, 3)) == (
        b'{"clusterId":"","leaderId":2,"leaderEpoch":7,"votedId":1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
    )


def test_version_1_as_kafka_writes_it() -> None:
    state = ElectionState(7, None, ReplicaKey(1, DIRECTORY))
    assert encode_election_state(state, version=1) == (
        b'{"leaderId":-1,"leaderEpoch":7,"votedId":1,"votedDirectoryId":"AQIDBAUGBwgJCgsMDQ4PEA","data_version":1}'
    )


@given(
    st.integers(0, 2**31 - 1),
    st.none() | st.integers(0, 2**31 - 1),
    st.none() | st.tuples(st.integers(0, 2**31 - 1), st.uuids()),
)
def test_what_is_written_is_read(epoch: int, leader_id: int | None, voted: tuple[int, UUID] | None) -> None:
    state = ElectionState(epoch, leader_id, None if voted is None else ReplicaKey(*voted))
    assert decode_election_state(encode_election_state(state, version=1)) == state
    known_by_id = ElectionState(epoch, leader_id, None if voted is None else ReplicaKey(voted[0]))
    assert decode_election_state(encode_election_state(state, version=0, voter_ids=(1,))) == known_by_id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"data_version":2,"leaderEpoch":1}',
        '{"data_version":0}',
        '{"data_version":0,"leaderEpoch":-1}',
        '{"data_version":0,"leaderEpoch":"1"}',
        '{"data_version":0,"leaderEpoch":true}',
        '{"data_version":0,"leaderEpoch":1,"votedId":null}',
        '{"data_version":1,"leaderEpoch":1,"votedId":1}',
        '{"data_version":1,"leaderEpoch":1,"votedId":1,"votedDirectoryId":"not an id"}',
        "\xff\xfe",
    ],
)
def test_what_cannot_be_read_is_not_guessed(text: str) -> None:
    with pytest.raises(UnreadableState):
        decode_election_state(text.encode("latin-1"))


def test_unknown_versions_are_not_written() -> None:
    with pytest.raises(ValueError, match="version 2"):
        encode_election_state(ElectionState(), version=2)
    with pytest.raises(ValueError, match="version 2"):
        QuorumStateFile(LossyDisk(1), FOLDER, (1,), version=2)


def test_the_file_survives_a_loss_of_power() -> None:
    disk = LossyDisk(1)
    disk.make_directory(FOLDER)
    file = QuorumStateFile(disk, FOLDER, (1, 2, 3), version=1)
    assert file.load() == ElectionState()
    for epoch in range(1, 20):
        state = ElectionState(epoch, None, ReplicaKey(1, DIRECTORY))
        file.save(state)
        disk.lose_power()
        assert QuorumStateFile(disk, FOLDER, (1, 2, 3)).load() == state
    assert json.loads(disk.read_file(f"{FOLDER}/quorum-state"))["leaderEpoch"] == 19


def test_fields_that_kafka_adds_are_passed_over() -> None:
    text = encode_election_state(ElectionState(4, 3, None), version=1).replace(b"{", b'{"new":[],', 1)
    assert decode_election_state(text) == ElectionState(4, 3, None)
    assert ReplicaKey(1).directory_id == ZERO_UUID
