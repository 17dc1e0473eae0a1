"""`python -m bench.floor`: the broker's CPU for a request, as a multiple of the system calls that nobody can leave out.

    python -m bench.floor                           tanist and Apache Kafka beside the floor, five rounds
    python -m bench.floor --sides tanist,../before --only fetch-1MB-4x1

The floor is a C program (`floor.c`) on one thread with epoll: it receives the same frames from the same load generator,
writes the batches to a file, and sends answers of the same size; fetches go by sendfile. It decodes, checks and counts
nothing. Its sockets' send buffers are as large as Kafka's. A broker that needs twice the floor spends half of its time
in its own code. The rounds are taken by turns.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from bench import stands
from bench.__main__ import labels_of, names_among
from bench.load import LoadSpec
from bench.measure import fill, in_turn, run_load, spec_of, topic_on
from bench.stands import Side
from bench.workloads import FETCHED_LOG_BYTES, RAW, Raw
from tests.interop.cluster import ROOT, Cluster, free_ports, interrupt_on_sigterm
from tests.interop.raw import RawClient
from tests.interop.waiting import wait_for

WORKLOADS = ("produce-100B-16x1", "produce-16KB-16x1", "fetch-32KB-16x1", "fetch-1MB-4x1")
SOURCE = Path(__file__).with_name("floor.c")
WARM_S = 6.0
FLOOR = "floor"
_TAIL_BYTES = 3
_FETCH_HEAD_BYTES = 60


@dataclass(slots=True)
class FloorServer:
    """The C program, as far as the load generator's runner looks at a cluster."""

    process: subprocess.Popen[bytes]
    port: int
    name: str = FLOOR
    node_ids: tuple[int, ...] = (1,)

    def pid(self, node_id: int) -> int | None:
        return self.process.pid if self.process.poll() is None else None

    def address(self, node_id: int) -> tuple[str, int]:
        return "127.0.0.1", self.port


@contextmanager
def floor(program: Path, folder: Path, kind: str, body_bytes: int, answer_bytes: int) -> Iterator[FloorServer]:
    """The program, serving, with a folder of its own, which is gone after."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        file = Path(own) / "log"
        if kind == "fetch":
            file.write_bytes(bytes(max(FETCHED_LOG_BYTES, body_bytes)))
        port = free_ports(1)
        command = [str(program), str(port), kind, str(file), str(body_bytes), str(answer_bytes)]
        with subprocess.Popen(command) as process:
            server = FloorServer(process, port)
            try:
                wait_for(lambda: _accepts(server), "the floor serves")
                yield server
            finally:
                process.kill()


def _accepts(server: FloorServer) -> bool:
    try:
        RawClient(*server.address(1)).close()
    except OSError:
        return False
    return True


def answer_to(cluster: Cluster, spec: LoadSpec) -> bytes:
    with RawClient(spec.host, spec.port, timeout_s=30) as client:
        return client.exchange(spec.frames().requests[0])


@dataclass(slots=True)
class Stand:
    """What is measured, ready to be."""

    label: str
    cluster: Cluster
    spec: LoadSpec

    def cost(self, seconds: float) -> float:
        """Microseconds of CPU for a request."""
        result, cpu = run_load(self.cluster, replace(self.spec, seconds=seconds))
        return cpu / result.requests * 1e6


@contextmanager
def _on_side(side: Side, work: Raw) -> Iterator[Stand]:
    with topic_on(side.single, 1) as place:
        filled = fill(side.single, place) if work.kind == "fetch" else place
        yield Stand(side.label, side.single, replace(spec_of(work, side.single, filled, 0.0), rate=0.0))


def measure(
    work: Raw, sides: Sequence[Side], program: Path, folder: Path, rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Of each side and the floor: one value a round. Each round has topics and files of its own."""
    costs: dict[str, list[float]] = {}

    @contextmanager
    def on_floor() -> Iterator[Stand]:
        with _on_side(sides[0], work) as example:
            answer_bytes = len(answer_to(example.cluster, example.spec)) + 4
        batch_bytes = example.spec.frames().payload_bytes
        body_bytes = batch_bytes or answer_bytes - _FETCH_HEAD_BYTES - _TAIL_BYTES
        head_bytes = answer_bytes if batch_bytes else _FETCH_HEAD_BYTES
        with floor(program, folder, work.kind, body_bytes, head_bytes) as server:
            host, port = server.address(1)
            spec = replace(example.spec, host=host, port=port)
            yield Stand(FLOOR, cast(Cluster, server), spec)

    places: list[Callable[[], AbstractContextManager[Stand]]] = [on_floor]
    places += [partial(_on_side, side, work) for side in sides]
    for number in range(-1, rounds):
        for place in in_turn(places, number):
            with place() as stand:
                if number < 0:
                    stand.cost(WARM_S if stand.label != FLOOR else 0.5)
                    continue
                cost = stand.cost(seconds)
            costs.setdefault(stand.label, []).append(cost)
            print(f"  {work.name}, {stand.label}: {cost:.1f} us of CPU", flush=True)
    return costs


def report(found: dict[str, dict[str, list[float]]], labels: Sequence[str]) -> None:
    print(f"\n| | {FLOOR} | {' | '.join(labels)} |")
    print(f"|---|---|{'---|' * len(labels)}")
    for title, costs in found.items():
        least = statistics.median(costs[FLOOR])
        cells = [
            f"{statistics.median(costs[each]):,.1f} µs ({statistics.median(costs[each]) / least:.1f})"
            for each in labels
        ]
        print(f"| {title} | {least:,.1f} µs | {' | '.join(cells)} |")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.floor", description=__doc__.split("\n")[0])
    parser.add_argument("--sides", type=labels_of, default="tanist,apache", help="what is compared (tanist,apache)")
    parser.add_argument(
        "--only", type=names_among(WORKLOADS), default=",".join(WORKLOADS), help="some of the workloads"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (3)")
    chosen = parser.parse_args()
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("the floor is a C program, and there is no C compiler (cc)", file=sys.stderr)
        return 2
    interrupt_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder:
        program = Path(folder) / FLOOR
        subprocess.run([compiler, "-O2", "-Wall", "-o", program, SOURCE], check=True, cwd=ROOT)
        found: dict[str, dict[str, list[float]]] = {}
        with stands.standing(chosen.sides, Path(folder), with_triple=False) as sides:
            for work in (each for each in RAW if each.name in chosen.only):
                found[work.title] = measure(work, sides, program, Path(folder), chosen.rounds, chosen.seconds)
    report(found, list(chosen.sides))
    return 0


if __name__ == "__main__":
    sys.exit(main())
