"""Faults of a live cluster: which link and which disk has which fault, and the file from which its nodes learn them.

One file in the data folder, `faults/set.json`, holds all faults; `tanist partition`, `slow`, `disk` and `heal` write it
(`cluster.fault_requests`), and every node reads its own faults there (`faults.node_agent`). The kinds have the names
of the table (`tanist.faults`).

This module only knows the faults that are set and what follows from them for a link or a disk. It must never touch a
socket, a process or a disk, but for reading and writing that one file.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tanist.runtime.ports.files import replace_file

if TYPE_CHECKING:
    from tanist.runtime.faults.request_rules import RequestFault

FOLDER_VARIABLE = "TANIST_FAULTS"
"""In the environment of a node: the folder where it finds its faults. Without it a node applies none."""

REQUEST_SIGNAL = signal.SIGURG
"""The signal for a node that the faults have changed."""

FOLDER_NAME = "faults"
_FILE_NAME = "set.json"
_FORMAT = 2
"""In 1 the states of disks had other names."""

CLIENTS = -1
"""In place of a node id: everything that is not a node of the cluster."""

Side: TypeAlias = tuple[int, ...]
"""Node ids, sorted; perhaps `CLIENTS` among them."""


def applied_path(folder: Path, node_id: int) -> Path:
    """Where a node acknowledges the faults that it has applied."""
    return folder / f"node-{node_id}.applied"


class FaultsUnreadable(ValueError):
    """The file has something that this version does not know."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """One direction of a link, as it is."""

    cut: bool = False
    latency_ms: int = 0
    jitter_ms: int = 0
    rate_bytes: int = 0
    """Per second; 0 is unlimited."""


CLEAR = LinkState()


@dataclass(frozen=True, slots=True)
class Partition:
    """Packets from `source` do not reach `target`, nor the other way round unless it is `one_way`."""

    source: Side
    target: Side
    one_way: bool = False

    @property
    def kind(self) -> str:
        return "partition-one-way" if self.one_way else "partition"

    def __str__(self) -> str:
        both = "" if self.one_way else ", nor the other way"
        return f"no packet gets from {names(self.source)} to {names(self.target)}{both}"

    def change(self, link: LinkState) -> LinkState:
        return replace(link, cut=True)


@dataclass(frozen=True, slots=True)
class Slow:
    """Packets from `source` reach `target` late, and the other way round unless it is `one_way`."""

    source: Side
    target: Side
    one_way: bool = False
    latency_ms: int = 0
    jitter_ms: int = 0
    rate_bytes: int = 0

    kind = "slow"

    def __str__(self) -> str:
        says = []
        if self.latency_ms or self.jitter_ms:
            jitter = f" to {self.latency_ms + self.jitter_ms}" if self.jitter_ms else ""
            says.append(f"{self.latency_ms}{jitter} ms of latency")
        if self.rate_bytes:
            says.append(f"at most {self.rate_bytes} bytes a second")
        between = f"from {names(self.source)} to" if self.one_way else f"between {names(self.source)} and"
        return f"{between} {names(self.target)}: {', '.join(says)}"

    def change(self, link: LinkState) -> LinkState:
        rates = [rate for rate in (link.rate_bytes, self.rate_bytes) if rate]
        return replace(
            link,
            latency_ms=max(link.latency_ms, self.latency_ms),
            jitter_ms=max(link.jitter_ms, self.jitter_ms),
            rate_bytes=min(rates, default=0),
        )


DiskState: TypeAlias = Literal["full", "slow", "failed", "read-only"]


@dataclass(frozen=True, slots=True)
class BadDisk:
    """A node's disk, or the one under one of its log directories, is full, slow, broken or read-only."""

    node_id: int
    state: DiskState
    log_dir: str | None = None
    """Its path; None is all of the node's disk."""
    latency_ms: int = 0
    writes: bool = False
    """Slow writes as well as syncs: the page cache is full, so every writer has to wait."""

    @property
    def kind(self) -> str:
        return f"disk-{self.state}"

    def __str__(self) -> str:
        what = f"the disk of node {self.node_id}" + (f" under {self.log_dir}" if self.log_dir is not None else "")
        if self.state == "slow":
            return f"{what} takes {self.latency_ms} ms for each sync{' and write' if self.writes else ''}"
        return f"{what} fails" if self.state == "failed" else f"{what} is {self.state}"


