"""How a running node learns of the faults that are set for it, and says that it has obeyed.

A node that was started with `TANIST_FAULTS` in its environment (`tanist up` and `start` see to that; a node that is
served in any other way obeys nobody) looks into that folder when it starts, and whenever it is told to by SIGURG. That
signal is ignored by default, so it does no harm to a process that does not listen yet, or any more. What it has applied
is written to `node-ID.applied`.

Orders are taken only from a folder that nobody else can write to, and what cannot be understood changes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from tanist.runtime.faults.settings import (
    FOLDER_VARIABLE,
    ORDER_SIGNAL,
    FaultSet,
    FaultsUnreadable,
    applied_path,
    is_private,
    load,
)
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SocketNetwork

Report = Callable[[str, str], None]


class ObeyingNode:
    """The faults of one node."""

    def __init__(
        self, loop: Loop, network: SocketNetwork, disk: RealDisk, node_id: int, folder: Path, report: Report
    ) -> None:
        self._loop = loop
        self._network = network
        self._disk = disk
        self._node_id = node_id
        self._folder = folder
        self._report = report
        self._present = FaultSet()
        self._links: object | None = None

    def start(self) -> None:
        """Listen for orders, then look for those from before. Look again when the loop runs: what was ordered between
        the two was not heard."""
        self._loop.aio.add_signal_handler(ORDER_SIGNAL, self.look)
        self.look()

    def look(self) -> None:
        """Obey what is set now."""
        try:
            faults = load(self._folder)
            if faults is None:
                return
            if not is_private(self._folder):
                raise FaultsUnreadable(f"other users can write to {self._folder}: its faults are ignored")
            self._obey(faults)
        except (FaultsUnreadable, OSError) as error:
            self._report("WARN", f"faults are ignored: {error}")
            self._answer(None, str(error))
            return
        self._answer(faults.number, "")

    def _obey(self, faults: FaultSet) -> None:
        if faults.faults or self._present.faults:
            # Only now: a node that nothing is wrong with has no need of any of it.
            from tanist.runtime.faults.disk import disk_obeys
            from tanist.runtime.faults.links import LinkFaults

            links = self._links
            if not isinstance(links, LinkFaults):
                links = self._links = LinkFaults(self._loop, self._network, self._node_id, self._folder)
            links.obey(faults)
            disk_obeys(self._disk, faults.disks(self._node_id))
            self._tell(faults)
        self._present = faults

    def _tell(self, faults: FaultSet) -> None:
        before, now = self._present, faults
        for fault in now.faults:
            if fault not in before.faults and FaultSet(faults=(fault,)).concern(self._node_id):
                self._report("WARN", f"fault set: {fault}")
        if before.concern(self._node_id) and not now.concern(self._node_id):
            self._report("WARN", "all faults are healed")

    def _answer(self, number: int | None, problem: str) -> None:
        path = applied_path(self._folder, self._node_id)
        answer = {"pid": os.getpid(), "number": number, "problem": problem}
        try:
            Path(f"{path}.tmp").write_text(json.dumps(answer))
            os.replace(f"{path}.tmp", path)
        except OSError as error:
            self._report("WARN", f"cannot report that faults are applied: {error}")


def obey_faults(
    loop: Loop,
    network: SocketNetwork,
    disk: RealDisk,
    node_id: int,
    report: Report,
    environment: Mapping[str, str] = os.environ,
) -> ObeyingNode | None:
    """From now on be as bad as this node is told to be, if it was started that way."""
    folder = environment.get(FOLDER_VARIABLE)
    if not folder:
        return None
    obeying = ObeyingNode(loop, network, disk, node_id, Path(folder), report)
    obeying.start()
    return obeying
