"""The ledger of a producer: a file of JSON lines with each record that was acknowledged, in that order.

Owns the file, written by `tanist produce --ledger` and read by `tanist account`. A line is a record in the form of
`record_json`, so what `tanist consume --format json` prints is a ledger as well: of what was there then. Two producers
write two ledgers: the order of lines counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.record_json import NotARecord, line_of, read_object, read_record, record_json
from tanist.wire.batch import NewRecord, Record

Digest = bytes
Note = Callable[[str, int, int, Sequence[NewRecord]], None]
"""Topic, partition, the first offset (-1: not known), records."""

NOT_KNOWN = -1


class LedgerError(Exception):
    """A ledger that cannot be read or written; the text says why."""


class Acknowledged(NamedTuple):
    """A record of a ledger."""

    offset: int
    """-1 where the broker did not say."""
    key: bytes | None
    digest: Digest


@contextmanager
def ledger(path: Path | None) -> Iterator[Note]:
    """A function that adds acknowledged records to the file; one that does nothing, if there is no path."""
    if path is None:
        yield lambda *_: None
        return
    try:
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"cannot write the ledger {path}: {error.strerror}") from None
    with file:

        def note(topic: str, partition: int, offset: int, records: Sequence[NewRecord]) -> None:
            known = offset >= 0
            lines = (
                line_of(record_json(topic, partition, offset + index if known else None, record))
                for index, record in enumerate(records)
            )
            try:
                file.write("".join(lines))
                file.flush()
            except OSError as error:
                raise LedgerError(f"cannot write the ledger {path}: {error.strerror}") from None

        yield note


def read_ledger(path: Path) -> dict[TopicPartition, list[Acknowledged]]:
    """A ledger's records of each partition, in the order of acknowledgement. `LedgerError` if a line is no record."""
    found: dict[TopicPartition, list[Acknowledged]] = {}
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    entry = read_object(line)
                    topic, partition, offset = entry.get("topic"), entry.get("partition"), entry.get("offset")
                    if not isinstance(topic, str) or not isinstance(partition, int):
                        raise NotARecord("it has no topic and partition")
                    record = read_record(entry, 0)
                except NotARecord as error:
                    if not line.endswith(b"\n"):
                        continue  # its producer was killed while it wrote: this one was not acknowledged
                    raise LedgerError(f"{path}, line {number}: {error}") from None
                noted = Acknowledged(offset if isinstance(offset, int) else NOT_KNOWN, record.key, digest_of(record))
                found.setdefault((topic, partition), []).append(noted)
    except OSError as error:
        raise LedgerError(f"cannot read the ledger {path}: {error.strerror}") from None
    return found


def digest_of(record: Record | NewRecord) -> Digest:
    """Of key, value and headers."""
    digest = blake2b(digest_size=16)
    parts = [record.key, record.value]
    for name, value in record.headers:
        parts += [name.encode(), value]
    for part in parts:
        digest.update(b"\0" if part is None else b"\1" + len(part).to_bytes(8, "big") + part)
    return digest.digest()
