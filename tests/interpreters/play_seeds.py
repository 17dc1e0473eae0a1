"""Plays seeds of the simulator and prints the digest of each: the program that every interpreter runs.

    python play_seeds.py chaos:1..4 groups:7

It needs tanist on the path, and nothing but Python's own library beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from tanist.sim.run.chaos_run import run
from tanist.sim.run.config import GROUPS, RECORDS
from tanist.sim.run.drawing import config_of

KINDS = {"chaos": RECORDS, "groups": GROUPS}


def lines(wanted: Iterable[str]) -> Iterator[str]:
    """`wanted` are kinds with seeds; one line for each seed."""
    for each in wanted:
        kind, _, seeds = each.partition(":")
        first, _, last = seeds.partition("..")
        for seed in range(int(first), int(last or first) + 1):
            outcome = run(seed, config_of(seed, KINDS[kind]))
            ended = "" if outcome.violation is None else f" {outcome.violation.property_id}"
            yield f"{kind}:{seed} {outcome.events} events {outcome.digest}{ended}"


if __name__ == "__main__":
    for line in lines(sys.argv[1:]):
        print(line, flush=True)
