"""The quarantine of one log directory: it keeps dropped records for a while.

Owns the files. Records are *copied* before they are dropped, segment by segment, and synced; then the manifest is
written and synced, and the entry gets its name. So a crash at any moment leaves the original, or a whole entry, or
both: an entry without a sound manifest is thrown away at the next start, one that lacks only its name gets it. The
quarantine has a bound in bytes and in time; its oldest entries go first.

Saving is a generator of steps (`CopyStep`, `SyncStep`), because it must not block the loop: `save` runs them off the
loop, one after the other; `save_now` runs them at the start, before there is a loop. Files are opened and closed
between the steps, on the loop. The quarantine does not decide about truncation, and knows nothing of retention,
deletion or reassignment: records that leave a log by those are not saved.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from tanist.log.names import LOG_SUFFIX, offset_file, offset_of
from tanist.log.salvage.manifest import (
    MANIFEST,
    QUARANTINE,
    REMOVED_SUFFIX,
    UNFINISHED_SUFFIX,
    Manifest,
    ManifestError,
    SalvageReason,
    SavedFile,
    Unsaved,
    entry_id,
    is_entry_id,
)
from tanist.log.scan import DamagedBatch, scan_headers
from tanist.ports import Disk, File, FileRange
from tanist.wire.crc import crc32c

RETENTION_BYTES: Final = "tanist.salvage.retention.bytes"
RETENTION_MS: Final = "tanist.salvage.retention.ms"
_CHUNK_BYTES: Final = 1 << 20
_README: Final = "README.txt"
_ABOUT: Final = b"""Records that replicas on this disk have dropped: cut off behind a leader that did not have them, or
behind damage. Each folder is one cut; its manifest.json says what and why. They are removed after
tanist.salvage.retention.ms, or earlier when there are more than tanist.salvage.retention.bytes.

    tanist salvage list
    tanist salvage export --to topic    puts back into a topic what it lacks
"""


class QuarantineTooSmall(Exception):
    """Not one batch of what was to be saved fits into the quarantine."""


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """Bytes of one segment, from a batch's beginning to the end."""

    path: str
    base_offset: int
    """The first offset that can be in it."""
    position: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RecordsToSave:
    """Records that are about to be dropped, and why. -1: not known."""

    topic: str
    topic_id: UUID
    partition: int
    why: SalvageReason
    leader_epoch: int
    high_watermark: int
    from_offset: int
    to_offset: int
    epochs: tuple[tuple[int, int], ...]
    slices: tuple[SegmentSlice, ...]

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.slices)


@dataclass(frozen=True, slots=True)
class CopyStep:
    """A step to run off the loop."""

    job: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class SyncStep:
    """A step: make the file durable."""

    file: File


T = TypeVar("T")
Steps: TypeAlias = Generator[CopyStep | SyncStep, Any, T]


