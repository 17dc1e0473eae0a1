"""Install a wheel into empty environments, as a user does, and use it there.

For each Python of this machine: `pip install` from the folder, `tanist --version`, completion, a cluster that is
started, written, read and stopped, and how long imports take. Then each extra alone, and without any: commands that
need an extra must say which. Ends with a table of sizes and times.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools import pythons

INSTALL = Path(__file__).with_name("install.py")
ROUNDS = 7
IMPORTS = ("tanist", "tanist.testing", "tanist.runtime.client.client", "tanist.cli.app", "tanist.broker.node")
RECORDS = 1000

ONE_TEST = """\
def test_a_cluster(kafka):
    topic = kafka.create_topic(kafka.topic("t"))
    kafka.crash(1)
    kafka.start(1)
    assert kafka.records(topic) == []
"""
ONE_SEND = '{"process":"p","type":"ok","f":"send","partition":"t-0","value":"a","offset":0}\n'
ONE_SCENARIO = """\
scenarios:
- {id: one, oracle: ours, source: ours, area: election, kind: builder,
   state: {replicas: [2, 1, 3], isr: [2, 1, 3], leader: 1},
   ctx: {min_isr: 2, elr: true, mv: 4.0-IV1, acceptable: [1, 2]}, change: {election: PREFERRED},
   expect: {elected: {leader: 2, unclean: false}}}
"""


class NotAsExpected(Exception):
    """A command of the installed wheel did something else."""


@dataclass(frozen=True)
class Place:
    """A virtual environment with the wheel in it."""

    folder: Path
    work: Path
    wheel: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *command: str, code: int = 0, stdin: str = "", notes: bool = True) -> str:
        """What it printed, with or without its notes on standard error."""
        done = subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            cwd=self.work,
            env=_environment(self.folder),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        said = done.stdout + done.stderr
        if done.returncode != code:
            raise NotAsExpected(f"{' '.join(command)} ended with {done.returncode}, not {code}:\n{said}")
        return said if notes else done.stdout

    def expect(self, text: str, *command: str, code: int = 0, stdin: str = "") -> str:
        said = self.run(*command, code=code, stdin=stdin)
        if text not in said:
            raise NotAsExpected(f"{' '.join(command)} does not say {text!r}:\n{said}")
        return said


def _environment(venv: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return kept | {"PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def installed(wheel: Path, program: str, extra: str = "") -> Iterator[Place]:
    """An environment that has the wheel, its dependencies in the versions that an index gives now, and nothing else."""
    with tempfile.TemporaryDirectory(prefix="tanist-wheel-") as folder:
        place = Place(Path(folder) / "venv", Path(folder) / "work", wheel.resolve())
        place.work.mkdir()
        subprocess.run([program, "-m", "venv", "--without-pip", place.folder], check=True)
        wanted = f"tanist[{extra}] @ {wheel.resolve().as_uri()}" if extra else str(wheel)
        subprocess.run([sys.executable, INSTALL, "--python", place.python, wanted], check=True)
        yield place


def use(place: Place, version: str) -> None:
    """What the README's first five minutes do."""
    place.expect(version, "tanist", "--version")
    try:
        place.expect("ready in", "tanist", "up", "--detach", "--port", "0")
        place.run("tanist", "topics", "create", "t", "--partitions", "3", "--replication-factor", "3")
        place.run("tanist", "produce", "t", stdin="".join(f"{number}\n" for number in range(RECORDS)))
        read = place.run("tanist", "consume", "t", "--from-beginning", "--max-messages", str(RECORDS), notes=False)
        if sorted(read.split(), key=int) != [str(number) for number in range(RECORDS)]:
            raise NotAsExpected(f"consumed {len(read.split())} of {RECORDS} records")
    finally:
        place.run("tanist", "down")


def complete(place: Place) -> list[str]:
    """Shells in which `tanist top<TAB>` gives what it should; those that are not on this machine are left out."""
    tried = []
    for shell, ask in (("bash", _ask_bash), ("zsh", _ask_zsh), ("fish", _ask_fish)):
        script = place.work / f"completion.{shell}"
        script.write_text(place.run("tanist", "completion", shell))
        if (program := shutil.which(shell)) is None:
            continue
        done = subprocess.run(
            [program, *ask(script)], env=_environment(place.folder), capture_output=True, text=True, timeout=60
        )
        if not {"top", "topics"} <= set(done.stdout.split()):
            raise NotAsExpected(f"{shell} completes `tanist top` with {done.stdout!r}\n{done.stderr}")
        tried.append(shell)
    return tried


def _ask_bash(script: Path) -> list[str]:
    return [
        "--norc",
        "-c",
        f'source {script}; COMP_WORDS=(tanist top); COMP_CWORD=1; _tanist_completion tanist; echo "${{COMPREPLY[@]}}"',
    ]


def _ask_zsh(script: Path) -> list[str]:
    """Its functions for completion need a terminal; what they add is printed instead."""
    return [
        "-f",
        "-c",
        f"compdef() {{ }}; _describe() {{ print -l -- ${{(P)3}} }}; compadd() {{ print -l -- ${{(P)@[-1]}} }}; "
        f"source {script}; words=(tanist top); CURRENT=2; _tanist_completion | sed 's/:.*//'",
    ]


