"""What a leader appends and what it refuses, by Kafka's rules; what is written where, and when."""

from __future__ import annotations

import struct

import cramjam
import pytest
from crc32c import crc32c

from tanist.log.config import LogConfig
from tanist.wire.batch import write_crc
from tanist.wire.errors import ErrorCode
from tests.log.log_batches import CONTROL, GZIP, LOG_APPEND_TIME, batch, marker, offsets_in, record
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, content, epochs_of, open_log, read_all, segment_count, sizes_in

NOW = 1_700_000_000_000


def refusal(data: memoryview, config: LogConfig | None = None, *, internal: bool = False) -> tuple[int, str]:
    """Offer `data` to a log that has a record; nothing of that log may change when it refuses."""
    disk = MemoryDisk()
    log = open_log(disk, config)
    add(log, key=b"k", timestamp=NOW)

    def state() -> object:
        log.write_pending()
        files = {path: disk.content(path) for path in disk.files}
        return bytes(data), files, log.log_end_offset, log.size_bytes, log.latest_epoch, len(log.producers.entries)

    before = state()
    result = log.append_as_leader(data, 1, 0, NOW, internal=internal)
    assert result.error != 0
    assert (result.first_offset, result.last_offset) == (-1, -1)
    assert state() == before
    return result.error, result.message or ""


def test_offset_and_epoch_are_patched_into_the_view() -> None:
    log = open_log()
    assert add(log, 3, epoch=4)[:4] == (0, 0, 2, -1)
    data = batch([b"a", b"b"], timestamps=NOW)
    crc = bytes(data[17:21])
    result = log.append_as_leader(data, 5, 0, NOW)
    assert result[:5] == (0, 3, 4, -1, False)
    assert struct.unpack_from(">qii", data) == (3, len(data) - 12, 5)
    assert bytes(data[17:21]) == crc, "what is patched lies outside the CRC"
    assert log.log_end_offset == 5
    assert epochs_of(log) == [(4, 0), (5, 3)]


def test_appends_are_visible_at_once_and_written_together() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    first, second = batch([b"a"]), batch([b"b"])
    log.append_as_leader(first, 0, 0)
    log.append_as_leader(second, 0, 0)
    assert log.log_end_offset == 2
    assert disk.content(f"{FOLDER}/{0:020d}.log") == b""
    writes = disk.writes
    log.write_pending()
    assert disk.writes == writes + 1
    assert disk.content(f"{FOLDER}/{0:020d}.log") == bytes(first) + bytes(second)
    log.write_pending()
    assert disk.writes == writes + 1


def test_queued_batches_can_be_read() -> None:
    log = open_log()
    data = batch([b"a", b"b"])
    log.append_as_leader(data, 0, 0)
    piece = log.read(1, 1000, 2)
    assert piece is not None
    assert content(piece.chunk) == bytes(data)


def test_a_queue_has_a_bound() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(1024):
        add(log)
    assert disk.writes == 1


# -- refusals


def test_bad_crc() -> None:
    data = batch([b"value"], timestamps=NOW)
    data[-1] ^= 1
    assert refusal(data)[0] == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("magic", "error"), [(0, 87), (1, 87), (3, 2), (-1, 2)])
def test_other_formats(magic: int, error: int) -> None:
    """Kafka answers INVALID_RECORD to the old formats it knows, CORRUPT_MESSAGE to what it doesn't."""
    assert refusal(batch([b"value"], timestamps=NOW, magic=magic))[0] == error


@pytest.mark.parametrize("length", [0, 1, 48, -1, -(2**31), 2**31 - 1])
def test_impossible_lengths(length: int) -> None:
    data = batch([b"value"], timestamps=NOW)
    struct.pack_into(">i", data, 8, length)
    error, _ = refusal(data)
    assert error == (ErrorCode.INVALID_RECORD if length == 2**31 - 1 else ErrorCode.CORRUPT_MESSAGE)


@pytest.mark.parametrize("size", [0, 1, 12, 60, 61, 70])
def test_cut_off_batches(size: int) -> None:
    assert refusal(batch([b"value"], timestamps=NOW)[:size])[0] == ErrorCode.INVALID_RECORD


def test_a_batch_too_large() -> None:
    data = batch([b"x" * 1000], timestamps=NOW)
    error, message = refusal(data, LogConfig(max_message_bytes=len(data) - 1))
    assert error == ErrorCode.MESSAGE_TOO_LARGE
    assert "max.message.bytes" in message
    log = open_log(config=LogConfig(max_message_bytes=len(data)))
    assert log.append_as_leader(data, 0, 0, NOW).error == 0


