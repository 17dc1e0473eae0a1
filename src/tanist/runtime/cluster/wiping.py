"""Removing what `tanist up` has made in a data folder, and nothing else.

A data folder may be anybody's: `--data .` is allowed. So only what is known to be the cluster's goes: its nodes'
folders, log directories elsewhere that are formatted for this cluster, its own files; the folder itself only if nothing
is left in it. It must never run beside a node: the caller holds the cluster's lock and has stopped them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tanist.log.checkpoints import META_PROPERTIES, CheckpointError, MetaProperties
from tanist.runtime.cluster import layout, parent_watch
from tanist.runtime.cluster.cluster_file import FILE_NAME, LOCK_NAME, TESTS_LOCK_NAME, ClusterError, ClusterFile
from tanist.runtime.cluster.secure_files import SecureFiles
from tanist.runtime.faults.settings import folder_of


def size_of(folder: Path, cluster: ClusterFile) -> int:
    """How many bytes a wipe frees."""
    found = 0
    for root in _node_folders(folder, cluster):
        for parent, _, names in os.walk(root):
            for name in names:
                try:
                    found += os.lstat(os.path.join(parent, name)).st_size
                except FileNotFoundError:
                    continue  # a node at work has removed it
    return found


def wipe_nodes(folder: Path, cluster: ClusterFile) -> None:
    """Remove what the nodes have: data, metadata, salvage, properties, logs. `ClusterError` if it cannot be removed."""
    for root in [*_node_folders(folder, cluster), folder_of(folder)]:
        _remove(root)


def wipe(folder: Path, cluster: ClusterFile) -> None:
    """Remove the cluster; the folder as well, if it had nothing else."""
    wipe_nodes(folder, cluster)
    if cluster.secure:
        _remove(SecureFiles(folder).folder)
    for name in (FILE_NAME, parent_watch.LOG_NAME, LOCK_NAME, TESTS_LOCK_NAME):
        (folder / name).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        return  # something else is in it, or it is not ours to remove


def _node_folders(folder: Path, cluster: ClusterFile) -> list[Path]:
    """The nodes' folders, and their log directories that are elsewhere."""
    found: dict[Path, None] = {}
    for node in cluster.nodes:
        own = layout.node_folder(folder, node.node_id)
        try:
            directories = layout.log_directories(folder, node.node_id)
        except ClusterError:
            directories = []
        for path in map(Path, directories):
            if not path.is_relative_to(own) and _belongs(path, cluster.cluster_id, node.node_id):
                found[path] = None
        found[own] = None
    return list(found)


def _belongs(path: Path, cluster_id: str, node_id: int) -> bool:
    meta = path / META_PROPERTIES
    try:
        MetaProperties.decode(meta.read_bytes(), str(meta)).require(str(meta), cluster_id=cluster_id, node_id=node_id)
    except (OSError, CheckpointError):
        return False
    return True


def _remove(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        cause = (error.strerror or str(error)).lower()
        raise ClusterError(f"cannot remove {path}: {cause}. Fix that, then repeat the command") from None
