"""Build what is to be published, check it, try it, and stop before the upload (`make release`).

    python tools/release.py [--python 3.11 ...] [--extra ui ...]

1. The commit, not the working tree, is exported into two folders. In one the sdist is built and the wheel from it, in
   the other the sdist and the wheel from the sources. Both must have the same bytes: SOURCE_DATE_EPOCH is the commit's.
2. The contents: all that a user needs, and no test, no secret and no path of the machine. `twine check` reads the
   metadata.
3. `dist/` gets the files and SHA256SUMS.
4. `tools/try_wheel.py` installs the wheel into empty environments and uses it.

The upload is a person's: the last line printed is its command.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools import try_wheel  # noqa: E402

DIST = ROOT / "dist"
BIN = Path(sys.executable).parent

NEEDED = (
    "tanist/__init__.py",
    "tanist/py.typed",
    "tanist/testing/plugin.py",
    "tanist/web/static/index.html",
    "tanist/web/static/assets/app.css",
    "tanist/web/static/assets/app.js",
)
NEEDED_IN_SDIST = ("CHANGELOG.md", "GAPS.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md", "pyproject.toml")
COMMANDS = ("tanist = tanist.cli.main:main", "tanist = tanist.testing.plugin")
"""Lines of entry_points.txt: the program, and pytest's plugin."""

_TEST = re.compile(r"(^|/)(tests?|conftest\.py|test_[^/]*\.py)(/|$)")
_UNWANTED = re.compile(r"(^|/)(\.env|\.git|\.venv|node_modules|__pycache__|[^/]*\.(pyc|pem|key|map|log))(/|$)")
_SECRETS = (
    (re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{16}"), "a private key"),
    (re.compile(rb"\bAKIA[0-9A-Z]{16}\b"), "an AWS key"),
    (re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36}\b"), "a GitHub token"),
    (re.compile(rb"\bpypi-[A-Za-z0-9_-]{50,}"), "a PyPI token"),
    (re.compile(rb"/(home|root|Users)/[A-Za-z]"), "a path of somebody's machine"),
)


class NotFit(Exception):
    """The release must not be published, for this reason."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="only this version; repeatable")
    parser.add_argument("--extra", action="append", help="try only this extra; repeatable. `none`: no extra")
    wanted = parser.parse_args()
    try:
        files = build()
    except NotFit as error:
        print(f"not fit to be published: {error}", file=sys.stderr)
        return 1
    wheel = next(file for file in files if file.suffix == ".whl")
    try_wheel.main(wheel, wanted.python, wanted.extra)
    print("\nnothing is uploaded. To publish these files:")
    print(f"    {BIN.relative_to(ROOT)}/twine upload {' '.join(str(file.relative_to(ROOT)) for file in files)}")
    return 0


def build() -> list[Path]:
    """The checked files in dist/, with their checksums beside them."""
    commit, epoch = _git("log", "-1", "--format=%H %ct").split()
    if changed := _git("status", "--porcelain"):
        print(f"note: of the commit; changes that are not committed are left out:\n{changed}")
    with tempfile.TemporaryDirectory(prefix="tanist-release-") as scratch:
        one, other = (_export(commit, Path(scratch) / name) for name in ("one", "other"))
        _build(one, epoch)
        _build(other, epoch, "--sdist", "--wheel")
        made, again = (sorted((folder / "dist").glob("tanist-*")) for folder in (one, other))
        if [*map(_sha256, made)] != [*map(_sha256, again)]:
            raise NotFit("two builds of the same commit differ")
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        files = [Path(shutil.copy(file, DIST)) for file in made]
    for file in files:
        check_contents(file)
    subprocess.run([str(BIN / "twine"), "check", "--strict", *map(str, files)], check=True)
    sums = "".join(f"{_sha256(file)}  {file.name}\n" for file in files)
    (DIST / "SHA256SUMS").write_text(sums)
    print(f"commit {commit[:12]}, SOURCE_DATE_EPOCH {epoch}; built twice with the same bytes")
    for file in files:
        print(f"{_sha256(file)}  {file.name}  {file.stat().st_size:,} bytes, {len(_names(file))} files")
    return files


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _export(commit: str, folder: Path) -> Path:
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def _build(folder: Path, epoch: str, *kinds: str) -> None:
    command = [str(BIN / "uv"), "build", "--quiet", "--no-build-isolation", "--python", sys.executable, *kinds]
    subprocess.run(command, cwd=folder, env=os.environ | {"SOURCE_DATE_EPOCH": epoch}, check=True)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_contents(file: Path) -> None:
    """Raise `NotFit` if the wheel or sdist lacks something, or has something that it must not have."""
    names, read = _names(file), _reader(file)
    if file.suffix == ".whl":
        wanted: tuple[str, ...] = NEEDED
        stray = [name for name in names if not re.match(r"tanist(-[^/]+\.dist-info)?/", name)]
        points = read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
        if missing := [line for line in COMMANDS if line not in points]:
            raise NotFit(f"{file.name}: entry points lack {missing}")
    else:
        wanted = (*(f"src/{name}" for name in NEEDED), *NEEDED_IN_SDIST)
        stray = [name for name in names if not re.match(r"src/tanist/|[^/]+$", name)]
    if missing := [name for name in wanted if name not in names]:
        raise NotFit(f"{file.name} lacks {missing}")
    if found := stray + [name for name in names if _TEST.search(name) or _UNWANTED.search(name)]:
        raise NotFit(f"{file.name} has {found[:5]}")
    if secrets := list(_secrets(names, read)):
        raise NotFit(f"{file.name}: {'; '.join(secrets)}")


def _secrets(names: Mapping[str, object], read: Callable[[str], bytes]) -> Iterator[str]:
    for name in names:
        contents = read(name)
        yield from (f"{what} in {name}" for pattern, what in _SECRETS if pattern.search(contents))


def _names(file: Path) -> dict[str, object]:
    """Names in the archive; those of an sdist without the folder that all of them are in."""
    if file.suffix == ".whl":
        return dict.fromkeys(zipfile.ZipFile(file).namelist())
    with tarfile.open(file) as archive:
        return {member.name.partition("/")[2]: member for member in archive.getmembers() if member.isfile()}


def _reader(file: Path) -> Callable[[str], bytes]:
    if file.suffix == ".whl":
        return zipfile.ZipFile(file).read
    with tarfile.open(file) as archive:
        contents = {}
        for member in archive.getmembers():
            opened = archive.extractfile(member)
            if opened is not None:
                contents[member.name.partition("/")[2]] = opened.read()
    return contents.__getitem__


if __name__ == "__main__":
    raise SystemExit(main())
