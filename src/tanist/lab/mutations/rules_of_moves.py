"""Rules of moves between log directories, broken: when a copy takes the place of a log, and what the controller knows.

Owns patches of `broker.replication.directory_moves`. They show in runs in which replicas move all the time.
"""

from __future__ import annotations

from typing import Any

from tanist.broker.replication import directory_moves
from tanist.broker.replication.directory_moves import DirectoryMoves
from tanist.lab.mutations.patching import Patch, always, fixed
from tanist.log.log import Log


def _succeeds(log: Log, predecessor: Log) -> None:
    """Whatever it has."""
    log.producers = predecessor.producers
    log._appender.set_producers(predecessor.producers)


def takes_its_place_early() -> tuple[Patch, ...]:
    copy = DirectoryMoves._copy

    def copies_some(moves: DirectoryMoves, move: Any) -> bool:
        copy(moves, move)
        return not move.over

    return (Patch(DirectoryMoves, "_copy", copies_some), Patch(Log, "succeed", _succeeds))


keeps_what_was_cut = fixed(directory_moves, "_align", always(None))

tells_nobody = fixed(DirectoryMoves, "_is_agreed", always(True))
