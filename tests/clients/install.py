"""Python's clients, in virtual environments of their own: `.cache/clients-venv`, and one for the frameworks.

They are no dependency of the project: the locks (`requirements.txt`, with hashes) are theirs alone. `activate()` makes
the libraries importable behind the project's own packages, so the tests run in the project's interpreter and see its
`tanist`. Frameworks want other versions of the same libraries, and run as processes of their own.

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
HERE = Path(__file__).parent
INSTALLER = Path(__file__).resolve().parents[2] / "tools" / "install.py"


class InstallFailed(RuntimeError):
    """A package manager could not install what is locked."""


def install() -> Path:
    """The site-packages folder with the client libraries in it. Does nothing when they are there."""
    return _site_packages(venv("clients-venv", HERE / "requirements.txt"))


def frameworks() -> Path:
    """The interpreter that has faststream and quixstreams."""
    return _python(venv("frameworks-venv", HERE / "frameworks" / "requirements.txt"))


def venv(name: str, requirements: Path) -> Path:
    """A virtual environment in the cache with what the lock names; made anew when the lock has changed."""
    folder = CACHE / name
    stamp = folder / ".complete"
    wanted = f"{sys.version}\n{hashlib.sha256(requirements.read_bytes()).hexdigest()}\n"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted):
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
            # As `make setup` does it: by the index and the certificates that pip is configured for.
            installer = (sys.executable, str(INSTALLER), "--python", str(_python(folder)))
            _run(*installer, "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(requirements))
            stamp.write_text(wanted)
    return folder


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


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
