"""The metadata log, in memory and on a disk: one suite for both, then what only a disk has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tanist.log.log import OffsetOutOfRange
from tanist.ports import Chunk, FileRange
from tanist.quorum import CorruptBatch, LogEnd, MemoryLog, RaftLog, SnapshotId
from tanist.quorum.storage.batches import encode_leader_change, encode_values, read_headers
from tanist.quorum.storage.metadata_log import FOLDER, InconsistentSnapshots, MetadataLog, MetadataLogConfig
from tanist.quorum.storage.snapshots import BATCH_BYTES, decode_snapshot, encode_snapshot, file_name, parse_name
from tanist.quorum.voters import Voter, VoterSet
from tanist.wire.ids import ZERO_UUID
from tests.quorum.quorum_disk import LossyDisk

WALL_MS = 1_700_000_000_000
ROOT = "/data"


class Host:
    """A machine's disk, which outlives the processes."""

    def __init__(self, seed: int = 1) -> None:
        self.disk = LossyDisk(seed)

    def open(self, **config: int) -> MetadataLog:
        return MetadataLog.open(self.disk, ROOT, MetadataLogConfig(**config))

    def names(self, suffix: str = "") -> list[str]:
        return [path.rsplit("/", 1)[1] for path in self.disk.files if path.endswith(suffix)]


def sync(log: MetadataLog, host: Host) -> None:
    end = log.end_offset
    for file in log.unflushed_files():
        host.disk.sync_now(file)
    log.mark_flushed(end)


