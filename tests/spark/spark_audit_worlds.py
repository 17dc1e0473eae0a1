"""Clusters and histories that an audit has much to say about.

A `World` is a partition with its producers and readers, in which nothing is wrong but what is planted. `drawn_cluster`
is a folder with the log files of three replicas, a metadata log and a salvage, and the histories of `tests/lab` beside
it; what its logs have at the offsets that those histories claim is drawn.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any
from uuid import UUID

from tanist.log.checkpoints import HIGH_WATERMARK_CHECKPOINT, encode_offsets
from tanist.log.salvage.manifest import MANIFEST, QUARANTINE, Manifest, SalvageReason, SavedFile, entry_id
from tanist.quorum.storage.batches import encode_values
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.control import encode_marker_batch
from tanist.wire.metadata import PartitionChangeRecord, PartitionRecord, TopicRecord, encode_record
from tests.lab import history_worlds, transaction_worlds
from tests.spark.spark_audit_samples import TOPIC
from tests.spark.spark_segments_samples import START_MS, name_directory
from tests.spark.spark_transaction_samples import PLAIN

PLANTS = ("duplicate", "write what failed", "swap", "phantom", "read aborted", "lose", "truncate")
REPLICAS = (1, 2, 3)
Line = dict[str, Any]


class World:
    """A partition's log, and the lines of those who write and read it. Without a plant nothing is wrong."""

    def __init__(self, partition: int, plant: str | None) -> None:
        self.rng = random.Random(f"{partition} {plant}")
        self.plant = plant
        self.place = f"{TOPIC}-{partition}"
        self.log: list[tuple[int, str | bool]] = []
        self.aborted: set[int] = set()
        self.lines: list[Line] = []
        self.now_ns = 10
        self.number = 0

    def plants(self, plant: str) -> bool:
        return self.plant == plant and self.rng.random() < 0.3

    def line(self, process: str, function: str, kind: str, **fields: Any) -> None:
        began_ns, self.now_ns = self.now_ns + 1, self.now_ns + 2
        line = {"process": f"{process} {self.place}", "f": function, "type": kind, **fields}
        self.lines.append({**line, "invoked_ns": began_ns, "time_ns": self.now_ns})

    def append(self, value: str, producer: int = PLAIN) -> int:
        self.log.append((producer, value))
        return len(self.log) - 1

    def sent(self, value: str, kind: str, **fields: Any) -> None:
        self.line("p", "send", kind, partition=self.place, value=value, **fields)

    def write(self) -> None:
        self.number += 1
        value, rng = f"v{self.number}", self.rng
        settings = rng.choices(({}, {"idempotent": False}, {"acks": 1}), (8, 1, 1))[0]
        match rng.choices(("ok", "info", "fail", "transaction"), (10, 2, 2, 2))[0]:
            case "ok":
                if self.plants("swap"):
                    before, behind = f"{value} before", self.append(value)
                    self.log.insert(behind, (PLAIN, before))
                    self.sent(value, "ok", offset=behind + 1)
                    self.sent(before, "ok", offset=behind)
                    return
                offset = self.append(value)
                if self.plants("duplicate"):
                    self.append(value)
                self.sent(value, "ok", offset=offset, **settings)
            case "info":
                if rng.random() < 0.5:
                    self.append(value)
                self.sent(value, "info", **settings)
            case "fail":
                if self.plants("write what failed"):
                    self.append(value)
                self.sent(value, "fail")
            case _:
                committed = rng.random() < 0.5
                offset = self.append(value, producer=7)
                self.log.append((7, committed))
                if committed:
                    self.sent(value, "ok", offset=offset)
                else:
                    self.aborted.add(offset)
                    self.sent(value, "fail", aborted=True)

    def read(self, process: str, *, committed: bool) -> None:
        """Everything, from the beginning, until nothing comes."""
        isolation = {"isolation": "read_committed"} if committed else {}
        self.line(process, "assign", "ok", partitions=[self.place], positions={self.place: 0})
        records: list[list[Any]] = []
        for offset, entry in enumerate(self.log):
            if isinstance(entry[1], bool):
                continue
            if committed and offset in self.aborted and not self.plants("read aborted"):
                continue
            records.append([offset, entry[1]])
        end = {"positions": {self.place: len(self.log)}}
        self.line(process, "poll", "ok", records={self.place: records}, **end, **isolation)
        self.line(process, "poll", "ok", **end, **isolation)

    def play(self) -> None:
        for _ in range(self.rng.randint(8, 20)):
            self.write()
        match self.plant:
            case "lose":  # before anybody has read it; another record stands there
                for offset in {self.rng.choice(self._plain()) for _ in range(3)}:
                    self.log[offset] = PLAIN, f"instead {offset}"
                    self.sent(f"instead {offset}", "info", idempotent=False)
                del self.log[self._plain()[-1] :]
            case "truncate":  # what has been read; others are written in its place
                self.read("early", committed=False)
                del self.log[self.rng.choice(self._plain()[-4:]) :]
                self.aborted = {offset for offset in self.aborted if offset < len(self.log)}
                for _ in range(self.rng.randint(0, 2)):
                    self.write()
            case "phantom":
                self.append("of nobody")
        self.read("last", committed=False)
        self.read("committed", committed=True)

    def _plain(self) -> list[int]:
        return [offset for offset, entry in enumerate(self.log) if entry[0] == PLAIN]