def test_a_batch_larger_than_a_segment() -> None:
    data = batch([b"x" * 1000], timestamps=NOW)
    assert refusal(data, LogConfig(segment_bytes=len(data) - 1))[0] == ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_producer_sends_one_batch() -> None:
    two = memoryview(bytearray(bytes(batch([b"a"], timestamps=NOW)) + bytes(batch([b"b"], timestamps=NOW))))
    assert refusal(two)[0] == ErrorCode.INVALID_RECORD
    log = open_log()
    assert log.append_as_leader(two, 0, 0, NOW, internal=True)[:3] == (0, 0, 1)
    assert offsets_in(read_all(log)) == [(0, 0, 0), (1, 1, 0)]


def test_of_several_batches_one_bad_one_refuses_all() -> None:
    good, bad = batch([b"a"], timestamps=NOW), batch([b"b"], timestamps=NOW)
    bad[-1] ^= 1
    both = memoryview(bytearray(bytes(good) + bytes(bad)))
    assert refusal(both, internal=True)[0] == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    "how",
    [
        {"base_offset": 1},
        {"last_delta": 1},
        {"last_delta": -1},
        {"values": []},
        {"attributes": CONTROL},
        {"producer_id": 5, "producer_epoch": 0, "sequence": -1},
        {"last_delta": 2**31 - 1},
    ],
)
def test_batches_that_make_no_sense(how: dict[str, object]) -> None:
    values = how.pop("values", [b"value"])
    assert refusal(batch(values, timestamps=NOW, **how))[0] == ErrorCode.INVALID_RECORD  # type: ignore[arg-type]


def test_an_unknown_compression() -> None:
    assert refusal(batch([b"value"], timestamps=NOW, attributes=5))[0] == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(
    ("timestamps", "before_ms", "fits"),
    [
        ([NOW], 2**63 - 1, True),
        ([NOW + 3_600_000], 2**63 - 1, True),
        ([NOW + 3_600_001], 2**63 - 1, False),
        ([NOW, NOW + 3_600_001], 2**63 - 1, False),
        ([0], 2**63 - 1, True),
        ([-1], 1_000, True),
        ([NOW - 1_000], 1_000, True),
        ([NOW - 1_001], 1_000, False),
        ([NOW - 1_001, NOW], 1_000, False),
    ],
)
def test_timestamps_must_be_near_the_brokers_clock(timestamps: list[int], before_ms: int, fits: bool) -> None:
    config = LogConfig(message_timestamp_before_max_ms=before_ms)
    data = batch([b"v"] * len(timestamps), timestamps=timestamps)
    if fits:
        assert open_log(config=config).append_as_leader(data, 0, 0, NOW).error == 0
    else:
        assert refusal(data, config)[0] == ErrorCode.INVALID_TIMESTAMP


def test_without_a_wall_clock_timestamps_are_not_checked() -> None:
    assert open_log().append_as_leader(batch(timestamps=2**62), 0, 0).error == 0


def test_a_producer_may_not_claim_append_time() -> None:
    data = batch([b"v"], timestamps=NOW, attributes=LOG_APPEND_TIME)
    assert refusal(data)[0] == ErrorCode.INVALID_TIMESTAMP
    assert faulty(data) == [0]


def faulty(data: memoryview, config: LogConfig | None = None) -> list[int]:
    """The records that are to blame (KIP-467)."""
    return [index for index, _ in open_log(config=config).append_as_leader(data, 0, 0, NOW).record_errors]


def test_a_producer_hears_which_records_have_the_wrong_time() -> None:
    late = NOW + 3_600_001
    assert faulty(batch([b"v"] * 3, timestamps=[NOW, late, late])) == [1, 2]


def test_a_record_without_a_key_and_one_with_the_wrong_time() -> None:
    config = LogConfig(cleanup_policy="compact")
    data = batch([b"a", b"b"], timestamps=[NOW, NOW + 3_600_001], key=None)
    assert (refusal(data, config)[0], faulty(data, config)) == (ErrorCode.INVALID_RECORD, [0, 1])
    data = batch([b"a", b"b"], timestamps=[NOW, NOW + 3_600_001], key=b"k")
    assert (refusal(data, config)[0], faulty(data, config)) == (ErrorCode.INVALID_TIMESTAMP, [1])


