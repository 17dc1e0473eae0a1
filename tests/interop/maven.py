"""Jars from Maven Central, pinned by a pom, in a folder below `.cache/`: fetched if absent, or if the pins changed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.interop.cluster import CACHE

_STAMP = ".complete"


class FetchFailed(AssertionError):
    """Maven could not fetch what a pom names."""


def is_complete(pom: Path, folder: Path, settings: Sequence[str] = ()) -> bool:
    stamp = folder / _STAMP
    return stamp.exists() and stamp.read_text() == _digest(pom, settings)


def can_fetch(pom: Path, folder: Path, settings: Sequence[str] = ()) -> bool:
    return is_complete(pom, folder, settings) or shutil.which("mvn") is not None


def fetched(
    pom: Path, folder: Path, finish: Callable[[Path], None] = lambda _: None, settings: Sequence[str] = ()
) -> Path:
    """The folder of jars. `finish` puts other files beside them; `settings` are Maven's arguments."""
    if is_complete(pom, folder, settings):
        return folder
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{folder.name}-fetch-") as scratch:
        jars = Path(scratch) / "jars"
        goal = [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}",
            *settings,
        ]
        done = subprocess.run(goal, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise FetchFailed(f"Maven could not fetch what {pom.name} names:\n{done.stdout}\n{done.stderr}")
        finish(jars)
        (jars / _STAMP).write_text(_digest(pom, settings))
        # Two runs may fetch at once: the first to rename wins, the other finds the folder complete.
        if folder.exists() and not is_complete(pom, folder, settings):
            shutil.rmtree(folder)
        try:
            jars.rename(folder)
        except OSError:
            if not is_complete(pom, folder, settings):
                raise
    return folder


def _digest(pom: Path, settings: Sequence[str]) -> str:
    return hashlib.sha256("\0".join((pom.read_text(), *settings)).encode()).hexdigest()
