"""The built page in the repository is what its source makes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tanist.web.server import static_folder
from tests.web.browser import WEB

pytestmark = pytest.mark.ui


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_bundle_is_built_from_this_source(tmp_path: Path) -> None:
    if shutil.which("npm") is None or not (WEB / "node_modules" / "vite").is_dir():
        pytest.skip("npm or web/node_modules is missing: cd web && npm ci")
    built = tmp_path / "static"
    command = ["npx", "vite", "build", "--logLevel", "error", "--outDir", str(built)]
    subprocess.run(command, cwd=WEB, check=True, timeout=300)
    assert contents(built) == contents(static_folder()), "run `make web`, and commit what it has built"
