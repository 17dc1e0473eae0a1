"""Which replicas' files lie below a folder: of a cluster, a node, one log directory, one partition, or the salvage.

Owns the way from a path to segment files and what is known of each without opening it: topic, partition, which replica
it belongs to. It changes nothing and asks no broker; nodes may run or not. Folders that wait to be deleted, are not in
service, or are being moved in are left out, and so are files that are no segments. The folder may be in an object store
(`spark.stores`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tanist.log.checkpoints import META_PROPERTIES, CheckpointError, MetaProperties
from tanist.log.names import LOG_SUFFIX, offset_of, parse_folder
from tanist.log.properties import PropertiesError, log_directories, parse_properties
from tanist.log.salvage.manifest import QUARANTINE, is_entry_id
from tanist.runtime.client.salvaged import find_entries
from tanist.spark.stores import is_stored, path_of, stored_size

METADATA_TOPIC: Final = "__cluster_metadata"
_SERVER_PROPERTIES: Final = "server.properties"
_DEPTH_MAX: Final = 3
"""From a cluster's folder to its log directories: `node-1/data`, and one more for those who nest."""

Contents = Literal["log", "salvage", "all"]


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One file of batches, and whose it is."""

    path: str
    topic: str
    partition: int
    replica: int | None
    """The broker's id; None if nothing says it."""
    base_offset: int
    following_offset: int | None
    """The base offset of the next segment of the log; None for the last one, and in the salvage."""
    salvage_id: str | None
    """The entry of the quarantine; None for what is part of a log."""
    size_bytes: int | None = None
    """In a store; None on this machine, where it may grow."""


class NothingThere(ValueError):
    """No replica's files are below the path."""


class Unreadable(ValueError):
    """A file that says which replicas these are makes no sense."""


def segment_files(folder: str, *, contents: Contents = "log", replica: int | None = None) -> list[SegmentFile]:
    """Of all replicas below `folder`. `replica` is whose they are where no `meta.properties` says it. `Unreadable`."""
    root = path_of(folder)
    if not root.is_dir():
        raise NothingThere(f"there is {'nothing below' if is_stored(folder) else 'no folder'} {folder}")
    inside = any(part == QUARANTINE for part in root.resolve().parts)
    found: list[SegmentFile] = []
    if contents != "salvage" and not inside:
        for directory in _log_directories(root):
            found += _of_log_directory(directory, replica)
    if contents != "log" or inside:
        found += _of_salvage(root)
    return sorted(found, key=lambda file: (file.topic, file.partition, file.path))


def _log_directories(root: Path) -> list[Path]:
    """Each once, though the properties of a node and the folders below may both lead to it."""
    if parse_folder(root.name) is not None and _has_segments(root):
        return [root]
    candidates = [root]
    for properties in [*root.glob(_SERVER_PROPERTIES), *root.glob(f"*/{_SERVER_PROPERTIES}")]:
        candidates += _named_directories(properties)
    for depth in range(1, _DEPTH_MAX + 1):
        candidates += [path.parent for path in root.glob("*/" * depth + META_PROPERTIES)]
    found: dict[Path, Path] = {}
    for path in candidates:
        if path.is_dir() and ((path / META_PROPERTIES).exists() or _has_partitions(path)):
            found.setdefault(path.resolve(), path)
    return list(found.values())


def _named_directories(properties: Path) -> list[Path]:
    """The log.dirs of a node, if they are there; its file may have been copied from another machine."""
    try:
        names = log_directories(parse_properties(properties.read_text()))
    except (PropertiesError, UnicodeDecodeError) as error:
        raise Unreadable(f"{properties}: {error}") from None
    return [properties.parent / Path(name).absolute() for name in names]


def _has_partitions(path: Path) -> bool:
    return any(parse_folder(each.name) is not None and _has_segments(each) for each in path.iterdir())


def _has_segments(path: Path) -> bool:
    return path.is_dir() and any(offset_of(each.name, LOG_SUFFIX) is not None for each in path.iterdir())


def _of_log_directory(directory: Path, replica: int | None) -> Iterator[SegmentFile]:
    parsed = parse_folder(directory.name)
    if parsed is not None and _has_segments(directory):
        folders = [directory]
        replica = _node_id(directory.parent, replica)
    else:
        folders = [path for path in directory.iterdir() if parse_folder(path.name) is not None and path.is_dir()]
        replica = _node_id(directory, replica)
    for folder in folders:
        name = parse_folder(folder.name)
        if name is None:
            continue
        try:
            listed = {offset_of(each.name, LOG_SUFFIX): each for each in folder.iterdir()}
        except FileNotFoundError:
            continue  # the topic was deleted this moment
        bases = sorted(base for base in listed if base is not None)
        for base, following in zip(bases, [*bases[1:], None]):
            path = listed[base]
            yield SegmentFile(str(path), name.topic, name.partition, replica, base, following, None, stored_size(path))


def _node_id(directory: Path, otherwise: int | None) -> int | None:
    """Whose the folder is. A file that cannot be understood names nobody: never take several replicas for one."""
    path = directory / META_PROPERTIES
    try:
        return MetaProperties.decode(path.read_bytes(), str(path)).node_id
    except FileNotFoundError:
        return otherwise
    except CheckpointError as error:
        if otherwise is not None:
            return otherwise
        raise Unreadable(f"{error}. Mend the file, or say whose the folder is by the option replica") from None


def _of_salvage(root: Path) -> Iterator[SegmentFile]:
    quarantine = next((path for path in [root, *root.parents] if path.name == QUARANTINE), root)
    entries, _ = find_entries(quarantine)
    for entry in entries:
        # The folder may be that of one entry.
        if is_entry_id(root.name) and entry.folder.resolve() != root.resolve():
            continue
        manifest = entry.manifest
        for file in manifest.files:
            base = offset_of(file.name, LOG_SUFFIX)
            if base is None:
                continue
            path = entry.folder / file.name
            yield SegmentFile(
                str(path), manifest.topic, manifest.partition, manifest.broker_id, base, None, entry.entry_id,
                stored_size(path),
            )  # fmt: skip
