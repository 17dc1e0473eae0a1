"""The files of a history, and what is said of those that cannot be audited. Of both engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PARQUET_MAGIC: Final = b"PAR1"
NO_TIME: Final = "operations of two lines can be put together only if the lines have time_ns"
NO_COLUMN: Final = "the history has no column {}: docs/history.md says what a history is"


class HistoryUnfit(ValueError):
    """A history that cannot be audited: what is wrong, and what to do."""


def are_parquet(paths: Sequence[str | Path]) -> bool:
    """Files, or folders of Parquet files; False: they are JSON Lines."""
    if not paths:
        raise HistoryUnfit("no history was named")
    parquet = [_is_parquet(Path(path)) for path in paths]
    if any(parquet) != all(parquet):
        raise HistoryUnfit("the histories are partly JSON Lines, partly Parquet: audit them as one or the other")
    return parquet[0]


def _is_parquet(path: Path) -> bool:
    if path.is_dir():
        return True
    with path.open("rb") as file:
        return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
