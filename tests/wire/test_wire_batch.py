"""Record batches, compression and control records: Apache's bytes, kio's, and damage."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.wire.batch import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    HEADER,
    HEADER_BYTES,
    LEADER_EPOCH_AT,
    BatchHeader,
    NewRecord,
    Record,
    add_to_sequence,
    crc_matches,
    decode_batch,
    encode_batch,
    iterate_headers,
    read_header,
    write_crc,
)
from tanist.wire.compression import Compression, compress, decompress
from tanist.wire.control import (
    ControlKind,
    ControlMessage,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    decode_control_batch,
    encode_control_batch,
    encode_marker_batch,
)
from tanist.wire.errors import EncodingError, WireError
from tanist.wire.messages.leader_change_message import Voter
from tanist.wire.messages.voters_record import Endpoint, KRaftVersionFeature
from tanist.wire.messages.voters_record import Voter as VotersRecordVoter

GOLDEN = {
    sample["id"]: bytes.fromhex(sample["hex"])
    for sample in yaml.safe_load((Path(__file__).parent / "golden_batches.yaml").read_text())
}
RECORDS = [
    NewRecord(1000, b"k1", b"value one value one value one value one", (("h", b"\x01\x02"), ("n", None))),
    NewRecord(1003, None, b"value two"),
    NewRecord(990, b"k3", None),
]
PRODUCER: dict[str, Any] = {"base_offset": 100, "producer_id": 9000, "producer_epoch": 3, "base_sequence": 17}

byte_strings = st.one_of(st.none(), st.binary(max_size=20), st.just(b"v" * 100))
new_records = st.builds(
    NewRecord,
    timestamp=st.integers(-1, 2**60),
    key=byte_strings,
    value=byte_strings,
    headers=st.lists(st.tuples(st.sampled_from(["", "h", "ö"]), byte_strings), max_size=2),
)
whole_seconds = st.builds(
    NewRecord,  # kio makes dates of timestamps, through floats
    timestamp=st.integers(0, 2**32).map(lambda seconds: 1000 * seconds),
    key=byte_strings,
    value=byte_strings,
    headers=st.just(()),
)


def test_apaches_bytes_uncompressed() -> None:
    assert encode_batch(RECORDS, leader_epoch=5, **PRODUCER) == GOLDEN["none"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_apaches_batches_of_every_codec(codec: str) -> None:
    batch = GOLDEN[codec]
    header = read_header(batch)
    assert Compression(header.compression).name.lower() == codec
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 102, 103)
    assert (header.size_bytes, header.leader_epoch, header.partition_leader_epoch) == (len(batch), 5, 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (9000, 3, 17, 19)
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (1000, 1003, 3)
    assert header.attributes & ~0x07 == 0
    assert crc_matches(batch, 0, len(batch))
    assert decode_batch(batch) == [
        Record(100 + i, new.timestamp, new.key, new.value, new.headers, 17 + i) for i, new in enumerate(RECORDS)
    ]


def test_log_append_time_holds_for_all_records() -> None:
    header = read_header(GOLDEN["log_append_time"])
    assert header.is_log_append_time
    assert decode_batch(GOLDEN["log_append_time"]) == [Record(0, 5000, b"k", b"v")]
    assert encode_batch([NewRecord(1000, b"k", b"v")], log_append_time_ms=5000) == GOLDEN["log_append_time"]


def test_attributes() -> None:
    plain = read_header(GOLDEN["none"])
    assert [plain.is_control, plain.is_transactional, plain.is_log_append_time, plain.has_horizon] == [False] * 4
    assert plain._replace(attributes=0x40).has_horizon
    assert plain._replace(attributes=0x20).is_control


def test_transactional() -> None:
    assert read_header(GOLDEN["transactional"]).is_transactional
    ours = encode_batch(
        [NewRecord(1000, b"k", b"v")],
        base_offset=7,
        leader_epoch=2,
        producer_id=44,
        producer_epoch=1,
        base_sequence=0,
        transactional=True,
    )
    assert ours == GOLDEN["transactional"]


@settings(deadline=None)
@given(st.lists(new_records, min_size=1, max_size=5), st.sampled_from(Compression), st.integers(-1, 2**31 - 1))
def test_round_trip(records: list[NewRecord], codec: Compression, base_sequence: int) -> None:
    batch = encode_batch(records, base_offset=2**40, compression=codec, base_sequence=base_sequence, producer_id=1)
    assert crc_matches(memoryview(batch), 0, len(batch))
    assert decode_batch(batch) == [
        Record(2**40 + i, r.timestamp, r.key, r.value, tuple(r.headers), add_to_sequence(base_sequence, i))
        for i, r in enumerate(records)
    ]
    assert read_header(batch).max_timestamp == max(r.timestamp for r in records)


@settings(deadline=None)
@given(st.lists(whole_seconds, min_size=1, max_size=4))
def test_kio_reads_the_same(records: list[NewRecord]) -> None:
    readers = pytest.importorskip("kio.records.readers")
    batch = bytes(encode_batch(records, base_offset=5, leader_epoch=3))
    theirs, size = readers.read_batch(batch, 0)
    assert size == len(batch)
    assert theirs.base_offset == 5
    assert [(record.key, record.value) for record in theirs.records] == [(r.key, r.value) for r in records]
    writers = pytest.importorskip("kio.records.writers")
    buffer = io.BytesIO()
    writers.write_batch(buffer, theirs)
    assert buffer.getvalue() == batch


def test_offset_and_epoch_can_be_patched_without_touching_the_crc() -> None:
    batch = bytearray(GOLDEN["none"])
    batch[BASE_OFFSET_AT : BASE_OFFSET_AT + 8] = (777).to_bytes(8, "big")
    batch[LEADER_EPOCH_AT : LEADER_EPOCH_AT + 4] = (9).to_bytes(4, "big")
    header = read_header(batch)
    assert (header.base_offset, header.leader_epoch) == (777, 9)
    assert crc_matches(batch, 0, len(batch))
    batch[ATTRIBUTES_AT + 1] |= 0x08
    assert not crc_matches(batch, 0, len(batch))
    write_crc(batch, 0, len(batch))
    assert crc_matches(batch, 0, len(batch))


def test_every_flipped_bit_under_the_crc_is_noticed() -> None:
    batch = bytearray(GOLDEN["zstd"])
    for position in range(ATTRIBUTES_AT, len(batch)):
        batch[position] ^= 0x10
        assert not crc_matches(batch, 0, len(batch))
        batch[position] ^= 0x10


def test_headers_of_several_batches_and_a_torn_one() -> None:
    batches = bytes(encode_batch(RECORDS, base_offset=0) + encode_batch(RECORDS, base_offset=3))
    size = len(batches) // 2
    whole = [(0, 0), (size, 3)]
    for cut in range(size):
        view = memoryview(batches + batches[:cut])
        assert [(at, header.base_offset) for at, header in iterate_headers(view)] == whole
    assert crc_matches(batches, size, size)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_refused_by_name(magic: int) -> None:
    for read in (read_header, decode_batch, lambda view: list(iterate_headers(view))):
        with pytest.raises(WireError, match=f"old message format .magic {magic}"):
            read(GOLDEN[f"magic_{magic}"])


def test_headers_that_cannot_be() -> None:
    batch = bytearray(GOLDEN["none"])
    batch[16] = 3
    with pytest.raises(WireError, match="magic 3"):
        list(iterate_headers(batch))
    batch = bytearray(GOLDEN["none"])
    for length in (48, 0, -1):
        batch[8:12] = length.to_bytes(4, "big", signed=True)
        with pytest.raises(WireError, match="length"):
            list(iterate_headers(batch))
    with pytest.raises(WireError, match="too few"):
        read_header(GOLDEN["none"][:60])
    with pytest.raises(WireError, match="of which"):
        decode_batch(GOLDEN["none"][:-1])


def with_body(body: bytes, count: int, attributes: int = 0) -> bytes:
    header = BatchHeader(0, HEADER_BYTES - 12 + len(body), 0, 2, 0, attributes, 0, 0, 0, -1, -1, -1, count)
    return HEADER.pack(*header) + body


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("", 1),
        ("", -1),
        ("", 2**31 - 1),
        ("0c000000010100" + "00", 1),  # a byte too many
        ("0e00000001010000", 1),  # the record is longer than its fields
        ("0a000000010100", 1),  # and shorter
        ("0c000000030100", 1),  # a key of -2 bytes
        ("0c000000800100", 1),  # a key beyond the record
        ("0c000000010101", 1),  # -1 headers
        ("0c0000000101fe01", 1),  # more headers than bytes
        ("ffffffffffffffffffff01000000010100", 1),  # a varint without end
        ("ffffffffffffffffff7f000000010100", 1),  # more than 64 bits
        ("1000000001010201" + "01", 1),  # a header without a key
        ("14000000010102" + "02ff" + "0201", 1),  # a header whose key is no text
    ],
)
def test_records_that_cannot_be(body: str, count: int) -> None:
    with pytest.raises(WireError):
        decode_batch(with_body(bytes.fromhex(body), count))


def test_mutated_batches_are_wire_errors_or_records() -> None:
    rng = random.Random(1)
    refused = 0
    for _ in range(4_000):
        name = rng.choice(["none", "gzip", "snappy", "lz4", "zstd"])
        batch = bytearray(GOLDEN[name])
        for _ in range(rng.randint(1, 3)):
            batch[rng.randrange(len(batch))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            assert len(decode_batch(batch)) <= len(batch) * 1000
        except WireError:
            refused += 1
    assert 0 < refused < 4_000


def test_a_batch_has_records() -> None:
    with pytest.raises(EncodingError):
        encode_batch([])


def test_sequences_wrap() -> None:
    assert add_to_sequence(2**31 - 1, 1) == 0
    assert add_to_sequence(2**31 - 2, 3) == 1
    assert add_to_sequence(-1, 5) == -1


# Compression


@pytest.mark.parametrize("codec", list(Compression))
def test_compression_round_trip_of_any_size(codec: Compression) -> None:
    for data in (b"", b"x", b"abc" * 1000, bytes(1_000_000), random.Random(2).randbytes(300_000)):
        assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", [c for c in Compression if c is not Compression.NONE])
def test_a_bomb_is_stopped_at_the_bound(codec: Compression) -> None:
    bomb = compress(codec, bytes(3_000_000))
    assert len(bomb) < 300_000
    with pytest.raises(WireError):
        decompress(codec, bomb, max_bytes=2_999_999)
    assert len(decompress(codec, bomb, max_bytes=3_000_000)) == 3_000_000


def test_a_batch_that_grows_too_far_is_refused() -> None:
    batch = encode_batch([NewRecord(0, None, bytes(200_000))], compression=Compression.ZSTD)
    assert len(batch) < 1_000
    with pytest.raises(WireError, match="more than 100000 bytes"):
        decode_batch(batch, max_bytes=100_000)


def test_snappy_of_librdkafka_is_one_raw_block() -> None:
    import cramjam

    data = b"raw block " * 100
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


@pytest.mark.parametrize("codec", [c for c in Compression if c is not Compression.NONE])
def test_damaged_compressed_data_is_a_wire_error_or_other_data(codec: Compression) -> None:
    rng = random.Random(int(codec))
    good = compress(codec, b"some words and some words again " * 40)
    for cut in range(1, len(good) - 1):
        try:
            assert len(decompress(codec, good[:cut])) <= 40 * 32
        except WireError:
            continue
    for _ in range(500):
        damaged = bytearray(good)
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            decompress(codec, damaged, max_bytes=1_000_000)
        except WireError:
            continue


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_damage_is_not_taken_for_a_lack_of_space(codec: Compression) -> None:
    """Or each damaged batch would cost the largest buffer that there may be."""
    with pytest.raises(WireError) as failure:
        decompress(codec, compress(codec, b"some words " * 100)[:-9])
    assert "more than" not in str(failure.value)


def test_codecs_that_there_are_not() -> None:
    with pytest.raises(WireError, match="no compression codec 5"):
        decompress(5, b"")
    with pytest.raises(WireError, match="no compression codec 7"):
        decode_batch(with_body(b"", 0, attributes=7))
    with pytest.raises(ValueError, match="no compression codec 6"):
        compress(6, b"")


# Control records

ENDPOINT = Endpoint(name="CONTROLLER", host="h", port=9093)
CONTROL: dict[str, tuple[ControlKind, ControlMessage, int]] = {
    "leader_change_0": (
        ControlKind.LEADER_CHANGE,
        LeaderChangeMessage(
            leader_id=2, voters=(Voter(voter_id=1), Voter(voter_id=2)), granting_voters=(Voter(voter_id=2),)
        ),
        30,
    ),
    "snapshot_header": (ControlKind.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=99), 0),
    "snapshot_footer": (ControlKind.SNAPSHOT_FOOTER, SnapshotFooterRecord(), 9),
    "kraft_version": (ControlKind.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=1), 1),
    "voters": (
        ControlKind.KRAFT_VOTERS,
        VotersRecord(
            voters=(
                VotersRecordVoter(
                    voter_id=1,
                    voter_directory_id=UUID(int=101),
                    endpoints=(ENDPOINT,),
                    k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
                ),
            )
        ),
        2,
    ),
}


@pytest.mark.parametrize("name", CONTROL)
def test_apaches_control_batches(name: str) -> None:
    kind, message, offset = CONTROL[name]
    header, records = decode_control_batch(GOLDEN[name])
    assert header.is_control
    assert [(record.offset, record.kind, record.message) for record in records] == [(offset, kind, message)]
    assert encode_control_batch([message], base_offset=offset, leader_epoch=4, timestamp_ms=1234) == GOLDEN[name]


def test_several_control_records_in_one_batch() -> None:
    messages = [message for _, message, _ in CONTROL.values()]
    batch = encode_control_batch(messages, base_offset=5, leader_epoch=1, timestamp_ms=0)
    found = decode_control_batch(batch)[1]
    assert [record.message for record in found] == messages
    assert [record.offset for record in found] == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(("name", "offset", "committed"), [("commit_marker", 20, True), ("abort_marker", 21, False)])
def test_apaches_transaction_markers(name: str, offset: int, committed: bool) -> None:
    ours = encode_marker_batch(
        committed=committed,
        coordinator_epoch=6,
        producer_id=44,
        producer_epoch=1,
        timestamp_ms=1234,
        base_offset=offset,
        leader_epoch=3,
    )
    assert ours == GOLDEN[name]
    header, ((_, kind, message),) = decode_control_batch(GOLDEN[name])
    assert header.is_transactional
    assert header.producer_id == 44
    assert kind == (ControlKind.COMMIT if committed else ControlKind.ABORT)
    assert message == EndTxnMarker(coordinator_epoch=6)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\0\0\0\x09", b"\0\0\0\0\0\0"),
        (b"\0\0\0\x01", None),
        (b"\0\0\0\x01", b"\0\0\0\0\0"),
        (b"\0\0\0\x04", b"\0\0\0more"),
        (b"\0\0\0\x04", b"\xff\xff\0"),
    ],
)
def test_control_records_that_cannot_be(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(WireError):
        decode_control_batch(encode_batch([NewRecord(0, key, value)], control=True))


def test_a_newer_control_record_is_read_as_far_as_we_know_it() -> None:
    batch = encode_batch([NewRecord(0, b"\0\0\0\x05", b"\x00\x07\x00\x01\x00more")], control=True)
    assert decode_control_batch(batch)[1][0].message == KRaftVersionRecord(version=7, k_raft_version=1)


def test_an_ordinary_batch_is_no_control_batch() -> None:
    with pytest.raises(WireError, match="no control batch"):
        decode_control_batch(GOLDEN["none"])
