"""Exceptions that a run plants in a node, where nobody expects one.

Every other exception that a node meets is a violation, also one that it answers with UNKNOWN_SERVER_ERROR and goes on
after (`Host.met`). What a planted one has torn must not be used any more (docs/operations.md has the table): the safety
properties hold afterwards, and the cluster becomes whole.
"""

from __future__ import annotations


class PlantedError(Exception):
    """Raised by the run, not by the node."""


class PlantedMemoryError(PlantedError, MemoryError):
    """An allocation that fails."""


def is_planted(error: BaseException | None) -> bool:
    """Whether the run has planted it, or it was raised because of one that was."""
    while error is not None:
        if isinstance(error, PlantedError):
            return True
        error = error.__cause__ or error.__context__
    return False
