"""Small file systems, and a cluster for all commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_rig import Mount
from tests.cli.command_cases import cluster_of_the_cases


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with cluster_of_the_cases(tmp_path_factory.mktemp("cases")) as found:
        yield found


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """A small file system of its own."""
    mounted: list[Path] = []

    def make(options: str) -> Path:
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if sys.platform != "linux":
            pytest.skip("mounts a tmpfs, which is Linux only")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
