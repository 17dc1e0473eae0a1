"""Seeds, played in one process or in several, and their results as they come.

A seed starts only when a process is free, so that a deadline has a meaning. The behaviour of a seed depends on the seed
alone, never on the process that plays it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from tanist.sim.run.chaos_run import SeedResult


def outcomes(
    play: Callable[[int], SeedResult], seeds: range, jobs: int, in_time: Callable[[], bool]
) -> Iterator[SeedResult]:
    """The result of `play` for each seed. No seed starts when it is not `in_time`. Several jobs pickle `play`."""
    if jobs <= 1 or len(seeds) == 1:
        for seed in seeds:
            if not in_time():
                return
            yield play(seed)
        return
    left = iter(seeds)
    with ProcessPoolExecutor(max_workers=min(jobs, len(seeds), os.cpu_count() or jobs)) as pool:
        under_way: set[Future[SeedResult]] = set()
        try:
            while True:
                while len(under_way) < 2 * jobs and in_time():
                    following = next(left, None)
                    if following is None:
                        break
                    under_way.add(pool.submit(play, following))
                if not under_way:
                    return
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                yield from sorted((future.result() for future in done), key=lambda outcome: outcome.seed)
        finally:
            pool.shutdown(cancel_futures=True)
