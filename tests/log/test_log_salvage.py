"""The quarantine: a tail is saved whole or not at all, whenever the process or the power goes; and it has bounds."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.events.event import Event
from tanist.events.storage import RecordsCut
from tanist.events.stream import NOBODY, Events
from tanist.log.config import LogConfig
from tanist.log.directory import LogDirectory
from tanist.log.log import Log
from tanist.log.salvage.manifest import (
    QUARANTINE,
    Manifest,
    ManifestError,
    SalvageReason,
    SavedFile,
    Unsaved,
)
from tanist.log.salvage.quarantine import Quarantine, QuarantineTooSmall, RecordsToSave, Tidied, slices_of
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.scheduler import CrashPoint, Process, Scheduler
from tanist.text import timestamp_text
from tests.log.log_batches import batch
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, ID, add, content, open_log

SIZE = len(batch([b"value"]))
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=SIZE)
ROOT = f"/d/{QUARANTINE}"
NO_LIMIT = -1
WALL_MS = 1_700_000_000_000


def filled(disk: Any, count: int = 10, events: Events = NOBODY) -> Log:
    log = open_log(disk, CONFIG, events=events)
    for number in range(count):
        add(log, epoch=number // 3, timestamp=1_000 + number)
    log.write_pending()
    return log


def to_save(log: Log, offset: int) -> RecordsToSave:
    tail = log.tail(offset)
    assert tail is not None
    return RecordsToSave(
        "t",
        ID,
        0,
        SalvageReason.FOLLOWER_TRUNCATION,
        leader_epoch=9,
        high_watermark=2,
        from_offset=tail.from_offset,
        to_offset=tail.to_offset,
        epochs=tuple(tuple(entry) for entry in log.epochs.entries),  # type: ignore[misc]
        slices=slices_of(tail.ranges, tail.from_offset),
    )


def quarantine(disk: Any) -> Quarantine:
    return Quarantine(disk, "/d", 7, itertools.count(1))


def saved_bytes(disk: Any, manifest: Manifest) -> bytes:
    return b"".join(disk.read_file(f"{ROOT}/{manifest.entry_id}/{file.name}") for file in manifest.files)


def tail_bytes(log: Log, offset: int) -> bytes:
    tail = log.tail(offset)
    return b"" if tail is None else b"".join(content(each) for each in tail.ranges)


# -- what a log says would go


@pytest.mark.parametrize("offset", range(11))
def test_a_log_tells_beforehand_what_a_truncation_drops(offset: int) -> None:
    events = Events()
    log = filled(MemoryDisk(), events=events)
    seen: list[Event] = []
    events.subscribe(seen.append)
    foretold = log.tail(offset)
    log.truncate_to(offset)
    if foretold is None:
        assert seen == []
    else:
        assert seen == [RecordsCut("t-0", foretold.from_offset, foretold.to_offset)]
        assert log.log_end_offset == foretold.from_offset


def test_what_was_deleted_on_request_is_no_part_of_it() -> None:
    log = filled(MemoryDisk())
    log.advance_log_start_offset(5)
    tail = log.tail(0)
    assert tail is not None
    assert (tail.from_offset, tail.to_offset) == (5, 10)
    assert sum(each.length for each in tail.ranges) == 5 * SIZE


# -- saving


def test_a_tail_is_saved_verbatim_with_its_story() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    expected = tail_bytes(log, 2)
    manifest = quarantine(disk).save_now(to_save(log, 2), WALL_MS, NO_LIMIT)
    assert manifest.entry_id == f"{WALL_MS}-7-1"
    assert [file.name for file in manifest.files] == [f"{base:020d}.log" for base in (2, 4, 8)]
    assert saved_bytes(disk, manifest) == expected
    assert len(expected) == 8 * SIZE == manifest.size_bytes
    reported = json.loads(disk.read_file(f"{ROOT}/{manifest.entry_id}/manifest.json"))
    assert reported["why"] == "follower-truncation"
    assert reported["when"] == "2023-11-14T22:13:20.000Z"
    assert (reported["topic"], reported["partition"], reported["broker_id"]) == ("t", 0, 7)
    assert (reported["from_offset"], reported["to_offset"], reported["high_watermark"], reported["leader_epoch"]) == (
        2,
        10,
        2,
        9,
    )
    assert reported["epochs"] == [[0, 0], [1, 3], [2, 6], [3, 9]]
    assert reported["unsaved"] is None
    assert quarantine(disk).entries() == [manifest]


def test_ids_stay_apart_within_a_millisecond_and_over_restarts() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    ids = [quarantine(disk).save_now(to_save(log, 9), WALL_MS, NO_LIMIT).entry_id for _ in range(3)]
    assert ids == [f"{WALL_MS}-7-{number}" for number in (1, 2, 3)]
    assert [entry.entry_id for entry in quarantine(disk).entries()] == ids


def test_all_is_synced_before_the_entry_has_its_name() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    manifest = quarantine(disk).save_now(to_save(log, 2), WALL_MS, NO_LIMIT)
    names = [path for path in disk.files if path.startswith(f"{ROOT}/{manifest.entry_id}/")]
    assert len(names) == 4
    assert all(disk.files[path].synced == len(disk.files[path].data) > 0 for path in names)


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_full_disk_costs_the_salvage_and_leaves_nothing_half_done(nth: int) -> None:
    """Every write of the saving fails once."""
    disk = MemoryDisk()
    log = filled(disk)
    kept = quarantine(disk).save_now(to_save(log, 9), WALL_MS, NO_LIMIT)
    before, open_before, end = set(disk.files), disk.open_files, disk.writes + nth

    def check() -> None:
        if disk.writes >= end:
            raise OSError(errno.ENOSPC, "no space left on device")

    disk.check = check  # type: ignore[method-assign]
    if nth > 4:  # three segments and a manifest
        quarantine(disk).save_now(to_save(log, 2), WALL_MS + 1, NO_LIMIT)
    else:
        with pytest.raises(OSError, match="no space left"):
            quarantine(disk).save_now(to_save(log, 2), WALL_MS + 1, NO_LIMIT)
        assert set(disk.files) == before
        assert quarantine(disk).entries() == [kept]
    assert disk.open_files == open_before


def test_a_segment_that_shrinks_meanwhile_is_noticed() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    going = to_save(log, 2)
    log.truncate_to(9)
    with pytest.raises(OSError, match="too early"):
        quarantine(disk).save_now(going, WALL_MS, NO_LIMIT)
    assert quarantine(disk).entries() == []


def test_a_node_that_stops_does_not_wait_for_a_copy() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    keeper = quarantine(disk)
    keeper.abandon()
    with pytest.raises(OSError, match="the node is stopping"):
        keeper.save_now(to_save(log, 2), WALL_MS, NO_LIMIT)
    assert keeper.entries() == []
    assert tail_bytes(log, 2)


def test_the_newest_batches_are_kept_where_not_all_fit() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    whole = tail_bytes(log, 1)
    manifest = quarantine(disk).save_now(to_save(log, 1), WALL_MS, 5 * SIZE + SIZE // 2)
    assert saved_bytes(disk, manifest) == whole[-5 * SIZE :]
    assert (manifest.from_offset, manifest.to_offset) == (5, 10)
    assert [file.name for file in manifest.files] == [f"{5:020d}.log", f"{8:020d}.log"]
    assert manifest.unsaved == Unsaved(1, 5, 4 * SIZE)
    exact = quarantine(disk).save_now(to_save(log, 1), WALL_MS, 6 * SIZE)
    assert (exact.from_offset, exact.size_bytes) == (4, 6 * SIZE)
    with pytest.raises(QuarantineTooSmall):
        quarantine(disk).save_now(to_save(log, 1), WALL_MS, SIZE - 1)
    assert len(quarantine(disk).entries()) == 2


# -- bounds


def with_entries(*ages_ms: int) -> tuple[MemoryDisk, list[str]]:
    disk = MemoryDisk()
    log = filled(disk)
    keeper = quarantine(disk)
    return disk, [keeper.save_now(to_save(log, 8), WALL_MS - age, NO_LIMIT).entry_id for age in ages_ms]


def test_the_oldest_go_when_there_is_too_much() -> None:
    disk, (old, older, newest) = with_entries(200, 300, 100)
    removed = quarantine(disk).enforce(4 * SIZE, NO_LIMIT, WALL_MS)
    assert [each.manifest.entry_id for each in removed] == [older]
    assert removed[0].setting == "tanist.salvage.retention.bytes"
    assert [entry.entry_id for entry in quarantine(disk).entries()] == [old, newest]
    assert quarantine(disk).enforce(4 * SIZE, NO_LIMIT, WALL_MS) == []
    quarantine(disk).enforce(0, NO_LIMIT, WALL_MS)
    assert [name for name in disk.list(ROOT) if name != "README.txt"] == []


def test_those_go_that_are_too_old() -> None:
    disk, (old, older, newest) = with_entries(200, 300, 100)
    removed = quarantine(disk).enforce(NO_LIMIT, 200, WALL_MS)
    assert [(each.manifest.entry_id, each.setting) for each in removed] == [(older, "tanist.salvage.retention.ms")]
    assert [entry.entry_id for entry in quarantine(disk).entries()] == [old, newest]
    assert quarantine(disk).enforce(NO_LIMIT, NO_LIMIT, WALL_MS * 2) == []


def test_a_removal_that_was_interrupted_is_finished() -> None:
    disk, (only,) = with_entries(1)
    disk.rename(f"{ROOT}/{only}", f"{ROOT}/{only}.removed")
    disk.remove(f"{ROOT}/{only}.removed/manifest.json")
    assert quarantine(disk).entries() == []
    quarantine(disk).tidy()
    assert disk.list(ROOT) == ["README.txt"]


# -- crashes


class Life:
    """One process on a simulated disk, that saves what it is about to cut and then cuts it."""

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler()
        self.disk = SimDisk(self.scheduler, random.Random(seed))
        self.process = Process("p")
        self.log = self.load()
        for number in range(10):
            add(self.log, epoch=number // 3, timestamp=1_000 + number)
        for file in self.log.unflushed_files():
            self.view.sync_now(file)
        self.log.mark_flushed(10)
        self.expected = tail_bytes(self.log, 2)

    @property
    def view(self) -> Any:
        return self.disk.view(self.process)

    def load(self) -> Log:
        """A start as a broker's: the quarantine is put in order, the logs are opened."""
        self.keeper = Quarantine(self.view, "/d", 7, itertools.count(1))
        self.keeper.tidy()
        directory = LogDirectory(self.view, "/d")
        directory.load(0, lambda topic: CONFIG)
        return directory.logs.get(("t", 0)) or directory.create_log("t", 0, ID, CONFIG, 0)

    def save_and_cut(self) -> list[Any]:
        reported: list[Any] = []

        def done(result: Any) -> None:
            reported.append(result)
            self.log.truncate_to(2)

        self.scheduler.dispatch(self.process, lambda: self.keeper.save(to_save(self.log, 2), WALL_MS, NO_LIMIT, done))
        self.scheduler.run_until(self.scheduler.now_us + 10_000_000)
        return reported

    def check(self) -> str:
        """The tail is in the log, or in the quarantine, to the byte. Where it is."""
        self.process = Process("next")
        self.log = self.load()
        entries = self.keeper.entries()
        whole = [entry for entry in entries if saved_bytes(self.view, entry) == self.expected]
        assert whole == entries, "an entry is there that is not whole"
        if tail_bytes(self.log, 2) == self.expected:
            return "both" if entries else "original"
        assert entries, "cut, and not saved"
        assert all(name == "README.txt" or name == entries[0].entry_id for name in self.view.list(ROOT))
        return "salvage"


