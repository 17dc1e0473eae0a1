"""Why a node's process has ended, as far as any file still says so.

The exit record (`exit_record`) comes first. A node that could not write one (its disk is broken or read-only, or the
process could not even begin) may have left an error at the end of `node.log`; the file systems of its log directories
come last. This module only reads, and never fails: it gives no reason if it finds none.
"""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

from tanist.runtime.cluster import layout
from tanist.runtime.cluster.cluster_file import ClusterError, NodeEntry
from tanist.runtime.exit_record import FILE_NAME

_TAIL_BYTES = 16_384
_LINE = re.compile(r"\[[\d :,-]+\] (?P<level>[A-Z]+) (?P<text>.*)")


def exit_reason(folder: Path, node: NodeEntry) -> str | None:
    """Why the node's last process has ended, in one line, without a full stop; None if it runs, was stopped in an
    orderly way, or was killed and could write nothing. `folder` is the cluster's data folder.
    """
    if node.process is None or node.alive:
        return None
    return _recorded(folder, node) or _last_error(folder, node.node_id) or _state_of_disks(folder, node.node_id)


def _recorded(folder: Path, node: NodeEntry) -> str | None:
    try:
        for directory in layout.log_directories(folder, node.node_id)[:1]:
            record = json.loads((Path(directory) / FILE_NAME).read_bytes())
            if node.process is not None and record["process"] == node.process.pid:
                return str(record["reason"]) or None
    except (OSError, ClusterError, ValueError, KeyError, TypeError):
        return None
    return None


def _last_error(folder: Path, node_id: int) -> str | None:
    """The last line of `node.log`, if it is an error: of the node, of Python, or of the launcher."""
    try:
        with layout.log_path(folder, node_id).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").rstrip().splitlines()
    except OSError:
        return None
    if not lines:
        return None
    found = _LINE.fullmatch(lines[-1])
    if found is not None:
        return found["text"] if found["level"] == "ERROR" else None
    return lines[-1].strip() or None


def _state_of_disks(folder: Path, node_id: int) -> str | None:
    """Whether a disk of the node is in a state that no node survives."""
    try:
        directories = layout.log_directories(folder, node_id)
    except ClusterError:
        return None
    for directory in directories:
        try:
            found = os.statvfs(directory)
        except OSError as error:
            return f"{directory}: {error.strerror}"
        if found.f_flag & os.ST_RDONLY:
            return f"{directory}: {os.strerror(errno.EROFS)}"
        if not found.f_bavail:
            return f"{directory}: {os.strerror(errno.ENOSPC)}"
    return None
