"""What a loss of power leaves of a dead broker of Apache's, as far as we can play one."""

from __future__ import annotations

from pathlib import Path

from tanist.wire.batch import NewRecord, encode_batch
from tests.faults import apache_nodes


def test_what_was_not_synced_is_cut_at_the_recovery_point(tmp_path: Path) -> None:
    folder = tmp_path / "t-with-dashes-0"
    folder.mkdir()
    batches = [bytearray(encode_batch([NewRecord(0, None, b"x" * size)] * 3)) for size in (10, 200, 30)]
    for number, batch in enumerate(batches):
        batch[0:8] = (number * 3).to_bytes(8, "big")
    segment = folder / f"{0:020}.log"
    segment.write_bytes(b"".join(batches) + bytes(batches[0][:40]))
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt-with-dashes 0 3\n")
    assert apache_nodes.recovery_points(tmp_path) == {("t-with-dashes", 0): 3}
    assert apache_nodes.lose_unsynced(tmp_path) == [len(batches[1]) + len(batches[2]) + 40]
    assert segment.read_bytes() == bytes(batches[0])
    assert apache_nodes.lose_unsynced(tmp_path) == []