def fates(power: bool) -> Iterator[str]:
    for seed in range(4 if power else 1):
        for fuse in itertools.count():
            life = Life(seed)
            life.process.fuse = fuse
            reported = life.save_and_cut()
            burnt = not life.process.alive
            if power:
                life.disk.lose_power()
            yield life.check()
            if not burnt:
                assert isinstance(reported[0], Manifest)
                break


def test_a_kill_at_any_change_leaves_the_original_or_the_salvage() -> None:
    seen = list(fates(power=False))
    assert set(seen) == {"original", "both", "salvage"}
    assert len(seen) > 12
    # Once it is in the quarantine it stays there; first it is in the log alone.
    assert seen == sorted(seen, key=["original", "both", "salvage"].index)


def test_a_loss_of_power_at_any_change_leaves_the_original_or_the_salvage() -> None:
    assert set(fates(power=True)) == {"original", "both", "salvage"}


def test_a_crash_while_the_bound_is_kept_leaves_whole_entries() -> None:
    for fuse in itertools.count():
        life = Life(5)
        life.save_and_cut()
        before = life.keeper.entries()
        life.process.fuse = fuse
        with contextlib.suppress(CrashPoint):
            life.keeper.enforce(0, NO_LIMIT, WALL_MS)
        burnt = not life.process.alive
        life.process = Process("next")
        life.load()
        left = life.keeper.entries()
        assert left in (before, [])
        assert all(saved_bytes(life.view, entry) == life.expected for entry in left)
        names = set(life.view.list(ROOT)) - {"README.txt"}
        assert names == {entry.entry_id for entry in left}
        if not burnt:
            assert fuse > 3
            return


