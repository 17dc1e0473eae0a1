"""Writes histories, one line an operation.

Owns no clock and no file: the caller gives the times, and opens and closes. Lines of one process must have the order of
its operations; threads that share a writer hold a lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TextIO


class HistoryWriter:
    """Appends operations to a file of text."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, operation: Mapping[str, Any]) -> None:
        """Write any line; fields that are None are left out."""
        kept = {name: value for name, value in operation.items() if value is not None}
        self._file.write(json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n")

    def invoke(self, process: str | int, function: str, time_ns: int | None = None, **fields: Any) -> None:
        self.write({"process": process, "type": "invoke", "f": function, "time_ns": time_ns, **fields})

    def complete(
        self, process: str | int, function: str, outcome: str, time_ns: int | None = None, **fields: Any
    ) -> None:
        """`outcome` is ok, fail or info."""
        self.write({"process": process, "type": outcome, "f": function, "time_ns": time_ns, **fields})

    def poll(
        self,
        process: str | int,
        partition: str,
        records: Iterable[tuple[int, str | int]],
        time_ns: int | None = None,
        **fields: Any,
    ) -> None:
        """A poll that gave records of one partition."""
        self.complete(process, "poll", "ok", time_ns, records={partition: list(records)}, **fields)
