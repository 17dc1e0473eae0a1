"""A Spark home without the zipped copy of PySpark, so that workers import the one that is installed.

Spark puts `python/lib/pyspark.zip` of its home first on the path of each Python that it starts. Nothing in a zip stays
compiled: seven processes for a source's first query compile PySpark, half a second of CPU each. A folder below the
user's cache has links to all of an installed PySpark that makes a Spark home, but `python`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import tanist
from tanist.spark.java_home import cache_folder, digest

_LINKED: Final = ("bin", "conf", "data", "jars", "sbin")
_SPARK_HOME: Final = "SPARK_HOME"
_PYTHONPATH: Final = "PYTHONPATH"


@contextmanager
def without_zips() -> Iterator[None]:
    """Java that is started in here has such a home, unless SPARK_HOME names one, or workers have another Python."""
    installed = _installed()
    if installed is None or _SPARK_HOME in os.environ or not own_python():
        yield
        return
    os.environ[_SPARK_HOME] = linked(installed)
    try:
        yield
    finally:
        del os.environ[_SPARK_HOME]


@contextmanager
def own_packages() -> Iterator[None]:
    """Java that is started in here lets its Pythons import what this one imports.

    Those on the driver plan what the sources read, with the workers' Python: what a worker gets by an archive is in no
    place where they look.
    """
    paths = [str(Path(tanist.__file__).parents[1]), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    before = os.environ.get(_PYTHONPATH)
    os.environ[_PYTHONPATH] = os.pathsep.join(dict.fromkeys(filter(None, [before, *paths])))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_PYTHONPATH]
        else:
            os.environ[_PYTHONPATH] = before


def own_python() -> bool:
    """Whether the workers of this machine run the Python of this process, with what is installed there."""
    return os.environ.get("PYSPARK_PYTHON") == sys.executable


def linked(installed: Path, cache: Path | None = None) -> str:
    """The home. What is not there may come, as `conf`: its link is there before."""
    home = (cache or cache_folder()) / f"spark-{digest(installed)}"
    home.mkdir(parents=True, exist_ok=True)
    for name in _LINKED:
        link = home / name
        if not link.is_symlink():
            try:
                link.symlink_to(installed / name)
            except FileExistsError:
                continue  # by another session, just now
    return str(home)


def _installed() -> Path | None:
    """PySpark's folder, if it brings Spark and is not the zip itself."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return folder if (folder / "jars").is_dir() and (folder / "bin" / "spark-submit").is_file() else None