def test_entries_that_lack_files_are_not_finished() -> None:
    disk, (only,) = with_entries(1)
    disk.rename(f"{ROOT}/{only}", f"{ROOT}/{only}.tmp")
    assert quarantine(disk).tidy() == [Tidied(only, complete=True)]
    assert len(quarantine(disk).entries()) == 1
    disk.rename(f"{ROOT}/{only}", f"{ROOT}/{only}.tmp")
    disk.files[f"{ROOT}/{only}.tmp/{8:020d}.log"].data.pop()
    assert quarantine(disk).tidy() == [Tidied(only, complete=False)]
    assert disk.list(ROOT) == ["README.txt"]


def test_what_others_have_put_there_is_left_alone() -> None:
    """Apache Kafka opens the folder as a stray log, and leaves a segment in it."""
    disk, (only,) = with_entries(1)
    disk.write_file(f"{ROOT}/{0:020d}.log", b"")
    disk.write_file(f"{ROOT}/notes.tmp", b"mine")
    disk.make_directory(f"{ROOT}/1-2-3")
    assert [entry.entry_id for entry in quarantine(disk).entries()] == [only]
    assert quarantine(disk).tidy() == []
    quarantine(disk).enforce(0, 0, WALL_MS * 2)
    assert disk.list(ROOT) == [f"{0:020d}.log", "1-2-3", "README.txt", "notes.tmp"]