def drawn_cluster(folder: Path, rng: random.Random, worlds: int) -> Path:
    """`data` and `history.jsonl`: a topic for each history."""
    lines: list[Line] = []
    topics: dict[str, dict[int, dict[int, str]]] = {}
    for number in range(worlds):
        made = _history(rng, number)
        lines += made
        for place, claims in _claims(made).items():
            topic, _, number_of = place.rpartition("-")
            topics.setdefault(topic, {})[int(number_of)] = claims
    # A line that is not whole is not there.
    texts = [json.dumps(line, separators=rng.choice(((",", ":"), (", ", ": ")))) + "\n" for line in lines]
    (folder / "history.jsonl").write_text("".join(texts) + '{"process": "p", "type": "ok", "f": "se')
    marks: dict[tuple[str, int], int] = {}
    for replica in REPLICAS:
        name_directory(folder / "data" / f"node-{replica}" / "log", replica)
    for topic, partitions in topics.items():
        for partition, claims in partitions.items():
            marks[topic, partition] = _write_partition(folder / "data", topic, partition, claims, rng)
    for replica in REPLICAS:
        directory = folder / "data" / f"node-{replica}" / "log"
        (directory / HIGH_WATERMARK_CHECKPOINT).write_bytes(encode_offsets(marks))
    _write_metadata(folder / "data" / "node-1" / "log", topics, rng)
    return folder


def _history(rng: random.Random, number: int) -> list[Line]:
    """Clients and topics have the number in their names."""
    seed = rng.randrange(10**6)
    draw = rng.choice((history_worlds.planted, history_worlds.soup, transaction_worlds.world))
    lines = draw(seed)
    for at, line in enumerate(lines):
        line["process"] = f"{line['process']}/{number}"
        # Other lines are put together in the same table.
        line.setdefault("time_ns", at)
    text = json.dumps(lines)
    for partition in range(3):
        text = text.replace(f'"t-{partition}"', f'"t{number}-{partition}"')
    found: list[Line] = json.loads(text)
    return found


