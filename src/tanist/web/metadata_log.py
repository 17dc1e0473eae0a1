"""Following the metadata log of a cluster on this machine, from the folder of one of its nodes.

Owns the place in the file up to which it was read, and what to do when the log begins elsewhere: a snapshot and what
follows it. Only offsets that a node says to be committed are taken; a record that is replayed is never taken back, so
another node's log goes on where this one's was left. It changes nothing. A log that cannot be followed any further is
begun again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tanist.controller.image.image import ImageError
from tanist.log.names import LOG_SUFFIX, folder_name, offset_of
from tanist.web.metadata_view import MetadataView
from tanist.web.state import MetadataEvent
from tanist.wire.batch import HEADER, HEADER_BYTES, BatchHeader, crc_matches, decode_batch
from tanist.wire.control import decode_control_batch
from tanist.wire.errors import WireError
from tanist.wire.ids import METADATA_TOPIC
from tanist.wire.messages.leader_change_message import LeaderChangeMessage
from tanist.wire.metadata import decode_record

_WINDOW_BYTES: Final = 1 << 20
_BATCH_BYTES_MAX: Final = 64 << 20
_SHOWN_MAX: Final = 10_000
"""Records that far behind the end are replayed, and not shown as changes: a long log is read ten times faster."""


class MetadataLog:
    """One node's `__cluster_metadata-0`, read as it grows."""

    def __init__(self, directory: Path, fresh: Callable[[], MetadataView]) -> None:
        self.folder = directory / folder_name(METADATA_TOPIC, 0)
        self._fresh = fresh
        self.view = fresh()
        self._segment = -1
        self._position = 0

    def move(self, directory: Path) -> None:
        """Go on in another node's log: what is committed is the same in each."""
        self.folder = directory / folder_name(METADATA_TOPIC, 0)
        self._segment, self._position = -1, 0

    def end_offset(self) -> int:
        """The last offset of the log as it lies there, committed or not; -1 of an empty one."""
        segments = self._segments()
        if not segments:
            return -1
        end = segments[-1]
        with (self.folder / f"{end:020d}{LOG_SUFFIX}").open("rb") as file:
            for _, header, _ in _batches(file.fileno(), 0):
                end = header.next_offset
        return end - 1

    def follow(self, committed: int) -> bool:
        """Take what is new, up to and with the offset `committed`; whether anything was."""
        before = self.view.next_offset
        if before > committed:
            return False
        try:
            self._begin_if_needed()
            self._read(committed)
        except (ImageError, WireError, FileNotFoundError):
            # Behind a snapshot that replaced the log's beginning, or a file that was removed as it was read.
            self._restart()
            self._begin_if_needed()
            self._read(committed)
        return self.view.next_offset != before

    def _restart(self) -> None:
        self.view = self._fresh()
        self._segment, self._position = -1, 0

    def _segments(self) -> list[int]:
        with os.scandir(self.folder) as entries:
            return sorted(base for each in entries if (base := offset_of(each.name, LOG_SUFFIX)) is not None)

    def _begin_if_needed(self) -> None:
        segments = self._segments()
        if self._segment in segments and self._segment >= 0:
            return
        start = segments[0] if segments else 0
        if start > self.view.next_offset:
            self._restart()
            start = self._load_snapshot(start)
        else:
            start = max(start, self.view.next_offset)
        self._segment = max((base for base in segments if base <= start), default=start)
        self._position = 0

    def _load_snapshot(self, least: int) -> int:
        """The oldest snapshot that the log builds on: the more of the log is shown as changes. Gives its end."""
        from tanist.quorum.storage.snapshots import parse_name  # 2 MB, and few clusters have one

        names = [(name.snapshot_id, path) for path in self.folder.iterdir() if (name := parse_name(path.name))]
        usable = sorted((each.end_offset, path) for each, path in names if each.end_offset >= least and path.exists())
        whole = [(end, path) for end, path in usable if path.suffix == ".checkpoint"]
        if not whole:
            return least
        end, path = whole[0]
        with path.open("rb") as file:
            for _, header, batch in _batches(file.fileno(), 0):
                if not header.is_control:
                    for record in decode_batch(batch):
                        self.view.replay(end - 1, record.timestamp, decode_record(record.value or b""), quiet=True)
        self.view.next_offset = end
        return end

    def _read(self, committed: int) -> None:
        while True:
            path = self.folder / f"{self._segment:020d}{LOG_SUFFIX}"
            with path.open("rb") as file:
                for end, header, batch in _batches(file.fileno(), self._position):
                    if header.base_offset > committed:
                        return
                    self._take(header, batch, committed - _SHOWN_MAX)
                    self._position = end
            following = [base for base in self._segments() if base > self._segment]
            if not following or following[0] > self.view.next_offset:
                return
            self._segment, self._position = following[0], 0

    def _take(self, header: BatchHeader, batch: memoryview, shown_from: int) -> None:
        view = self.view
        if header.next_offset <= view.next_offset:
            return  # the snapshot has it
        if header.is_control:
            _, records = decode_control_batch(batch)
            for number, control in enumerate(records):
                if isinstance(control.message, LeaderChangeMessage):
                    text = f"controller {control.message.leader_id} leads the quorum in epoch {header.leader_epoch}"
                    offset = header.base_offset + number
                    view.note(MetadataEvent(offset, header.base_timestamp, "LeaderChangeMessage", text, weight=2))
            view.next_offset = max(view.next_offset, header.next_offset)
            return
        for record in decode_batch(batch):
            if record.offset >= view.next_offset:
                quiet = record.offset < shown_from
                view.replay(record.offset, record.timestamp, decode_record(record.value or b""), quiet=quiet)


def _batches(descriptor: int, position: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Whole batches from a position on: where each ends, its header, its bytes. Ends at what is not whole yet."""
    window, base = b"", position
    while True:
        at = position - base
        if len(window) - at < HEADER_BYTES:
            window, base = os.pread(descriptor, _WINDOW_BYTES, position), position
            at = 0
            if len(window) < HEADER_BYTES:
                return
        header = BatchHeader(*HEADER.unpack_from(window, at))
        size = header.size_bytes
        if size < HEADER_BYTES or size > _BATCH_BYTES_MAX:
            return
        if len(window) - at < size:
            window, base = os.pread(descriptor, max(size, _WINDOW_BYTES), position), position
            at = 0
            if len(window) < size:
                return
        batch = memoryview(window)[at : at + size]
        if not crc_matches(batch, 0, size):
            return
        position += size
        yield position, header, batch
