"""What nodes say of their replicas (`runtime.client.node_pages`), as the live view has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tanist.runtime.client.node_pages import NoAnswer as NoAnswer
from tanist.runtime.client.node_pages import ask as ask

Pages: TypeAlias = Mapping[int, list[dict[str, Any]]]
"""The answers of each node that answered."""


def row_of(answers: Iterable[Mapping[str, Any]], topic: str, partition: int) -> dict[str, Any] | None:
    """The replica of a partition in a node's answers."""
    for answer in answers:
        for row in answer["replicas"]:
            if row["partition"] == partition and row["topic"] == topic:
                found: dict[str, Any] = row
                return found
    return None