def test_a_header_with_another_time_than_its_records() -> None:
    data = batch([b"v"], timestamps=NOW)
    struct.pack_into(">q", data, 35, NOW + 3_600_001)
    write_crc(data, 0, len(data))
    assert (refusal(data)[0], faulty(data)) == (ErrorCode.INVALID_TIMESTAMP, [])


def test_a_plain_batch_does_not_overtake_the_first_one_of_a_transaction_that_is_verified() -> None:
    log = open_log()
    log.producers.begin_verification(5, 0, 1)
    ahead, first = (batch([b"v"], timestamps=NOW, producer_id=5, producer_epoch=0, sequence=each) for each in (2, 1))
    assert log.append_as_leader(ahead, 0, 0, NOW).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(first, 0, 0, NOW).error == 0


def test_a_producer_whose_transaction_begins_anew_has_its_first_plain_batch_at_sequence_0() -> None:
    log = open_log()
    log.producers.begin_verification(5, 0, 5, begins_anew=True)
    later, first = (batch([b"v"], timestamps=NOW, producer_id=5, producer_epoch=0, sequence=each) for each in (3, 0))
    assert log.append_as_leader(later, 0, 0, NOW).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(first, 0, 0, NOW).error == 0


def test_a_batch_of_a_producer_without_an_epoch_is_not_recompressed() -> None:
    data = batch([b"v"], timestamps=NOW, producer_id=5, producer_epoch=-1, sequence=0)
    assert refusal(data, LogConfig(compression_type="gzip"))[0] == ErrorCode.INVALID_RECORD


# -- topics of another kind


def test_a_compacted_topic_wants_keys() -> None:
    config = LogConfig(cleanup_policy="compact")
    error, message = refusal(batch([b"a", b"b"], timestamps=NOW, key=None), config)
    assert error == ErrorCode.INVALID_RECORD
    assert "key" in message
    log = open_log(config=config)
    assert log.append_as_leader(batch([b"a"], timestamps=NOW, key=b""), 0, 0, NOW).error == 0
    result = log.append_as_leader(batch([b"a", b"b"], timestamps=NOW, key=None), 0, 0, NOW)
    assert [index for index, _ in result.record_errors] == [0, 1]


def test_keys_are_looked_for_inside_compression() -> None:
    config = LogConfig(cleanup_policy="compact,delete")
    packed = bytes(cramjam.gzip.compress(record(0, 0, None, b"value")))
    data = batch([b"value"], timestamps=NOW, attributes=GZIP, compress=packed)
    assert refusal(data, config)[0] == ErrorCode.INVALID_RECORD
    data = batch([b"value"], timestamps=NOW, attributes=GZIP, compress=b"no gzip at all")
    error, message = refusal(data, config)
    assert error == ErrorCode.INVALID_RECORD
    assert "decoded" in message


def test_append_time_is_stamped_and_the_crc_made_anew() -> None:
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    data = batch([b"a", b"b"], timestamps=[5, 7])
    result = log.append_as_leader(data, 0, 0, NOW)
    assert result[:4] == (0, 0, 1, NOW)
    expected = batch([b"a", b"b"], timestamps=[5, 7], leader_epoch=0)
    struct.pack_into(">h", expected, 21, LOG_APPEND_TIME)
    struct.pack_into(">q", expected, 35, NOW)
    struct.pack_into(">I", expected, 17, crc32c(bytes(expected[21:])))
    assert bytes(data) == bytes(expected)
    found = log.offset_for_timestamp(NOW)
    assert found == (NOW, 0, 0), "all records have the time of the append"


def test_append_time_without_a_clock_is_an_error_of_the_caller() -> None:
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    with pytest.raises(ValueError, match="wall_ms"):
        log.append_as_leader(batch(), 0, 0)


@pytest.mark.parametrize(("name", "codec"), [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("zstd", 4)])
def test_a_topic_with_a_compression_of_its_own(name: str, codec: int) -> None:
    log = open_log(config=LogConfig.from_topic_configs({"compression.type": name}))
    body = b"".join(record(index, index * 5, b"k", b"v" * 60) for index in range(3))
    packed = bytes(cramjam.gzip.compress(body))
    sent = [
        batch([b"v" * 60] * 3, timestamps=[NOW, NOW + 5, NOW + 10]),
        batch([b"v" * 60] * 3, timestamps=[NOW, NOW + 5, NOW + 10], attributes=GZIP, compress=packed),
    ]
    for number, data in enumerate(sent):
        before = bytes(data[21:])
        assert log.append_as_leader(data, 2, 0, NOW)[:3] == (0, 3 * number, 3 * number + 2)
        assert bytes(data[21:]) == before, "what the producer sent stays as it is"
    stored = read_all(log)
    assert offsets_in(stored) == [(0, 2, 2), (3, 5, 2)]
    assert [stored[22], stored[len(stored) - (len(stored) - sizes_in(stored)[0]) + 22]] == [codec, codec]
    assert log.offset_for_timestamp(NOW + 6) == (NOW + 10, 2, 2)
    producer = batch([b"v"] * 2, timestamps=NOW, producer_id=9, producer_epoch=1, sequence=4)
    assert log.append_as_leader(producer, 2, 0, NOW).error == 0
    again = log.append_as_leader(batch([b"v"] * 2, producer_id=9, producer_epoch=1, sequence=4), 2, 0)
    assert (again.duplicate, again.first_offset) == (True, 6)


