"""How this copy of tanist was installed: which command adds an extra to it, and which commit it is.

Nothing is released: an index that has a package of this name has somebody else's. So a hint names the checkout, the
wheel or the address that this copy came from, as the installer wrote it down (`direct_url.json`, PEP 610). Only a copy
that came from an index is looked for there. Any layer may use it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_NAME = "tanist"
_COMMIT_DIGITS = 12
_SOURCES = Path(__file__).parents[2]
"""The checkout, if the package is used from one without being installed."""


def add_extra(extra: str) -> str:
    """A command for the shell."""
    from importlib.metadata import PackageNotFoundError, distribution  # many imports, for a message that is rare

    try:
        wanted = requirements(extra, distribution(_NAME))
    except PackageNotFoundError:
        wanted = ["--editable", _with(_SOURCES, extra)]
    return shlex.join([*_pip_install(), *wanted])


def commit() -> str:
    """The commit of this copy, twelve digits, if the installer noted it or this is a checkout; else ""."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = commit_noted(distribution(_NAME))
    except PackageNotFoundError:
        noted = ""
    return noted or commit_of_checkout(Path(__file__))


def commit_noted(copy: Distribution) -> str:
    """By the installer, of a copy that came from a repository."""
    origin: dict[str, Any] = json.loads(copy.read_text("direct_url.json") or "{}")
    return str(origin.get("vcs_info", {}).get("commit_id", ""))[:_COMMIT_DIGITS]


def commit_of_checkout(file: Path) -> str:
    """Nothing if git does not have the file: an environment in somebody's checkout is not of its commit."""
    if shutil.which("git") is None:
        return ""
    where: dict[str, Any] = {"cwd": file.parent, "capture_output": True, "text": True, "check": False}
    tracked = subprocess.run(["git", "ls-files", "--error-unmatch", file.name], **where)
    done = subprocess.run(["git", "rev-parse", f"--short={_COMMIT_DIGITS}", "HEAD"], **where)
    return done.stdout.strip() if done.returncode == tracked.returncode == 0 else ""


def requirements(extra: str, copy: Distribution) -> list[str]:
    """What the installer is given for an extra of this copy."""
    origin: dict[str, Any] = json.loads(copy.read_text("direct_url.json") or "{}")
    if not origin:
        return [f"{_NAME}[{extra}]=={copy.version}"]
    url = origin["url"]
    if "vcs_info" in origin:
        known = origin["vcs_info"]
        return [f"{_NAME}[{extra}] @ {known['vcs']}+{url}@{known['commit_id']}"]
    if urlsplit(url).scheme != "file":
        return [f"{_NAME}[{extra}] @ {url}"]
    path = Path(unquote(urlsplit(url).path))
    if not path.exists():
        return _packages_of(extra, copy)
    return [*(["--editable"] if origin.get("dir_info", {}).get("editable") else []), _with(path, extra)]


def _with(path: Path, extra: str) -> str:
    return f".[{extra}]" if path == Path.cwd() else f"{path}[{extra}]"


def _packages_of(extra: str, copy: Distribution) -> list[str]:
    """The packages that the extra stands for: what this copy came from is gone."""
    found = []
    for each in copy.requires or ():
        package, _, marker = each.partition(";")
        if f"extra == '{extra}'" in marker.replace('"', "'"):
            found.append(package.strip())
    return found


def _pip_install() -> list[str]:
    """By the pip of this copy's environment, which need not be the one of the shell's PATH."""
    program = Path(sys.executable)
    on_path = shutil.which("pip")
    if on_path is not None and Path(on_path).parent == program.parent:
        return ["pip", "install"]
    shown = os.path.relpath(program) if program.is_relative_to(Path.cwd()) else str(program)
    if find_spec("pip") is not None:
        return [shown, "-m", "pip", "install"]
    return ["uv", "pip", "install", "--python", shown]
