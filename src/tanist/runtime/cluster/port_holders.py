"""Who has a port that a node needs: a process on this machine, as far as the system tells.

It only reads (Linux's `/proc`), never fails, and gives nothing where it finds nothing: elsewhere, or of other users'
processes.
"""

from __future__ import annotations

import os
from pathlib import Path

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"


def holder_of(port: int) -> str:
    """In words: "process 4711 (java)", or a connection of it whose own end has the port; empty if nobody is found."""
    sockets = _sockets_at(port)
    for inode, listens in sorted(sockets.items(), key=lambda each: not each[1]):
        pid = _process_with(f"socket:[{inode}]")
        if pid is not None:
            process = f"process {pid} ({_name_of(pid)})"
            return process if listens else f"a connection of {process}"
    return ""


def _sockets_at(port: int) -> dict[str, bool]:
    """By inode, whether it listens."""
    found: dict[str, bool] = {}
    for table in _TABLES:
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[9] != "0":
                found[fields[9]] = fields[3] == _LISTENS
    return found


def _process_with(descriptor: str) -> int | None:
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            for name in os.listdir(f"/proc/{entry.name}/fd"):
                if os.readlink(f"/proc/{entry.name}/fd/{name}") == descriptor:
                    return int(entry.name)
        except OSError:
            continue  # it has ended, or is not ours
    return None


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone by now"
