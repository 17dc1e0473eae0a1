"""Clients that are not Python's: their packages and programs, in `.cache`, made from locks when first asked for.

`missing_node()` and `missing_go()` say why a client cannot be run on this machine, None if it can.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.clients.install import CACHE, InstallFailed
from tests.interop import versions

HERE = Path(__file__).parent
KAFKAJS = HERE / "kafkajs"
FRANZ = HERE / "franz"
INSTALL_S = 600.0


def missing_node() -> str | None:
    lacking = [name for name in ("node", "npm") if shutil.which(name) is None]
    return f"needs Node.js ({' and '.join(lacking)} not on PATH)" if lacking else None


def missing_go() -> str | None:
    return "needs Go (go is not on PATH)" if shutil.which("go") is None else None


def node_modules(project: Path = KAFKAJS, name: str = "clients-node") -> Path:
    """The folder of packages that the project's `package-lock.json` names."""
    sources = [project / source for source in ("package.json", "package-lock.json")]

    def fill(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        _run(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), cwd=folder)

    return _made(name, sources, fill) / "node_modules"


def franz(program: str) -> Path:
    """A program of `franz/`, built: `member`, `copier`, `sender`, `steps` or `transactional`."""
    programs = {"member": "."} | {name: f"./{name}" for name in ("copier", "sender", "steps", "transactional")}
    sources = [FRANZ / "go.mod", FRANZ / "go.sum", *sorted(FRANZ.rglob("*.go"))]

    def fill(folder: Path) -> None:
        for name, package in programs.items():
            command = ("go", "build", "-mod=readonly", "-o", str(folder / name), package)
            _run(command, cwd=FRANZ, env=go_environment())

    return _made("clients-franz", sources, fill) / program


def missing_maven() -> str | None:
    """Kafka Connect, Streams, Flink and older clients are Java's, and come from Maven Central."""
    lacking = [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]
    return f"needs Java 17 and Maven ({' and '.join(lacking)} not on PATH)" if lacking else None


def connect() -> Path:
    """The folder of jars of Kafka Connect, its file connectors and MirrorMaker 2."""
    return _of_the_chosen_version("connect")


def debezium() -> Path:
    """The folder of jars of Debezium's connector for PostgreSQL."""
    pom = HERE / "debezium" / "pom.xml"
    return _made("clients-debezium", [pom], lambda folder: _copy_jars(pom, folder))


def java_client(version: str) -> Path:
    """The folder of jars of Java's clients of another version than Apache Kafka's here."""
    pom = HERE / "java_old" / "pom.xml"
    return _made(f"clients-java-{version}", [pom], lambda folder: _copy_jars(pom, folder, f"-Dkafka.version={version}"))


def streams() -> str:
    """The class path of Kafka Streams and of the program of `streams/`, compiled."""
    pom, program = sources = [HERE / "streams" / "pom.xml", HERE / "streams" / "WordCount.java"]
    pin = versions.chosen()

    def fill(folder: Path) -> None:
        _copy_jars(pom, folder, pin.maven)
        _run(("javac", "-d", str(folder), "-cp", f"{folder}/*", str(program)), cwd=folder)

    folder = _made(f"clients-streams-{pin.version}", sources, fill)
    return f"{folder}:{folder}/*"


def flink() -> str:
    """The class path of Flink's jars and of the programs of `flink/`, compiled."""
    pom, *programs = sources = [HERE / "flink" / "pom.xml", *sorted((HERE / "flink").glob("*.java"))]

    def fill(folder: Path) -> None:
        _copy_jars(pom, folder)
        _run(("javac", "-d", str(folder), "-cp", f"{folder}/*", *map(str, programs)), cwd=folder)

    folder = _made("clients-flink", sources, fill)
    return f"{folder}:{folder}/*"


def _of_the_chosen_version(what: str) -> Path:
    pom, pin = HERE / what / "pom.xml", versions.chosen()
    return _made(f"clients-{what}-{pin.version}", [pom], lambda folder: _copy_jars(pom, folder, pin.maven))


def _copy_jars(pom: Path, folder: Path, *settings: str) -> None:
    """What a pom names, and what that depends on, from Maven Central."""
    goal = ("mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies")
    _run((*goal, f"-DoutputDirectory={folder}", *settings), cwd=folder)


def go_environment() -> Mapping[str, str]:
    """A Go that is older than go.mod asks for says so, and does not fetch a newer one."""
    return os.environ | {"GOTOOLCHAIN": "local"}


def _made(name: str, sources: Sequence[Path], fill: Callable[[Path], None]) -> Path:
    """The folder of that name in the cache; emptied and filled anew when one of its sources has changed."""
    folder = CACHE / name
    stamp = folder / ".complete"
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == digest):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fill(folder)
            stamp.write_text(digest)
    return folder


def _run(command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode != 0:
        raise InstallFailed(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