def _claims(lines: list[Line]) -> dict[str, dict[int, str]]:
    """By place and offset, one of the values that somebody has there."""
    found: dict[str, dict[int, str]] = defaultdict(dict)
    operations = [operation for line in lines for operation in (line, *line.get("ops", ()))]
    for each in operations:
        if each.get("f") == "send" and each.get("partition") is not None:
            found[each["partition"]].update(
                {} if each.get("offset") is None else {each["offset"]: _text(each["value"])}
            )
        if isinstance(each.get("records"), dict):
            for place, pairs in each["records"].items():
                found[place].update({offset: _text(value) for offset, value in pairs})
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _write_partition(data: Path, topic: str, partition: int, claims: dict[int, str], rng: random.Random) -> int:
    """The high watermark. Most records are where they are claimed to be, on all replicas."""
    first = min(claims, default=0) + rng.choice((0, 0, 0, 2))
    end = max(claims, default=0) + 3
    values = list(claims.values())
    entries: dict[int, Any] = {}
    for offset in range(first, end if end - first < 500 else first):
        producer = rng.choice((PLAIN, PLAIN, PLAIN, 7, 8))
        if offset not in claims:
            entries[offset] = (rng.choice((7, 8)), rng.random() < 0.6) if rng.random() < 0.7 else (PLAIN, "of nobody")
        elif rng.random() < 0.9:
            entries[offset] = (producer, claims[offset])
        elif rng.random() < 0.6:
            entries[offset] = (producer, rng.choice(values))
    epochs = {offset: (offset - first) // 9 for offset in entries}
    for replica in REPLICAS:
        written, sizes = bytearray(), []
        for offset, (producer, what) in entries.items():
            if rng.random() < 0.02 and replica > 1:
                continue
            epoch = epochs[offset] + (rng.random() < 0.02)
            sizes.append(len(written))
            written += _batch(offset, epoch, producer, what if rng.random() > 0.02 else f"{what} on {replica}")
        if sizes and rng.random() < 0.1:
            written[rng.choice(sizes) + 64] ^= 0xFF
        home = data / f"node-{replica}" / "log" / f"{topic}-{partition}"
        home.mkdir(parents=True)
        (home / f"{first:020d}.log").write_bytes(written)
    _save(data / "node-2" / "log", topic, partition, claims, entries, rng)
    return max([first, *entries]) + rng.choice((0, 1, 1, 1))


def _batch(offset: int, epoch: int, producer: int, what: str | bool) -> bytes:
    if isinstance(what, bool):
        return bytes(encode_marker_batch(
            committed=what, coordinator_epoch=0, timestamp_ms=START_MS, base_offset=offset, leader_epoch=epoch,
            producer_id=producer, producer_epoch=0,
        ))  # fmt: skip
    return bytes(encode_batch(
        [NewRecord(START_MS, None, what.encode())], base_offset=offset, leader_epoch=epoch, producer_id=producer,
        producer_epoch=min(producer, 0), base_sequence=-1 if producer == PLAIN else offset % 1000,
        transactional=producer != PLAIN,
    ))  # fmt: skip


def _save(
    directory: Path, topic: str, partition: int, claims: dict[int, str], entries: dict[int, Any], rng: random.Random
) -> None:
    """What the log has not, in the salvage of broker 2."""
    lost = [offset for offset in sorted(claims) if offset not in entries or entries[offset][1] != claims[offset]]
    if not lost or rng.random() < 0.3:
        return
    number = len(list(directory.glob(f"{QUARANTINE}/*")))
    home = directory / QUARANTINE / entry_id(START_MS, 2, number)
    home.mkdir(parents=True)
    data = b"".join(_batch(offset, 1, PLAIN, claims[offset]) for offset in lost)
    name = f"{lost[0]:020d}.log"
    (home / name).write_bytes(data)
    manifest = Manifest(
        home.name, 2, topic, UUID(int=5), partition, SalvageReason.UNCLEAN_ELECTION, START_MS, 2, lost[0], lost[0],
        lost[-1] + 1, ((1, lost[0]),), (SavedFile(name, len(data), 0),),
    )  # fmt: skip
    (home / MANIFEST).write_bytes(manifest.encode())


def _write_metadata(directory: Path, topics: dict[str, dict[int, Any]], rng: random.Random) -> None:
    records: list[Any] = []
    for number, (topic, partitions) in enumerate(topics.items(), start=1):
        topic_id = UUID(int=number)
        records.append(TopicRecord(name=topic, topic_id=topic_id))
        for partition in partitions:
            records.append(PartitionRecord(
                partition_id=partition, topic_id=topic_id, replicas=REPLICAS, isr=REPLICAS, leader=1, leader_epoch=0,
                partition_epoch=0, directories=(UUID(int=1),) * 3,
            ))  # fmt: skip
            for _ in range(rng.randrange(4)):
                isr = tuple(sorted(rng.sample(REPLICAS, rng.randint(1, 3))))
                change = PartitionChangeRecord(partition_id=partition, topic_id=topic_id, isr=isr)
                if rng.random() < 0.7:
                    change = PartitionChangeRecord(
                        partition_id=partition, topic_id=topic_id, isr=isr, leader=rng.choice(isr)
                    )
                records.append(change)
    home = directory / "__cluster_metadata-0"
    home.mkdir()
    values = [encode_record(record, record.VERSIONS[1]) for record in records]
    (home / f"{0:020d}.log").write_bytes(encode_values(values, base_offset=0, epoch=3, timestamp=START_MS))
