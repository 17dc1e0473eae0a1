"""A host's file system: its present content, and the content that a loss of power would leave.

Owns the tree of folders and files in two states: as processes see it (the page cache), and as it is on the disk. The
way from one to the other follows journalled file systems (ext4, xfs, btrfs):

* Names and truncations go through a journal, in order: a loss of power keeps a prefix of it. The journal is written
  every five seconds, or when a sync asks for it: either all of it up to now (ext4, xfs), or only the entries of the
  synced file (btrfs). Which of the two is drawn for each host.
* Written data reaches the disk in any order, sector by sector, a sector as it was at some time; the size follows. It is
  surely there when a sync that began after the write has ended, or after half a minute.
* A small file that was replaced without a sync may be empty: its name was written, its content was not.
* If a truncation is undone, later writes behind it can only be in the page in which it cut.

A crash of the process alone loses nothing. This module knows no paths, no processes, and no time except `now_us`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

SECTOR_BYTES = 512
PAGE_BYTES = 4096
JOURNAL_US = 5_000_000
WRITE_BACK_US = 30_000_000
UNSYNCED_BYTES_MAX = 4 << 20
"""More than this of one file is written back early."""


class Folder:
    """A folder: names as processes see them, and as they are on the disk."""

    __slots__ = ("durable", "entries", "name", "parent")

    def __init__(self, parent: Folder | None, name: str) -> None:
        self.parent = parent
        self.name = name
        self.entries: dict[str, Folder | Inode] = {}
        self.durable: dict[str, Folder | Inode] = {}


class Entry:
    """One entry of the journal: names that change together, or the truncation of a file."""

    __slots__ = ("at_us", "committed", "names", "truncated")

    def __init__(
        self, at_us: int, names: list[tuple[Folder, str, Folder | Inode | None]], truncated: Inode | None = None
    ) -> None:
        self.at_us = at_us
        self.names = names
        self.truncated = truncated
        self.committed = False


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes that were written to a file."""

    at_us: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """A truncation, or an extension by zeros."""

    at_us: int
    size: int
    entry: Entry


def _one_of_four(content: bytearray, rng: random.Random) -> bool:
    """True for one of four. Nothing is drawn, so that the rest of a seed has the same story."""
    state: tuple[int, ...] = rng.getstate()[1]
    return (crc32(content) ^ state[0]) % 4 == 0


class Inode:
    """A file: its content in the page cache and on the disk, and the changes in between."""

    __slots__ = (
        "changes",
        "data",
        "durable",
        "durable_changes",
        "name",
        "parent",
        "synced_bytes",
        "unsynced_bytes",
        "vouched",
        "whole_since_us",
    )

    def __init__(self, data: bytes = b"") -> None:
        self.parent: Folder | None = None
        self.name = ""
        self.data = bytearray(data)
        self.durable = bytearray(data)
        self.changes: deque[Written | Cut] = deque()
        """In order, since `durable`."""
        self.durable_changes = 0
        """Number of changes in `durable` since the file exists; `changes` begins after them."""
        self.unsynced_bytes = 0
        self.vouched = 0
        """The mark of the latest sync that was reported as done."""
        self.synced_bytes = 0
        """Length of the prefix that is unchanged since it was synced: the process may rely on it."""
        self.whole_since_us: int | None = None
        """When it was written whole and took another file's name, without a sync."""

    @property
    def mark(self) -> int:
        """For `write_through`: all changes up to now."""
        return self.durable_changes + len(self.changes)

    def write(self, offset: int, data: bytes, now_us: int) -> None:
        _put(self.data, offset, data)
        self.changes.append(Written(now_us, offset, data))
        self.unsynced_bytes += len(data)
        if offset < self.synced_bytes:
            self.synced_bytes = offset

    def cut(self, size: int, entry: Entry) -> None:
        _cut(self.data, size)
        self.changes.append(Cut(entry.at_us, size, entry))
        if size < self.synced_bytes:
            self.synced_bytes = size

    def write_through(self, mark: int) -> None:
        """The changes up to `mark` are on the disk."""
        while self.durable_changes < mark:
            change = self.changes.popleft()
            self.durable_changes += 1
            if isinstance(change, Cut):
                _cut(self.durable, change.size)
            else:
                _put(self.durable, change.offset, change.data)
                self.unsynced_bytes -= len(change.data)

    def vouch(self, mark: int, size: int) -> None:
        """A sync that began at `mark`, with `size` bytes, was reported as done; later changes do not count."""
        if mark < self.vouched:
            return  # a later sync has ended before this one
        self.vouched = mark
        for number, change in enumerate(self.changes, self.durable_changes):
            if number >= mark:
                size = min(size, change.size if isinstance(change, Cut) else change.offset)
        self.synced_bytes = size

    def write_back(self, now_us: int) -> None:
        """The kernel's own writeback: old changes go to the disk. The process does not learn of it."""
        changes = self.changes
        while changes:
            oldest = changes[0]
            if oldest.at_us > now_us - WRITE_BACK_US and self.unsynced_bytes <= UNSYNCED_BYTES_MAX:
                return
            if isinstance(oldest, Cut) and not oldest.entry.committed:
                return
            self.write_through(self.durable_changes + 1)

    def lose_power(self, rng: random.Random, now_us: int) -> None:
        """Keep those changes that may have reached the disk."""
        since_us, self.whole_since_us = self.whole_since_us, None
        if since_us is not None and since_us > now_us - WRITE_BACK_US and _one_of_four(self.durable, rng):
            self.durable.clear()  # its name came through, its content did not
        fate = rng.random()
        last = len(self.changes)
        if fate < 0.3:
            last = -1  # nothing
        elif fate < 0.6:
            last = rng.randint(0, last)  # a prefix, torn
        scattered = fate >= 0.8
        cache, disk = bytearray(self.durable), bytearray(self.durable)
        within: tuple[int, int] | None = None
        for number, change in enumerate(self.changes):
            if isinstance(change, Cut):
                if within is None and change.entry.committed:
                    _cut(disk, change.size)
                elif within is None:
                    start = change.size - change.size % PAGE_BYTES
                    within = (start, min(start + PAGE_BYTES, len(disk)))
                _cut(cache, change.size)
                continue
            _put(cache, change.offset, change.data)
            if number > last:
                continue
            end = change.offset + len(change.data)
            for sector in range(change.offset - change.offset % SECTOR_BYTES, end, SECTOR_BYTES):
                if scattered and rng.random() < 0.4:
                    continue
                if number == last and rng.random() < 0.5:
                    break
                piece = cache[sector : sector + SECTOR_BYTES]
                if within is not None:
                    if not within[0] <= sector < within[1]:
                        continue
                    piece = piece[: within[1] - sector]
                _put(disk, sector, piece)
        if within is None and len(cache) > len(disk) and rng.random() < 0.1:
            _cut(disk, len(cache))  # the size came through, the data did not
        self.data, self.durable = disk, bytearray(disk)
        self.durable_changes += len(self.changes)
        self.changes.clear()
        self.unsynced_bytes = 0
        self.synced_bytes = len(disk)


