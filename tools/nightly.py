"""What takes too long for each change, once; then all tests on a machine that is kept busy, three times over.

A test that waits for a time fails there.

    .venv/bin/python tools/nightly.py [--load 30] [--runs 3] [--part "make test"]...

Owns how a load is made (processes that compute, at the tests' own priority) and what is said of the runs. It takes
hours: a `make test` at a load of 30 is an hour and a half on two cores. It ends with 1 at the first red run. What the
parts print goes to build/nightly/.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "nightly"
PARTS = ("make test", "make long", "make clients", "make stories")
QUIET_PARTS = ("make slow",)
"""Once and without the load: Spark gives a Python worker ten seconds to start, whatever else the machine does."""
BUSY = "while True: pass"


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes compute meanwhile. They end with this one, however it ends: they read from it."""
    burn = "import os, threading; threading.Thread(target=lambda: (os.read(0, 1), os._exit(0)), daemon=True).start()\n"
    running = [subprocess.Popen([sys.executable, "-c", burn + BUSY], stdin=subprocess.PIPE) for _ in range(processes)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
        for each in running:
            each.wait()


def run(part: str, log: Path) -> bool:
    """Whether the part is green."""
    began_s = time.monotonic()
    with log.open("w") as output:
        done = subprocess.run(
            part.split(), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        )
    last = next((line for line in reversed(log.read_text().splitlines()) if line.strip()), "")
    minutes, now = (time.monotonic() - began_s) / 60, os.getloadavg()[1]
    print(
        f"{part}: {'green' if done.returncode == 0 else 'red'}, {minutes:.0f} min at a load of {now:.0f}: {last}",
        flush=True,
    )
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--load", type=int, default=30, help="processes that compute meanwhile")
    parser.add_argument("--runs", type=int, default=3, help="how many green runs are wanted of each part")
    parser.add_argument("--part", action="append", metavar="COMMAND", help=f"instead of {', '.join(PARTS)}")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    for part in () if options.part else QUIET_PARTS:
        log = OUT / f"{part.replace(' ', '-')}.log"
        if not run(part, log):
            print(f"see {log}")
            return 1
    with load(options.load):
        for number in range(1, options.runs + 1):
            for part in options.part or PARTS:
                log = OUT / f"{part.replace(' ', '-')}-{number}.log"
                if not run(part, log):
                    print(f"see {log}")
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
