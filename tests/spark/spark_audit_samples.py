"""Clusters and histories with faults planted in them, and what a plain checker says that they have.

`Scene` makes segment files of several replicas and a history beside them, from one random generator, and plants
faults. `brute` is the audit's rules again in plain Python, over the scene's own values, knowing nothing of buckets,
hashes or Spark; it reads nothing that Spark reads.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tanist.log.checkpoints import HIGH_WATERMARK_CHECKPOINT, encode_offsets
from tanist.wire.batch import NewRecord
from tests.spark.spark_segments_samples import START_MS, SegmentBuilder, name_directory

TOPIC = "orders"
REPLICAS = (1, 2, 3)
REFERENCE = 1
"""Replica 1 leads everywhere: no other one ends in a greater epoch, or later."""


@dataclass
class Batch:
    base_offset: int
    epoch: int
    values: list[bytes]
    control: bool = False
    torn: bool = False
    """Its bytes are damaged, so that none of its records counts."""

    @property
    def end(self) -> int:
        return self.base_offset + len(self.values)


@dataclass
class Scene:
    """Logs by partition and replica, the high watermark of each partition, and the lines of a history."""

    logs: dict[int, dict[int, list[Batch]]] = field(default_factory=dict)
    high_watermarks: dict[int, int] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)

    def held(self, partition: int, replica: int) -> dict[int, tuple[int, bytes, bool]]:
        """Offset -> epoch, value, whether it is a control record."""
        return {
            batch.base_offset + number: (batch.epoch, value, batch.control)
            for batch in self.logs[partition][replica]
            if not batch.torn
            for number, value in enumerate(batch.values)
        }

    def write(self, folder: Path) -> Path:
        """The data folder of a cluster, and `history.jsonl` beside it."""
        for replica in REPLICAS:
            directory = folder / "data" / f"node-{replica}" / "log"
            name_directory(directory, replica)
            for partition, replicas in self.logs.items():
                written = SegmentBuilder(replicas[replica][0].base_offset if replicas[replica] else 0)
                for batch in replicas[replica]:
                    written.offset, written.epoch = batch.base_offset, batch.epoch
                    written.batch(
                        [NewRecord(START_MS + batch.base_offset, None, value) for value in batch.values],
                        control=batch.control,
                    )
                    if batch.torn:
                        written.data[written.positions[-1] + 70] ^= 0xFF
                written.write(directory / f"{TOPIC}-{partition}")
            watermarks = {(TOPIC, partition): offset for partition, offset in self.high_watermarks.items()}
            (directory / HIGH_WATERMARK_CHECKPOINT).write_bytes(encode_offsets(watermarks))
        with (folder / "history.jsonl").open("w", encoding="utf-8") as file:
            for line in self.lines:
                file.write(json.dumps(line) + "\n")
        return folder


def write_parquet(scene: Scene, folder: Path, row_group: int = 1000) -> Path:
    """The history once more, a line for each record, as tasks read it themselves."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines: list[dict[str, Any]] = []
    for line in scene.lines:
        if line["f"] != "poll":
            lines.append({**line, "acks": str(line["acks"]) if "acks" in line else None})
            continue
        rest = {name: value for name, value in line.items() if name != "records"}
        for place, pairs in line["records"].items():
            lines += [{**rest, "partition": place, "offset": offset, "value": value} for offset, value in pairs]
    kinds = {name: pa.string() for name in ("process", "type", "f", "partition", "value", "acks")}
    kinds |= {name: pa.int64() for name in ("offset", "invoked_ns", "time_ns")}
    folder.mkdir()
    for number in range(2):
        part = lines[number * len(lines) // 2 : (number + 1) * len(lines) // 2]
        table = pa.table({name: pa.array([line.get(name) for line in part], kind) for name, kind in kinds.items()})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=row_group)
    return folder


