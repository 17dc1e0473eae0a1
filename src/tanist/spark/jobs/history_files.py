"""The files of a history, on this machine or in a store, and what is said of those that cannot be audited.

Of both engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from tanist.spark.stores import files_below, is_stored, opened, path_of

_PARQUET_MAGIC: Final = b"PAR1"
NO_TIME: Final = "operations of two lines can be put together only if the lines have time_ns"
NO_COLUMN: Final = "the history has no column {}: docs/history.md says what a history is"


class HistoryUnfit(ValueError):
    """A history that cannot be audited: what is wrong, and what to do."""


def are_parquet(paths: Sequence[str | Path]) -> bool:
    """Files, or folders of Parquet files; False: they are JSON Lines."""
    if not paths:
        raise HistoryUnfit("no history was named")
    parquet = [_is_parquet(path_of(path)) for path in paths]
    if any(parquet) != all(parquet):
        raise HistoryUnfit("the histories are partly JSON Lines, partly Parquet: audit them as one or the other")
    return parquet[0]


def _is_parquet(path: Path) -> bool:
    return path.is_dir() or first_bytes(path, len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def first_bytes(path: Path, length: int) -> bytes:
    """Of a file; fewer if it has no more. `OSError`, `StoreFailed`."""
    with closing(opened(str(path))) as file:
        return file.read(0, length)


def files_of(path: Path) -> list[str]:
    """The file, or those of a folder and of its folders that Spark sees: no name begins with a dot or an underscore."""
    if not path.is_dir():
        return [str(path)]
    root = str(path)
    below = files_below(root) if is_stored(root) else ((str(file), 0) for file in path.rglob("*") if file.is_file())
    found = sorted(file for file, _ in below)
    return [file for file in found if not any(part[0] in "._" for part in file[len(root) :].strip("/").split("/"))]
