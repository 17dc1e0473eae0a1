"""A log against a list: any course of appends, fetches, cuts, rolls, retention, stops and crashes.

The model is a plain list of batches and the few rules that hold for them; it knows nothing of files. After a crash the
real log may have lost what was not synced, from the end, and nothing else; the model takes over what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tanist.log.config import LogConfig
from tanist.log.log import Log
from tests.log.log_batches import batch, offsets_in
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import open_log, read_all

CONFIG = LogConfig(
    segment_bytes=700,
    index_interval_bytes=150,
    retention_ms=50,
    retention_bytes=4_000,
    cleanup_policy="compact,delete",  # as only compaction leaves the gaps that `follow` makes
)


@dataclass
class Written:
    """A batch of the model."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp: int
    data: bytes
    producer: tuple[int, int] | None = None
    """(producer id, first sequence)."""


@dataclass
class Model:
    start: int = 0
    end: int = 0
    batches: list[Written] = field(default_factory=list)

    def visible(self) -> list[Written]:
        return [each for each in self.batches if each.last_offset >= self.start]

    def epochs(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for each in self.visible():
            if not found or found[-1][0] != each.epoch:
                found.append((each.epoch, max(each.base_offset, self.start)))
        return found

    def next_sequences(self) -> dict[int, int]:
        return {
            each.producer[0]: each.producer[1] + each.last_offset - each.base_offset + 1
            for each in self.batches
            if each.producer is not None
        }

    def cut(self, end: int) -> None:
        self.batches = [each for each in self.batches if each.last_offset < end]
        self.end = end


class LogMachine(RuleBasedStateMachine):
    log: Log

    @initialize()
    def begin(self) -> None:
        self.disk = MemoryDisk()
        self.log = open_log(self.disk, CONFIG)
        self.model = Model()
        self.epoch = 0
        self.now = 1_000
        self.point = 0

    # -- appends

    @rule(
        count=st.integers(1, 5), size=st.integers(0, 60), new_epoch=st.booleans(), producer=st.sampled_from([-1, 7, 8])
    )
    def lead(self, count: int, size: int, new_epoch: bool, producer: int) -> None:
        self.epoch += new_epoch
        self.now += 1
        sequence = -1 if producer < 0 else self.model.next_sequences().get(producer, 0)
        how: dict[str, Any] = {}
        if producer >= 0:
            how = {"producer_id": producer, "producer_epoch": 0, "sequence": sequence}
        data = batch([b"x" * size] * count, timestamps=self.now, **how)
        result = self.log.append_as_leader(data, self.epoch, self.now, self.now)
        assert result[:3] == (0, self.model.end, self.model.end + count - 1), result.message
        self.note(bytes(data), (producer, sequence) if producer >= 0 else None)

    @rule(
        count=st.integers(1, 3), gap=st.sampled_from([0, 0, 0, 1, 7]), batches=st.integers(1, 9), cut=st.integers(0, 90)
    )
    def follow(self, count: int, gap: int, batches: int, cut: int) -> None:
        self.now += 1
        fetched, base = [], self.model.end + gap
        for _ in range(batches):
            fetched.append(batch([b"y"] * count, base_offset=base, leader_epoch=self.epoch, timestamps=self.now))
            base += count
        extra = bytes(batch([b"z"], base_offset=base, leader_epoch=self.epoch))[:cut]
        data = b"".join(bytes(each) for each in fetched) + (extra if cut < 70 else b"")
        assert self.log.append_as_follower(memoryview(data), self.epoch, self.now).error == 0
        for each in fetched:
            self.note(bytes(each), None)

    @precondition(lambda self: self.model.end > 0)
    @rule(back=st.integers(1, 5))
    def fetch_what_is_there_already(self, back: int) -> None:
        data = batch([b"y"], base_offset=max(0, self.model.end - back), leader_epoch=self.epoch)
        if self.model.start < self.model.end:
            assert self.log.append_as_follower(data, self.epoch, self.now).error != 0

    @rule(producer=st.sampled_from([7, 8]), back=st.integers(1, 5))
    def retry(self, producer: int, back: int) -> None:
        mine = [each for each in self.model.batches if each.producer is not None and each.producer[0] == producer]
        # A snapshot keeps one batch of a producer; and of one whose records are all gone nothing may be known.
        if not mine or back > 1 or producer not in self.log.producers.entries:
            return
        again = mine[-1]
        assert again.producer is not None
        data = batch(
            [b"x"] * (again.last_offset - again.base_offset + 1),
            timestamps=self.now,
            producer_id=producer,
            producer_epoch=0,
            sequence=again.producer[1],
        )
        result = self.log.append_as_leader(data, self.epoch, self.now, self.now)
        assert (result.error, result.duplicate, result.first_offset) == (0, True, again.base_offset)

    def note(self, data: bytes, producer: tuple[int, int] | None) -> None:
        for base, last, epoch in offsets_in(data):
            self.model.batches.append(Written(base, last, epoch, self.now, data, producer))
            self.model.end = last + 1

    # -- cuts

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        model = self.model
        offset = data.draw(st.integers(max(0, model.start - 2), model.end + 2))
        first = self.log.first_segment_offset
        cut = self.log.truncate_to(offset, self.now)
        if offset >= model.end:
            assert not cut
            return
        held = [each for each in model.batches if each.base_offset < offset <= each.last_offset]
        model.cut(held[0].base_offset if held else offset)
        model.start = min(model.start, model.end)
        if offset < first:
            model.start = model.end = offset
        self.epoch += 1

    @rule(offset=st.integers(0, 10**6), rng=st.integers(0, 19))
    def start_anew(self, offset: int, rng: int) -> None:
        if rng:
            return
        self.log.truncate_fully_and_start_at(offset, self.now)
        self.model = Model(offset, offset)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = self.model.start + int((self.model.end - self.model.start) * share)
        moved = self.log.advance_log_start_offset(offset)
        assert moved == (offset > self.model.start)
        self.model.start = offset

    @rule(wait=st.integers(0, 60), share=st.floats(0, 1))
    def retention(self, wait: int, share: float) -> None:
        self.now += wait
        high_watermark = self.model.start + int((self.model.end - self.model.start) * share)
        size = self.log.size_bytes
        paths = self.log.delete_old_segments(self.now, self.now, high_watermark)
        assert self.log.log_start_offset <= max(high_watermark, self.model.start)
        assert size - self.log.size_bytes >= 0
        gone = [each for each in self.model.batches if each.last_offset < self.log.log_start_offset]
        for each in gone:
            expired = self.now - each.timestamp > 50
            assert expired or size > CONFIG.retention_bytes or each.last_offset < self.model.start
        self.model.start = self.log.log_start_offset
        for path in paths:
            self.disk.remove(path)

    @rule(wait=st.integers(0, 3))
    def roll(self, wait: int) -> None:
        self.log.set_config(LogConfig(**{**CONFIG_FIELDS, "segment_ms": 1}))
        self.log.roll_if_due(self.now + wait)
        self.log.set_config(CONFIG)

    # -- durability

    @rule(sync=st.booleans(), rolled=st.booleans())
    def flush(self, sync: bool, rolled: bool) -> None:
        due = self.log.flush_due(self.now)
        end = due if rolled and due is not None else self.log.log_end_offset
        files = self.log.unflushed_files(end)
        if sync:
            for file in files:
                self.disk.sync_now(file)
            self.log.mark_flushed(end, self.now)
            assert self.log.flushed_offset >= end
        assert self.log.recovery_point <= self.log.flushed_offset

    @rule()
    def checkpoint(self) -> None:
        self.point = self.log.recovery_point
        self.log.before_cut = self.lower
        # What is below the recovery point is durable: this is what recovery relies on.
        assert self.point <= self.log.flushed_offset

    def lower(self, log: Log, end_offset: int) -> None:
        assert log.flushed_offset <= end_offset
        self.point = min(self.point, log.recovery_point)

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        assert self.disk.open_files == 0
        self.log = open_log(
            self.disk, CONFIG, recovery_point=self.log.recovery_point, log_start_offset=self.model.start
        )
        assert self.log.recovery.bytes_cut == 0
        assert self.log.recovery.segments_scanned == 0
        self.start_again()

    @rule()
    def kill_and_start(self) -> None:
        """The process ends, the page cache stays."""
        self.log.write_pending()
        self.disk = self.disk.copy()
        self.reopen_unclean()
        assert self.log.recovery.bytes_cut == 0
        self.start_again()

    @rule(share=st.floats(0, 1), garbage=st.booleans())
    def lose_power(self, share: float, garbage: bool) -> None:
        """What was not synced of the last segment is lost from some point on, which may be torn."""
        self.log.write_pending()
        keep = dict(self.disk.files)
        self.disk = self.disk.copy()
        last = max(path for path in keep if path.endswith(".log"))
        synced = keep[last].synced
        data = self.disk.files[last].data
        kept = synced + int((len(data) - synced) * share)
        del data[kept:]
        if garbage:
            data += b"\xa5" * 33
        before = self.model.end
        self.reopen_unclean()
        end = self.log.log_end_offset
        assert end <= before
        lost = [each for each in self.model.batches if each.last_offset >= end]
        assert sum(len(each.data) for each in lost) <= len(keep[last].data) - synced
        self.model.cut(end)
        self.model.start = min(self.model.start, end)
        self.start_again()
        self.epoch += 1

    def reopen_unclean(self) -> None:
        self.log = open_log(
            self.disk,
            CONFIG,
            recovery_point=self.point,
            clean=False,
            log_start_offset=min(self.model.start, 10**9),
        )

    def start_again(self) -> None:
        model = self.model
        if not model.visible():
            # Nothing to see: the log's end is where the file says, or the log start beyond it.
            model.end = self.log.log_end_offset
        else:
            # A gap at the end may be gone, if only memory knew of it.
            assert (
                model.batches[-1].last_offset
                < self.log.log_end_offset
                <= max(model.end, model.batches[-1].last_offset + 1)
            )
            model.end = self.log.log_end_offset
        model.start = self.log.log_start_offset
        self.point = min(self.point, self.log.recovery_point)
        self.log.before_cut = self.lower

    # -- what always holds

    @invariant()
    def same_offsets(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.model.start, self.model.end)

    @invariant()
    def same_bytes(self) -> None:
        found = offsets_in(read_all(self.log, max_bytes=250))
        assert found == [(each.base_offset, each.last_offset, each.epoch) for each in self.model.visible()]

    @invariant()
    def same_epochs(self) -> None:
        epochs = self.log.epochs
        for each in self.model.visible():
            assert epochs.epoch_at(each.last_offset) == each.epoch
        # The entry of an epoch begins with its first record, unless that is below the start or not written yet.
        begun = [tuple(entry) for entry in epochs.entries if self.model.start < entry.start_offset < self.model.end]
        assert set(begun) <= set(self.model.epochs())

    @invariant()
    def same_times(self) -> None:
        visible = self.model.visible()
        if visible:
            target = visible[len(visible) // 2].timestamp
            found = self.log.offset_for_timestamp(target)
            expected = next(each for each in visible if each.timestamp >= target)
            assert found is not None
            assert (found.timestamp, found.offset) == (expected.timestamp, max(expected.base_offset, self.model.start))

    @invariant()
    def same_producers(self) -> None:
        for producer, sequence in self.model.next_sequences().items():
            entry = self.log.producers.entries.get(producer)
            # Rebuilt state covers what is still in the log or in a snapshot; it is never wrong, only less.
            assert entry is None or entry.next_sequence == sequence

    @invariant()
    def a_consumer_sees_no_more_than_its_bound(self) -> None:
        visible = self.model.visible()
        if len(visible) > 2:
            upper = visible[-2].last_offset
            seen = read_all(self.log, upper=upper, max_bytes=90)
            assert all(last < upper for _, last, _ in offsets_in(seen))
            assert len(offsets_in(seen)) == len([each for each in visible if each.last_offset < upper])


CONFIG_FIELDS = {name: getattr(CONFIG, name) for name in CONFIG.__slots__}

TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=120, stateful_step_count=40, deadline=None, report_multiple_bugs=False)