def _ask_fish(script: Path) -> list[str]:
    return ["--no-config", "-c", f"source {script}; complete --do-complete 'tanist top' | cut -f1"]


def import_ms(place: Place, module: str) -> float:
    """How much more processor time Python takes with the import than without it: the least of some rounds."""

    def took(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([place.python, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    took(f"import {module}")
    subprocess.run([place.python, "-m", "compileall", "-q", place.folder], check=False, capture_output=True)
    bare = min(took("pass") for _ in range(ROUNDS))
    return (min(took(f"import {module}") for _ in range(ROUNDS)) - bare) * 1000


def size_mb(place: Place) -> float:
    packages = next((place.folder / "lib").glob("python3*")) / "site-packages"
    return sum(file.stat().st_size for file in packages.rglob("*") if file.suffix != ".pyc" and file.is_file()) / 1e6


def _base(place: Place) -> None:
    """Without an extra, each command that needs one says how to add it to this very wheel."""
    (place.work / "h.parquet").write_bytes(b"PAR1")
    (place.work / "s.yaml").write_text(ONE_SCENARIO)
    for extra, code, command in (
        ("ui", 1, ("ui", "--no-browser")),
        ("jepsen", 2, ("jepsen", "--client", "confluent", "--minutes", "0.2")),
        ("lab", 2, ("lab", "scenarios", "s.yaml")),
        ("parquet", 2, ("lab", "verify", "h.parquet")),
        ("spark", 2, ("spark", "seeds", "--output", "t")),
    ):
        place.expect(f"{place.wheel}[{extra}]", "tanist", *command, code=code)
    place.run("python", "-c", "from tanist.testing import Cluster")
    place.expect("report.html", "tanist", "lab", "report", "--draw", "1", "--no-mutants", "--jobs", "1")


def _pytest(place: Place) -> None:
    (place.work / "test_one.py").write_text(ONE_TEST)
    place.expect("1 passed", "pytest", "-q", "test_one.py")


def _ui(place: Place) -> None:
    place.run("python", "-c", "import tanist.web.serving")
    place.run("tanist", "ui", "--help")


def _lab(place: Place) -> None:
    (place.work / "s.yaml").write_text(ONE_SCENARIO)
    place.expect("1 passed", "tanist", "lab", "scenarios", "s.yaml")


def _parquet(place: Place) -> None:
    (place.work / "h.jsonl").write_text(ONE_SEND)
    place.run(
        "python",
        "-c",
        "import pyarrow.json as json, pyarrow.parquet as parquet;"
        "parquet.write_table(json.read_json('h.jsonl'), 'h.parquet')",
    )
    place.expect("1 operation", "tanist", "lab", "verify", "h.parquet")


def _jepsen(place: Place) -> None:
    said = place.run(
        "tanist", "jepsen", "--client", "confluent", "--minutes", "0.2", "--test", "kill", "--seed", "1", "--json"
    )
    if '"lost": 0' not in said and "no anomalies" not in said and "valid" not in said:
        raise NotAsExpected(said)


def _spark(place: Place) -> None:
    place.run("tanist", "spark", "seeds", "--help")
    place.run("python", "-c", "import tanist.spark, pyspark, deltalake")


EXTRAS: dict[str, Callable[[Place], None]] = {
    "none": _base,
    "pytest": _pytest,
    "ui": _ui,
    "lab": _lab,
    "parquet": _parquet,
    "jepsen": _jepsen,
    "spark": _spark,
}


def main(wheel: Path, versions: Sequence[str] | None, extras: Sequence[str] | None) -> None:
    version = wheel.name.split("-")[1]
    rows = []
    for each in versions or pythons.VERSIONS:
        program = pythons.interpreter(each)
        if program is None:
            rows.append(f"| {each} | not on this machine | | | {'| ' * len(IMPORTS)}")
            continue
        began = time.monotonic()
        with installed(wheel, program) as place:
            took_s = time.monotonic() - began
            use(place, version)
            shells = complete(place)
            exact = place.run("python", "-c", "import platform; print(platform.python_version())").strip()
            times = " | ".join(f"{import_ms(place, module):.0f}" for module in IMPORTS)
            rows.append(f"| {exact} | {took_s:.1f} s | {size_mb(place):.1f} MB | {', '.join(shells)} | {times} |")
        print(rows[-1], flush=True)
    print("\nprocessor time of imports in ms, without Python's own start\n")
    print(f"| Python | installed in | size | completes in | {' | '.join(f'`{module}`' for module in IMPORTS)} |")
    print("|---|---|---|---|" + "---|" * len(IMPORTS))
    print("\n".join(rows))
    print("\n| extra | size | tried |\n|---|---|---|")
    for name in extras or EXTRAS:
        with installed(wheel, sys.executable, "" if name == "none" else name) as place:
            EXTRAS[name](place)
            print(f"| {name} | {size_mb(place):.0f} MB | yes |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), None, None)
