"""Logs that go while their broker is down: somebody removes a folder, or another, empty disk is in the place of one.

The mark of a clean shutdown stays where it was, and so do the checkpoints beside a folder that is removed. For the
protocol a log that is gone is one that has lost all that was synced: the broker has to find out, and may be eligible
for nothing. Used by the nemesis and by `bit_rot`; the host is down, and the caller has asked the promise.
"""

from __future__ import annotations

from tanist.sim.events import DiskReplaced, FolderRemoved, LogRemoved
from tanist.sim.oracle import Oracle
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import Host, World
from tanist.wire.ids import TopicIdPartition


def remove_log(world: World, host: Host, key: TopicIdPartition, folder: str) -> None:
    """An operator removes the folder of one log."""
    host.disk.view(Process("operator")).remove(folder)
    host.disk.sync_all()  # as an operator does: the removal must survive a loss of power
    _is_gone(world, host, key)
    world.emit(FolderRemoved(host.node_id, folder))


def lose_folder(world: World, oracle: Oracle, host: Host, detail: float) -> bool:
    """One of the host's logs, with its records; False if it has none."""
    logs = [
        (key, folder)
        for key, folder in _logs(oracle, host).items()
        if oracle.partitions[key].mirrors[host.node_id].batches
    ]
    if not logs:
        return False
    key, folder = logs[int(detail * 9973) % len(logs)]
    remove_log(world, host, key, folder)
    world.counts["folders of logs removed"] += 1
    return True


def replace_disk(world: World, oracle: Oracle, host: Host, path: str) -> None:
    """An empty disk is in the place of that log directory, which an operator has formatted."""
    logs = _logs(oracle, host)
    host.replace_disk(path)
    for key, folder in logs.items():
        if folder.startswith(f"{path}/"):
            _is_gone(world, host, key)
    world.counts["log directories replaced"] += 1
    world.emit(DiskReplaced(host.node_id, path))


def _logs(oracle: Oracle, host: Host) -> dict[TopicIdPartition, str]:
    """The folders of the host's replicas that are on its disks."""
    found: dict[TopicIdPartition, str] = {}
    for key, partition in oracle.partitions.items():
        mirror = partition.mirrors.get(host.node_id)
        if mirror is None or mirror.log is None or mirror.released_epoch is not None:
            continue
        if host.disk.find(mirror.log.directory) is not None:
            found[key] = mirror.log.directory
    return found


def _is_gone(world: World, host: Host, key: TopicIdPartition) -> None:
    host.clean_ends.discard(host.lives)
    world.emit(LogRemoved(host.node_id, key))
