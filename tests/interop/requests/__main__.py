"""`python -m tests.interop.requests --draw 100 [--steps 40]`: random requests to a node of Apache Kafka and to ours.

Each sequence has topics, groups and transactions of its own. Both nodes are asked the same, one after the other, and
their answers are compared field by field. A difference is played again under other names, and shortened. Exit code 1 if
one is left that `known.py` does not explain.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import SystemRandom

from tests.interop.cluster import interrupt_on_sigterm
from tests.interop.pair import pair
from tests.interop.requests.player import PROPERTIES, Player
from tests.interop.requests.sequence import drawn, shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.interop.requests", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draw", type=int, default=20, metavar="N", help="fresh sequences; the first line names them")
    parser.add_argument("--seeds", metavar="A..B", help="play these instead")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--deep", action="store_true", help="more requests that succeed; differences are left there")
    parser.add_argument(
        "--survey",
        action="store_true",
        help="go on after differences, and print one of each kind; later ones may follow",
    )
    options = parser.parse_args()
    interrupt_on_sigterm()
    first = SystemRandom().randrange(1 << 40)
    seeds = range(first, first + options.draw)
    if options.seeds:
        begin, _, end = options.seeds.partition("..")
        seeds = range(int(begin), int(end or begin) + 1)
    print(f"seeds {seeds[0]}..{seeds[-1]}", flush=True)
    red = unsteady = 0
    reasons: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="requests-") as folder, pair(Path(folder), PROPERTIES) as nodes:
        player = Player(nodes)
        for seed in seeds:
            steps = drawn(seed, options.steps, player.versions, 0.6 if options.deep else 0.0)
            found = player.play(steps, to_the_end=options.survey)
            reasons.update(f"{each.api}: {each.reason}" for each in found if each.reason is not None)
            if options.survey:
                strange = [each for each in found if each.reason is None]
                for each in strange:
                    if each.kind not in kinds:
                        print(f"seed {seed}, step {each.step}: {each}\n    {each.kind}", flush=True)
                kinds.update(each.kind for each in strange)
                continue
            if not found or found[-1].reason is not None:
                continue
            short = player.shortened(steps, found[-1])
            if short is None:
                unsteady += 1
                print(f"seed {seed}: not a second time: {found[-1]}", flush=True)
                continue
            red += 1
            print(f"seed {seed}, step {found[-1].step}: {found[-1]}\n{shown(short)}", flush=True)
    asked, done, ended = player.counts
    kinds_asked = ", ".join(f"{name} {number} ({done[name]})" for name, number in sorted(asked.items()))
    print(f"{len(seeds)} sequences, {asked.total()} requests ({done.total()} without an error): {kinds_asked}")
    for reason, number in ended.most_common():
        print(f"  {number:5} ended: {reason}")
    for reason, number in reasons.most_common():
        print(f"  {number:5} x {reason}")
    for kind, number in kinds.most_common():
        print(f"  {number:5} x {kind}")
    print(f"{red} sequences with a difference that nothing explains, {unsteady} with one that did not come again")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
