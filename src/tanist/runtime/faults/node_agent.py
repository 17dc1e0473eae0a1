"""A running node applies the faults that are set for it, and acknowledges them.

A node with `TANIST_FAULTS` in its environment (`tanist up` and `start` set it; a node that is served in any other way
applies no faults) reads that folder when it starts, and at each SIGURG. That signal is ignored by default, so it does
no harm to a process that does not listen yet, or any more. The node writes what it has applied to `node-ID.applied`.

It accepts faults only from a folder that nobody else can write to, and a file that it cannot read changes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tanist.events.process import AllFaultsHealed, FaultApplied, FaultHealed, FaultsIgnored, FaultsNotAcknowledged
from tanist.events.stream import Events
from tanist.runtime.faults.settings import (
    FOLDER_VARIABLE,
    REQUEST_SIGNAL,
    Fault,
    FaultSet,
    FaultsUnreadable,
    applied_path,
    is_private,
    load,
)
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SocketNetwork

if TYPE_CHECKING:
    from tanist.runtime.faults.request_rules import RequestFault


class NodeFaults:
    """The faults of one node: of its links and of its disk."""

    def __init__(
        self, loop: Loop, network: SocketNetwork, disk: RealDisk, node_id: int, folder: Path, events: Events
    ) -> None:
        self._loop = loop
        self._network = network
        self._disk = disk
        self._node_id = node_id
        self._folder = folder
        self._events = events
        self._present = FaultSet()
        self._links: object | None = None
        self._requests: object | None = None

    def start(self) -> None:
        """Listen for the signal, then read the faults. Read them again when the loop runs: a signal between the two was
        not heard."""
        self._loop.aio.add_signal_handler(REQUEST_SIGNAL, self.reload)
        self.reload()

    def reload(self) -> None:
        """Apply the faults that are set now."""
        try:
            faults = load(self._folder)
            if faults is None:
                return
            if not is_private(self._folder):
                raise FaultsUnreadable(f"other users can write to {self._folder}: its faults are ignored")
            self._apply(faults)
        except (FaultsUnreadable, OSError) as error:
            self._events.emit(FaultsIgnored(str(error)))
            self._answer(None, str(error))
            return
        self._answer(faults.number, "")

    def _apply(self, faults: FaultSet) -> None:
        if faults.faults or self._present.faults:
            # Only now: a node without faults needs none of it.
            from tanist.runtime.faults.disk import apply_disk_faults
            from tanist.runtime.faults.links import LinkFaults

            links = self._links
            if not isinstance(links, LinkFaults):
                links = self._links = LinkFaults(self._loop, self._network, self._node_id, self._folder)
            links.apply(faults)
            apply_disk_faults(self._disk, faults.disks(self._node_id))
        if faults.requests or self._present.requests:
            from tanist.runtime.faults.request_filter import RequestFilters

            filters = self._requests
            if not isinstance(filters, RequestFilters):
                filters = self._requests = RequestFilters(self._loop, self._network, self._folder)
            filters.apply(faults.requests)
        self._report_changes(self._concerning(self._present), self._concerning(faults))
        self._present = faults

    def _concerning(self, faults: FaultSet) -> tuple[Fault | RequestFault, ...]:
        """Those of this node's links and disk, and all by request."""
        own = tuple(fault for fault in faults.faults if FaultSet(faults=(fault,)).concern(self._node_id))
        return (*own, *faults.requests)

    def _report_changes(self, before: Sequence[Fault | RequestFault], now: Sequence[Fault | RequestFault]) -> None:
        for fault in before:
            if now and fault not in now:
                self._events.emit(FaultHealed(str(fault)))
        for fault in now:
            if fault not in before:
                self._events.emit(FaultApplied(str(fault)))
        if before and not now:
            self._events.emit(AllFaultsHealed())

    def _answer(self, number: int | None, problem: str) -> None:
        path = applied_path(self._folder, self._node_id)
        answer = {"pid": os.getpid(), "number": number, "problem": problem}
        try:
            Path(f"{path}.tmp").write_text(json.dumps(answer))
            os.replace(f"{path}.tmp", path)
        except OSError as error:
            self._events.emit(FaultsNotAcknowledged(str(error)))


def apply_faults(
    loop: Loop,
    network: SocketNetwork,
    disk: RealDisk,
    node_id: int,
    events: Events,
    environment: Mapping[str, str] = os.environ,
) -> NodeFaults | None:
    """From now on apply the faults that are set for this node, if it was started that way."""
    folder = environment.get(FOLDER_VARIABLE)
    if not folder:
        return None
    faults = NodeFaults(loop, network, disk, node_id, Path(folder), events)
    faults.start()
    return faults
