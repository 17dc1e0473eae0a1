"""`python -m bench.life`: one request's life, from the client's send to its receive, with the time at each step.

    python -m bench.life                            a commit and a produce, on three nodes
    python -m bench.life --request transaction --nodes 1
    python -m bench.life --picture life.svg

The nodes run as ever, but functions of theirs are wrapped as the simulator's marks are (`tanist.sim.marks`): each call
of one takes down the time, and the product knows nothing of it. All clocks are the machine's monotonic one, so times
of different processes can be compared. One request is under way at a time, at a fixed rate. Of each step the median
over all requests is given, since the send; where both followers take part, the later one counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Never

ENABLED: Final = "TANIST_BENCH_LIFE"
"""Environment: the folder in which each process leaves what it has taken down."""

REQUESTS: Final = {"produce": 0, "commit": 8, "transaction": 26}
INTERNAL: Final = {"produce": "life", "commit": "__consumer_offsets", "transaction": "__transaction_state"}
GROUP, TOPIC = "life", "life"
PATIENCE_S = 30.0

Event = tuple[int, str]
"""(nanoseconds, what)"""


# -- in the nodes


def install() -> None:
    """Wrap the functions, in a process that has just begun; `sitecustomize` of the nodes calls this."""
    from tanist.broker.network.client_connection import ClientConnection
    from tanist.broker.replication.fetcher import Fetcher
    from tanist.broker.replication.hosted_partition import HostedPartition
    from tanist.log.appender import Appender

    events: list[Event] = []
    now_ns = time.perf_counter_ns

    def wrap(owner: Any, name: str, before: Callable[..., str] | None, after: Callable[..., str] | None) -> None:
        original = vars(owner)[name]

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if before is not None:
                events.append((now_ns(), before(*args)))
            result = original(*args, **kwargs)
            if after is not None:
                events.append((now_ns(), after(*args)))
            return result

        setattr(owner, name, wrapped)

    wrap(ClientConnection, "on_frame", lambda _, frame: f"read {frame[0] << 8 | frame[1]}", None)
    wrap(ClientConnection, "flush", lambda *_: "sends", None)
    for name in ("append_as_leader", "append_plain"):
        wrap(Appender, name, None, lambda log, *_: f"appended {log.topic_partition.topic}")
    wrap(Appender, "append_as_follower", None, lambda log, *_: f"copied {log.topic_partition.topic}")
    wrap(Appender, "write_pending", None, lambda *_: "written")
    wrap(Fetcher, "_handle_response", lambda *_: "answered", None)
    wrap(Fetcher, "_send", None, lambda *_: "fetches")
    wrap(HostedPartition, "high_watermark_advanced", lambda hosted: f"committed {hosted.topic}", None)

    def leave() -> None:
        if any(what.startswith(("appended", "copied")) for _, what in events):
            path = Path(os.environ[ENABLED]) / f"{os.getpid()}.txt"
            path.write_text("".join(f"{at_ns} {what}\n" for at_ns, what in events))

    end = os._exit

    def leave_and_end(status: int) -> Never:
        leave()
        end(status)

    os._exit = leave_and_end  # nodes end so, without `atexit`


@contextmanager
def wrapped_nodes(folder: Path) -> Iterator[None]:
    """Python processes that start meanwhile wrap their functions."""
    start = folder / "start"
    start.mkdir()
    (start / "sitecustomize.py").write_text("import bench.life\n\nbench.life.install()\n")
    added = {"PYTHONPATH": f"{start}{os.pathsep}{Path(__file__).resolve().parent.parent}", ENABLED: str(folder)}
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# -- what is asked


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: when it was sent, and when its answer was there."""

    sent_ns: int
    answered_ns: int


def ask(kind: str, cluster: Any, leader: int, count: int, rate: float) -> list[Asked]:
    """Send requests one after the other, at fixed times where the answers allow."""
    once = _transactions(cluster) if kind == "transaction" else _frames(kind, cluster, leader)
    found = []
    due_s = time.perf_counter()
    for _ in range(count):
        due_s = max(due_s + 1 / rate, time.perf_counter())
        time.sleep(max(0.0, due_s - time.perf_counter()))
        found.append(once())
    return found