Fault: TypeAlias = Partition | Slow | BadDisk


@dataclass(frozen=True, slots=True)
class FaultSet:
    """All faults that are set, and the number of the request that set them."""

    number: int = 0
    ports: Mapping[int, tuple[int, ...]] | None = None
    """Of each node. The nodes of such a cluster share one host, so a port tells which of them a connection is to."""
    faults: tuple[Fault, ...] = ()
    requests: tuple[RequestFault, ...] = ()
    """Faults by request: those of the whole cluster, in the order in which they were set."""

    # -- for a node

    def link(self, source: int, target: int) -> LinkState:
        """One direction between two nodes, or between a node and clients."""
        found = CLEAR
        for fault in self.faults:
            if isinstance(fault, BadDisk):
                continue
            forth = source in fault.source and target in fault.target
            back = not fault.one_way and source in fault.target and target in fault.source
            if source != target and (forth or back):
                found = fault.change(found)
        return found

    def links(self, node_id: int) -> dict[int, tuple[LinkState, LinkState]]:
        """The links of a node that have a fault: peer -> (to the peer, from the peer)."""
        peers = {
            peer for fault in self.faults if not isinstance(fault, BadDisk) for peer in fault.source + fault.target
        }
        found = {peer: (self.link(node_id, peer), self.link(peer, node_id)) for peer in peers}
        return {peer: states for peer, states in found.items() if states != (CLEAR, CLEAR)}

    def disks(self, node_id: int) -> tuple[BadDisk, ...]:
        return tuple(fault for fault in self.faults if isinstance(fault, BadDisk) and fault.node_id == node_id)

    def nodes_apart_from_clients(self) -> frozenset[int]:
        """Nodes whose links to clients have a fault, so that they must tell clients from nodes."""
        return frozenset(node_id for node_id in self.ports or () if CLIENTS in self.links(node_id))

    def isolation(self, node_id: int) -> tuple[bool, int]:
        """For comparing nodes: whether clients are cut off from it, and how many nodes are."""
        links = self.links(node_id)
        cut = [peer for peer, (forth, back) in links.items() if forth.cut or back.cut]
        return CLIENTS in cut, len(cut)

    def concern(self, node_id: int) -> bool:
        """Whether any fault is about a node."""
        return bool(self.links(node_id) or self.disks(node_id))

    # -- for setting and healing

    def also(self, fault: Fault) -> FaultSet:
        """With one more fault. It takes the place of one that differs from it only in how bad it is."""
        others = tuple(other for other in self.faults if _place(other) != _place(fault))
        return replace(self, number=self.number + 1, faults=(*others, fault))

    def also_request(self, rule: RequestFault) -> FaultSet:
        """With one more fault by request, whose id is the number of this order."""
        number = self.number + 1
        return replace(self, number=number, requests=(*self.requests, replace(rule, rule_id=number)))

    def without_request(self, rule_id: int) -> FaultSet:
        kept = tuple(rule for rule in self.requests if rule.rule_id != rule_id)
        return replace(self, number=self.number + 1, requests=kept)

    def without(self, healed: Collection[int] | None = None) -> FaultSet:
        """Without what concerns some nodes (or `CLIENTS`); without anything by default."""
        left: list[Fault] = []
        for fault in self.faults if healed is not None else ():
            if isinstance(fault, BadDisk):
                if fault.node_id not in healed:  # type: ignore[operator]
                    left.append(fault)
                continue
            source, target = _less(fault.source, healed), _less(fault.target, healed)
            if source and target:
                left.append(replace(fault, source=source, target=target))
        kept = () if healed is None else self.requests
        return replace(self, number=self.number + 1, faults=tuple(left), requests=kept)

    # -- as JSON

    def described(self) -> list[dict[str, Any]]:
        """The faults, for programs."""
        return [_described(fault) for fault in self.faults]


