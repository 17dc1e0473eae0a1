"""What Apache Kafka's `kafka-dump-log` says of a file, and above all what it complains of.

Mostly the tool ends with 0 whatever it finds. So every line it prints must be one of the shapes known here; any other,
and any batch that is not `isvalid: true`, is a complaint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.interop import apache

_BATCH = re.compile(
    r"baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: (?P<count>\d+) baseSequence: (?P<sequence>-?\d+) .*"
    r"producerId: (?P<producer>-?\d+) .*partitionLeaderEpoch: (?P<epoch>-?\d+) .*isControl: (?P<control>\w+) .*"
    r"position: (?P<position>\d+) .*size: (?P<size>\d+) magic: 2 compresscodec: (?P<codec>\w+) crc: \d+ isvalid: true"
)
_RECORD = re.compile(r"\| offset: (?P<offset>\d+) .*?(?:payload: (?P<payload>.*))?")
_INDEX_ENTRY = re.compile(r"offset: (?P<offset>\d+) position: (?P<position>\d+)")
_TIME_INDEX_ENTRY = re.compile(r"timestamp: (?P<timestamp>-?\d+) offset: (?P<offset>\d+)")
_PRODUCER = re.compile(
    r"producerId: (?P<producer>\d+) producerEpoch: (?P<epoch>\d+) .*firstSequence: (?P<first>-?\d+) "
    r"lastSequence: (?P<last>-?\d+) lastOffset: (?P<offset>-?\d+) .*"
)
_DECODED = re.compile(
    r"\| offset: \d+ .*?"
    r"(?: key: (?P<key>\{.*\}) payload: (?P<payload>\{.*\}|<DELETE>)| endTxnMarker: (?P<marker>\w+) .*)"
)
_WRITER = re.compile(
    r"baseOffset: .* producerId: (?P<producer>-?\d+) .* isTransactional: (?P<transactional>true|false) .*"
)
_HARMLESS = re.compile(
    r"Log starting offset: \d+|Snapshot end offset: \d+, epoch: \d+|KRaft bootstrap snapshot"
    r"|.* is empty\.|.* passed sanity check\."
)


@dataclass(slots=True)
class DumpedFile:
    """One file, as the tool tells it."""

    path: Path
    batches: list[dict[str, str]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)
    index: list[tuple[int, int]] = field(default_factory=list)
    time_index: list[tuple[int, int]] = field(default_factory=list)
    producers: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A record of a coordinator's log, by a decoder of the tool; or a marker, which has neither key nor value."""

    producer_id: int
    transactional: bool
    key: Any
    value: Any
    """None for a tombstone."""
    marker: str | None = None
    """COMMIT or ABORT."""


@dataclass(slots=True)
class Dump:
    """The files of one run of the tool, by name, and its complaints."""

    files: dict[Path, DumpedFile] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def metadata_records(self) -> Iterator[dict[str, Any]]:
        """All metadata records, as `{"type", "version", "data"}`."""
        for file in self.files.values():
            yield from file.metadata


def dump(files: Iterable[Path], *flags: str) -> Dump:
    """Run the tool over files of a log; deep, so that it opens every batch."""
    named = ",".join(str(file) for file in files)
    output = apache.try_tool(apache.DUMP_LOG, "--files", named, "--deep-iteration", *flags)
    result = Dump()
    if output.returncode != 0:
        result.complaints.append(f"exit code {output.returncode}")
    result.complaints.extend(line for line in output.stderr.splitlines() if line.strip())
    current: DumpedFile | None = None
    for line in output.stdout.splitlines():
        if line.startswith("Dumping "):
            current = DumpedFile(Path(line.removeprefix("Dumping ")))
            result.files[current.path] = current
        elif current is None or not _read_line(current, line):
            result.complaints.append(line)
    _drop_first_record_quirk(result)
    return result


def decoded(logs: Iterable[Path], decoder: str) -> list[Decoded]:
    """The records of coordinators' logs, by `--offsets-decoder` or `--transaction-log-decoder`, which must know all."""
    lines = apache.tool(apache.DUMP_LOG, decoder, "--files", ",".join(map(str, logs))).stdout.splitlines()
    found: list[Decoded] = []
    writer, transactional = -1, False
    for line in lines:
        if batch := _WRITER.fullmatch(line):
            writer, transactional = int(batch["producer"]), batch["transactional"] == "true"
        elif line.startswith("| offset: "):
            record = _DECODED.fullmatch(line)
            assert record is not None, line
            if record["marker"] is not None:
                found.append(Decoded(writer, transactional, None, None, record["marker"]))
            else:
                value = None if record["payload"] == "<DELETE>" else json.loads(record["payload"])
                found.append(Decoded(writer, transactional, json.loads(record["key"]), value))
    return found


def _read_line(file: DumpedFile, line: str) -> bool:
    """Take in one line; false when it is none of the shapes that a sound file gives."""
    if found := _BATCH.fullmatch(line):
        file.batches.append(found.groupdict())
    elif found := _RECORD.fullmatch(line):
        file.offsets.append(int(found["offset"]))
        if found["payload"] is not None:
            file.metadata.append(json.loads(found["payload"]))
    elif found := _INDEX_ENTRY.fullmatch(line):
        file.index.append((int(found["offset"]), int(found["position"])))
    elif found := _TIME_INDEX_ENTRY.fullmatch(line):
        file.time_index.append((int(found["timestamp"]), int(found["offset"])))
    elif found := _PRODUCER.fullmatch(line):
        file.producers.append(found.groupdict())
    else:
        return bool(_HARMLESS.fullmatch(line))
    return True


def _drop_first_record_quirk(result: Dump) -> None:
    """The deep iteration counts from -1 in every segment, and so finds each but the first to start with a gap."""
    kept: list[str] = []
    lines = iter(result.complaints)
    for line in lines:
        if line.startswith("Non-consecutive offsets in "):
            path = Path(line.removeprefix("Non-consecutive offsets in "))
            gap = next(lines, "")
            if gap.strip() == f"-1 is followed by {int(path.stem)}":
                continue
            kept += [line, gap]
        else:
            kept.append(line)
    result.complaints[:] = kept


def log_files(folder: Path) -> list[Path]:
    """Segments, indexes and producer snapshots of a partition's folder, in order."""
    suffixes = (".log", ".index", ".timeindex", ".snapshot")
    return sorted(file for file in folder.iterdir() if file.suffix in suffixes)
