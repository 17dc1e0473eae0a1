"""What the files of a broker that is gone say of its replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.runtime.cluster.dead_node import DeadNode
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
