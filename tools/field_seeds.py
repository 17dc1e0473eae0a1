"""Search the seeds by which the simulator finds the bugs of tests/field, and write them into tests/field/seeds.json.

python -m tools.field_seeds [--kind plain]... [--seeds 30] [--jobs 2] [TEST]...
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from tanist.lab.mutations.examination import FaultyWithout, hunt
from tests.field import seeds
from tests.field.catalogue import all_bugs
from tests.field.seeds import Search


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="all without")
    parser.add_argument("--kind", action="append", choices=seeds.KINDS, metavar="KIND")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    for test, search, said in _search(asked.tests, asked.kind or ["plain"], asked.seeds, asked.jobs):
        print(f"{test}: {search.kind}, {search.tried} tried, {said}", flush=True)
        made = seeds.searches()
        others = [each for each in made.get(test, ()) if each.kind != search.kind]
        made[test] = tuple(sorted((*others, search), key=lambda each: bool(each.property_id)))
        seeds.write(made)


def _search(tests: list[str], kinds: list[str], count: int, jobs: int) -> Iterator[tuple[str, Search, str]]:
    names = tests or [bug.test for bug in all_bugs()]
    with ProcessPoolExecutor(jobs) as pool:
        waiting = {pool.submit(_searched, name, kinds, count): name for name in names}
        for done in as_completed(waiting):
            for search, said in done.result():
                yield waiting[done], search, said


def _searched(test: str, kinds: list[str], count: int) -> list[tuple[Search, str]]:
    """The kinds one after the other, up to the first seed that shows the bug."""
    (bug,) = (each for each in all_bugs() if each.test == test)
    made: list[tuple[Search, str]] = []
    for kind in kinds:
        if bug.planted is None and kind not in bug.mutations:
            continue
        try:
            seen, tried = hunt(seeds.mutation_of(bug, kind), range(1, count + 1))
        except FaultyWithout as fault:
            made.append((Search(kind, 0), str(fault)))
            continue
        if seen is not None:
            return [*made, (Search(kind, tried, seen.property_id), seen.message)]
        made.append((Search(kind, tried), "nothing"))
    return made


if __name__ == "__main__":
    main()
