"""The seeded runs again, on `MetadataLog`, `quorum-state` and disks that lose their page cache with the power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tanist.quorum import ElectionState, QuorumStateFile
from tanist.quorum.storage.metadata_log import FOLDER
from tests.quorum.quorum_network import Machine, Network
from tests.quorum.storage.test_quorum_logs import Host
from tests.quorum.test_quorum_random import run


class DiskNetwork(Network):
    """Each machine has a disk of its own."""

    def __init__(self, seed: int, voter_ids: Sequence[int], observer_ids: Sequence[int], **options: Any) -> None:
        super().__init__(seed, voter_ids, observer_ids, **options)
        self.hosts = {node_id: Host(seed * 100 + node_id) for node_id in self.machines}
        for machine in self.machines.values():
            self._open(machine)

    def _open(self, machine: Machine) -> None:
        host = self.hosts[machine.node_id]
        log: Any = host.open(segment_bytes=400)
        machine.log = log
        machine.saved = self._state_file(machine).load()

    def _state_file(self, machine: Machine) -> QuorumStateFile:
        disk = self.hosts[machine.node_id].disk
        return QuorumStateFile(disk, f"/data/{FOLDER}", [voter.node_id for voter in self.voters], version=1)

    def lose_power(self, machine: Machine, durable_end: int) -> None:
        before = [(b.offset, b.epoch, b.values) for b in self._batches(machine)]
        self.hosts[machine.node_id].disk.lose_power()
        self._open(machine)
        assert machine.log.end_offset >= durable_end, "S22: what was synced has survived"
        after = [(b.offset, b.epoch, b.values) for b in self._batches(machine)]
        start = machine.log.start_offset
        assert after == [batch for batch in before if batch[0] >= start][: len(after)], "S22: a prefix is left"

    def _batches(self, machine: Machine) -> Any:
        return machine.log.read_batches(machine.log.start_offset, machine.log.end_offset)

    def begin_sync(self, machine: Machine) -> Callable[[], None]:
        log: Any = machine.log
        end, files = log.end_offset, log.unflushed_files()
        disk = self.hosts[machine.node_id].disk

        def finish() -> None:
            for file in files:
                disk.sync_now(file)
            log.mark_flushed(end)

        return finish

    def save(self, machine: Machine, state: ElectionState) -> None:
        self._state_file(machine).save(state)
        machine.saved = self._state_file(machine).load()
        assert machine.saved == state


@pytest.mark.parametrize("seed", range(24))
def test_safe_and_live_on_disks_that_lose_their_cache(seed: int) -> None:
    run(seed, network_class=DiskNetwork)