def _frames(kind: str, cluster: Any, leader: int) -> Callable[[], Asked]:
    from bench import frames
    from tanist.wire.frames import encode_request
    from tanist.wire.messages.offset_commit_request import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )
    from tests.interop.raw import RawClient

    client = RawClient(*cluster.address(leader))
    if kind == "produce":
        batch = frames.batch_of_size(100, 100, int(time.time() * 1000))
        frame = frames.produce(TOPIC, 0, batch, -1).requests[0]
    else:
        offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = OffsetCommitRequest(
            group_id=GROUP, topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(offset,)),)
        )
        frame = encode_request(request, 8, 1, "bench")

    def once() -> Asked:
        sent_ns = time.perf_counter_ns()
        client.exchange(frame)
        return Asked(sent_ns, time.perf_counter_ns())

    return once


def _transactions(cluster: Any) -> Callable[[], Asked]:
    from tests.clients import install as clients

    clients.activate()
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": GROUP, "linger.ms": 0})
    producer.init_transactions(PATIENCE_S)

    def once() -> Asked:
        producer.begin_transaction()
        producer.produce(TOPIC, b"life", partition=0)
        producer.flush(PATIENCE_S)
        sent_ns = time.perf_counter_ns()
        producer.commit_transaction(PATIENCE_S)
        return Asked(sent_ns, time.perf_counter_ns())

    return once


def leader_of(kind: str, cluster: Any) -> int:
    """The node that leads what the requests go to; internal topics are made by the first request for them."""
    from tanist.wire.frames import encode_request
    from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
    from tests.interop.cluster import wait_in_sync
    from tests.interop.raw import RawClient, Reader
    from tests.interop.waiting import wait_for

    with RawClient(*cluster.address(cluster.node_ids[0])) as client:
        if kind == "produce":
            return wait_in_sync(cluster, TOPIC).leaders(TOPIC)[0]
        request = FindCoordinatorRequest(key=GROUP, key_type=int(kind == "transaction"))

        def coordinator() -> int | None:
            reader = Reader(client.exchange(encode_request(request, 2, 1, "bench")))
            reader.int32()
            reader.int32()
            return None if reader.int16() else _node_after_message(reader)

        return wait_for(coordinator, "the coordinator is there")


def _node_after_message(reader: Any) -> int:
    reader.string()
    return int(reader.int32())


# -- what came of it