def sound_scene(partitions: int, records: int, seed: int, *, batch_records: int = 40) -> Scene:
    """Nothing is wrong: producers by turns, some sends of unknown outcome that are in the log and some that are not."""
    rng, scene = random.Random(seed), Scene()
    number = 0
    now_ns = 1_000_000
    for partition in range(partitions):
        batches: list[Batch] = []
        offset = epoch = 0
        place = f"{TOPIC}-{partition}"
        while offset < records:
            if rng.random() < 0.01:
                epoch += 1
            if rng.random() < 0.02:
                batches.append(Batch(offset, epoch, [b"\0\0\0\0\0\0"], control=True))
                offset += 1
                continue
            producer = f"p{rng.randrange(3)}"
            values = []
            for _ in range(rng.randint(1, 2 * batch_records)):
                number += 1
                values.append(f"{producer}/{number}".encode())
            for position, value in enumerate(values):
                kind = rng.random()
                now_ns += 1000
                line = {
                    "process": producer, "f": "send", "partition": place, "value": value.decode(),
                    "invoked_ns": now_ns - 500, "time_ns": now_ns,
                }  # fmt: skip
                if kind < 0.001:
                    scene.lines.append({**line, "type": "info"})
                else:
                    acks = {"acks": 1} if kind > 0.995 else {}
                    scene.lines.append({**line, "type": "ok", "offset": offset + position, **acks})
            batches.append(Batch(offset, epoch, values))
            offset += len(values)
            if rng.random() < 0.02:
                number += 1
                lost = {"process": producer, "f": "send", "partition": place, "value": f"{producer}/{number}"}
                scene.lines.append({**lost, "type": rng.choice(("fail", "info")), "time_ns": now_ns})
        scene.logs[partition] = {
            replica: [Batch(each.base_offset, each.epoch, list(each.values), each.control) for each in batches]
            for replica in REPLICAS
        }
        scene.high_watermarks[partition] = offset
        for consumer in ("c1", "c2"):
            for batch in batches:
                if batch.control:
                    continue
                now_ns += 10
                pairs = [[batch.base_offset + each, value.decode()] for each, value in enumerate(batch.values)]
                scene.lines.append(
                    {"process": consumer, "type": "ok", "f": "poll", "records": {place: pairs}, "time_ns": now_ns}
                )
    return scene


def plant(scene: Scene, seed: int, faults: int) -> Scene:
    """Faults of all kinds. What each does to the log and to the history; the checker finds out what it means."""
    rng = random.Random(seed)
    for number in range(faults):
        partition = rng.choice(list(scene.logs))
        place = f"{TOPIC}-{partition}"
        replicas = scene.logs[partition]
        victim = rng.choice(REPLICAS[1:])
        kind = number % 9
        plain = [each for each in replicas[REFERENCE] if not each.control]
        if kind == 0:  # gone from everywhere, though acknowledged
            batch = rng.choice(plain[1:-1])
            for replica in REPLICAS:
                replicas[replica] = [each for each in replicas[replica] if each.base_offset != batch.base_offset]
        elif kind == 1:  # other bytes on one replica
            batch = next(each for each in replicas[victim] if not each.control and rng.random() < 0.2)
            batch.values[rng.randrange(len(batch.values))] += b"?"
        elif kind == 2:  # another epoch on one replica
            rng.choice(replicas[victim][:-1]).epoch += 1_000
            replicas[victim][-1].torn = replicas[victim][-1].torn
        elif kind == 3:  # torn on one replica
            rng.choice(replicas[victim][1:-1]).torn = True
        elif kind == 4:  # twice in the log
            batch, value = rng.choice(plain), rng.choice(rng.choice(plain).values)
            at = rng.randrange(len(batch.values))
            for replica in REPLICAS:
                for each in replicas[replica]:
                    if each.base_offset == batch.base_offset and at < len(each.values):
                        each.values[at] = value
        elif kind == 5:  # polled, and sent by nobody
            line: dict[str, Any] = {"process": "c3", "type": "ok", "f": "poll", "time_ns": 10**15 + number}
            scene.lines.append({**line, "records": {place: [[3, f"nobody/{number}"]]}})
        elif kind == 6:  # in the log and polled, though it failed
            sends = [each for each in scene.lines if each["f"] == "send" and each["type"] == "ok"]
            line = rng.choice(sends)
            line["type"] = "fail"
            del line["offset"]
        elif kind == 7:  # two sends of one producer change places
            batch = rng.choice([each for each in plain if len(each.values) > 1])
            one, other = rng.sample(range(len(batch.values)), 2)
            for replica in REPLICAS:
                for each in replicas[replica]:
                    if each.base_offset == batch.base_offset and len(each.values) == len(batch.values):
                        each.values[one], each.values[other] = each.values[other], each.values[one]
            places = {batch.values[one].decode(): other, batch.values[other].decode(): one}
            for line in scene.lines:
                if line["f"] == "send" and line.get("value") in places and "offset" in line:
                    line["offset"] = batch.base_offset + places[line["value"]]
        elif kind == 8 and number == 8:  # a replica lacks a whole range, more than a bucket
            first = scene.high_watermarks[partition] // 3
            last = first + 5_000
            replicas[victim] = [each for each in replicas[victim] if each.end <= first or each.base_offset >= last]
    return scene


