"""Prometheus' text format, version 0.0.4.

Owns the spelling: families in the catalog's order, each with its HELP and TYPE, labels escaped. A name that is not in
the catalog, or labels that are not its own, are a mistake in the program and raise.
"""

from __future__ import annotations

from collections.abc import Iterable

from tanist.broker.metrics.catalog import DEFINITIONS
from tanist.broker.metrics.definition import Definition
from tanist.text import label_text

Value = int | float


class Exposition:
    """Samples on their way out: a node's, or those of other definitions."""

    def __init__(self, definitions: Iterable[Definition] = DEFINITIONS.values()) -> None:
        self._definitions = {each.name: each for each in definitions}
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, value: Value | None, *labels: str) -> None:
        """A sample; `labels` are the values of the metric's labels, in their order. None: nothing is known."""
        wanted = self._definitions[name].labels
        if len(wanted) != len(labels):
            raise ValueError(f"{name} has the labels {wanted}, not {labels}")
        if value is None:
            return
        shown = ""
        if labels:
            shown = "{" + ",".join(f'{key}="{label_text(text)}"' for key, text in zip(wanted, labels)) + "}"
        self._lines.setdefault(name, []).append(f"{name}{shown} {value}\n")

    def render(self) -> str:
        """All that was added."""
        parts: list[str] = []
        for definition in self._definitions.values():
            lines = self._lines.get(definition.name)
            if lines is not None:
                help_text = definition.help.replace("\\", "\\\\").replace("\n", "\\n")
                parts.append(f"# HELP {definition.name} {help_text}\n")
                parts.append(f"# TYPE {definition.name} {definition.kind.value}\n")
                parts += lines
        return "".join(parts)
