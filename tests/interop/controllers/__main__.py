"""`python -m tests.interop.controllers --seeds 1..200 [--steps 40]`: Apache Kafka's controller against ours, black box.

Random sequences of controller RPCs, played by brokers that are not there, to Apache Kafka's controller and to
ours; after each step the answers and the partitions are compared. Exit code 1 at a difference that no rule of
`docs/rules.md` explains.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tanist.lab.scenarios.deviations import Deviation
from tests.interop.cluster import interrupt_on_sigterm
from tests.interop.controllers.nodes import both
from tests.interop.controllers.pulse import SESSION_MS, Disturbed
from tests.interop.controllers.sequence import play
from tests.interop.controllers.side import LATEST, Side


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.interop.controllers", description=__doc__.splitlines()[2])
    parser.add_argument("--seeds", type=_seeds, default=range(1, 201), metavar="FIRST..LAST")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument(
        "--metadata-version",
        type=int,
        default=LATEST,
        metavar="LEVEL",
        help="that both start with; 29 can be left again",
    )
    parser.add_argument("--session-ms", type=int, default=SESSION_MS, help="of brokers; longer on a busy machine")
    options = parser.parse_args()
    interrupt_on_sigterm()
    steps: Counter[str] = Counter()
    rules: Counter[Deviation] = Counter()
    failed = disturbances = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="controllers-") as folder:
        theirs, ours = both(Path(folder), options.session_ms, options.metadata_version)
        sides = Side(theirs), Side(ours)
        try:
            for seed in options.seeds:
                try:
                    comparison = play(*sides, seed, options.steps, options.metadata_version, options.session_ms)
                except Disturbed as disturbed:
                    print(disturbed, flush=True)
                    disturbances += 1
                    continue
                steps += comparison.steps
                rules += comparison.deviations
                for difference in comparison.differences:
                    print(f"seed {seed}: {difference}", flush=True)
                failed += bool(comparison.differences)
        finally:
            for side, node in zip(sides, (theirs, ours), strict=True):
                side.close()
                node.stop()
    took_s = time.monotonic() - began
    played = len(options.seeds) - disturbances
    print(f"{played} sequences, {steps.total()} steps in {took_s:.0f} s: {dict(sorted(steps.items()))}")
    for rule, count in sorted(rules.items(), key=lambda each: -each[1]):
        print(f"  {count:5} x {rule}")
    print(f"{failed} sequences with a difference that no rule explains")
    if disturbances:
        print(f"{disturbances} sequences are missing: the machine was too busy")
    return 1 if failed or disturbances else 0


if __name__ == "__main__":
    sys.exit(main())
