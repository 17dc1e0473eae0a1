"""Pythons of this machine, by version: from the PATH, or of pyenv."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""All that tanist supports."""


def interpreter(version: str) -> str | None:
    """A program that starts. The commands of pyenv do not start a version that is not the one in use."""
    on_path = shutil.which(f"python{version}")
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    of_pyenv = sorted(folder.glob(f"{version}.*/bin/python{version}"))
    return next((found for found in (on_path, *map(str, reversed(of_pyenv))) if found and _starts(found)), None)


def _starts(program: str) -> bool:
    return subprocess.run([program, "-c", "pass"], capture_output=True, check=False).returncode == 0
