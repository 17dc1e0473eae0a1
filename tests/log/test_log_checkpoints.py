"""The text files beside the logs: their exact bytes, and what is said of damaged ones."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.log.checkpoints import (
    CheckpointError,
    MetaProperties,
    MetaPropertiesMismatch,
    decode_clean_shutdown,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_epochs,
    encode_offsets,
    encode_partition_metadata,
    previous_broker_epoch,
)
from tanist.wire.ids import ZERO_UUID

ID = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")


def test_offset_checkpoint_bytes() -> None:
    data = b"0\n2\na-b 0 7\nt 11 9223372036854775807\n"
    offsets = {("t", 11): 2**63 - 1, ("a-b", 0): 7}
    assert encode_offsets(offsets) == data
    assert decode_offsets(data, "f") == offsets
    assert encode_offsets({}) == b"0\n0\n"


def test_epoch_checkpoint_bytes() -> None:
    data = b"0\n2\n0 0\n3 17\n"
    assert encode_epochs([(0, 0), (3, 17)]) == data
    assert decode_epochs(data, "f") == [(0, 0), (3, 17)]


def test_an_empty_checkpoint_holds_nothing() -> None:
    """As in Kafka, which makes the file before it first writes it."""
    assert decode_offsets(b"", "f") == {}
    assert decode_epochs(b"0\n", "f") == []


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"1\n0\n", "line 1: version '1'"),
        (b"zero\n0\n", "line 1"),
        (b"0\n2\nt 0 1\n", "announces 2 entries, 1 follow"),
        (b"0\n99999999999999999999999\n", "line 2"),
        (b"0\n1\nt 0\n", "line 3: expected 'topic partition offset'"),
        (b"0\n1\nt 0 -1\n", "line 3: '-1'"),
        (b"0\n1\nt 4294967296 1\n", "line 3: '4294967296'"),
        (b"0\n1\nt 0 9223372036854775808\n", "line 3"),
        (b"0\n1\nt 0 " + b"9" * 5000 + b"\n", "line 3"),
        (b"\xff\xfe", "not text"),
    ],
)
def test_damaged_offset_checkpoints_are_explained(data: bytes, complaint: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        decode_offsets(data, "/d/recovery-point-offset-checkpoint")
    assert complaint in str(caught.value)
    assert "/d/recovery-point-offset-checkpoint" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_epochs_that_do_not_ascend_are_damage() -> None:
    with pytest.raises(CheckpointError, match="does not ascend"):
        decode_epochs(b"0\n2\n3 5\n2 9\n", "f")
    with pytest.raises(CheckpointError, match="does not ascend"):
        decode_epochs(b"0\n2\n3 5\n4 5\n", "f")


@given(st.binary(max_size=60))
def test_no_bytes_but_a_checkpoint_error(data: bytes) -> None:
    for decode in (decode_offsets, decode_epochs, decode_partition_metadata, MetaProperties.decode):
        with suppress(CheckpointError):
            decode(data, "f")
    decode_clean_shutdown(data)


def test_clean_shutdown_bytes() -> None:
    assert encode_clean_shutdown(7) == b'{"version":0,"brokerEpoch":7}'
    assert decode_clean_shutdown(b'{"version":0,"brokerEpoch":7}') == 7
    assert decode_clean_shutdown(b'{"version":1,"brokerEpoch":8,"more":[]}') == 8


@pytest.mark.parametrize(
    "data", [b"", b"7", b"{}", b"[]", b'{"brokerEpoch":null}', b'{"brokerEpoch":true}', b"[" * 9999]
)
def test_a_clean_shutdown_file_without_an_epoch_says_nothing(data: bytes) -> None:
    assert decode_clean_shutdown(data) is None


@pytest.mark.parametrize(
    ("epochs", "previous"),
    [([7, 7], 7), ([7, 8], -1), ([7, None], -1), ([None], -1), ([], -1), ([0], 0)],
)
def test_previous_broker_epoch(epochs: list[int | None], previous: int) -> None:
    """Rule 87; [7, 7] is cs-01 of the shared scenarios."""
    assert previous_broker_epoch(epochs) == previous


def test_partition_metadata_bytes() -> None:
    data = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert encode_partition_metadata(ID) == data
    assert decode_partition_metadata(data, "f") == ID
    assert decode_partition_metadata(data + b"\n", "f") == ID


@pytest.mark.parametrize(
    "data", [b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0\ntopic_id: short", b"x"]
)
def test_damaged_partition_metadata(data: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"^f: "):
        decode_partition_metadata(data, "f")


def test_meta_properties_as_apache_writes_them() -> None:
    data = (
        b"#\n#Sat Nov 21 16:00:00 UTC 2026\nnode.id=3\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n"
        b"version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
    )
    meta = MetaProperties.decode(data, "f")
    assert meta == MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, ID)
    assert MetaProperties.decode(meta.encode(), "f") == meta
    assert meta.encode().endswith(b"node.id=3\nversion=1\n")


@pytest.mark.parametrize(
    "data",
    [
        b"#\n#Mon Jan 1 00:00:00 UTC 2024\nnode.id=3\nversion=1\ncluster.id=mine\n",
        b"#\nversion=0\nbroker.id=3\ncluster.id=mine\n",
    ],
)
def test_folders_of_kafka_before_3_7_have_no_directory_id(data: bytes) -> None:
    meta = MetaProperties.decode(data, "f")
    assert meta == MetaProperties("mine", 3, ZERO_UUID)
    assert b"directory.id" not in meta.encode()
    assert MetaProperties.decode(meta.encode(), "f") == meta


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_cluster_may_have_any_id(cluster_id: str) -> None:
    meta = MetaProperties(cluster_id, 3, ID)
    assert MetaProperties.decode(meta.encode(), "f") == meta


def test_another_nodes_folder_is_refused_with_advice() -> None:
    meta = MetaProperties("mine", 3, ID)
    meta.require("/d/meta.properties", cluster_id="mine", node_id=3)
    with pytest.raises(MetaPropertiesMismatch, match=r"belongs to cluster mine.*log.dirs"):
        meta.require("/d/meta.properties", cluster_id="other")
    with pytest.raises(MetaPropertiesMismatch, match=r"written by node 3, this is node 4.*node.id=3"):
        meta.require("/d/meta.properties", node_id=4)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"version=0\nbroker.id=1\n", "cluster.id is missing"),
        (b"version=1\nbroker.id=1\ncluster.id=c\n", "node.id is missing"),
        (b"version=2\nnode.id=1\ncluster.id=c\n", "version '2'"),
        (b"version=1\nnode.id=1\ncluster.id=\\u12\n", "line 3"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (b"version=1\nnode.id=x\ncluster.id=c\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n", "f: "),
        (b"nonsense\n", "version None"),
    ],
)
def test_damaged_meta_properties(data: bytes, complaint: str) -> None:
    with pytest.raises(CheckpointError, match=complaint):
        MetaProperties.decode(data, "f")
