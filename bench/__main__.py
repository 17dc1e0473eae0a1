"""`python -m bench`: tanist beside Apache Kafka, in one run, interleaved; and what came of it.

python -m bench                     about a quarter of an hour
python -m bench --quick             about two minutes, without Kafka's own tools
python -m bench --sides apache,apache --quick      the bench against itself: all ratios about 1
python -m bench --sides ../before,tanist           another checkout, with its .venv, beside this one
python -m bench --beside hog        with other work on each core, as on a machine that people use
python -m bench --only produce-100B-16x1,fetch-32KB-16x1
python -m bench --join bench/results/raw/A.json bench/results/raw/B.json      the document, of runs in parts
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from bench import report
from bench.beside import PROGRAMS, beside
from bench.measure import Measured, RawRunner, ToolRunner, measure_idle, measure_start
from bench.stands import program_of, standing
from bench.workloads import FULL, QUICK, RAW, TOOLS, Effort, Raw, Tool
from tests.clients import install
from tests.interop import apache
from tests.interop.cluster import interrupt_on_sigterm
from tests.interop.target import TARGETS

OWN = ("start", "idle")
ALL = ("tanist", "apache")
"""Who is in the document, in this order."""


def labels_of(sides: str) -> dict[str, str]:
    """`apache,apache` -> {"apache": "apache", "apache-2": "apache"}: a name for each side, and what it is."""
    if sides.count(",") != 1:
        raise argparse.ArgumentTypeError(f"two sides with a comma between, not {sides!r}")
    return labels_of_one_or_two(sides)


def labels_of_one_or_two(sides: str) -> dict[str, str]:
    """The same, of a bench whose sides do not stand side by side, so that one of them will do."""
    targets = sides.split(",")
    if len(targets) > 2 or not all(each in TARGETS or program_of(each).exists() for each in targets):
        raise argparse.ArgumentTypeError(f"{', '.join(TARGETS)} or the path of a checkout with a .venv, not {sides!r}")
    names = [each if each in TARGETS else Path(each).resolve().name for each in targets]
    if len(set(names)) < len(names):
        names[-1] += "-2"
    return dict(zip(names, targets, strict=True))


def names_among(known: Collection[str]) -> Callable[[str], list[str]]:
    """The type of an option that takes some of these names, with commas between."""

    def names_of(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: one of {', '.join(known)}")
        return names

    return names_of


def run(effort: Effort, labels: dict[str, str], only: set[str], directory: Path) -> list[Measured]:
    """All the workloads asked for, one after the other, on both sides in turn."""

    def say(line: str) -> None:
        print(line, flush=True)

    def wanted(name: str) -> bool:
        return not only or name in only

    raw = [each for each in RAW if wanted(each.name) and (each.quick or not effort.quick or only)]
    tools = [each for each in TOOLS if wanted(each.name) and (effort.tools or only)]
    workloads: list[Raw | Tool] = [*raw, *tools]
    with_triple = any(each.replicas == 3 for each in workloads) or (wanted("idle") and not effort.quick)
    results: list[Measured] = []
    if wanted("start"):
        results.append(measure_start(labels, directory, effort, say))
    with standing(labels, directory, with_triple=with_triple) as sides:
        if wanted("idle"):
            results += measure_idle(sides, effort, with_triple=with_triple, say=say)
        for workload in raw:
            say(f"{workload.title}: warming up")
            results.append(RawRunner(workload, effort).measure(sides, say))
        for tool in tools:
            results.append(ToolRunner(tool, effort).measure(sides, say))
    return results


def join(paths: Sequence[Path]) -> int:
    """A machine that is quiet for minutes only is measured in parts."""
    try:
        results, environment = report.join(paths)
    except (OSError, ValueError) as failure:
        print(f"can't join: {failure}", file=sys.stderr)
        return 2
    first, second = ALL
    report.print_summary(results, first, second)
    print(f"stored in {report.write(results, environment, first, second, document=True)}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="about two minutes: shorter runs, without Kafka's tools")
    parser.add_argument("--sides", type=labels_of, default="tanist,apache", help="what is compared (tanist,apache)")
    parser.add_argument("--only", help="workloads, by name, with commas between; also: start, idle")
    parser.add_argument("--rounds", type=int, help="rounds of each workload")
    parser.add_argument("--data", type=Path, help="where the brokers keep their data (a temporary folder)")
    parser.add_argument("--beside", choices=PROGRAMS, default="none", help="other work on each core meanwhile (none)")
    parser.add_argument("--join", type=Path, nargs="+", metavar="JSON", help="document these results; measure nothing")
    parser.add_argument("--list", action="store_true", help="name the workloads and end")
    chosen = parser.parse_args(arguments)
    known = {each.name: each.title for each in (*RAW, *TOOLS)}
    if chosen.list:
        print("\n".join(f"{name:24} {title}" for name, title in known.items()))
        return 0
    if chosen.join:
        return join(chosen.join)
    reason = apache.missing()
    if reason is not None:
        print(f"the bench {reason}", file=sys.stderr)
        return 2
    only = set(chosen.only.split(",")) if chosen.only else set()
    if not only <= known.keys() | set(OWN):
        parser.error(f"no such workload: {', '.join(sorted(only - known.keys() - set(OWN)))} (see --list)")
    effort = QUICK if chosen.quick else FULL
    if chosen.rounds:
        effort = replace(effort, rounds=chosen.rounds, start_rounds=min(chosen.rounds, effort.start_rounds))
    interrupt_on_sigterm()
    install.activate()
    labels: dict[str, str] = chosen.sides
    first, second = labels
    environment = report.environment(effort, labels) | {"beside": chosen.beside}
    with tempfile.TemporaryDirectory(prefix="tanist-bench-", dir=chosen.data) as folder, beside(chosen.beside):
        results = run(effort, labels, only, Path(folder))
    report.print_summary(results, first, second)
    # The document tells of whole runs of tanist beside Apache Kafka, and of nothing else.
    whole = not only and not effort.quick and set(labels) == set(ALL) and chosen.beside == "none"
    print(f"stored in {report.write(results, environment, first, second, document=whole)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
