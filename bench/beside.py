"""Other work on each core while the sides are measured: tests and CI live on machines that do something else, too.

`hog` computes without end and touches little memory. `build` compiles Python's library over and over: it reads,
computes, allocates and writes files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_HOG: Final = """
while True:
    pass
"""

_BUILD: Final = """
import pathlib, py_compile, sys, sysconfig
files = sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))
while True:
    for number, file in enumerate(files):
        py_compile.compile(str(file), cfile=f"{sys.argv[1]}/{number}.pyc", quiet=2)
"""

PROGRAMS: Final = {"none": "", "hog": _HOG, "build": _BUILD}


@contextmanager
def beside(kind: str) -> Iterator[None]:
    """One process of that kind on each core."""
    program = PROGRAMS[kind]
    with tempfile.TemporaryDirectory(prefix="tanist-beside-") as folder:
        running = [
            subprocess.Popen([sys.executable, "-c", program, folder]) for _ in range(os.cpu_count() or 1) if program
        ]
        try:
            yield
        finally:
            for process in running:
                process.kill()
            for process in running:
                process.wait()
