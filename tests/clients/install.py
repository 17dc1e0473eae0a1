"""The client libraries, in a virtual environment of their own: `.cache/clients-venv`.

They are no dependency of the project: the lock (`requirements.txt`, with hashes) is theirs alone. `activate()` makes
them importable behind the project's own packages, so the tests run in the project's interpreter and see its `tanist`.

    python -m tests.clients.install     installs, if the lock has changed since, and prints the folder
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache"
VENV = CACHE / "clients-venv"
LOCK = Path(__file__).with_name("requirements.txt")


class InstallFailed(RuntimeError):
    """pip could not install the locked packages."""


def _stamp() -> str:
    return f"{sys.version}\n{hashlib.sha256(LOCK.read_bytes()).hexdigest()}\n"


def install() -> Path:
    """The site-packages folder with the locked packages in it. Does nothing when they are there."""
    site = VENV / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    stamp = VENV / ".complete"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "clients-venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == _stamp():
            return site
        shutil.rmtree(VENV, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(VENV))
        pip = (str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q")
        _run(*pip, "install", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(LOCK))
        stamp.write_text(_stamp())
    return site


def activate() -> None:
    """Make the libraries importable; the project's own packages keep precedence."""
    site = str(install())
    if site not in sys.path:
        sys.path.append(site)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise InstallFailed(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    print(install())
