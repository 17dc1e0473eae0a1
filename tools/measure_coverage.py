"""Run the default tests under coverage.py, and write a table by package to bench/results/coverage.md.

    python tools/measure_coverage.py run [ARGUMENTS OF pytest...]
    python tools/measure_coverage.py report

`run` measures the processes that tests start as well, except those that end by SIGKILL: they write nothing down.
`report` puts together what runs have left in build/coverage. There is no threshold: a number that must be reached gets
tests that reach it, and show nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "build" / "coverage"
PAGE = ROOT / "bench" / "results" / "coverage.md"
SOURCE = "src/tanist/"

HEAD = """# Coverage

For maintainers: the share of lines and branches of `src/tanist` that `make test` and `make long` run, by package.
`make coverage` writes this page. There is no threshold.

Lines that only seeds of the lab, clients, Apache Kafka's classes, Spark or the stories run count as not run. So does
everything in a node that a test ends with SIGKILL, because such a process writes nothing down.

"""


@dataclass(slots=True)
class Sums:
    statements: int = 0
    covered: int = 0
    branches: int = 0
    covered_branches: int = 0

    def add(self, summary: Mapping[str, Any]) -> None:
        self.statements += summary["num_statements"]
        self.covered += summary["covered_lines"]
        self.branches += summary["num_branches"]
        self.covered_branches += summary["covered_branches"]


def package_of(name: str) -> str:
    """`src/tanist/broker/api/fetch.py` is in `broker`."""
    package, _, module = name.removeprefix(SOURCE).partition("/")
    return package if module else "(top)"


def per_package(files: Mapping[str, Mapping[str, Any]]) -> dict[str, Sums]:
    found: dict[str, Sums] = defaultdict(Sums)
    for name, file in files.items():
        found[package_of(name)].add(file["summary"])
        found["all"].add(file["summary"])
    return found


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(packages: Mapping[str, Sums]) -> Iterable[str]:
    yield "| Package | Lines | run | Branches | run |"
    yield "|---|---:|---:|---:|---:|"
    for name in [*sorted(packages.keys() - {"all"}), "all"]:
        sums = packages[name]
        lines = percent(sums.covered, sums.statements)
        branches = percent(sums.covered_branches, sums.branches)
        yield f"| {name} | {sums.statements:,} | {lines} | {sums.branches:,} | {branches} |"


def coverage(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=True)


def run(arguments: list[str]) -> int:
    """The status of pytest: a table of tests that failed is a table all the same."""
    DATA.mkdir(parents=True, exist_ok=True)
    coverage("erase")
    done = subprocess.run([sys.executable, "-m", "coverage", "run", "-m", "pytest", *arguments], cwd=ROOT, check=False)
    return done.returncode


def report() -> None:
    coverage("combine", "--quiet", "--keep")
    coverage("json", "--quiet", "-o", str(DATA / "coverage.json"))
    files = json.loads((DATA / "coverage.json").read_text(encoding="utf-8"))["files"]
    lines = "\n".join(table(per_package(files)))
    git = ["git", "log", "-1", "--format=%h"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "no commit"
    PAGE.write_text(f"{HEAD}Measured on {datetime.now(UTC):%Y-%m-%d}, commit {commit}.\n\n{lines}\n", encoding="utf-8")
    print(lines)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["run", *pytest]:
            return run(pytest)
        case ["report"]:
            report()
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