def test_a_log_directory_takes_the_quarantine_for_no_log() -> None:
    disk, _ = with_entries(1)
    directory = LogDirectory(disk, "/d")
    assert [log.directory for log in directory.load(0, lambda topic: CONFIG)] == [FOLDER]
    assert directory.paths_to_delete == []


# -- the manifest

MANIFEST = Manifest(
    "1-2-3", 2, "a.topic", UUID(int=77), 4, SalvageReason.UNCLEAN_ELECTION, 1, 5, 8, 6, 10, ((3, 2), (4, 7)),
    (SavedFile(f"{6:020d}.log", 10, 2**32 - 1),), Unsaved(2, 6, 1),
)  # fmt: skip


def test_a_manifest_comes_back_as_it_was() -> None:
    assert Manifest.decode(MANIFEST.encode(), "m") == MANIFEST
    assert MANIFEST.last_epoch == 4


def test_a_manifest_from_before_the_elections_had_names_of_their_own_is_read() -> None:
    """What cannot be read is removed at the next start, with the records."""
    assert Manifest.decode(changed(why="unclean-recovery"), "m") == MANIFEST


def changed(**changes: Any) -> bytes:
    return json.dumps({**json.loads(MANIFEST.encode()), **changes}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[1]",
        b"\xff",
        b"[" * 100_000,
        changed(version=2),
        changed(topic=None),
        changed(topic_id="no"),
        changed(why="because"),
        changed(from_offset=2**63),
        changed(to_offset="10"),
        changed(when_ms=True),
        changed(epochs=[[1]]),
        changed(files=[{"name": "../../etc/passwd", "bytes": 1, "crc32c": 1}]),
        changed(files=[{"name": "/etc/passwd", "bytes": 1, "crc32c": 1}]),
        changed(files=[{"name": f"{6:020d}.log"}]),
        changed(unsaved={}),
        MANIFEST.encode()[:-20],
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(ManifestError):
        Manifest.decode(data, "m")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_no_value_of_a_manifest_can_break_its_reader(value: Any) -> None:
    for name in json.loads(MANIFEST.encode()):
        with contextlib.suppress(ManifestError):
            Manifest.decode(changed(**{name: value}), "m")


def test_times_that_no_calendar_has() -> None:
    assert timestamp_text(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp_text(2**62) == f"{2**62} ms"