# -- producers


def test_a_retry_gets_the_offsets_of_the_first_time() -> None:
    log = open_log()
    add(log, 5)
    for number in range(3):
        add(log, 2, producer_id=9, producer_epoch=0, sequence=number * 2)
    retry = batch([b"value"] * 2, producer_id=9, producer_epoch=0, sequence=2)
    result = log.append_as_leader(retry, 0, 0)
    assert result == (0, 7, 8, -1, True, None, ())
    assert log.log_end_offset == 11


def test_a_retry_with_append_time_tells_the_first_time() -> None:
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    data = {"producer_id": 9, "producer_epoch": 0, "sequence": 0}
    log.append_as_leader(batch([b"a"], **data), 0, 0, NOW)  # type: ignore[arg-type]
    assert log.append_as_leader(batch([b"a"], **data), 0, 0, NOW + 50)[:5] == (0, 0, 0, NOW, True)  # type: ignore[arg-type]


def test_a_gap_is_refused_and_leaves_no_trace() -> None:
    log = open_log()
    add(log, 2, producer_id=9, producer_epoch=0, sequence=0)
    result = log.append_as_leader(batch([b"v"], producer_id=9, producer_epoch=0, sequence=3), 0, 0)
    assert result.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 2
    add(log, 1, producer_id=9, producer_epoch=0, sequence=2)


def test_an_older_producer_epoch_is_fenced() -> None:
    log = open_log()
    add(log, 1, producer_id=9, producer_epoch=1, sequence=0)
    result = log.append_as_leader(batch([b"v"], producer_id=9, producer_epoch=0, sequence=0), 0, 0)
    assert result.error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_pass_the_largest_int() -> None:
    log = open_log()
    add(log, 3, producer_id=9, producer_epoch=0, sequence=2**31 - 2)
    add(log, 1, producer_id=9, producer_epoch=0, sequence=1)
    add(log, 1, producer_id=9, producer_epoch=0, sequence=2)
    again = log.append_as_leader(batch([b"value"] * 3, producer_id=9, producer_epoch=0, sequence=2**31 - 2), 0, 0)
    assert (again.duplicate, again.first_offset) == (True, 0)


def test_transactions_hold_back_the_stable_offset_until_their_marker() -> None:
    log = open_log()
    add(log, 1)
    add(log, 2, attributes=16, producer_id=9, producer_epoch=0, sequence=0)
    add(log, 1)
    assert log.last_stable_offset(4) == 1
    assert log.append_as_leader(marker(9, 0, commit=False), 0, 0, NOW).error == ErrorCode.INVALID_RECORD
    assert log.append_as_leader(marker(9, 0, commit=False), 0, 0, NOW, internal=True)[:3] == (0, 4, 4)
    assert log.last_stable_offset(4) == 1
    assert log.last_stable_offset(5) == 5
    assert log.aborted_transactions(0, 5) == [(9, 1, 4, 5)]
    assert log.aborted_transactions(5, 9) == []
    assert log.aborted_transactions(0, 1) == []


def test_a_committed_transaction_is_not_in_the_index() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    add(log, 2, attributes=16, producer_id=9, producer_epoch=0, sequence=0)
    log.append_as_leader(marker(9, 0, commit=True), 0, 0, NOW, internal=True)
    assert log.last_stable_offset(3) == 3
    assert log.aborted_transactions(0, 3) == []
    assert f"{FOLDER}/{0:020d}.txnindex" not in disk.files


def test_a_zombie_coordinators_marker() -> None:
    log = open_log()
    log.append_as_leader(marker(9, 0, commit=True, coordinator_epoch=5), 0, 0, NOW, internal=True)
    result = log.append_as_leader(marker(9, 0, commit=True, coordinator_epoch=4), 0, 0, NOW, internal=True)
    assert result.error == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == 1