def missing_tail(scene: Scene, partition: int, records: int) -> Scene:
    """All replicas are cut below what was acknowledged: what an unclean election leaves."""
    end = scene.high_watermarks[partition] - records
    for replica in REPLICAS:
        scene.logs[partition][replica] = [each for each in scene.logs[partition][replica] if each.end <= end]
    scene.high_watermarks[partition] = max(each.end for each in scene.logs[partition][REFERENCE])
    return scene


def brute(scene: Scene) -> dict[str, Counter[int]]:
    """Kind -> partition -> how many records or offsets."""
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for partition in scene.logs:
        held = {replica: scene.held(partition, replica) for replica in REPLICAS}
        _compare(scene, partition, held, found)
        for replica in REPLICAS:
            found["damaged"][partition] += sum(each.torn for each in scene.logs[partition][replica])
        _judge(scene.lines, partition, held[REFERENCE], found)
    return {kind: +counts for kind, counts in found.items() if +counts}


def _compare(
    scene: Scene,
    partition: int,
    held: Mapping[int, Mapping[int, tuple[int, bytes, bool]]],
    found: dict[str, Counter[int]],
) -> None:
    for offset in sorted(set().union(*held.values())):
        versions = {held[replica][offset][:2] for replica in REPLICAS if offset in held[replica]}
        if len(versions) > 1:
            found["divergent"][partition] += 1
    starts = {replica: min(held[replica]) for replica in REPLICAS}
    for offset in range(starts[REFERENCE], scene.high_watermarks[partition]):
        if any(offset not in held[replica] and offset >= starts[replica] for replica in REPLICAS):
            found["missing"][partition] += 1


def _is_promised(line: dict[str, Any]) -> bool:
    """With acks=all. Without it, a producer is not idempotent."""
    return line.get("acks") != 1


def _judge(
    lines: list[dict[str, Any]],
    partition: int,
    log: Mapping[int, tuple[int, bytes, bool]],
    found: dict[str, Counter[int]],
) -> None:
    place = f"{TOPIC}-{partition}"
    places: dict[str, list[int]] = defaultdict(list)
    for offset in sorted(log):
        _, stored, control = log[offset]
        if not control:
            places[stored.decode()].append(offset)
    sends: dict[str, list[dict[str, Any]]] = defaultdict(list)
    seen: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        if line["f"] == "send" and line["partition"] == place:
            sends[line["value"]].append(line)
        elif line["f"] == "poll":
            for offset, value in line["records"].get(place, ()):
                seen[value].add(offset)
    start = min(log)
    for value in {*sends, *seen}:
        types = {line["type"] for line in sends[value]}
        acknowledged = [line for line in sends[value] if line["type"] == "ok" and _is_promised(line)]
        if acknowledged and not places[value] and acknowledged[0]["offset"] >= start:
            found["lost-write"][partition] += 1
        if sends[value] and len(places[value]) > 1 and all(_is_promised(line) for line in sends[value]):
            found["duplicate"][partition] += 1
        if any(offset >= start for offset in seen[value] - set(places[value])):
            found["read-lost"][partition] += 1
        if seen[value] and not sends[value]:
            found["phantom"][partition] += 1
        if types == {"fail"} and seen[value]:
            found["G1a"][partition] += 1
        if types == {"fail"} and places[value]:
            found["failed-in-log"][partition] += 1
    by_process: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for value, reported in sends.items():
        for line in reported:
            if line["type"] == "ok" and _is_promised(line) and places.get(value):
                by_process[line["process"]].append((line["invoked_ns"], line["time_ns"], places[value][0]))
    for rows in by_process.values():
        rows.sort()
        # The producers of a scene do one thing at a time, so what was acknowledged before is what stands before.
        greatest = -1
        for _, _, offset in rows:
            found["reordered"][partition] += greatest > offset
            greatest = max(greatest, offset)
