"""Cleanings that a kill or a loss of power ends, at any change of the disk, on the simulator's page cache.

Appends, flushes, cleanings and stops; then a process dies in any of its changes, or the machine loses its power, and
recovery may be ended so too. Then: of every key the latest record that was durable is there, nothing at or above the
high watermark has gone, nothing was made up, what was removed does not come back in part, and the epochs and producers
are those of the whole history.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tanist.log.cleaner.cleaning import LogCleaning
from tanist.log.cleaner.key_map import KeyMap
from tanist.log.config import LogConfig
from tanist.log.directory import LogDirectory
from tanist.log.log import Log
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.scheduler import CrashPoint, Process, Scheduler
from tanist.wire.batch import decode_batch
from tests.log.cleaner_rig import batches_of, take
from tests.log.log_batches import batch

CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=500, index_interval_bytes=120, delete_retention_ms=50)
KEY = ("t", 0)
ID = UUID(int=5)
FOLDER = "/d/t-0"


class PowerFailure(Exception):
    """The power goes between two steps of a cleaning."""


class Course:
    """One disk, and the lives of the processes that use it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.scheduler = Scheduler()
        self.disk = SimDisk(self.scheduler, random.Random(seed + 1))
        self.now = 1_000
        self.epoch = 0
        self.history: dict[int, tuple[bytes, bytes | None, int, int]] = {}
        """Offset -> key, value, leader epoch, timestamp of all that was appended and not lost."""
        self.begun: dict[int, int] = {}
        self.sequences: dict[int, dict[int, int]] = {}
        """Producer -> offset -> the sequence after it."""
        self.checkpoint: int | None = None
        self.cleaned_below = 0
        """No cleaning was given a higher high watermark."""
        self.cleanings = self.interrupted = 0
        self.process = Process("p")
        self.directory, self.log = self.start()

    def start(self) -> tuple[LogDirectory, Log]:
        directory = LogDirectory(self.disk.view(self.process), "/d")
        # When a broker starts it does not know yet that the topic is compacted.
        directory.load(self.now, lambda topic: replace(CONFIG, cleanup_policy="delete"))
        if KEY not in directory.logs:
            directory.create_log(*KEY, ID, CONFIG, self.now)
        log = directory.logs[KEY]
        if log.topic_id != ID:
            log.assign_topic_id(ID)  # a loss of power had taken it: the metadata knows it
        log.set_config(CONFIG)
        return directory, log

    def run(self) -> None:
        for _ in range(5):
            self.live()

    def live(self) -> None:
        rng = self.rng
        self.safe = self.log.log_end_offset
        killed = rng.random() < 0.6
        if killed:
            self.process.fuse = rng.randrange(20, 260)
        stopped = False
        try:
            for _ in range(rng.randrange(10, 50)):
                if self.step():
                    stopped = True
                    break
            else:
                killed = False
        except CrashPoint:
            pass
        except PowerFailure:
            killed = False
        durable = self.log.flushed_offset
        power = not killed and not stopped
        if power:
            self.disk.lose_power()
        self.scheduler.now_us += 1_000
        power |= self.start_again()
        self.judge(durable if power else self.safe, power=power)

    def step(self) -> bool:
        rng, log = self.rng, self.log
        self.scheduler.now_us += rng.choice([0, 1_000, 50_000, 1_000_000, 40_000_000])
        self.now += rng.choice([1, 1, 20])
        kind = rng.random()
        if kind < 0.60:
            self.append()
        elif kind < 0.68:
            self.directory.checkpoints.write_recovery_points()
        elif kind < 0.80:
            self.flush()
        elif kind < 0.84:
            log.roll_if_due(self.now + 10**10)
        elif kind < 0.97:
            self.flush()
            self.clean()
        elif rng.random() < 0.2:
            self.directory.shutdown_cleanly(5, {})
            return True
        return False

    def append(self) -> None:
        rng, log = self.rng, self.log
        how: dict[str, Any] = {}
        producer = rng.choice([0, 0, 0, 7, 8])
        if producer:
            entry = log.producers.entries.get(producer)
            how = {"producer_id": producer, "producer_epoch": 0, "sequence": entry.next_sequence if entry else 0}
        self.epoch += rng.random() < 0.1
        key = b"key-%d" % rng.randrange(6)
        values = [None if rng.random() < 0.2 else b"v%d" % self.now for _ in range(rng.randrange(1, 4))]
        data = batch(values, key=key, timestamps=self.now, **how)
        result = log.append_as_leader(data, self.epoch, self.now, self.now)
        assert result.error == 0, result.message
        for offset, value in enumerate(values, result.first_offset):
            self.history[offset] = (key, value, self.epoch, self.now)
        if producer:
            self.sequences.setdefault(producer, {})[result.last_offset] = log.producers.entries[producer].next_sequence
        self.begun.setdefault(self.epoch, result.first_offset)
        if rng.random() < 0.7:
            log.write_pending()
            self.safe = log.log_end_offset

    def flush(self) -> None:
        log, end = self.log, self.log.log_end_offset
        files = log.unflushed_files()
        self.safe = end
        for file in files:
            self.directory._disk.sync_now(file)
        log.mark_flushed(end, self.now)

    def clean(self) -> None:
        rng, log = self.rng, self.log
        high_watermark = rng.randrange(self.cleaned_below, log.flushed_offset + 1)
        found = log.cleanable(self.checkpoint, high_watermark, self.now)
        if not found.is_due(0.0):
            return
        self.cleaned_below = max(self.cleaned_below, high_watermark)
        patience = rng.randrange(30) if rng.random() < 0.3 else 1_000
        waits = iter(range(patience))

        def between() -> None:
            self.scheduler.now_us += rng.choice([0, 50_000, 6_000_000])
            if next(waits, None) is None:
                raise PowerFailure
            if rng.random() < 0.2:
                self.append()
            if rng.random() < 0.05:
                self.directory.checkpoints.write_recovery_points()

        self.interrupted += 1
        keys = KeyMap(rng.choice([4, 4, 1_000]))
        cleaning = LogCleaning(self.directory._disk, log, found, keys, self.now, self.now)
        self.checkpoint = take(self.directory._disk, cleaning.steps(), between).end_offset
        self.interrupted -= 1
        self.cleanings += 1
        if rng.random() < 0.3:
            log.drain_deleted()
            self.directory._disk.remove(f"{FOLDER}/00000000000000000000.log.deleted")

    def start_again(self) -> bool:
        lost = False
        self.process = Process("p")
        if self.rng.random() < 0.5:
            self.process.fuse = self.rng.randrange(1, 25)
            with contextlib.suppress(CrashPoint):
                self.start()
            self.process = Process("p")
            if self.rng.random() < 0.5:
                self.disk.lose_power()
                lost = True
        self.directory, self.log = self.start()
        return lost

    def judge(self, durable: int, *, power: bool) -> None:
        log = self.log
        left = [name for name in self.directory._disk.list(FOLDER) if name.endswith((".cleaned", ".swap"))]
        assert not left
        end = log.log_end_offset
        assert end >= durable, f"ends at {end}, {durable} was durable"
        found: dict[int, tuple[bytes | None, bytes | None, int, int]] = {}
        least = 0
        for header, data in batches_of(log):
            assert header.base_offset >= least, "offsets ascend"
            least = header.next_offset
            for record in decode_batch(data):
                found[record.offset] = (record.key, record.value, header.leader_epoch, record.timestamp)
        for offset, kept in found.items():
            assert self.history.get(offset) == kept, f"offset {offset} is not as it was written"
        self.history = {offset: record for offset, record in self.history.items() if offset < end}
        latest = {written[0]: offset for offset, written in self.history.items()}
        for offset, written in self.history.items():
            if offset in found:
                continue
            assert offset < self.cleaned_below, f"offset {offset} is gone, cleaned below {self.cleaned_below}"
            superseded = latest[written[0]] > offset
            expired = written[1] is None and self.now >= written[3] + CONFIG.delete_retention_ms
            assert superseded or expired, f"offset {offset}, the latest of {written[0]!r}, is gone"
        self.begun = {epoch: offset for epoch, offset in self.begun.items() if offset < end}
        assert [tuple(entry) for entry in log.epochs.entries] == list(self.begun.items())
        expected = {}
        for producer, after in self.sequences.items():
            self.sequences[producer] = after = {offset: each for offset, each in after.items() if offset < end}
            if after:
                expected[producer] = after[max(after)]
        assert {each: entry.next_sequence for each, entry in log.producers.entries.items()} == expected
        self.epoch = max([self.epoch, *self.begun]) + 1
        for offset in (0, end // 2, max(end - 1, 0)):
            later = [each for each in sorted(found) if each >= offset]
            piece = log.read(offset, 1 << 20, end)
            assert (piece is not None) or not later


def judge_courses(seeds: range) -> tuple[int, int]:
    cleanings = interrupted = 0
    for seed in seeds:
        course = Course(seed)
        try:
            course.run()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        cleanings += course.cleanings
        interrupted += course.interrupted
    return cleanings, interrupted


@pytest.mark.parametrize("block", range(6))
def test_crashes_in_cleanings(block: int) -> None:
    cleanings, interrupted = judge_courses(range(block * 20, block * 20 + 20))
    assert cleanings > 50
    assert interrupted > 10, "or it proves nothing about interruptions"


@pytest.mark.slow
def test_many_crashes_in_cleanings() -> None:
    judge_courses(range(1_000, 6_000))
