"""The checker against brute force, over as many small histories as there are seeds.

python -m tests.lab.history_comparison --seeds 0..9999
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tanist.lab.anomalies import OF_HISTORIES
from tanist.lab.history import Checker, Verdict
from tanist.lab.history.report import cited_operations
from tests.lab import history_worlds as worlds
from tests.lab.brute_history import count

Line = dict[str, Any]
MAKERS = (worlds.world, worlds.planted, worlds.planted, worlds.soup, worlds.soup)


class Differs(AssertionError):
    """The checker is of another mind; which seed shows it."""


def judged(numbered: Iterable[tuple[int, Line]]) -> Verdict:
    checker = Checker()
    for number, line in numbered:
        checker.take(number, line)
    return checker.verdict()


def compare(seeds: Iterable[int]) -> Counter[str]:
    """In how many histories each anomaly was found, equally often by both; raises `Differs` at the first other one.

    Of worlds without plants nothing may be found, and the evidence alone, as a history of its own, must have the
    anomaly that it is evidence of.
    """
    met: Counter[str] = Counter()
    for seed in seeds:
        make = MAKERS[seed % len(MAKERS)]
        history = make(seed)
        operations = dict(enumerate(history, start=1))
        verdict = judged(operations.items())
        reported = {
            (each.anomaly.value, name): number for each in verdict.findings for name, number in each.partitions.items()
        }
        expected = count(history)
        if reported != expected:
            raise Differs(f"{make.__name__} of seed {seed}: {reported} instead of {expected}")
        if make is worlds.world and verdict.findings:
            raise Differs(f"{make.__name__} of seed {seed} is sound: {reported}")
        met.update(found.anomaly.value for found in verdict.findings)
        for found in verdict.findings:
            evidence = json.loads(json.dumps(cited_operations(found, operations)))
            again = judged((number, line) for number, line in evidence)
            if found.anomaly not in {each.anomaly for each in again.findings}:
                raise Differs(f"{make.__name__} of seed {seed}: {evidence} does not show {found.anomaly.value}")
    return met


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.history_comparison", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--seeds", default="0..9999", metavar="A..B", help="both included; default 0..9999")
    first, dots, last = parser.parse_args(arguments).seeds.partition("..")
    if not dots or not first.isdecimal() or not last.isdecimal() or int(last) < int(first):
        parser.error("--seeds is A..B, like 0..9999")
    seeds = range(int(first), int(last) + 1)
    try:
        met = compare(seeds)
    except Differs as error:
        print(error)
        return 1
    print(f"{len(seeds):,} histories, of which {len(seeds) // len(MAKERS):,} are sound: the same verdicts")
    for anomaly in OF_HISTORIES:
        print(f"{met[anomaly.value]:>8,} with {anomaly.value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