@dataclass(frozen=True, slots=True)
class Removed:
    """An entry that a bound has pushed out."""

    manifest: Manifest
    setting: str
    """The bound."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """An entry that a crash had interrupted: it was `complete` but for its name, or is removed."""

    entry_id: str
    complete: bool


class Quarantine:
    """The salvage folder of the log directory `log_dir`. `numbers` makes ids unique within this run of the broker."""

    def __init__(self, disk: Disk, log_dir: str, broker_id: int, numbers: Iterator[int]) -> None:
        self._disk = disk
        self.path = f"{log_dir}/{QUARANTINE}"
        self._broker_id = broker_id
        self._numbers = numbers
        self._abandoned = False

    # -- saving

    def save(
        self, records: RecordsToSave, wall_ms: int, bytes_max: int, done: Callable[[Manifest | Exception], None]
    ) -> None:
        """Save off the loop; then call `done` with the entry, or with the exception (perhaps at once)."""
        _Saving(self._disk, self._steps(records, wall_ms, bytes_max), done).go_on(None)

    def save_now(self, records: RecordsToSave, wall_ms: int, bytes_max: int) -> Manifest:
        """Save before returning, at a start. `OSError`, or `QuarantineTooSmall`."""
        steps = self._steps(records, wall_ms, bytes_max)
        result: Any = None
        try:
            while True:
                step = steps.send(result)
                try:
                    if isinstance(step, CopyStep):
                        result = step.job()
                    else:
                        self._disk.sync_now(step.file)
                except OSError as failure:
                    steps.throw(failure)
        except StopIteration as end:
            manifest: Manifest = end.value
            return manifest

    def abandon(self) -> None:
        """The node stops: give up the present copy, because a large one would delay the stop."""
        self._abandoned = True

    def _steps(self, records: RecordsToSave, wall_ms: int, bytes_max: int) -> Steps[Manifest]:
        disk = self._disk
        slices, unsaved = yield from self._within(records, bytes_max)
        self._make_root()
        name, folder = self._new_entry(wall_ms)
        try:
            saved: list[SavedFile] = []
            for part in slices:
                saved.append((yield from self._save_slice(folder, part)))
            manifest = Manifest(
                name,
                self._broker_id,
                records.topic,
                records.topic_id,
                records.partition,
                records.why,
                wall_ms,
                records.leader_epoch,
                records.high_watermark,
                records.from_offset if unsaved is None else unsaved.to_offset,
                records.to_offset,
                records.epochs,
                tuple(saved),
                unsaved,
            )
            file = disk.open(f"{folder}/{MANIFEST}")
            try:
                file.write(0, [manifest.encode()])
                yield SyncStep(file)
            finally:
                file.close()
            # Not synced: an entry that is complete but for its name is recognised (`tidy`).
            disk.rename(folder, f"{self.path}/{name}")
        except Exception:  # any at all: a failed copy in another thread is raised here too; the cause goes on
            disk.remove(folder)
            raise
        return manifest

    def _save_slice(self, folder: str, part: SegmentSlice) -> Steps[SavedFile]:
        name = offset_file(part.base_offset, LOG_SUFFIX)
        source = self._disk.open(part.path, create=False)
        try:
            target = self._disk.open(f"{folder}/{name}")
            try:
                crc = yield CopyStep(partial(self._copy, source, part, target))
                yield SyncStep(target)
            finally:
                target.close()
        finally:
            source.close()
        return SavedFile(name, part.size_bytes, crc)

    def _copy(self, source: File, part: SegmentSlice, target: File) -> int:
        """Copy the slice; its CRC-32C. In a thread."""
        crc = copied = 0
        while copied < part.size_bytes:
            if self._abandoned:
                raise OSError("the node is stopping")
            chunk = source.read(part.position + copied, min(_CHUNK_BYTES, part.size_bytes - copied))
            if not chunk:
                raise OSError(f"{part.path} ends {part.size_bytes - copied} bytes too early")
            target.write(copied, [chunk])
            crc = crc32c(chunk, crc)
            copied += len(chunk)
        return crc

    def _within(self, records: RecordsToSave, bytes_max: int) -> Steps[tuple[list[SegmentSlice], Unsaved | None]]:
        """The newest batches that fit, and the rest: other replicas are least likely to have the end of a log."""
        if bytes_max < 0 or records.size_bytes <= bytes_max:
            return list(records.slices), None
        bytes_left = bytes_max
        kept: list[SegmentSlice] = []
        for part in reversed(records.slices):
            if part.size_bytes > bytes_left:
                source = self._disk.open(part.path, create=False)
                try:
                    rest: SegmentSlice | None = yield CopyStep(partial(_end_of, source, part, bytes_left))
                finally:
                    source.close()
                if rest is not None:
                    kept.append(rest)
                break
            kept.append(part)
            bytes_left -= part.size_bytes
        if not kept:
            raise QuarantineTooSmall(f"{records.size_bytes} bytes, and not a batch of them fits into {bytes_max}")
        kept.reverse()
        left_out = records.size_bytes - sum(part.size_bytes for part in kept)
        return kept, Unsaved(records.from_offset, kept[0].base_offset, left_out)

    def _new_entry(self, wall_ms: int) -> tuple[str, str]:
        while True:
            name = entry_id(wall_ms, self._broker_id, next(self._numbers))
            folder = f"{self.path}/{name}{UNFINISHED_SUFFIX}"
            if not self._disk.exists(folder) and not self._disk.exists(f"{self.path}/{name}"):
                self._disk.make_directory(folder)
                return name, folder

    def _make_root(self) -> None:
        """The folder, durably: a sync of a new file also makes its folder's name durable."""
        readme = f"{self.path}/{_README}"
        if self._disk.exists(readme):
            return
        self._disk.make_directory(self.path)
        file = self._disk.open(readme)
        try:
            file.write(0, [_ABOUT])
            self._disk.sync_now(file)
        finally:
            file.close()

    # -- what there is

    def tidy(self) -> list[Tidied]:
        """At a start: finish or undo what a crash has interrupted."""
        done = []
        for name in self._names():
            path = f"{self.path}/{name}"
            entry = name.removesuffix(UNFINISHED_SUFFIX)
            if entry != name and is_entry_id(entry):
                if self._is_complete(path, entry) and not self._disk.exists(f"{self.path}/{entry}"):
                    self._disk.rename(path, f"{self.path}/{entry}")
                    done.append(Tidied(entry, complete=True))
                else:
                    self._disk.remove(path)
                    done.append(Tidied(entry, complete=False))
            elif name.endswith(REMOVED_SUFFIX) and is_entry_id(name.removesuffix(REMOVED_SUFFIX)):
                self._disk.remove(path)
        return done

    def _is_complete(self, folder: str, entry: str) -> bool:
        try:
            manifest = self._read(folder)
            if manifest.entry_id != entry:
                return False
            for saved in manifest.files:
                file = self._disk.open(f"{folder}/{saved.name}", create=False)
                try:
                    if file.size != saved.size_bytes:
                        return False
                finally:
                    file.close()
        except (FileNotFoundError, ManifestError):
            return False
        return True

    def entries(self) -> list[Manifest]:
        """All entries, the oldest first. One whose manifest cannot be read is left out, and left where it is."""
        found = []
        for name in self._names():
            if is_entry_id(name):
                try:
                    found.append(self._read(f"{self.path}/{name}"))
                except (FileNotFoundError, ManifestError):
                    continue
        return sorted(found, key=lambda manifest: (manifest.wall_ms, manifest.entry_id))

    def _read(self, folder: str) -> Manifest:
        path = f"{folder}/{MANIFEST}"
        return Manifest.decode(self._disk.read_file(path), path)

    def _names(self) -> list[str]:
        return self._disk.list(self.path) if self._disk.exists(self.path) else []

    # -- its bounds

    def enforce(self, bytes_max: int, age_ms_max: int, wall_ms: int) -> list[Removed]:
        """Remove what is too old, then the oldest until no more than `bytes_max` are left. To be run off the loop."""
        removed = []
        entries = self.entries()
        total = sum(entry.size_bytes for entry in entries)
        for entry in entries:
            if 0 <= age_ms_max < wall_ms - entry.wall_ms:
                setting = RETENTION_MS
            elif 0 <= bytes_max < total:
                setting = RETENTION_BYTES
            else:
                continue
            self.remove(entry.entry_id)
            total -= entry.size_bytes
            removed.append(Removed(entry, setting))
        return removed

    def remove(self, entry: str) -> None:
        """Remove an entry: renamed first, so that a crash leaves it whole or not at all."""
        removed = f"{self.path}/{entry}{REMOVED_SUFFIX}"
        self._disk.rename(f"{self.path}/{entry}", removed)
        self._disk.remove(removed)


