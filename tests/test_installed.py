"""`tanist.installed`: a hint leads to what this copy came from, and to an index only if it came from one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from tanist import installed

Installed = Callable[[dict[str, Any] | None], Distribution]


@pytest.fixture
def copy(tmp_path: Path) -> Installed:
    """A copy with this record of where it came from."""

    def made(origin: dict[str, Any] | None) -> Distribution:
        folder = tmp_path / "tanist-0.1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            "Metadata-Version: 2.4\nName: tanist\nVersion: 0.1.0\nProvides-Extra: ui\nRequires-Dist: click>=8.1\n"
            "Requires-Dist: starlette>=0.45; extra == 'ui'\nRequires-Dist: uvicorn>=0.30; extra == \"ui\"\n"
        )
        if origin is not None:
            (folder / "direct_url.json").write_text(json.dumps(origin))
        return PathDistribution(folder)

    return made


def test_an_editable_checkout(copy: Installed, tmp_path: Path) -> None:
    found = copy({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    assert installed.requirements("ui", found) == ["--editable", f"{tmp_path}[ui]"]


def test_a_checkout_that_is_here(copy: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert installed.requirements("ui", copy({"url": tmp_path.as_uri(), "dir_info": {}})) == [".[ui]"]


def test_a_wheel_in_a_folder_with_a_space(copy: Installed, tmp_path: Path) -> None:
    wheel = tmp_path / "my wheels" / "tanist-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    assert installed.requirements("ui", copy({"url": wheel.as_uri(), "archive_info": {}})) == [f"{wheel}[ui]"]


def test_a_wheel_that_is_gone(copy: Installed, tmp_path: Path) -> None:
    found = copy({"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}})
    assert installed.requirements("ui", found) == ["starlette>=0.45", "uvicorn>=0.30"]


def test_a_wheel_of_a_server(copy: Installed) -> None:
    url = "https://example.org/tanist-0.1.0-py3-none-any.whl"
    assert installed.requirements("ui", copy({"url": url, "archive_info": {}})) == [f"tanist[ui] @ {url}"]


def test_a_commit(copy: Installed) -> None:
    found = copy({"url": "https://example.org/t.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}})
    assert installed.requirements("ui", found) == ["tanist[ui] @ git+https://example.org/t.git@abc"]


def test_an_index_with_the_very_version_that_came_from_it(copy: Installed) -> None:
    assert installed.requirements("ui", copy(None)) == ["tanist[ui]==0.1.0"]


def test_the_command_is_for_the_shell_and_for_this_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    command = installed.add_extra("ui")
    assert command.startswith(f"{sys.executable} -m pip install ")
    assert command.endswith("[ui]'")


def test_the_pip_of_an_activated_environment_is_just_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pip").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert installed.add_extra("ui").startswith("pip install ")


def test_an_environment_without_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    assert installed.add_extra("ui").startswith("uv pip install --python bin/python ")


def test_the_commit_is_the_installers_or_that_of_the_checkout_which_has_the_file(
    copy: Installed, tmp_path: Path
) -> None:
    noted = {"url": "https://example.org/tanist", "vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef" * 2}}
    assert installed.commit_noted(copy(noted)) == "0123456789ab"
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(tmp_path)]
    for each in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *each], check=True)
    (tmp_path / "module.py").touch()
    assert installed.commit_of_checkout(tmp_path / "module.py") == ""
    subprocess.run([*git, "add", "module.py"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert installed.commit_of_checkout(tmp_path / "module.py") == head[:12]
