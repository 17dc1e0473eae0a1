"""What others say of tanist, on one page: each claim, who judges it, and the figure of this run (`make proof`).

    .venv/bin/python -m tools.proof [--only NAME]... [--list]

The judges run one after the other, in a short form; docs/proof.md says how each is run at length. Seeds are drawn, and
named on the page. Judges that need Java say so where there is none, and count as missing. The exit code is 0 when every
judge agrees, 1 when one does not, 2 when one could not be asked.

Owns the list of judges. What they decide is theirs; their commands run as anybody would run them.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_BIN = Path(sys.executable).parent
_WIDTHS = (31, 22, 21)
_TLC = "TLC, Vanlightly's model"
_REFUSED = ("A5", "A11", "A13", "A24", "A39", "torn-answers")
_LOAD = ("--test", "last-standing", "--minutes", "1", "--partitions", "1", "--json")


class Missing(Exception):
    """A judge that cannot be asked here, and why."""


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    output: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.output)
        return found


@dataclass(frozen=True, slots=True)
class Judgement:
    name: str
    claim: str
    judge: str
    ask: Callable[[], tuple[bool, str]]
    """Whether the judge agrees, and the figure."""
    java: bool = False


def _run(*command: str) -> Answer:
    done = subprocess.run(
        [str(_BIN / command[0]), *command[1:]], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise Missing(_reason(done.stderr or done.stdout))
    return Answer(done.returncode, done.stdout)


def _reason(said: str) -> str:
    """The last line, or the message in it."""
    last = "".join(said.strip().splitlines()[-1:])
    try:
        return str(json.loads(last)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return last


def _drawn(count: int, below: int = 10**9) -> str:
    """Seeds that nobody has seen: `A..B`."""
    first = secrets.randbelow(below - count)
    return f"{first}..{first + count - 1}"


# -- the judges -------------------------------------------------------------------------------------------------------


def _traces(*options: str) -> tuple[bool, str]:
    answer = _run("tanist", "lab", "trace", *options, "--json")
    traces = answer.json["traces"]
    accepted = [each for each in traces if each["accepted"]]
    figure = f"{len(accepted)} of {len(traces)} accepted, {sum(each['steps'] for each in traces):,} steps"
    if "--seeds" in options:
        figure += f"; seeds {options[options.index('--seeds') + 1]}"
    return answer.code == 0, figure


def _refusals() -> tuple[bool, str]:
    refused = [rule for rule in _REFUSED if _traces("--mutate", rule)[0]]
    return len(refused) == len(_REFUSED), f"{len(refused)} of {len(_REFUSED)} refused"


def _search() -> tuple[bool, str]:
    answer = _run("tanist", "lab", "search", "--strategy", "Aggressive", "--replicas", "2", "--json")
    found = answer.json
    states = f"{found['states']:,} states, depth {found['depth']}"
    return answer.code == 0, f"{states}, {found['violated'] or 'no property'} violated"


def _tests(*options: str) -> tuple[bool, str]:
    answer = _run("python", "-m", "pytest", "-n", "2", *options)
    last = answer.output.strip().splitlines()[-1]
    if not re.search(r"\d+ passed", last):
        raise Missing(last)
    return answer.code == 0, re.sub(r" in .*", "", last)


def _controllers() -> tuple[bool, str]:
    seeds = _drawn(20, below=1_000_000)  # ids of brokers are made of them
    answer = _run("python", "-m", "tests.interop.controllers", "--seeds", seeds)
    played = re.search(r"(\d+) sequences, (\d+) steps", answer.output)
    if played is None:
        raise Missing("Apache Kafka's controller does not start")
    return answer.code == 0, f"{played[0]}, no difference that no rule explains; seeds {seeds}"


def _seeds() -> tuple[bool, str]:
    figures = []
    agree = True
    for kind, count in (("", 40), ("groups", 15), ("transactions", 10), ("exceptions", 20)):
        flags = [f"--{kind}"] if kind else []
        answer = _run("tanist", "lab", "run", "--draw", str(count), *flags, "--keep-going", "--json")
        found = answer.json
        agree &= answer.code == 0
        figures.append(f"{count} {kind or 'plain'} from {found['first_seed']}: {len(found['violations'])} violations")
    return agree, "; ".join(figures)


def _mutants() -> tuple[bool, str]:
    """Ten rules of those that break safety, drawn."""
    rules = [f"A{number}" for number in range(1, 31)]
    drawn = sorted(secrets.SystemRandom().sample(rules, 10))
    answer = _run("tanist", "lab", "mutants", *drawn, "--by", "simulator", "--seeds", "1..60", "--json")
    found = answer.json["mutations"]
    caught = [each for each in found if each["simulated"] or each["equivalent"]]
    return answer.code == 0, f"{len(caught)} of {len(found)} noticed: {' '.join(drawn)}"


def _jepsen(*options: str) -> tuple[dict[str, Any], str]:
    with tempfile.TemporaryDirectory(prefix="proof-") as folder:
        found = _run("tanist", "jepsen", *_LOAD, *options, "--out", f"{folder}/results").json
    return found, f"{found['acknowledged']:,} acknowledged, {found['lost']:,} lost"


def _jepsen_here() -> tuple[bool, str]:
    found, figure = _jepsen()
    return found["lost"] == 0, figure


def _jepsen_there() -> tuple[bool, str]:
    """Agrees if it sees the loss: a test that finds none nowhere shows nothing."""
    with _apache() as options:
        found, figure = _jepsen(*options)
    return bool(found["lost"]), figure


@contextmanager
def _apache() -> Iterator[list[str]]:
    """Apache Kafka without ELR, and what breaks it."""
    nodes = (sys.executable, "-m", "tests.faults.apache_nodes")
    with tempfile.TemporaryDirectory(prefix="proof-apache-") as folder:
        up = subprocess.run([*nodes, folder, "up", "--elr", "off"], cwd=ROOT, capture_output=True, text=True)
        if up.returncode:
            raise Missing("".join(up.stderr.strip().splitlines()[-1:]))
        try:
            line = subprocess.run([*nodes, folder, "command"], cwd=ROOT, capture_output=True, text=True, check=True)
            yield shlex.split(line.stdout)[2:]
        finally:
            subprocess.run([*nodes, folder, "down"], cwd=ROOT, capture_output=True, check=True)


JUDGEMENTS = (
    Judgement("scenario", "KIP-966's scenario, the last replica standing, as the model has it", _TLC, _traces, True),
    Judgement("runs", "what nodes do is a behaviour of the model", _TLC, lambda: _traces("--seeds", _drawn(6)), True),
    Judgement(
        "losses",
        "also after losses of power, and unclean recoveries",
        f"{_TLC}, extended",
        lambda: _traces("--losses", "--seeds", _drawn(3)),
        True,
    ),
    Judgement("live", "also of processes that are killed", _TLC, lambda: _traces("--live", "--seeds", _drawn(2)), True),
    Judgement("refused", "with a rule broken it is none", _TLC, _refusals, True),
    Judgement("search", "unclean recovery keeps its properties in all states", f"{_TLC}, extended", _search, True),
    Judgement(
        "field",
        "bugs that others had are not here; planted, they are noticed",
        "public bug reports",
        lambda: _tests("tests/field", "-m", "not slow"),
    ),
    Judgement("controllers", "controllers decide as Apache Kafka's", "Apache Kafka's controller", _controllers, True),
    Judgement(
        "authorizer",
        "access is granted as by Apache Kafka",
        "Apache Kafka's StandardAuthorizer",
        lambda: _tests("-m", "interop", "tests/interop/test_interop_authorizer.py"),
        True,
    ),
    Judgement(
        "files",
        "what is on disk is Kafka's",
        "kafka-dump-log.sh",
        lambda: _tests("-m", "interop", "tests/interop/test_interop_dump_log.py"),
        True,
    ),
    Judgement("jepsen", "the last of the ISR loses power, and nothing is lost", "Jepsen's test", _jepsen_here),
    Judgement(
        "control", "the same test sees the loss where ELR is off", "Jepsen's test, Apache Kafka", _jepsen_there, True
    ),
    Judgement("seeds", "random faults break no property", "our own checkers", _seeds),
    Judgement("mutants", "they notice broken rules", "our own checkers", _mutants),
)


# -- the page ---------------------------------------------------------------------------------------------------------


def _lines(*cells: str) -> str:
    columns = [textwrap.wrap(cell, width) for cell, width in zip(cells, _WIDTHS, strict=True)]
    height = max(map(len, columns))
    rows = zip(*(column + [""] * (height - len(column)) for column in columns), strict=True)
    return "\n".join(
        "  ".join(part.ljust(width) for part, width in zip(row, _WIDTHS, strict=True)).rstrip() for row in rows
    )


def _ask(judgement: Judgement) -> tuple[bool | None, str]:
    if judgement.java and shutil.which("java") is None:
        return None, "it needs Java"
    try:
        return judgement.ask()
    except Missing as reason:
        return None, str(reason)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.proof", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", choices=[each.name for each in JUDGEMENTS])
    parser.add_argument("--list", action="store_true", help="name the judgements, and ask nobody")
    options = parser.parse_args(arguments)
    chosen = [each for each in JUDGEMENTS if not options.only or each.name in options.only]
    if options.list:
        print("\n".join(f"{each.name:12} {each.claim}" for each in chosen))
        return 0
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    print(f"tanist {commit.stdout.strip()}: {len(chosen)} judgements, about 20 minutes on two idle cores", flush=True)
    answers = []
    for judgement in chosen:
        began_s = time.monotonic()
        agrees, figure = _ask(judgement)
        answers.append((judgement, agrees, figure))
        said = {True: "agrees", False: "DISAGREES", None: "MISSING"}[agrees]
        print(f"{judgement.name}: {said} after {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    print()
    print(_lines("Claim", "Judge", "Figure"))
    for judgement, agrees, figure in answers:
        print("  ".join("-" * width for width in _WIDTHS))
        shown = {True: figure, False: f"NO: {figure}", None: "not asked: see below"}[agrees]
        print(_lines(judgement.claim, judgement.judge, shown))
    for judgement, agrees, reason in answers:
        if agrees is None:
            print("\n" + textwrap.fill(f"{judgement.name}: {reason}", sum(_WIDTHS) + 4, break_on_hyphens=False))
    verdicts = [agrees for _, agrees, _ in answers]
    return 1 if False in verdicts else 2 if None in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