class _Saving:
    """A saving that is under way."""

    def __init__(self, disk: Disk, steps: Steps[Manifest], done: Callable[[Manifest | Exception], None]) -> None:
        self._disk = disk
        self._steps = steps
        self._done = done

    def go_on(self, result: Any) -> None:
        """The last step has given `result`, or raised it: take the next."""
        try:
            if isinstance(result, BaseException):
                step = self._steps.throw(result)
            else:
                step = self._steps.send(result)
        except StopIteration as end:
            self._done(end.value)
        except Exception as failure:  # any exception: a follower waits for the result
            self._done(failure)
        else:
            if isinstance(step, CopyStep):
                self._disk.run(step.job, self.go_on)
            else:
                self._disk.sync([step.file], self.go_on)


def slices_of(ranges: Iterable[FileRange], from_offset: int) -> tuple[SegmentSlice, ...]:
    """The parts of segments that a log hands out before it drops them."""
    slices = []
    for each in ranges:
        base_offset = offset_of(each.file.path.rpartition("/")[2], LOG_SUFFIX)
        if base_offset is None:
            raise ValueError(f"{each.file.path} is not a segment")
        slices.append(SegmentSlice(each.file.path, max(base_offset, from_offset), each.offset, each.length))
    return tuple(slices)


def _copy(source: File, part: SegmentSlice, target: File) -> int:
    """Copy the slice; its CRC-32C. In a thread."""
    crc = copied = 0
    while copied < part.size_bytes:
        chunk = source.read(part.position + copied, min(_CHUNK_BYTES, part.size_bytes - copied))
        if not chunk:
            raise OSError(f"{part.path} ends {part.size_bytes - copied} bytes too early")
        target.write(copied, [chunk])
        crc = crc32c(chunk, crc)
        copied += len(chunk)
    return crc


def _end_of(source: File, part: SegmentSlice, bytes_max: int) -> SegmentSlice | None:
    """The batches at the slice's end that fit into `bytes_max`; None if none does. In a thread."""
    end = part.position + part.size_bytes
    try:
        for position, header in scan_headers(source, part.position, end):
            if end - position <= bytes_max:
                return SegmentSlice(part.path, header.base_offset, position, end - position)
    except DamagedBatch:
        pass
    return None
