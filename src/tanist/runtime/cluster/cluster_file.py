"""`cluster.json`: what a data folder knows about its cluster between commands. Who the nodes are, where, and their
processes.

Written by one command at a time (a lock beside it), replaced atomically, read by anybody. It must never be the only
witness that a process runs: a mark is checked against the system each time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from tanist.runtime.cluster.processes import ProcessMark, wait_until
from tanist.runtime.ports.files import replace_file

FILE_NAME = "cluster.json"
LOCK_NAME = "cluster.lock"
TESTS_LOCK_NAME = "tests.lock"
"""Held by the run of tests whose turn it is (`testing.tests_lock`)."""
_FORMAT = 1
_LOCK_PATIENCE_S = 120.0


class ClusterError(Exception):
    """A command that failed; the text says why and what to do."""


@dataclass(slots=True)
class NodeEntry:
    """One node of the cluster. Ports that the node does not have are 0."""

    node_id: int
    roles: tuple[str, ...]
    broker_port: int
    controller_port: int
    rack: str | None = None
    process: ProcessMark | None = None
    """The last process that was started for it; None once it was stopped in an orderly way."""
    metrics_port: int = 0

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def ports(self) -> tuple[int, ...]:
        """Those that it has."""
        return tuple(port for port in (self.broker_port, self.controller_port, self.metrics_port) if port)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def paused(self) -> bool:
        """Alive, but held by SIGSTOP."""
        return self.process is not None and self.process.paused


@dataclass(slots=True)
class ClusterFile:
    """The whole file."""

    cluster_id: str
    host: str
    nodes: list[NodeEntry]
    config: dict[str, str] = field(default_factory=dict)
    """The settings of `--config`, for every node."""
    log_dirs: int = 1
    """How many log directories each node has."""
    owner: ProcessMark | None = None
    """The command with which the cluster ends, a `tanist up` in the foreground; None if it lives on by itself."""

    features: dict[str, int] = field(default_factory=dict)
    """The features of `--feature`, with which it began."""
    ephemeral: bool = False
    """The folder is removed once the cluster is stopped."""
    moved: dict[int, int] = field(default_factory=dict)
    """Ports that were given in place of others, which were taken; and those."""
    secure: bool = False
    """Clients and nodes authenticate: the folder has certificates and users (`secure_files`)."""

    @property
    def port(self) -> int:
        """The first broker's, as it was meant."""
        return self.moved.get(self.brokers[0].broker_port, self.brokers[0].broker_port)

    def node(self, node_id: int) -> NodeEntry:
        for entry in self.nodes:
            if entry.node_id == node_id:
                return entry
        ids = ", ".join(str(entry.node_id) for entry in self.nodes)
        raise ClusterError(f"there is no node {node_id}; the nodes are {ids}")

    @property
    def brokers(self) -> list[NodeEntry]:
        return [entry for entry in self.nodes if entry.is_broker]

    @property
    def controllers(self) -> list[NodeEntry]:
        return [entry for entry in self.nodes if entry.is_controller]

    @property
    def running(self) -> list[NodeEntry]:
        return [entry for entry in self.nodes if entry.alive]

    def save(self, folder: Path) -> None:
        content = {"format": _FORMAT} | asdict(self)
        replace_file(str(folder / FILE_NAME), (json.dumps(content, indent=2) + "\n").encode())


def load(folder: Path) -> ClusterFile | None:
    """The file in a data folder; None if there is none. `ClusterError` if it cannot be understood."""
    path = folder / FILE_NAME
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        if content["format"] != _FORMAT:
            raise ClusterError(f"{path} was written by another version of tanist (format {content['format']})")
        nodes = [
            NodeEntry(
                entry["node_id"],
                tuple(entry["roles"]),
                entry["broker_port"],
                entry["controller_port"],
                entry["rack"],
                _mark(entry["process"]),
                entry.get("metrics_port", 0),  # clusters from before there were metrics
            )
            for entry in content["nodes"]
        ]
        return ClusterFile(
            content["cluster_id"],
            content["host"],
            nodes,
            content["config"],
            content.get("log_dirs", 1),
            _mark(content.get("owner")),
            content.get("features", {}),
            content.get("ephemeral", False),
            {int(given): wanted for given, wanted in content.get("moved", {}).items()},
            content.get("secure", False),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError(
            f"{path} is damaged ({error!r}): restore it, or start over in another --data folder"
        ) from None


def _mark(found: dict[str, Any] | None) -> ProcessMark | None:
    return None if found is None else ProcessMark(**found)


def load_existing(folder: Path) -> ClusterFile:
    """The file in a data folder that must have one."""
    found = load(folder)
    if found is None:
        raise ClusterError(f"there is no cluster in {folder}: make one with `tanist up --data {quote(str(folder))}`")
    return found


def _open_lock(path: str, flags: int) -> int:
    """For reading: it must be possible to stop a cluster whose disk is read-only or full by now."""
    return os.open(path, flags | os.O_CREAT, 0o644)


def is_locked(folder: Path) -> bool:
    """Whether another command is changing what is in the folder."""
    try:
        with open(folder / LOCK_NAME, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other commands from changing what is in the folder meanwhile; the folder is made if it is not there."""
    with ExitStack() as held:

        def take() -> bool:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / LOCK_NAME
            try:
                lock = open(path, opener=_open_lock)  # noqa: SIM115 (kept open while it is held)
            except FileNotFoundError:
                return False  # the folder was wiped this moment
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fresh = os.path.samestat(os.fstat(lock.fileno()), path.stat())
            except (BlockingIOError, FileNotFoundError):
                fresh = False
            if not fresh:  # held by another command, or of a folder that was wiped before we had it
                lock.close()
                return False
            held.enter_context(lock)
            return True

        if not wait_until(take, _LOCK_PATIENCE_S):
            raise ClusterError(f"another command is still busy with {folder}: let it finish or stop it")
        yield


@contextmanager
def locked_existing(folder: Path) -> Iterator[ClusterFile]:
    """The cluster file of a folder that must have one, and nobody else changes the cluster meanwhile."""
    load_existing(folder)  # before anything is made there
    with locked(folder):
        yield load_existing(folder)