def _less(side: Side, healed: Collection[int] | None) -> Side:
    return tuple(member for member in side if healed is not None and member not in healed)


def _place(fault: Fault) -> tuple[object, ...]:
    if isinstance(fault, BadDisk):
        return (fault.node_id, fault.state, fault.log_dir)
    return (type(fault), fault.source, fault.target, fault.one_way)


def side(members: Iterable[int]) -> Side:
    return tuple(sorted(set(members)))


def names(members: Side) -> str:
    """A side as people write it: `1,2,clients`."""
    return ",".join("clients" if member == CLIENTS else str(member) for member in sorted(members, key=_clients_last))


def _clients_last(member: int) -> tuple[bool, int]:
    return member == CLIENTS, member


def _described(fault: Fault) -> dict[str, Any]:
    if isinstance(fault, BadDisk):
        found: dict[str, Any] = {"kind": fault.kind, "node": fault.node_id, "log_dir": fault.log_dir}
        if fault.state == "slow":
            found |= {"latency_ms": fault.latency_ms, "writes": fault.writes}
        return found
    found = {"kind": fault.kind, "from": _members(fault.source), "to": _members(fault.target)}
    if isinstance(fault, Slow):
        found |= {
            "one_way": fault.one_way,
            "latency_ms": fault.latency_ms,
            "jitter_ms": fault.jitter_ms,
            "rate_bytes": fault.rate_bytes,
        }
    return found


def _members(members: Side) -> list[int | str]:
    return ["clients" if member == CLIENTS else member for member in sorted(members, key=_clients_last)]


# -- the file


def folder_of(data: Path) -> Path:
    """Where a data folder keeps what is set, and what the nodes have made of it."""
    return data / FOLDER_NAME


def save(folder: Path, faults: FaultSet) -> None:
    content = {
        "format": _FORMAT,
        "number": faults.number,
        "ports": {str(node_id): list(ports) for node_id, ports in (faults.ports or {}).items()},
        "faults": [{"type": type(fault).__name__} | asdict(fault) for fault in faults.faults],
        "requests": [rule.saved() for rule in faults.requests],
    }
    replace_file(str(folder / _FILE_NAME), (json.dumps(content, indent=2) + "\n").encode())


def load(folder: Path) -> FaultSet | None:
    """The faults that are set; None if none ever was. `FaultsUnreadable`, `OSError`."""
    try:
        text = (folder / _FILE_NAME).read_bytes()
    except FileNotFoundError:
        return None
    try:
        content = json.loads(text)
        if content["format"] != _FORMAT:
            raise FaultsUnreadable(f"format {content['format']} is of another version of tanist")
        return FaultSet(
            int(content["number"]),
            {int(node_id): tuple(map(int, ports)) for node_id, ports in content["ports"].items()},
            tuple(_fault(entry) for entry in content["faults"]),
            _requests(content.get("requests", ())),
        )
    except FaultsUnreadable:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FaultsUnreadable(f"{folder / _FILE_NAME} is damaged: {error!r}") from None


def forget(folder: Path) -> None:
    """No fault is set any more, and no node needs a signal."""
    (folder / _FILE_NAME).unlink(missing_ok=True)


def _requests(entries: Sequence[dict[str, Any]]) -> tuple[RequestFault, ...]:
    if not entries:
        return ()
    from tanist.runtime.faults.request_rules import RequestFault  # a node without any has no need of it

    return tuple(RequestFault(**entry) for entry in entries)


def _fault(entry: dict[str, Any]) -> Fault:
    fields = dict(entry)
    kind = fields.pop("type")
    if kind == BadDisk.__name__:
        return BadDisk(**fields)
    fields |= {"source": tuple(fields["source"]), "target": tuple(fields["target"])}
    if kind == Partition.__name__:
        return Partition(**fields)
    if kind == Slow.__name__:
        return Slow(**fields)
    raise FaultsUnreadable(f"a fault of the kind {kind!r} is not known here")


# -- who may set faults


def is_private(folder: Path) -> bool:
    """Whether only this process's own user can write there: nobody else may break a node."""
    try:
        status = os.stat(folder)
    except FileNotFoundError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
