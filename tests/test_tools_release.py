"""`make release` refuses what must not be published."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools import release

GOOD_WHEEL = {
    **dict.fromkeys(release.NEEDED, "x = 1\n"),
    "tanist-0.1.dist-info/entry_points.txt": "\n".join(release.COMMANDS),
    "tanist-0.1.dist-info/METADATA": "Name: tanist\n",
}
GOOD_SDIST = {**{f"src/{name}": "x = 1\n" for name in release.NEEDED}, **dict.fromkeys(release.NEEDED_IN_SDIST, "x\n")}


def wheel(folder: Path, files: Mapping[str, str]) -> Path:
    file = folder / "tanist-0.1-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file


def sdist(folder: Path, files: Mapping[str, str]) -> Path:
    file = folder / "tanist-0.1.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"tanist-0.1/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return file


def test_a_complete_wheel_and_sdist_pass(tmp_path: Path) -> None:
    release.check_contents(wheel(tmp_path, GOOD_WHEEL))
    release.check_contents(sdist(tmp_path, GOOD_SDIST))


@pytest.mark.parametrize("name", release.NEEDED)
def test_a_file_is_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(release.NotFit, match=name):
        release.check_contents(wheel(tmp_path, {key: text for key, text in GOOD_WHEEL.items() if key != name}))
    with pytest.raises(release.NotFit, match=name):
        release.check_contents(sdist(tmp_path, {key: text for key, text in GOOD_SDIST.items() if key != f"src/{name}"}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tests/test_one.py", ""),
        ("tanist/log/test_one.py", ""),
        ("tanist/conftest.py", ""),
        ("tanist/__pycache__/one.pyc", ""),
        ("tanist/.env", ""),
        ("elsewhere/one.py", ""),
        ("tanist/one.py", "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "M" * 64),
        ("tanist/one.py", "AKIA" + "A" * 16),
        ("tanist/one.py", "ghp_" + "a" * 36),
        ("tanist/one.py", "open('/ho" + "me/somebody/x')"),
    ],
)
def test_what_must_not_be_there(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(release.NotFit):
        release.check_contents(wheel(tmp_path, {**GOOD_WHEEL, name: text}))


def test_the_plugin_must_be_an_entry_point(tmp_path: Path) -> None:
    points = {"tanist-0.1.dist-info/entry_points.txt": release.COMMANDS[0]}
    with pytest.raises(release.NotFit, match=r"tanist\.testing\.plugin"):
        release.check_contents(wheel(tmp_path, GOOD_WHEEL | points))