# -- segments


def test_a_segment_rolls_before_it_would_be_too_large() -> None:
    size = len(batch([b"value"]))
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=3 * size))
    for _ in range(7):
        add(log)
    log.write_pending()
    logs = {name: len(disk.content(f"{FOLDER}/{name}")) for name in disk.list(FOLDER) if name.endswith(".log")}
    assert logs == {f"{0:020d}.log": 3 * size, f"{3:020d}.log": 3 * size, f"{6:020d}.log": size}
    assert [name for name in disk.list(FOLDER) if name.endswith(".snapshot")] == [
        f"{3:020d}.snapshot",
        f"{6:020d}.snapshot",
    ]


def test_a_segment_rolls_by_the_time_of_its_records() -> None:
    log = open_log(config=LogConfig(segment_ms=1_000))
    add(log, timestamp=NOW)
    add(log, timestamp=NOW + 1_000)
    assert segment_count(log) == 1
    add(log, timestamp=NOW + 1_001)
    assert segment_count(log) == 2


def test_records_without_a_time_roll_by_the_clock() -> None:
    log = open_log(config=LogConfig(segment_ms=1_000))
    log.append_as_leader(batch(timestamps=-1), 0, 0, NOW)
    log.append_as_leader(batch(timestamps=-1), 0, 1_000, NOW)
    assert segment_count(log) == 1
    log.append_as_leader(batch(timestamps=-1), 0, 1_001, NOW)
    assert segment_count(log) == 2


def test_jitter_makes_a_segment_roll_earlier_and_always_the_same() -> None:
    def records_until_roll(jitter_ms: int) -> int:
        log = open_log(config=LogConfig(segment_ms=1_000, segment_jitter_ms=jitter_ms))
        for elapsed_ms in range(0, 1_100, 10):
            add(log, timestamp=NOW + elapsed_ms)
            if segment_count(log) > 1:
                return elapsed_ms
        return -1

    assert records_until_roll(0) == 1_010
    assert 0 < records_until_roll(900) < 1_010
    assert records_until_roll(900) == records_until_roll(900)


def test_a_full_index_rolls_the_segment() -> None:
    log = open_log(config=LogConfig(index_interval_bytes=1, segment_index_bytes=24))
    for number in range(12):
        add(log, timestamp=NOW + number)
    # Of 24 bytes, the offset index holds 3 entries and the time index 2, one of which is kept for the roll.
    assert segment_count(log) > 3


def test_an_idle_segment_rolls_too() -> None:
    log = open_log(config=LogConfig(segment_ms=1_000))
    assert not log.roll_if_due(5_000)
    add(log)
    assert not log.roll_if_due(1_000)
    assert log.roll_if_due(1_001)
    assert segment_count(log) == 2
    assert not log.roll_if_due(9_999)


def test_index_files_to_the_byte() -> None:
    """One entry a batch once `index.interval.bytes` have passed since the last; the last time on the roll."""
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=140))
    size = len(batch([b"value"]))
    times = [10, 30, 20, 40, 50, 45]
    for time in times:
        add(log, timestamp=time)
    log.close()
    assert size == 74, "so that two batches are more than 140 bytes"
    assert disk.content(f"{FOLDER}/{0:020d}.index") == struct.pack(">ii", 2, 2 * size) + struct.pack(">ii", 4, 4 * size)
    assert disk.content(f"{FOLDER}/{0:020d}.timeindex") == struct.pack(">qi", 30, 1) + struct.pack(">qi", 50, 4)


# -- failing disks


def test_a_failed_write_is_reported_and_nothing_is_appended_after() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    add(log)
    disk.fail = OSError(28, "no space left")
    with pytest.raises(OSError, match="no space"):
        log.write_pending()
    disk.fail = None
    assert log.append_as_leader(batch(), 0, 0, NOW).error == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(OSError, match="no space"):
        log.read(0, 1, 1)
    with pytest.raises(OSError, match="no space"):
        log.append_as_follower(batch(base_offset=1), 9)
    with pytest.raises(OSError, match="no space"):
        log.write_pending()
    log.close()
    assert disk.open_files == 0


def test_a_roll_that_fails_refuses_the_append() -> None:
    disk = MemoryDisk()
    size = len(batch())
    log = open_log(disk, LogConfig(segment_bytes=size))
    add(log)
    disk.fail = OSError(5, "broken")
    result = log.append_as_leader(batch(), 0, 0, NOW)
    assert result.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 1
    with pytest.raises(OSError, match="broken"):
        log.write_pending()
