"""Folders and files wherever they lie: on this machine, or in an object store.

Owns the schemes of addresses, and the way to a store: by `deltalake`, which brings clients of all of them, with the
variables of its cloud (`AWS_...`) in the process that reads or writes. `path_of` gives a path for each; those of this
machine are pathlib's. What a store refuses is said in a line, with what to do. Must not import deltalake or Arrow
before an address is read: folders of this machine need neither, and threads do not survive the fork of a worker.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname
from uuid import uuid4

from tanist.runtime.client.salvaged import SavedFile
from tanist.wire.primitives import Buffer

SCHEMES: Final = ("s3", "s3a", "gs", "az", "abfs", "abfss", "file")
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""With one slash where a path was made of it already."""
_BLOCK_BYTES: Final = 512 << 10
"""Of a store at least so much is read at once: a walk over headers asks for 4 KB."""
_VARIABLES: Final = ("AWS_", "AZURE_", "GOOGLE_")
_ANSI: Final = re.compile(r"\x1b\[\d*m")
_SAID: Final = re.compile(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", re.DOTALL)
_ADVICE: Final = (
    ("NoSuchBucket", "Make the bucket, or name another"),
    (
        r"Forbidden|Unauthorized|privileges|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|InvalidToken",
        "Set the variables of an account that may (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), also for Spark's workers",
    ),
    ("scheme is not allowed", "AWS_ALLOW_HTTP=true allows an endpoint without TLS"),
    (
        r"error sending request|token request|credential",
        "Set AWS_ENDPOINT_URL, AWS_REGION and the account's variables, also for Spark's workers",
    ),
)
_REASON_MAX: Final = 400


class StoreFailed(ValueError):
    """A store cannot be reached, or refuses: why, and what to do."""


class ReadFile(Protocol):
    """A file that is only read: the `File` port, and reads into memory that somebody else owns."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def synced(self) -> int: ...

    def read(self, offset: int, length: int) -> bytes: ...

    def read_into(self, memory: memoryview, offset: int) -> int:
        """How many bytes came; 0 at the end of the file."""

    def size_now(self) -> int:
        """Nodes may write to it, or cut it."""

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None: ...

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


def scheme_of(place: str | Path) -> str | None:
    """The scheme of an address, in lower case; None of a path."""
    found = _ADDRESS.match(str(place))
    return None if found is None else found[1].lower()


def is_stored(place: str | Path) -> bool:
    """Whether it is in a store, not on this machine."""
    return scheme_of(place) not in (None, "file")


def path_of(name: str | Path) -> Path:
    """The path of that name. One in a store has of pathlib's methods those of `StoredPath`: it can only be read.

    `StoreFailed` for a scheme that is not known.
    """
    scheme = scheme_of(name)
    if scheme is not None and scheme not in SCHEMES:
        raise StoreFailed(f"{name} is an address of {scheme}: name a folder, or an address of {', '.join(SCHEMES)}")
    if is_stored(name):
        return cast(Path, StoredPath(str(name)))
    text = str(name)
    return Path(text) if scheme is None else Path(url2pathname(urlsplit(text).path))


def stored_size(path: Path) -> int | None:
    """Of a file in a store, in bytes; None on this machine, and where there is none."""
    return path.size() if isinstance(path, StoredPath) else None


def opened(path: str, size: int | None = None) -> ReadFile:
    """A file for reading; `size`, if it is known, spares a store a question. `FileNotFoundError`, `StoreFailed`."""
    return StoredFile(path, size) if is_stored(path) else LocalFile(Path(path))


class LocalFile(SavedFile):
    """`ReadFile` of this machine."""

    def read_into(self, memory: memoryview, offset: int) -> int:
        return os.preadv(self._fd, [memory], offset)

    def size_now(self) -> int:
        return os.fstat(self._fd).st_size


class StoredFile:
    """`ReadFile` of a store, where nothing changes what is there."""

    def __init__(self, path: str, size: int | None = None) -> None:
        self.path = path
        self._file: Any = None
        self._block = b""
        self._block_at = 0
        self.size = self.synced = self._opened().size() if size is None else size

    def read(self, offset: int, length: int) -> bytes:
        length = max(0, min(length, self.size - offset))
        at = offset - self._block_at
        if not 0 <= at <= at + length <= len(self._block):
            self._block = self._read(offset, max(length, min(_BLOCK_BYTES, self.size - offset))) if length else b""
            self._block_at, at = offset, 0
        return self._block[at : at + length]

    def read_into(self, memory: memoryview, offset: int) -> int:
        found = self._read(offset, max(0, min(len(memory), self.size - offset)))
        memory[: len(found)] = found
        return len(found)

    def size_now(self) -> int:
        return self.size

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        raise OSError(f"{self.path} is open for reading")

    def truncate(self, size: int) -> None:
        raise OSError(f"{self.path} is open for reading")

    def close(self) -> None:
        self._block = b""
        if self._file is not None:
            self._file.close()

    def _read(self, offset: int, length: int) -> bytes:
        if not length:
            return b""
        with failing(self.path):
            return bytes(self._opened().read_at(length, offset))

    def _opened(self) -> Any:
        if self._file is None:
            with failing(self.path):
                self._file = _handler_of(self.path).open_input_file(_key(self.path))
        return self._file


class StoredPath:
    """A path in a store. What is below a path is asked once, for it and for all paths that come from it."""

    def __init__(self, address: str, listing: _Listing | None = None) -> None:
        scheme, _, rest = address.partition(":/")
        self._address = f"{scheme}://{rest.strip('/')}"
        self._listing = listing or _Listing(self._address)

    def __str__(self) -> str:
        return self._address

    def __repr__(self) -> str:
        return f"StoredPath({self._address!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredPath) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __lt__(self, other: StoredPath) -> bool:
        return self._address < other._address

    def __truediv__(self, name: str | Path) -> StoredPath:
        """An absolute path is of another machine: there is nothing of that name here."""
        return StoredPath(f"{self._address}/{name}", self._listing)

    @property
    def name(self) -> str:
        return self._address.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    @property
    def parent(self) -> StoredPath:
        if not _key(self._address):
            return self
        above = self._address.rpartition("/")[0]
        return StoredPath(above, self._listing if self._listing.covers(above) else None)

    @property
    def parents(self) -> tuple[StoredPath, ...]:
        found: list[StoredPath] = []
        here = self
        while here.parent != here:
            here = here.parent
            found.append(here)
        return tuple(found)

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self._address.split("/"))

    def resolve(self) -> StoredPath:
        return self

    def absolute(self) -> StoredPath:
        return self

    def exists(self) -> bool:
        return self._listing.size_of(self._address) is not None or self.is_dir()

    def is_dir(self) -> bool:
        return self._listing.inside(self._address) is not None

    def size(self) -> int | None:
        """Of a file, in bytes. pathlib has no such method."""
        return self._listing.size_of(self._address)

    def iterdir(self) -> Iterator[StoredPath]:
        for name in self._listing.inside(self._address) or ():
            yield self / name

    def glob(self, pattern: str) -> Iterator[StoredPath]:
        """Of a pattern without `**`; those that end with a slash are folders."""
        first, _, rest = pattern.partition("/")
        for path in self.iterdir():
            if fnmatchcase(path.name, first):
                if rest:
                    yield from path.glob(rest)
                elif not pattern.endswith("/") or path.is_dir():
                    yield path

    def read_bytes(self) -> bytes:
        file = StoredFile(self._address, self._listing.known_size(self._address))
        try:
            return file.read(0, file.size)
        finally:
            file.close()

    def read_text(self) -> str:
        return self.read_bytes().decode()


class _Listing:
    """What is below an address, asked when it is wanted."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._sizes: dict[str, int] | None = None
        self._folders: dict[str, dict[str, None]] = {}

    def covers(self, address: str) -> bool:
        return address == self._root or address.startswith(f"{self._root}/")

    def size_of(self, address: str) -> int | None:
        """Of a file; None if there is none."""
        return self._listed().get(address)

    def known_size(self, address: str) -> int | None:
        """The same, if nobody has to be asked."""
        if self._sizes is None or not self.covers(address):
            return None
        if address not in self._sizes:
            raise _missing(address)
        return self._sizes[address]

    def inside(self, address: str) -> dict[str, None] | None:
        """The names in a folder; None if there is none."""
        self._listed()
        return self._folders.get(address)

    def _listed(self) -> dict[str, int]:
        if self._sizes is None:
            self._sizes = dict(files_below(self._root))
            for address in self._sizes:
                while address != self._root:
                    above, _, name = address.rpartition("/")
                    known = self._folders.setdefault(above, {})
                    if name in known:
                        break
                    known[name] = None
                    address = above
        return self._sizes


def files_below(address: str) -> Iterator[tuple[str, int]]:
    """The address and the size of each file in a folder of a store and in its folders. `StoreFailed`."""
    from pyarrow.fs import FileSelector, FileType

    handler, key = _handler_of(address), _key(address)
    with failing(address):
        found = handler.get_file_info_selector(FileSelector(key, recursive=True))
    bucket = address[: len(address) - len(key)].rstrip("/")
    for info in found:
        if info.type == FileType.File:
            yield f"{bucket}/{info.path}", info.size


def filesystem(folder: str) -> Any:
    """A folder of this machine or of a store as Arrow's file system, to write to."""
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    with failing(folder):
        return PyFileSystem(DeltaStorageHandler(folder))


def readable(path: str) -> Any:
    """What Arrow reads a file by. `FileNotFoundError`, `StoreFailed`."""
    return _handler_of(path).open_input_file(_key(path)) if is_stored(path) else path


def require_writable(folder: str) -> None:
    """`StoreFailed` if a folder of a store takes no file."""
    name = f"_writable-{uuid4()}"
    with failing(folder):
        store = filesystem(folder)
        with store.open_output_stream(name):
            pass
        store.delete_file(name)


@contextmanager
def failing(address: str) -> Iterator[None]:
    """What goes wrong in it as `StoreFailed`, or as `FileNotFoundError`."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" not in str(error):
            raise _missing(address) from error
        raise StoreFailed(reason(address, error)) from error
    except (OSError, DeltaError) as error:
        raise StoreFailed(reason(address, error)) from error


def _missing(address: str) -> FileNotFoundError:
    """As a file of this machine that is not there; Delta's library draws a tree of causes."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), address)


def reason(address: str, error: Exception) -> str:
    """In one line why a store fails, and what to do. Delta's library draws a tree of causes."""
    whole = " ".join(_ANSI.sub("", str(error)).replace("↳", "").split())
    said = _SAID.search(whole)
    text = f"{said[1]}: {said[2]}" if said is not None else whole
    advice = next((f". {what}" for pattern, what in _ADVICE if re.search(pattern, whole)), "")
    return f"{address} cannot be reached: {text[:_REASON_MAX].rstrip('. ')}{advice}"


def _key(address: str) -> str:
    """Below the bucket."""
    return address.partition("://")[2].partition("/")[2]


def _handler_of(address: str) -> Any:
    """The client of the address's bucket."""
    scheme, _, rest = address.partition("://")
    variables = tuple(sorted(each for each in os.environ.items() if each[0].startswith(_VARIABLES)))
    with failing(address):
        return _handler(f"{scheme}://{rest.partition('/')[0]}", variables)


@lru_cache(maxsize=16)
def _handler(bucket: str, _variables: Any) -> Any:
    from deltalake.fs import DeltaStorageHandler

    return DeltaStorageHandler(bucket)
