"""A wheel of this checkout, for tests of what a user installs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build_wheel() -> Path:
    folder = ROOT / "build" / "wheel-of-the-tests"
    build: list[str | Path] = [ROOT / ".venv/bin/uv", "build", "--quiet", "--wheel", "--no-build-isolation"]
    subprocess.run([*build, "--python", sys.executable, "--out-dir", folder], cwd=ROOT, check=True)
    return max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)