class PageCache:
    """The file system of one host."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.syncs_all = rng.random() < 0.5
        """A sync writes the whole journal; else only the entries of its file."""
        self.root = Folder(None, "")
        self._journal: deque[Entry] = deque()

    # -- changes

    def change_names(self, now_us: int, *names: tuple[Folder, str, Folder | Inode | None]) -> Entry:
        """Names that appear (with their targets) and disappear (None), all at once."""
        for folder, name, node in names:
            if node is None:
                gone = folder.entries.pop(name)
                if gone.parent is folder and gone.name == name:
                    gone.parent = None
            else:
                folder.entries[name] = node
                node.parent, node.name = folder, name
        return self._enter(Entry(now_us, list(names)))

    def truncate(self, inode: Inode, size: int, now_us: int) -> None:
        inode.cut(size, self._enter(Entry(now_us, [], inode)))

    def _enter(self, entry: Entry) -> Entry:
        journal = self._journal
        journal.append(entry)
        while journal and (journal[0].committed or journal[0].at_us <= entry.at_us - JOURNAL_US):
            self._commit(journal.popleft())
        return entry

    # -- durability

    def commit_file(self, inode: Inode) -> None:
        """A sync of the file: its name, those of the folders it is in, and its truncations are on the disk."""
        chain: set[Folder | Inode] = {inode}  # only for membership: its order is random
        folder = inode.parent
        while folder is not None:
            chain.add(folder)
            folder = folder.parent

        def concerned(entry: Entry) -> bool:
            return entry.truncated is inode or any(node in chain for _, _, node in entry.names)

        self._commit_where(concerned)

    def commit_folder(self, folder: Folder) -> None:
        """A sync of the folder: all names in it, its own, and those of the folders it is in."""
        chain: set[Folder | Inode] = {folder}
        above = folder.parent
        while above is not None:
            chain.add(above)
            above = above.parent

        def concerned(entry: Entry) -> bool:
            return any(where is folder or node in chain for where, _, node in entry.names)

        self._commit_where(concerned)

    def commit_names(self) -> None:
        """All names, of all folders."""
        self._commit_where(lambda entry: bool(entry.names))

    def take_out(self, folder: Folder) -> None:
        """The folder is gone, from the page cache and from the disk. All names must be committed."""
        if folder.parent is None:
            raise ValueError("a disk has a root")
        folder.parent.entries.pop(folder.name)
        folder.parent.durable.pop(folder.name, None)

    def lose_power(self, now_us: int) -> None:
        """Keep the content of the disk, and the prefix of the journal that reached it in time."""
        journal = self._journal
        waiting = [entry for entry in journal if not entry.committed]
        fate = self._rng.random()
        kept = 0 if fate < 0.3 else len(waiting) if fate < 0.6 else self._rng.randint(0, len(waiting))
        for number, entry in enumerate(waiting):
            if number < kept or entry.at_us <= now_us - JOURNAL_US:
                self._commit(entry)
        journal.clear()
        self._restore(self.root, now_us)

    def _restore(self, folder: Folder, now_us: int) -> None:
        folder.entries = dict(sorted(folder.durable.items()))
        for name, node in folder.entries.items():
            node.parent, node.name = folder, name
            if isinstance(node, Folder):
                self._restore(node, now_us)
            else:
                node.lose_power(self._rng, now_us)
        folder.durable = dict(folder.entries)

    def _commit_where(self, concerned: Callable[[Entry], bool]) -> None:
        journal = self._journal
        if self.syncs_all:
            for entry in journal:
                self._commit(entry)
            journal.clear()
            return
        # Earlier changes to the same names are on the disk as well.
        names: set[tuple[Folder, str]] = set()
        wanted: list[Entry] = []
        for entry in reversed(journal):
            if not entry.committed and (
                concerned(entry) or any((folder, name) in names for folder, name, _ in entry.names)
            ):
                wanted.append(entry)
                names.update((folder, name) for folder, name, _ in entry.names)
        for entry in reversed(wanted):
            self._commit(entry)

    def _commit(self, entry: Entry) -> None:
        if entry.committed:
            return
        entry.committed = True
        for folder, name, node in entry.names:
            if node is None:
                folder.durable.pop(name, None)
            else:
                folder.durable[name] = node


def _put(content: bytearray, offset: int, data: bytes | bytearray) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _cut(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))
