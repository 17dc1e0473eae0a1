"""Object stores as a file system of fsspec's, the one kind that DuckDB takes from Python. Only to read."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import local
from typing import Any, Final

from fsspec import AbstractFileSystem

from tanist.spark.stores import SCHEMES, ReadFile, opened

_BEFORE_ALL: Final = datetime.fromtimestamp(0, UTC)


class StoreFiles(AbstractFileSystem):
    """Its names are whole addresses, and name a file each: none is a pattern."""

    protocol: Final = tuple(scheme for scheme in SCHEMES if scheme != "file")
    cachable: Final = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def unstrip_protocol(self, name: str) -> str:
        return name

    def glob(self, path: str, **_: Any) -> list[str]:
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        file = opened(path)
        try:
            return {"name": path, "size": file.size, "type": "file"}
        finally:
            file.close()

    def modified(self, path: str) -> datetime:
        """Nothing changes what is in a store, so that any time does."""
        return _BEFORE_ALL

    def _open(self, path: str, mode: str = "rb", **_: Any) -> OpenFile:
        return OpenFile(path)


class OpenFile:
    """A file that several of DuckDB's threads read at once: each seeks, and reads, and between the two another may.

    Each has a file of the store of its own, which two must not use at once.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._own = local()
        self._own.file = opened(path)
        self._size = self._own.file.size
        self._at = 0
        """Behind what was read last: where one who has not sought reads on."""

    def seek(self, offset: int) -> None:
        self._own.offset = offset

    def tell(self) -> int:
        return self._at

    def read(self, length: int) -> bytes:
        at = getattr(self._own, "offset", None)
        self._own.offset = None
        at = self._at if at is None else at
        memory = bytearray(max(0, min(length, self._size - at)))
        self._at = at + self._file().read_into(memoryview(memory), at)
        return bytes(memory)

    def _file(self) -> ReadFile:
        file: ReadFile | None = getattr(self._own, "file", None)
        if file is None:
            file = self._own.file = opened(self._path, self._size)
        return file

    def close(self) -> None:
        """What is open is closed when this object goes: nobody else may close a thread's file."""