@pytest.fixture(params=["memory", "disk"])
def new_log(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return MemoryLog if request.param == "memory" else lambda: Host().open()


def add(log: RaftLog, epoch: int, *values: bytes) -> None:
    batch = encode_values(values, base_offset=log.end_offset, epoch=epoch, timestamp=WALL_MS + log.end_offset)
    log.append(memoryview(batch), epoch)


def filled(log: Any, *batches: tuple[int, int]) -> Any:
    for epoch, count in batches:
        add(log, epoch, *(b"%d.%d" % (epoch, log.end_offset + n) for n in range(count)))
    return log


def snapshot_ids(log: MetadataLog) -> tuple[SnapshotId, ...]:
    return tuple(sorted(log._sizes))


def content(chunk: Chunk | None) -> bytes:
    if chunk is None:
        return b""
    return chunk.file.read(chunk.offset, chunk.length) if isinstance(chunk, FileRange) else bytes(chunk)


def values_of(log: RaftLog, start: int, end: int) -> list[bytes]:
    return [value for batch in log.read_batches(start, end) for value in batch.values]


class TestBoth:
    def test_a_new_log_is_empty(self, new_log: Callable[[], Any]) -> None:
        log = new_log()
        assert (log.start_offset, log.end_offset, log.last_epoch) == (0, 0, 0)
        assert (log.earliest_snapshot_id, log.latest_snapshot_id) == (None, None)
        assert log.read(0, 1000) is None
        assert list(log.read_batches(0, 0)) == []
        assert log.end_of_epoch(3) == LogEnd(0, 0)

    def test_batches_come_back_as_they_went_in(self, new_log: Callable[[], Any]) -> None:
        log = filled(new_log(), (1, 2), (1, 1), (3, 2))
        assert (log.end_offset, log.last_epoch) == (5, 3)
        found = [(b.offset, b.epoch, b.timestamp, list(b.values)) for b in log.read_batches(0, 5)]
        assert found == [
            (0, 1, WALL_MS, [b"1.0", b"1.1"]),
            (2, 1, WALL_MS + 2, [b"1.2"]),
            (3, 3, WALL_MS + 3, [b"3.3", b"3.4"]),
        ]
        assert values_of(log, 2, 3) == [b"1.2"]
        assert values_of(log, 2, 5) == [b"1.2", b"3.3", b"3.4"]

    def test_control_batches_take_offsets_and_have_no_values(self, new_log: Callable[[], Any]) -> None:
        log = filled(new_log(), (1, 1))
        voters = VoterSet([Voter(1, ZERO_UUID, "h", 1)])
        log.append(memoryview(encode_leader_change(1, voters, [1], base_offset=1, epoch=2, timestamp=0)), 2)
        filled(log, (2, 1))
        assert [(b.offset, len(b.values)) for b in log.read_batches(0, 3)] == [(0, 1), (1, 0), (2, 1)]

    def test_reading_gives_whole_batches_and_at_least_one(self, new_log: Callable[[], Any]) -> None:
        log = filled(new_log(), *[(1, 2)] * 10)
        one = len(content(log.read(0, 1)))
        assert [h.base_offset for _, h in read_headers(memoryview(content(log.read(0, 1))))] == [0]
        assert [h.base_offset for _, h in read_headers(memoryview(content(log.read(4, 2 * one))))] == [4, 6]
        whole = [h.base_offset for _, h in read_headers(memoryview(content(log.read(0, 10**6))))]
        assert whole == list(range(0, 20, 2))
        assert log.read(20, 1000) is None

    @pytest.mark.parametrize(
        ("epoch", "end"),
        [
            (0, LogEnd(0, 0)),
            (1, LogEnd(1, 3)),
            (2, LogEnd(1, 3)),
            (3, LogEnd(3, 5)),
            (4, LogEnd(3, 5)),
            (5, LogEnd(5, 6)),
        ],
    )
    def test_where_epochs_end(self, new_log: Callable[[], Any], epoch: int, end: LogEnd) -> None:
        assert filled(new_log(), (1, 3), (3, 2), (5, 1)).end_of_epoch(epoch) == end

    def test_an_epoch_newer_than_the_log_ends_with_it(self, new_log: Callable[[], Any]) -> None:
        assert filled(new_log(), (1, 3)).end_of_epoch(9) == LogEnd(1, 3)

    def test_an_epoch_may_begin_without_a_record(self, new_log: Callable[[], Any]) -> None:
        log = filled(new_log(), (1, 3))
        log.begin_epoch(4)
        assert log.end_of_epoch(2) == LogEnd(1, 3)

    @pytest.mark.parametrize(("offset", "end", "last_epoch"), [(3, 3, 1), (4, 3, 1), (1, 0, 0), (9, 6, 4), (0, 0, 0)])
    def test_a_cut_takes_whole_batches_and_their_epochs(
        self, new_log: Callable[[], Any], offset: int, end: int, last_epoch: int
    ) -> None:
        log = filled(new_log(), (1, 3), (4, 3))
        log.truncate_to(offset)
        assert (log.end_offset, log.last_epoch) == (end, last_epoch)
        filled(log, (6, 1))
        assert values_of(log, end, end + 1) == [b"6.%d" % end]

    @pytest.mark.parametrize("wrong", ["gap", "overlap", "epoch back", "epoch ahead", "crc", "count", "garbage"])
    def test_what_does_not_follow_is_refused_whole(self, new_log: Callable[[], Any], wrong: str) -> None:
        log = filled(new_log(), (2, 3))
        base = {"gap": 4, "overlap": 2}.get(wrong, 3)
        epoch = {"epoch back": 1, "epoch ahead": 6}.get(wrong, 5)
        good = encode_values([b"good"], base_offset=3, epoch=2, timestamp=0)
        bad = encode_values([b"a"], base_offset=base, epoch=epoch, timestamp=0)
        if wrong == "crc":
            bad[-1] ^= 1
        if wrong == "count":
            bad[57:61] = b"\0\0\0\7"
        if wrong == "garbage":
            bad[16] = 9
        with pytest.raises(CorruptBatch):
            log.append(memoryview(bad), 5)
        if wrong not in ("gap", "overlap"):
            later = bytearray(good + bad)
            with pytest.raises(CorruptBatch):
                log.append(memoryview(later), 5)
        assert (log.end_offset, log.last_epoch) == (3, 2)

    def test_a_batch_that_is_cut_off_is_left_out(self, new_log: Callable[[], Any]) -> None:
        log = new_log()
        both = encode_values([b"a"], base_offset=0, epoch=1, timestamp=0)
        both += encode_values([b"b"], base_offset=1, epoch=1, timestamp=0)
        log.append(memoryview(both)[:-1], 1)
        assert log.end_offset == 1
        log.append(memoryview(both)[:5], 1)
        assert log.end_offset == 1

    def test_a_snapshot_of_its_own(self, new_log: Callable[[], Any]) -> None:
        log = filled(new_log(), (1, 3), (2, 1))
        assert log.create_snapshot(SnapshotId(3, 1), [b"a", b"b"], wall_ms=WALL_MS)
        assert not log.create_snapshot(SnapshotId(3, 1), [b"c"], wall_ms=WALL_MS)
        assert log.latest_snapshot_id == log.earliest_snapshot_id == (3, 1)
        assert [v for b in log.read_snapshot(SnapshotId(3, 1)) for v in b.values] == [b"a", b"b"]
        size = log.snapshot_size(SnapshotId(3, 1))
        assert size == len(content(log.snapshot_chunk(SnapshotId(3, 1), 0, 10**6)))
        assert len(content(log.snapshot_chunk(SnapshotId(3, 1), 10, 7))) == 7
        assert log.snapshot_size(SnapshotId(2, 1)) is None
        assert (log.start_offset, log.end_offset) == (0, 4)

    def test_an_installed_snapshot_replaces_the_log(self, new_log: Callable[[], Any]) -> None:
        data = b"".join(encode_snapshot(SnapshotId(9, 4), [b"s"], wall_ms=0, last_contained_log_timestamp=0))
        log = filled(new_log(), (1, 3))
        log.create_snapshot(SnapshotId(2, 1), [b"old"], wall_ms=0)
        log.begin_download(SnapshotId(8, 4))
        log.begin_download(SnapshotId(9, 4))
        log.write_download(SnapshotId(9, 4), 0, memoryview(data)[:20])
        log.write_download(SnapshotId(9, 4), 20, memoryview(data)[20:])
        assert log.end_offset == 3
        log.finish_download(SnapshotId(9, 4))
        assert (log.start_offset, log.end_offset, log.last_epoch) == (9, 9, 4)
        assert log.earliest_snapshot_id == log.latest_snapshot_id == (9, 4)
        assert [v for b in log.read_snapshot(SnapshotId(9, 4)) for v in b.values] == [b"s"]
        filled(log, (5, 2))
        assert values_of(log, 9, 11) == [b"5.9", b"5.10"]
        with pytest.raises(OffsetOutOfRange):
            list(log.read_batches(0, 11))
        assert log.end_of_epoch(4) == LogEnd(4, 9)
        assert log.end_of_epoch(3) == LogEnd(4, 9), "what is left of an older epoch is the snapshot"

    @pytest.mark.parametrize("fault", ["flipped", "short", "longer", "empty"])
    def test_a_damaged_snapshot_replaces_nothing(self, new_log: Callable[[], Any], fault: str) -> None:
        data = bytearray(b"".join(encode_snapshot(SnapshotId(9, 4), [b"s"], wall_ms=0, last_contained_log_timestamp=0)))
        if fault == "flipped":
            data[-20] ^= 4
        data = {"short": data[:-1], "longer": data + b"x", "empty": bytearray()}.get(fault, data)
        log = filled(new_log(), (1, 3))
        log.begin_download(SnapshotId(9, 4))
        log.write_download(SnapshotId(9, 4), 0, memoryview(data))
        with pytest.raises(CorruptBatch):
            log.finish_download(SnapshotId(9, 4))
        assert (log.start_offset, log.end_offset, log.latest_snapshot_id) == (0, 3, None)
        assert values_of(log, 0, 3) == [b"1.0", b"1.1", b"1.2"]

    def test_a_download_must_be_under_way(self, new_log: Callable[[], Any]) -> None:
        log = new_log()
        with pytest.raises(ValueError, match="no download"):
            log.write_download(SnapshotId(9, 4), 0, memoryview(b"x"))
        log.begin_download(SnapshotId(9, 4))
        log.abandon_download()
        with pytest.raises(ValueError, match="no download"):
            log.finish_download(SnapshotId(9, 4))
        assert log.latest_snapshot_id is None


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3), st.integers(0, 2)),
        st.tuples(st.just("truncate"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("begin"), st.just(0), st.integers(0, 2)),
        st.tuples(st.just("snapshot"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("install"), st.integers(1, 4), st.integers(0, 2)),
        st.tuples(st.just("reopen"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


def observed(log: RaftLog, epoch: int) -> object:
    batches = [(b.offset, b.epoch, list(b.values)) for b in log.read_batches(log.start_offset, log.end_offset)]
    ends = [log.end_of_epoch(e) for e in range(epoch + 2)]
    return (log.start_offset, log.end_offset, log.last_epoch, log.latest_snapshot_id, ends, batches)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OPERATIONS)
def test_the_log_in_memory_is_like_the_one_on_the_disk(operations: list[tuple[str, int, int]]) -> None:
    host = Host()
    disk: Any = host.open(segment_bytes=200)
    memory: Any = MemoryLog()
    epoch = 1
    for what, number, more in operations:
        epoch += more
        for log in (disk, memory):
            if what == "append":
                filled(log, (epoch, number))
            elif what == "truncate":
                low = max(log.start_offset, log.end_offset - number)
                latest = log.latest_snapshot_id
                log.truncate_to(low if latest is None else max(low, latest.end_offset))
            elif what == "begin":
                log.begin_epoch(epoch)
            elif what == "snapshot":
                ids = [b.offset for b in log.read_batches(log.start_offset, log.end_offset)]
                if ids and ids[-1] > 0:
                    end = ids[max(0, len(ids) - 1 - number)]
                    if end > (log.latest_snapshot_id or (0,))[0]:
                        past = [b.epoch for b in log.read_batches(log.start_offset, end)]
                        if past:
                            log.create_snapshot(SnapshotId(end, past[-1]), [b"s"], wall_ms=WALL_MS)
            elif what == "install":
                snapshot_id = SnapshotId(log.end_offset + number, epoch)
                batches = encode_snapshot(snapshot_id, [b"i"], wall_ms=0, last_contained_log_timestamp=0)
                log.begin_download(snapshot_id)
                log.write_download(snapshot_id, 0, memoryview(b"".join(batches)))
                log.finish_download(snapshot_id)
        if what == "reopen":
            begun = disk.last_epoch
            disk.close()
            disk = host.open(segment_bytes=200)
            if disk.last_epoch != begun:
                # An epoch that began without a record need not be remembered: it left nothing to tell apart.
                disk.begin_epoch(begun)
        assert observed(disk, epoch) == observed(memory, epoch)


class TestDisk:
    def test_kafkas_names(self) -> None:
        assert file_name(SnapshotId(12, 3)) == "00000000000000000012-0000000003.checkpoint"
        assert parse_name("00000000000000000012-0000000003.checkpoint") == ((12, 3), True)
        assert parse_name("00000000000000000012-0000000003.checkpoint.part") == ((12, 3), False)
        assert parse_name("00000000000000000012-0000000003.checkpoint.deleted") == ((12, 3), False)
        assert parse_name("00000000000000000012.log") is None
        host = Host()
        filled(host.open(), (1, 3)).create_snapshot(SnapshotId(3, 1), [b"s"], wall_ms=0)
        assert f"{ROOT}/{FOLDER}/00000000000000000003-0000000001.checkpoint" in host.disk.files
        assert f"{ROOT}/{FOLDER}/00000000000000000000.log" in host.disk.files
        assert not host.names(".part")

    def test_a_large_snapshot_is_written_in_slices(self) -> None:
        host = Host()
        log = filled(host.open(), (1, 3))
        values = [b"%05d" % n + bytes(200) for n in range(1_000)]
        writing = log.begin_snapshot(SnapshotId(3, 1), values, wall_ms=WALL_MS)
        slices = 1
        while writing.write_slice():
            slices += 1
            assert log.latest_snapshot_id is None
        assert 6 <= slices <= 8
        host.disk.sync_now(writing.file)
        assert log.finish_snapshot(writing)
        assert [v for b in log.read_snapshot(SnapshotId(3, 1)) for v in b.values] == values
        assert not host.names(".part")
        assert log.begin_snapshot(SnapshotId(3, 1), values, wall_ms=WALL_MS) is None

    def test_a_snapshot_that_was_overtaken_while_it_was_written_is_gone(self) -> None:
        host = Host()
        log = filled(host.open(), (1, 3))
        writing = log.begin_snapshot(SnapshotId(3, 1), [b"old"], wall_ms=WALL_MS)
        writing.write_slice()
        data = b"".join(encode_snapshot(SnapshotId(9, 4), [b"s"], wall_ms=0, last_contained_log_timestamp=0))
        log.begin_download(SnapshotId(9, 4))
        log.write_download(SnapshotId(9, 4), 0, memoryview(data))
        log.finish_download(SnapshotId(9, 4))
        assert not log.finish_snapshot(writing)
        assert log.earliest_snapshot_id == log.latest_snapshot_id == (9, 4)
        assert not host.names(".part")

    def test_a_reopened_log_is_as_it_was(self) -> None:
        host = Host()
        log = filled(host.open(), (1, 3), (4, 2))
        log.create_snapshot(SnapshotId(3, 1), [b"s"], wall_ms=0)
        before = observed(log, 5)
        log.close()
        assert observed(host.open(), 5) == before

    @pytest.mark.parametrize("seed", range(20))
    def test_a_loss_of_power_spares_what_was_synced(self, seed: int) -> None:
        host = Host(seed)
        log = filled(host.open(segment_bytes=300), (1, 3), (2, 4))
        sync(log, host)
        kept = values_of(log, 0, 7)
        filled(log, (2, 3), (3, 5))
        written = values_of(log, 0, 15)
        host.disk.lose_power()
        found = host.open(segment_bytes=300)
        assert 7 <= found.end_offset <= 15
        assert values_of(found, 0, 7) == kept
        assert values_of(found, 0, found.end_offset) == written[: found.end_offset]
        assert found.end_of_epoch(1) == LogEnd(1, 3)

    def test_a_snapshot_that_was_not_finished_is_forgotten(self) -> None:
        host = Host()
        log = filled(host.open(), (1, 3))
        log.begin_download(SnapshotId(9, 2))
        log.write_download(SnapshotId(9, 2), 0, memoryview(b"half"))
        found = host.open()
        assert found.latest_snapshot_id is None
        assert not host.names(".part")
        assert found.end_offset == 3

    def test_an_installation_that_was_interrupted_is_finished(self) -> None:
        """The crash comes after the snapshot has its name and before the log is replaced."""
        host = Host()
        log = filled(host.open(), (1, 3))
        sync(log, host)
        data = b"".join(encode_snapshot(SnapshotId(9, 2), [b"s"], wall_ms=0, last_contained_log_timestamp=0))
        host.disk.write_file(f"{ROOT}/{FOLDER}/{file_name(SnapshotId(9, 2))}", data)
        found = host.open()
        assert (found.start_offset, found.end_offset, found.last_epoch) == (9, 9, 2)

    def test_a_snapshot_is_durable_before_it_has_its_name(self) -> None:
        for seed in range(10):
            host = Host(seed)
            log = filled(host.open(), (1, 3))
            sync(log, host)
            log.create_snapshot(SnapshotId(3, 1), [b"s"], wall_ms=0)
            host.disk.lose_power()
            found = host.open()
            assert [v for b in found.read_snapshot(SnapshotId(3, 1)) for v in b.values] == [b"s"]

    def test_a_log_without_its_past_is_not_opened(self) -> None:
        host = Host()
        log = filled(host.open(), (1, 3))
        log.create_snapshot(SnapshotId(3, 1), [b"s"], wall_ms=0)
        log.begin_download(SnapshotId(9, 2))
        data = b"".join(encode_snapshot(SnapshotId(9, 2), [b"s"], wall_ms=0, last_contained_log_timestamp=0))
        log.write_download(SnapshotId(9, 2), 0, memoryview(data))
        log.finish_download(SnapshotId(9, 2))
        log.close()
        host.disk.remove(f"{ROOT}/{FOLDER}/{file_name(SnapshotId(9, 2))}")
        with pytest.raises(InconsistentSnapshots):
            host.open()

    def retained(self, **config: int) -> tuple[Host, MetadataLog]:
        """A log of three segments and three snapshots."""
        host = Host()
        log = host.open(segment_bytes=150, **config)
        for turn in range(1, 4):
            filled(log, (turn, 1), (turn, 1), (turn, 1))
            log.create_snapshot(
                SnapshotId(log.end_offset, turn), [b"s"], wall_ms=0, last_contained_log_timestamp=WALL_MS + turn
            )
        return host, log

    def test_nothing_is_dropped_within_the_limits(self) -> None:
        _, log = self.retained()
        assert not log.clean(0, WALL_MS)
        assert (log.start_offset, len(snapshot_ids(log))) == (0, 3)

    def test_old_snapshots_go_with_the_log_before_the_next(self) -> None:
        host, log = self.retained(retention_ms=1000)
        assert log.clean(0, WALL_MS + 1002)
        assert snapshot_ids(log) == ((6, 2), (9, 3))
        assert log.start_offset == 6
        assert log.end_of_epoch(1) == LogEnd(2, 6)
        assert host.names(".checkpoint.deleted")
        log.clean(60_000, WALL_MS + 1002)
        assert not host.names(".deleted")
        assert log.clean(60_000, WALL_MS + 10**9)
        assert snapshot_ids(log) == ((9, 3),), "one is always kept"
        assert not log.clean(60_000, WALL_MS + 10**9)

    def test_size_counts_segments_and_snapshots(self) -> None:
        _, log = self.retained(retention_bytes=1)
        assert log.clean(0, WALL_MS)
        assert snapshot_ids(log) == ((9, 3),)
        assert (log.start_offset, log.end_offset) == (9, 9)
        assert log.last_epoch == 3

    def test_who_is_reading_a_snapshot_reads_on_after_it_was_dropped(self) -> None:
        _, log = self.retained(retention_bytes=1)
        chunk = log.snapshot_chunk(SnapshotId(3, 1), 0, 50)
        before = content(chunk)
        log.clean(0, WALL_MS)
        assert content(chunk) == before

    def test_no_limits(self) -> None:
        _, log = self.retained(retention_bytes=-1, retention_ms=-1)
        assert not log.clean(0, WALL_MS + 10**12)

    def test_a_cleaned_log_is_reopened(self) -> None:
        host, log = self.retained(retention_ms=1000)
        log.clean(0, WALL_MS + 1002)
        sync(log, host)
        log.close()
        found = host.open(segment_bytes=150, retention_ms=1000)
        assert snapshot_ids(found) == ((6, 2), (9, 3))
        assert found.start_offset <= 6
        assert values_of(found, 6, 9) == [b"3.6", b"3.7", b"3.8"]


class TestSnapshotFormat:
    def parts(self, values: list[bytes]) -> list[memoryview]:
        batches = encode_snapshot(SnapshotId(9, 2), values, wall_ms=WALL_MS, last_contained_log_timestamp=7)
        return [memoryview(bytes(batch)) for batch in batches]

    def test_header_data_footer(self) -> None:
        parts = self.parts([b"a", b"b"])
        headers = [header for part in parts for _, header in read_headers(part)]
        assert [(h.base_offset, h.record_count, h.is_control, h.leader_epoch) for h in headers] == [
            (0, 1, True, 2),
            (1, 2, False, 2),
            (3, 1, True, 2),
        ]

    def test_large_ones_are_many_batches(self) -> None:
        values = [bytes(BATCH_BYTES // 4)] * 9
        parts = self.parts(values)
        assert len(parts) == 2 + 3
        assert [v for b in decode_snapshot(parts) for v in b.values] == values

    def test_an_empty_one(self) -> None:
        assert list(decode_snapshot(self.parts([]))) == []

    @pytest.mark.parametrize("fault", ["no header", "no footer", "after the footer", "crc", "nothing", "short"])
    def test_what_is_not_whole_is_refused(self, fault: str) -> None:
        header, data, footer = self.parts([b"a"])
        bad = bytearray(data)
        bad[-1] ^= 1
        parts: dict[str, list[memoryview]] = {
            "no header": [data, footer],
            "no footer": [header, data],
            "after the footer": [header, footer, data],
            "crc": [header, memoryview(bad), footer],
            "nothing": [],
            "short": [header, data[:-1]],
        }
        with pytest.raises(CorruptBatch):
            list(decode_snapshot(parts[fault]))

    @given(st.lists(st.binary(max_size=40), max_size=20))
    def test_values_come_back(self, values: list[bytes]) -> None:
        assert [v for b in decode_snapshot(self.parts(values)) for v in b.values] == values


def test_a_damaged_snapshot_file_does_not_make_reading_endless() -> None:
    host = Host()
    log = filled(host.open(), (1, 3))
    log.create_snapshot(SnapshotId(3, 1), [b"s"], wall_ms=0)
    path = f"{ROOT}/{FOLDER}/{file_name(SnapshotId(3, 1))}"
    whole = bytes(host.disk.read_file(path))
    for length in range(0, len(whole), 7):
        host.disk.write_file(path, whole[:length])
        found = host.open()
        with pytest.raises(CorruptBatch):
            list(found.read_snapshot(SnapshotId(3, 1)))
    for position in (8, 9, 10, 11):
        host.disk.write_file(path, whole[:position] + b"\xff" + whole[position + 1 :])
        with pytest.raises(CorruptBatch):
            list(host.open().read_snapshot(SnapshotId(3, 1)))
