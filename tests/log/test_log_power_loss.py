"""S22 on the simulator's disk: crashes in the middle of any change, and losses of power that keep what they like.

A course of appends, cuts, rolls, flushes and stops is ended by a kill or by a loss of power, at any write of the
process; recovery itself may be ended so too. Then: what was flushed is there, nothing was made up, nothing is missing
in between, and the epochs, indexes and producers are those that the batches give.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import struct
from typing import Any
from uuid import UUID

import pytest

from tanist.log.config import LogConfig
from tanist.log.directory import LogDirectory
from tanist.log.log import Log
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.scheduler import CrashPoint, Process, Scheduler
from tanist.wire.ids import ZERO_UUID
from tests.log.log_batches import batch, offsets_in
from tests.log.log_rig import read_all, sizes_in

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150)
KEY = ("t", 0)
TOPIC_ID = UUID(int=5)


def split(data: bytes) -> list[bytes]:
    batches, position = [], 0
    for size in sizes_in(data):
        batches.append(data[position : position + size])
        position += size
    return batches


class Course:
    """One disk, and the lives of the processes that use it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.scheduler = Scheduler()
        self.disk = SimDisk(self.scheduler, random.Random(seed + 1))
        self.now = 1_000
        self.epoch = 0
        self.unsynced_cut = False
        self.written: dict[int, set[bytes]] = {}
        """All that was ever appended, by base offset."""
        self.process = Process("p")
        self.directory, self.log = self.start()

    def start(self) -> tuple[LogDirectory, Log]:
        directory = LogDirectory(self.disk.view(self.process), "/d")
        directory.load(self.now, lambda topic: CONFIG)
        if KEY not in directory.logs:
            directory.create_log(*KEY, TOPIC_ID, CONFIG, self.now)
        log = directory.logs[KEY]
        if log.topic_id == ZERO_UUID:  # a crash has left the log before its first flush
            log.assign_topic_id(TOPIC_ID)
        return directory, log

    def run(self) -> None:
        for _ in range(4):
            self.live()

    def live(self) -> None:
        rng = self.rng
        self.batches = split(read_all(self.log))
        self.safe = self.log.log_end_offset
        """Up to where everything has been handed to the page cache."""
        # A loss of power may undo a cut, also one that an earlier process was killed in, for nobody knows of it.
        self.cut, self.cutting, stopped = self.unsynced_cut, False, False
        killed = rng.random() < 0.4
        if killed and rng.random() < 0.7:
            self.process.fuse = rng.randrange(1, 120)
        try:
            for _ in range(rng.randrange(3, 60)):
                if self.step():
                    stopped = True
                    break
        except CrashPoint:
            killed = True
        flushed = self.log.flushed_offset
        power = (not killed and not stopped) or (stopped and rng.random() < 0.5)
        if power:
            self.disk.lose_power()
        power |= self.start_again()
        self.judge(flushed, killed=killed, stopped=stopped, power=power)
        self.unsynced_cut = self.cut and not (power or stopped)

    def step(self) -> bool:
        """One thing that a broker does to a log; True for the last."""
        rng, log = self.rng, self.log
        # The page cache is written back in time: what is old is on the disk, synced or not.
        self.scheduler.now_us += rng.choice([0, 1_000, 50_000, 1_000_000, 40_000_000])
        self.now += 1
        kind = rng.random()
        if kind < 0.55:
            self.append()
        elif kind < 0.65:
            self.directory.checkpoints.write_recovery_points()
        elif kind < 0.80:
            end = log.log_end_offset
            rolled = log.flush_due(self.now)
            if rolled is not None and rng.random() < 0.5:
                end = rolled
            files = log.unflushed_files(end)
            self.safe = end
            if rng.random() < 0.5:
                for file in files:
                    self.directory._disk.sync_now(file)
                log.mark_flushed(end, self.now)
        elif kind < 0.88:
            self.cut = self.cutting = True
            log.truncate_to(rng.randrange(max(0, log.log_end_offset - 9), log.log_end_offset + 1), self.now)
            self.cutting = False
            self.batches = [each for each in self.batches if offsets_in(each)[0][1] < log.log_end_offset]
            self.safe = min(self.safe, log.log_end_offset)
            self.epoch += 1
        elif kind < 0.93:
            log.roll_if_due(self.now + 10**10)
        elif rng.random() < 0.3:
            self.directory.shutdown_cleanly(5, {})
            return True
        elif rng.random() < 0.4:
            self.replace()
        return False

    def replace(self) -> None:
        """The replica is moved away, and comes back: a new log, of which nothing is durable yet."""
        self.cut = self.cutting = True
        self.directory.delete_log(*KEY)
        if self.rng.random() < 0.3:
            self.directory.checkpoints.write_recovery_points()
        self.log = self.directory.create_log(*KEY, TOPIC_ID, CONFIG, self.now)
        self.cutting = False
        self.batches = []
        self.safe = 0
        self.epoch += 1

    def append(self) -> None:
        rng, log = self.rng, self.log
        how: dict[str, Any] = {}
        if rng.random() < 0.4:
            producer = rng.choice([7, 8])
            entry = log.producers.entries.get(producer)
            how = {"producer_id": producer, "producer_epoch": 0, "sequence": entry.next_sequence if entry else 0}
        self.epoch += rng.random() < 0.1
        data = batch([b"v" * rng.randrange(60)] * rng.randrange(1, 4), timestamps=self.now, **how)
        result = log.append_as_leader(data, self.epoch, self.now, self.now)
        assert result.error == 0, result.message
        self.batches.append(bytes(data))
        self.written.setdefault(result.first_offset, set()).add(bytes(data))
        if rng.random() < 0.7:
            log.write_pending()
            self.safe = log.log_end_offset

    def start_again(self) -> bool:
        """Recover, perhaps interrupted; True if that lost power again."""
        lost = False
        self.process = Process("p")
        if self.rng.random() < 0.3:
            self.process.fuse = self.rng.randrange(1, 40)
            with contextlib.suppress(CrashPoint):
                self.start()
            self.process = Process("p")
            if self.rng.random() < 0.5:
                self.disk.lose_power()
                lost = True
        self.directory, self.log = self.start()
        return lost

    def judge(self, flushed: int, *, killed: bool, stopped: bool, power: bool) -> None:
        log = self.log
        found = split(read_all(log))
        spans = [offsets_in(each)[0] for each in found]
        for (base, _, _), data in zip(spans, found, strict=True):
            assert data in self.written.get(base, ()), f"offset {base} was never written so"
        for (_, last, epoch), (base, _, next_epoch) in itertools.pairwise(spans):
            assert base == last + 1, f"offsets {last + 1} to {base - 1} are missing"
            assert epoch <= next_epoch
        if not self.cutting:
            durable = [each for each in self.batches if offsets_in(each)[0][1] < flushed]
            assert found[: len(durable)] == durable, "what was flushed is lost"
            if not self.cut:
                assert found == self.batches[: len(found)], "not a prefix of what was"
            if killed and not power and not stopped:
                kept = [each for each in self.batches if offsets_in(each)[0][1] < self.safe]
                assert found[: len(kept)] == kept, "a kill has lost what was written"
            if stopped and not killed:
                assert found == self.batches, "a clean stop has lost or regained something"
        begun: list[tuple[int, int]] = []
        for base, _, epoch in spans:
            if not begun or begun[-1][0] != epoch:
                begun.append((epoch, base))
        assert [tuple(entry) for entry in log.epochs.entries] == begun
        sequences = {}
        for data in found:
            producer_id, _, sequence, count = struct.unpack_from(">qhii", data, 43)
            if producer_id >= 0:
                sequences[producer_id] = sequence + count
        assert {each: entry.next_sequence for each, entry in log.producers.entries.items()} == sequences
        first = log.offset_for_timestamp(0)
        assert (first is None) == (not found)
        assert first is None or first.offset == 0
        self.epoch = max([self.epoch, *(epoch for _, _, epoch in spans)]) + 1


def judge_courses(seeds: range) -> None:
    for seed in seeds:
        try:
            Course(seed).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


@pytest.mark.parametrize("block", range(8))
def test_crashes_and_losses_of_power(block: int) -> None:
    judge_courses(range(block * 25, block * 25 + 25))


@pytest.mark.slow
def test_many_crashes_and_losses_of_power() -> None:
    judge_courses(range(1_000, 11_000))