class Recorded:
    """What one process has taken down, in order."""

    def __init__(self, path: Path) -> None:
        self.events = [
            (int(at), what) for at, _, what in (line.partition(" ") for line in path.read_text().splitlines())
        ]

    def first(self, what: str, after_ns: int, before_ns: int) -> int | None:
        """The first such event between two times."""
        for at_ns, each in self.events[bisect_left(self.events, (after_ns, "")) :]:
            if at_ns > before_ns:
                return None
            if each == what:
                return at_ns
        return None


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its name, where it is, and its medians in microseconds since the send."""

    name: str
    place: str
    at_us: float


def steps_of(kind: str, asked: Sequence[Asked], processes: Sequence[Recorded]) -> list[Step]:
    """The median time of each step that nearly all requests have."""
    found: dict[tuple[str, str], list[float]] = {}
    read, topic = f"read {REQUESTS[kind]}", INTERNAL[kind]
    for one in asked:
        leader = next((each for each in processes if each.first(read, one.sent_ns, one.answered_ns)), None)
        if leader is None:
            continue
        followers = [each for each in processes if each is not leader]
        for name, place, at_ns in _life(one, leader, followers, read, topic):
            found.setdefault((name, place), []).append((at_ns - one.sent_ns) / 1000)
    return [
        Step(name, place, statistics.median(times))
        for (name, place), times in found.items()
        if len(times) > len(asked) * 0.9
    ]


def _life(
    one: Asked, leader: Recorded, followers: Sequence[Recorded], read: str, topic: str
) -> Iterator[tuple[str, str, int]]:
    def next_of(process: Recorded, what: str, after_ns: int) -> int | None:
        return process.first(what, after_ns, one.answered_ns)

    at_ns = one.sent_ns
    for what, name in ((read, "request read"), (f"appended {topic}", "decided, appended"), ("written", "written")):
        found = next_of(leader, what, at_ns)
        if found is None:
            return
        at_ns = found
        yield name, "leader", at_ns
    if followers:
        answered = next_of(leader, "sends", at_ns)
        if answered is not None:
            yield "answers fetches", "leader", answered
        for what, name in (("answered", "records arrive"), (f"copied {topic}", "copied"), ("fetches", "fetch again")):
            times = [next_of(each, what, at_ns) for each in followers]
            known = [each for each in times if each is not None]
            if len(known) < len(followers):
                return
            yield name, "followers", max(known)
            if what == "fetches":
                at_ns = min(known)
        committed = next_of(leader, f"committed {topic}", at_ns)
        if committed is not None:
            yield "committed", "leader", committed
            at_ns = committed
    sends = next_of(leader, "sends", at_ns)
    if sends is not None:
        yield "answers", "leader", sends
    yield "answer read", "client", one.answered_ns


def table(steps: Sequence[Step]) -> str:
    """A line a step, and what it takes since the one before."""
    lines, before = ["   at us  takes us  where      step"], 0.0
    for step in sorted(steps, key=lambda each: each.at_us):
        lines.append(f"{step.at_us:8.0f}  {step.at_us - before:8.0f}  {step.place:9}  {step.name}")
        before = step.at_us
    return "\n".join(lines)


_LANES = ("client", "leader", "followers")
_WIDTH, _LANE, _LEFT, _RIGHT, _LETTER = 760, 64, 90, 110, 6.6
_ROWS = (-8, 16, 29)
"""Where labels of a lane go: the first row with space."""


def picture(title: str, steps: Sequence[Step]) -> str:
    """The steps on a line for each place, as an SVG."""
    from tanist.lab.pages import chart

    ordered = sorted([Step("sent", "client", 0.0), *steps], key=lambda each: each.at_us)
    last_us = ordered[-1].at_us or 1.0
    lanes = [lane for lane in _LANES if any(step.place == lane for step in ordered)]
    y = {lane: 50 + number * _LANE for number, lane in enumerate(lanes)}
    height = 50 + len(lanes) * _LANE
    parts = [chart.label(0, 20, title, "strong")]
    for lane in lanes:
        parts += [chart.label(0, y[lane] + 4, lane, anchor="end", dx=-12), chart.across(y[lane], "grid")]
    shares = [(step.at_us / last_us, 1 - y[step.place] / height) for step in ordered]
    parts.append(chart.line(shares, 0, height, "way"))
    taken: dict[tuple[str, int], float] = {}
    for step, (x, _) in zip(ordered, shares, strict=True):
        text = f"{step.name} {step.at_us:.0f}"
        row = next((row for row in _ROWS if taken.get((step.place, row), 0.0) <= x * _WIDTH), _ROWS[-1])
        taken[step.place, row] = x * _WIDTH + len(text) * _LETTER + 6
        parts.append(chart.element("circle", cx=chart.per_cent(x), cy=y[step.place], r=3, class_="bar"))
        parts.append(chart.label(x, y[step.place] + row, text, "halo", anchor="start"))
    strip = chart.strip(height, parts, x=_LEFT, width=_WIDTH)
    return chart.document(_LEFT + _WIDTH + _RIGHT, height, title, [strip])


# -- the command


def run(kind: str, nodes: int, count: int, rate: float, folder: Path) -> list[Step]:
    """One kind of request, on its own cluster."""
    from bench.stands import triple
    from tests.interop.raw import RawClient
    from tests.interop.tanist_cluster import TanistCluster

    folder.mkdir()
    with wrapped_nodes(folder):
        cluster = triple("tanist", folder / "cluster") if nodes == 3 else TanistCluster(folder / "cluster", nodes=1)
        try:
            cluster.start()
            with RawClient(*cluster.address(1)) as client:
                client.create_topic(TOPIC, 1, nodes, {})
            leader = leader_of(kind, cluster)
            ask(kind, cluster, leader, count, rate)  # warm
            asked = ask(kind, cluster, leader, count, rate)
        finally:
            cluster.stop()
    return steps_of(kind, asked, [Recorded(path) for path in sorted(folder.glob("*.txt"))])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.life", description=__doc__.split("\n\n")[0])
    parser.add_argument("--request", choices=REQUESTS, action="append", help="default: commit and produce")
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=3)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--picture", type=Path, help="an SVG, for the last kind of request")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tanist-bench-life-") as folder:
        for kind in chosen.request or ("commit", "produce"):
            steps = run(kind, chosen.nodes, chosen.count, chosen.rate, Path(folder) / kind)
            if not steps:
                print(f"{kind}: the nodes have taken nothing down", file=sys.stderr)
                return 1
            title = f"{kind}, {chosen.nodes} node{'s' * (chosen.nodes > 1)}: medians of {chosen.count} requests, in us"
            print(f"{title}\n{table(steps)}", flush=True)
            if chosen.picture is not None:
                chosen.picture.write_text(picture(title, steps))
    return 0


if __name__ == "__main__":
    sys.exit(main())
