"""`python -m tanist.sim SEEDS`: play seeds, say what went wrong, and how to see it again.

    python -m tanist.sim 119                one seed
    python -m tanist.sim 119 --trace        the same, with all that happened
    python -m tanist.sim 1..200 --jobs 2    many, in processes
    python -m tanist.sim 1..10000 --budget 600    as many of them as begin within ten minutes
    python -m tanist.sim 1..500 --situation 'quorum: vote split or lost'    the first seeds that come by it
    python -m tanist.sim 1..200 --groups    seeds of the runs with consumer groups (`group_run.py`)

A range is summed up by what it has exercised (`coverage.py`), how often, and in how many of its seeds. Ends with 1 if a
property was violated, or if something did not happen even once in a large range; with 2 if the arguments make no sense.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping

from tanist.sim import pool
from tanist.sim.chaos import Outcome, Run, run
from tanist.sim.coverage import EXPECTED, added, lacking
from tanist.sim.group_run import GROUPS_EXPECTED, GroupRun, run_groups

_COVERED_FROM = 50
"""A range of so many seeds is summed up by what it has exercised."""
_COMPLETE_FROM = 1_000
"""In so many seeds everything must have happened."""
_EXAMPLES = 5
"""So many seeds are looked for that come by a situation."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tanist.sim", description="Play seeds of the simulator.")
    parser.add_argument("seeds", help="a seed, or a range A..B with both ends")
    parser.add_argument("--trace", action="store_true", help="print what happens (one seed)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes to use (default 1)")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="begin no seed after this time")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first violation")
    parser.add_argument(
        "--situation", metavar="NAME", help=f"look for the first {_EXAMPLES} seeds that come by it, and end"
    )
    parser.add_argument("--groups", action="store_true", help="runs with consumer groups: seeds of their own")
    options = parser.parse_args(arguments)
    first, dots, last = options.seeds.partition("..")
    try:
        seeds = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        parser.error(f"{options.seeds!r} is neither a seed nor a range A..B")
    if not seeds:
        parser.error(f"{options.seeds} is empty")
    if options.trace:
        if len(seeds) > 1:
            parser.error("--trace is for one seed")
        return _trace(GroupRun if options.groups else Run, seeds[0])
    if options.situation is not None:
        if options.groups:
            parser.error("--situation is not for runs with groups")
        if options.situation not in EXPECTED:
            near = "".join(f"\n  {name}" for name in sorted(EXPECTED) if options.situation.lower() in name.lower())
            parser.error(f"no situation is called {options.situation!r}" + (f"; do you mean{near}" if near else ""))
        return _look_for(options.situation, seeds, options.jobs, options.budget)
    return _play(seeds, options.jobs, options.budget, options.keep_going, groups=options.groups)


def _trace(kind: type[Run], seed: int) -> int:
    one = kind(
        seed, trace=lambda now_us, who, level, message: print(f"{now_us / 1e6:11.6f} {who:9} {level:5} {message}")
    )
    print(f"seed {seed}: {one.config}")
    for fault in one.faults:
        print(f"  planned at {fault.at_us / 1e6:.6f} s of load: {fault}")
    for operation in one.operations:
        print(f"  planned at {operation.at_us / 1e6:.6f} s of load: {operation.kind}, by an operator")
    outcome = one.run()
    print(_line(outcome))
    return 1 if outcome.violation is not None else 0


def _play(seeds: range, jobs: int, budget_s: float | None, keep_going: bool, *, groups: bool) -> int:
    expected: Mapping[str, str] = GROUPS_EXPECTED if groups else EXPECTED
    option = " --groups" if groups else ""
    began_s = time.monotonic()
    deadline_s = None if budget_s is None else began_s + budget_s
    outcomes: list[Outcome] = []
    for outcome in pool.outcomes(run_groups if groups else run, seeds, jobs, _before(deadline_s)):
        outcomes.append(outcome)
        if outcome.violation is not None:
            print(_line(outcome), flush=True)
            print(f"    see it again: python -m tanist.sim {outcome.seed}{option} --trace", flush=True)
            if not keep_going:
                break
        elif len(seeds) == 1:
            print(_line(outcome))
    bad = [outcome.seed for outcome in outcomes if outcome.violation is not None]
    events = sum(outcome.events for outcome in outcomes)
    took_s = time.monotonic() - began_s
    print(
        f"{len(outcomes)} of {len(seeds)} seeds, {len(bad)} violations, {events} events, "
        f"{sum(outcome.faults for outcome in outcomes)} faults, "
        f"{sum(outcome.acknowledged for outcome in outcomes)} records acknowledged "
        f"({sum(outcome.lost for outcome in outcomes)} given up by unclean elections), {took_s:.1f} s "
        f"({events / max(took_s, 1e-9):.0f} events/s)"
    )
    counts, reached = added(outcome.counts for outcome in outcomes)
    if len(outcomes) >= _COVERED_FROM:
        print("    times  seeds")
        for name in sorted({*counts, *expected}):
            print(f"{counts[name]:9} {reached[name]:6} {name}")
    absent = [name for name in expected if not counts[name]] if groups else lacking(counts)
    missing = absent if len(outcomes) >= _COMPLETE_FROM else []
    if missing:
        print(f"never happened: {', '.join(missing)}")
    return 1 if bad or missing else 0


def _look_for(name: str, seeds: range, jobs: int, budget_s: float | None) -> int:
    """Seeds as they come: with more than one process, not always those with the lowest numbers."""
    deadline_s = None if budget_s is None else time.monotonic() + budget_s
    print(f"{name}: {EXPECTED[name]}")
    played = found = 0
    for outcome in pool.outcomes(run, seeds, jobs, _before(deadline_s)):
        played += 1
        if not outcome.counts[name]:
            continue
        found += 1
        print(f"  seed {outcome.seed}: {outcome.counts[name]} times", flush=True)
        if found == _EXAMPLES:
            break
    print(f"{found} of {played} seeds")
    return 0 if found else 1


def _before(deadline_s: float | None) -> Callable[[], bool]:
    return lambda: deadline_s is None or time.monotonic() < deadline_s


def _line(outcome: Outcome) -> str:
    if outcome.violation is not None:
        error = outcome.violation.traceback
        return f"seed {outcome.seed}: VIOLATION {outcome.violation}" + (f"\n{error.rstrip()}" if error else "")
    return (
        f"seed {outcome.seed}: ok, {outcome.events} events in {outcome.virtual_ms / 1000:.1f} s of virtual time, "
        f"{outcome.faults} faults, {outcome.acknowledged} of {outcome.sends} records acknowledged, "
        f"{outcome.reads} read, digest {outcome.digest[:16]}"
        + (f", {outcome.unclean} times committed records were given up ({outcome.lost})" if outcome.unclean else "")
    )


if __name__ == "__main__":
    sys.exit(main())
