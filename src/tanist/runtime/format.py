"""`tanist format`: make a node's folders and write `meta.properties` into each, as `kafka-storage format` does.

A folder says whose it is before a node serves from it, so that no node ever starts empty by mistake in a folder that
was not mounted. With which features the cluster begins stands beside it, in `bootstrap.checkpoint`: the first active
controller of the cluster writes the metadata log's first records by it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from tanist.broker.config import NodeConfig
from tanist.log.checkpoints import META_PROPERTIES, CheckpointError, MetaProperties
from tanist.runtime import first_voters
from tanist.runtime.first_voters import FirstVoters
from tanist.runtime.ports.files import replace_file, sync_folder
from tanist.wire.ids import id_from_text, id_text

if TYPE_CHECKING:
    from tanist.controller.image.acls import Acl


class FormatError(Exception):
    """Why the folders cannot be formatted, and what to do."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """The result of formatting one folder."""

    folder: str
    fresh: bool
    """False: it was formatted before, for the same cluster and node, and was left alone."""


def random_id() -> str:
    """A new id as Kafka prints one; never with a dash in front, which a command line would take for an option."""
    while True:
        text = id_text(UUID(bytes=os.urandom(16)))
        if not text.startswith("-"):
            return text


def format_folders(
    config: NodeConfig,
    cluster_id: str,
    *,
    ignore_formatted: bool = False,
    features: Mapping[str, int] | None = None,
    voters: FirstVoters | None = None,
    scram: Sequence[str] = (),
    acls: Sequence[Acl] = (),
) -> list[Formatted]:
    """Format what is not formatted yet, for a cluster that begins with these features (else with the defaults).

    `voters`: the first ones, where the configuration names none. `scram`: users from the start, as
    `scram_argument` takes them; `acls`: what they may do. All or nothing is written: whatever speaks against it is
    found first.
    """
    # Not before: it brings the quorum along, 50 ms of imports for which most commands have no use, nor has `up` before
    # its launcher runs.
    from tanist.broker.metadata import bootstrap
    from tanist.security.sasl.scram_argument import ScramArgumentError, parse_credential

    levels = dict(features or {})
    kraft_version = levels.pop("kraft.version", None)
    try:
        credentials = [parse_credential(text, os.urandom) for text in scram]
        users = [(each.name, each.mechanism) for each in credentials]
        if len(set(users)) < len(users):
            raise ScramArgumentError("--add-scram names a user and mechanism twice; keep one")
        beginning = bootstrap.bootstrap_of(
            levels, credentials, [acl.record(UUID(bytes=os.urandom(16))) for acl in acls]
        )
    except ValueError as error:
        raise FormatError(str(error)) from None
    if not cluster_id:
        raise FormatError("the cluster's id is empty; `tanist random-uuid` prints a good one")
    folders = list(dict.fromkeys((*config.log_dirs, config.metadata_log_dir)))
    formatted = {folder: _read(folder) for folder in folders}
    for folder, found in formatted.items():
        if found is None:
            continue
        path = f"{folder}/{META_PROPERTIES}"
        if not ignore_formatted:
            raise FormatError(
                f"{folder} is formatted already, for node {found.node_id} of cluster {found.cluster_id}: "
                "use --ignore-formatted to leave such folders alone"
            )
        try:
            found.require(path, cluster_id=cluster_id, node_id=config.node_id)
        except CheckpointError as error:
            raise FormatError(str(error)) from None
    if formatted[config.metadata_log_dir] is None:
        try:
            first_voters.check(config, voters, kraft_version)
        except first_voters.FirstVotersError as error:
            raise FormatError(str(error)) from None
    for folder in folders:
        if formatted[folder] is None:
            directory_id = id_from_text(random_id())
            os.makedirs(folder, exist_ok=True)
            if voters is not None and folder == config.metadata_log_dir:
                directory_id = voters.directory_of(config.node_id) or directory_id
                _write_voters(folder, first_voters.snapshot(config, voters, directory_id, time.time_ns() // 1_000_000))
            content = bootstrap.encode_bootstrap(beginning, time.time_ns() // 1_000_000)
            replace_file(f"{folder}/{bootstrap.FILE_NAME}", content)
            meta = MetaProperties(cluster_id, config.node_id, directory_id)
            replace_file(f"{folder}/{META_PROPERTIES}", meta.encode())
            sync_folder(os.path.dirname(folder.rstrip("/")))
    return [Formatted(folder, formatted[folder] is None) for folder in folders]


def formatted_cluster_id(config: NodeConfig) -> str | None:
    """The cluster that the folders are formatted for; None: they are not formatted. `FormatError`."""
    for folder in (config.metadata_log_dir, *config.log_dirs):
        if (found := _read(folder)) is not None:
            return found.cluster_id
    return None


def _write_voters(folder: str, snapshot: tuple[str, bytes] | None) -> None:
    if snapshot is None:
        return
    path = f"{folder}/{snapshot[0]}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    replace_file(path, snapshot[1])
    sync_folder(folder)


def _read(folder: str) -> MetaProperties | None:
    path = f"{folder}/{META_PROPERTIES}"
    try:
        with open(path, "rb") as file:
            return MetaProperties.decode(file.read(), path)
    except FileNotFoundError:
        return None
    except CheckpointError as error:
        raise FormatError(str(error)) from None
