"""The options that choose the workload of a run: each is the name of a flag of `Terms.of`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_WORKLOADS: Final = (
    ("--groups", "consumer groups"),
    ("--transactions", "exactly-once applications"),
    ("--share-groups", "producers and share groups"),
    ("--streams", "Streams groups"),
)
SEEDS: Final = (
    "plain", "groups", "transactions", "share-groups", "streams", "voters", "trimming", "exceptions", "secured",
    "settings",
)  # fmt: skip
"""What `tanist spark seeds` plays: each but the first and the last is an option of `tanist lab run`."""


def of_runs(command: F) -> F:
    """Flags of a command that plays seeds."""
    for name, what in reversed(_WORKLOADS):
        command = click.option(name, is_flag=True, help=f"Play clusters with {what} instead.")(command)
    return command


def of_seeds(command: F) -> F:
    """Flags of a command that plays one seed again."""
    for name, _ in reversed(_WORKLOADS):
        command = click.option(name, is_flag=True, help=f"SEED is of `tanist lab run {name}`.")(command)
    return command
