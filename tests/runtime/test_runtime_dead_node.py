"""What the files of a broker that is gone say of its replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.runtime.cluster.dead_node import DeadNode, nodes_below
from tanist.wire.batch import NewRecord, encode_batch


@pytest.mark.parametrize("damage", [b"", b"\0" * 30, b"garbage that is no batch" * 4])
def test_the_log_of_a_dead_node_as_far_as_its_files_say(tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    batch = encode_batch([NewRecord(value=b"x")] * 5, base_offset=10, leader_epoch=3)
    later = encode_batch([NewRecord(value=b"y")] * 2, base_offset=15, leader_epoch=4)
    (folder / f"{10:020d}.log").write_bytes(bytes(batch) + bytes(later) + damage)
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n3 10\n4 15\n")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 16\n")
    node = DeadNode(2, [str(tmp_path)])
    found = node.replica("t", 0, 5)
    assert (found.start, found.end, found.high_watermark, found.synced) == (10, 17, 16, None)
    assert found.epochs == ((3, 10), (4, 15))
    assert (found.note is None) == (damage == b"")
    assert node.replica("t", 1, None).note == "it has no log of this partition"
    # How far its log is on the disk: at least to the recovery point, where no ledger of synced lengths says more.
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 15\n")
    assert node.replica("t", 0, 5).synced == 15


def test_one_record_of_a_dead_node(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "t-0"
    folder.mkdir(parents=True)
    marker = encode_batch([NewRecord(value=b"m")], base_offset=12, leader_epoch=3, control=True)
    batch = encode_batch([NewRecord(key=b"k", value=b"x"), NewRecord(value=b"y")], base_offset=10, leader_epoch=3)
    (folder / f"{10:020d}.log").write_bytes(bytes(batch) + bytes(marker))
    (folder / f"{13:020d}.log").write_bytes(bytes(encode_batch([NewRecord(value=b"z")], base_offset=13)))
    (tmp_path / "server.properties").write_text(f"node.id=2\nlog.dirs={tmp_path}/other,{tmp_path}/data\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "server.properties").write_text("node.id=none\n")
    ((node_id, (node, page)),) = nodes_below(tmp_path).items()
    assert (node_id, page) == (2, None)
    values = [None if found is None else found.value for found in (node.record("t", 0, at) for at in range(9, 15))]
    assert values == [None, b"x", b"y", None, b"z", None]
    assert node.record("t", 1, 10) is None
