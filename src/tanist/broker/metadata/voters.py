"""The quorum's voters as the metadata log names them (KIP-853, `kraft.version` 1).

We keep the set as it is found at start: adding and removing voters is not supported. This is for folders that Apache
Kafka has formatted without `controller.quorum.voters`, such as its quick start does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tanist.ports import Disk
from tanist.quorum.log import MetadataLog
from tanist.quorum.snapshots import parse_name
from tanist.quorum.voters import Voter
from tanist.wire.batch import iterate_headers
from tanist.wire.control import VotersRecord, decode_control_batch

_READ_BYTES = 1 << 20


def voters_in_log(disk: Disk, log: MetadataLog, folder: str, listener_names: Iterable[str]) -> tuple[Voter, ...]:
    """The latest set of voters in the newest snapshot and the log after it; empty if there is none.

    Of a voter's endpoints the first counts whose name is among `listener_names`.
    """
    names = tuple(listener_names)
    latest: VotersRecord | None = None
    for view in _batches(disk, log, folder):
        for position, header in iterate_headers(view):
            if header.is_control:
                batch = view[position : position + header.size_bytes]
                for record in decode_control_batch(batch)[1]:
                    if isinstance(record.message, VotersRecord):
                        latest = record.message
    found: list[Voter] = []
    for voter in latest.voters if latest is not None else ():
        by_name = {endpoint.name: endpoint for endpoint in voter.endpoints}
        endpoint = next((by_name[name] for name in names if name in by_name), None)
        if endpoint is not None:
            found.append(Voter(voter.voter_id, voter.voter_directory_id, endpoint.host, endpoint.port))
    return tuple(found)


def _batches(disk: Disk, log: MetadataLog, folder: str) -> Iterator[memoryview]:
    """Snapshots in the order of their offsets (Kafka's bootstrap one, 0-0, first), then the log."""
    snapshots = []
    for name in disk.list(folder):
        parsed = parse_name(name)
        if parsed is not None and parsed.whole:
            snapshots.append((parsed.snapshot_id, name))
    for _, name in sorted(snapshots):
        yield memoryview(disk.read_file(f"{folder}/{name}"))
    offset = log.start_offset
    while offset < log.end_offset:
        piece = log.log.read(offset, _READ_BYTES, log.end_offset)
        if piece is None:
            return
        view = memoryview(piece.chunk.file.read(piece.chunk.offset, piece.chunk.length))
        yield view
        for _, header in iterate_headers(view):
            offset = max(offset, header.next_offset)
