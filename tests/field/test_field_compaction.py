"""Bugs of compaction: what it must not take away."""

from __future__ import annotations

from tanist.lab.mutations.patching import always, fixed
from tanist.log.cleaner.cleaning import LogCleaning
from tanist.log.log import Log
from tests.field.catalogue import bug
from tests.log.cleaner_rig import COMPACT, Left, batches_of, clean, left_in, open_log, put, roll_and_flush
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER


def _all_is_stable(log: Log, high_watermark: int) -> int:
    return log.log_end_offset


@bug("KAFKA-13194", planted=fixed(Log, "last_stable_offset", _all_is_stable))
def test_what_is_not_committed_takes_nothing_away() -> None:
    """The cleaner went beyond the high watermark, and uncommitted records took the place of committed ones."""
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    put(log, [(b"k", b"committed"), (b"other", b"value")])
    roll_and_flush(disk, log)
    put(log, [(b"k", b"not committed")])
    roll_and_flush(disk, log)
    put(log, [(b"last", b"value")])
    assert log.cleanable(None, 2, 10_000).first_uncleanable_offset <= 2
    clean(disk, log, high_watermark=2)
    log.truncate_to(2)
    assert Left(0, b"k", b"committed") in left_in(log)


@bug("KAFKA-5490, KAFKA-8335", planted=fixed(LogCleaning, "_is_last_of_producer", always(False)))
def test_the_last_batch_of_a_producer_stays_without_its_records() -> None:
    """The cleaner removed an idempotent producer's last batch, and its sequence was forgotten at the next start."""
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    put(log, [(b"first", b"of its epoch")])
    put(log, [(b"k", b"1")], producer_id=5, producer_epoch=0, sequence=0)
    put(log, [(b"k", b"2")], producer_id=5, producer_epoch=0, sequence=1)
    put(log, [(b"k", b"3")])
    roll_and_flush(disk, log)
    clean(disk, log)
    assert [header.last_sequence for header, _ in batches_of(log) if header.producer_id == 5] == [1]
    again = disk.copy()
    for name in [each for each in again.files if each.endswith(".snapshot")]:
        again.remove(name)
    found = open_log(again, COMPACT, clean=False)
    assert found.producers.entries[5].next_sequence == 2
    assert log.directory == FOLDER
