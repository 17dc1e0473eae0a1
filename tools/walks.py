"""How far a reader walks who follows one chain of calls through the source, file by file.

    python tools/walks.py           # the walks, step by step, and their numbers

`tests/architecture/test_walks.py` holds the limits.

* **produce**: one produce request with acks=all of a simulated broker, from its frame's arrival to the
  acknowledgement's bytes: to a partition without followers, and to one with two, where the follower's fetch that
  moves the high watermark is followed as well, as far as it leads to the answer.
* **fetch**: a consumer's fetch of a record that is there, from its frame's arrival to the answer's bytes.
* **fence to leader**: from the end of a leader's process to the next leader: the controller's decision and its append,
  the commit, and the new leader's role. Only the way itself, without the calls beside it.
* **seed**: one seed of `tanist lab run`, from the command to the verdict: of the driver only, that is `tanist.cli`,
  `tanist.lab` and `tanist.sim.run`. The world that is driven and what checks it are not in it.

The rule. Every call of a Python function in scope is recorded while the chain runs; a call through code that is out of
scope (click, the scheduler, the simulated ports) is one of the nearest function in scope. Loops and repetitions go: a
function has each of its callees once, in the order of the first calls. The reader starts at the root and reads each
function once, where it is met first; from there they follow its callees, depth first. Then

* a call of a function in another file goes there: it counts as a **file** if the reader was never there, else as a
  **return**;
* when a call has ended, the reader goes back up to its caller's file, and further up if that ends as well: each file on
  the way up is a **return**, whether anything follows in it or not. Only what an event leaves open at its end is not
  walked up: the reader goes on at the next event, or has arrived;
* a **glance** is a call of a function that goes on into no other file: the reader looks, and is back. Its file counts
  if it is new; there is no return. Glances are listed;
* calls within a file are no steps, nor are methods that `dataclasses` has made, which no file holds, nor is what an
  import runs.

So a layer that only passes on costs a file, and two layers that call each other by turns cost a return each time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

DRIVER = ("tanist.cli.", "tanist.lab.", "tanist.sim.run.")
WORLD = "tanist.sim"
SEED = 1
TOPIC = "t"
_CALM_MS = 100
"""Enough for followers to have fetched all there is, and to wait for more."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the source."""

    module: str
    name: str
    line: int


@dataclass(slots=True)
class Walk:
    """The way of a reader."""

    files: list[str] = field(default_factory=list)
    returns: int = 0
    steps: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{len(self.files)} files, {self.returns} returns"


class Call:
    """One call, with those that it has made."""

    __slots__ = ("calls", "function")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.calls: list[Call] = []

    def find(self, name: str) -> list[Call] | None:
        """The way from here to the first call of a function of that name, both included."""
        if self.function.name == name:
            return [self]
        for call in self.calls:
            if (way := call.find(name)) is not None:
                return [self, *way]
        return None


class Recorder:
    """Records the calls of functions in scope, as trees: one for each call from outside."""

    def __init__(self, in_scope: Callable[[str], bool]) -> None:
        self._in_scope = in_scope
        self._functions: dict[CodeType, Function | None] = {}
        self._stack: list[Call | None] = []
        self.roots: list[Call] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        self.start()
        try:
            yield
        finally:
            self.stop()

    def start(self) -> None:
        self._stack = [None]
        sys.setprofile(self._happened)

    def stop(self) -> None:
        sys.setprofile(None)

    def _happened(self, frame: FrameType, event: str, _: Any) -> None:
        stack = self._stack
        if event == "call":
            caller = stack[-1]
            function = self._function(frame)
            if function is None or caller is _IMPORTED:
                stack.append(caller)
            elif function is _IMPORT:
                stack.append(_IMPORTED)
            else:
                call = Call(function)
                (self.roots if caller is None else caller.calls).append(call)
                stack.append(call)
        elif event == "return" and len(stack) > 1:
            stack.pop()

    def _function(self, frame: FrameType) -> Function | None:
        code = frame.f_code
        if code not in self._functions:
            module = str(frame.f_globals.get("__name__", ""))
            found: Function | None = None
            if code.co_name == "<module>":
                found = _IMPORT
            elif self._in_scope(module) and not code.co_filename.startswith("<"):
                found = Function(module, code.co_qualname, code.co_firstlineno)
            self._functions[code] = found
        return self._functions[code]


_IMPORT = Function("", "<module>", 0)
_IMPORTED = Call(_IMPORT)


class Reader:
    """Goes the way that the docstring of this module describes."""

    def __init__(self, roots: Iterable[Call]) -> None:
        self._callees: dict[Function, dict[Function, None]] = {}
        self._read: set[Function] = set()
        self._at = ""
        self._up: list[tuple[Function, int]] = []
        """The way up from calls that have ended, which is walked if anything follows."""
        self.walk = Walk()
        roots = list(roots)
        for root in roots:
            self._learn(root)
        for root in roots:
            if root.function not in self._read:
                self._up.clear()
                self._stand(root.function.module)
                self._note("=", root.function, 0)
                self._follow(root.function, 1)

    def _learn(self, call: Call) -> None:
        callees = self._callees.setdefault(call.function, {})
        for each in call.calls:
            callees.setdefault(each.function)
            self._learn(each)

    def _stand(self, module: str) -> bool:
        """Be in that file. True if that is a return."""
        if module == self._at:
            return False
        self._at = module
        if module in self.walk.files:
            self.walk.returns += 1
            return True
        self.walk.files.append(module)
        return False

    def _go_up(self) -> None:
        for function, depth in self._up:
            if self._stand(function.module):
                self._note("< back in", function, depth)
        self._up.clear()

    def _note(self, sign: str, function: Function, depth: int) -> None:
        self.walk.steps.append(f"{'  ' * depth}{sign} {function.module.removeprefix('tanist.')} {function.name}")

    def _follow(self, function: Function, depth: int) -> None:
        self._read.add(function)
        for callee in self._callees[function]:
            if callee in self._read:
                continue
            if callee.module == function.module:
                self._follow(callee, depth)
                continue
            self._go_up()
            if self._is_glance(callee):
                self._read.add(callee)
                if callee.module not in self.walk.files:
                    self.walk.files.append(callee.module)
                self._note("-", callee, depth)
            else:
                self._note("<" if self._stand(callee.module) else ">", callee, depth)
                self._follow(callee, depth + 1)
                self._up.append((function, depth))

    def _is_glance(self, function: Function) -> bool:
        """Whether it, with what it calls in its own file, calls nothing in another."""
        seen, left = {function}, [function]
        while left:
            for callee in self._callees[left.pop()]:
                if callee.module != function.module:
                    return False
                if callee not in seen:
                    seen.add(callee)
                    left.append(callee)
        return True


# -- the chains


def seed_walk(seed: int = SEED) -> Walk:
    """`tanist lab run --seeds SEED`."""
    from tanist.cli.main import main

    recorder = Recorder(lambda module: module.startswith(DRIVER))
    arguments = sys.argv
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["tanist", "lab", "run", "--seeds", str(seed), "--out", folder]
        try:
            with recorder.recording():
                main()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.argv = arguments
    return Reader(recorder.roots).walk


class Wire:
    """The connection under a `ClientConnection`: what is sent ends the chain."""

    peer = "client"
    pending_bytes = 0

    def __init__(self, recorder: Recorder) -> None:
        self.answered = False
        self._recorder = recorder

    def send(self, chunks: Sequence[Any]) -> None:
        self._recorder.stop()
        self.answered = True

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class Served:
    """A calm cluster with one topic of one partition, which all replicas have in sync, and a client of its leader."""

    def __init__(self, replicas: int) -> None:
        from tanist.broker.api.table import ApiTable
        from tanist.broker.network.client_connection import ClientConnection
        from tanist.security.session import Session
        from tanist.sim.scripted.cluster import ScriptedCluster
        from tanist.sim.world.world import World

        cluster = self.cluster = ScriptedCluster(World(1, nodes=3))
        cluster.start()
        cluster.create_topic(TOPIC, factor=replicas)
        cluster.until(lambda: bool(self.leaders(replicas)))
        (self.leader,) = self.leaders(replicas)
        self.recorder = Recorder(lambda module: module.startswith("tanist.") and not module.startswith(WORLD))
        self.wire = Wire(self.recorder)
        components = cluster.node(self.leader).components
        connection: Any = self.wire
        apis = ApiTable(components).of_listener("PLAINTEXT")
        session = Session("PLAINTEXT", "PLAINTEXT", "client")
        self._client = ClientConnection(components.connections, components.turn.touch, connection, session, apis)

    def leaders(self, in_sync: int) -> list[int]:
        found = self.cluster.hosted(TOPIC).items()
        return [node_id for node_id, hosted in found if hosted.leader is not None and len(hosted.leader.isr) >= in_sync]

    def ask(self, frame: bytes, *, recorded: bool) -> None:
        """Send a request, and wait for its answer."""
        cluster, wire = self.cluster, self.wire
        cluster.run(_CALM_MS)
        wire.answered = False
        received = memoryview(bytearray(frame))
        process = cluster.host(self.leader).process
        cluster.world.scheduler.after(0, lambda: self._client.on_frame(received), process)
        if recorded:
            self.recorder.start()
        cluster.until(lambda: wire.answered)


def produce_walk(replicas: int = 1) -> Walk:
    """A produce with acks=all to a partition with so many replicas, all of them in sync."""
    served = Served(replicas)
    for sequence in range(2):  # the first produce reads and compiles what all others find
        frame = _produce_frame(served.cluster.world.now_ms, sequence)
        served.ask(frame, recorded=sequence == 1)
    roots = served.recorder.roots
    return Reader(roots if replicas == 1 else list(_led_to_answer(roots))).walk


def fetch_walk() -> Walk:
    """A consumer's fetch of a record that is there."""
    served = Served(1)
    served.ask(_produce_frame(served.cluster.world.now_ms, 0), recorded=False)
    for recorded in (False, True):
        served.ask(_fetch_frame(), recorded=recorded)
    return Reader(served.recorder.roots).walk


def fence_walk() -> Walk:
    """From the end of a leader's process to the next leader: the way of the decision, and nothing beside it."""
    served = Served(3)
    served.cluster.run(_CALM_MS)
    served.recorder.start()
    served.cluster.host(served.leader).kill()
    served.cluster.until(lambda: bool(served.leaders(1)))
    served.recorder.stop()
    return Reader(list(_fenced_to_led(served.recorder.roots))).walk


def _led_to_answer(roots: Sequence[Call]) -> Iterator[Call]:
    """The request itself and the write at the end of its turn; the fetch that settles it, and the sending."""
    yield roots[0]
    written = _way(roots[1:], "Appender.write_pending")
    settled = _way(roots[1:], "ProduceWait.complete")
    sent = roots[-1].find("ClientConnection.flush")
    for way in (written, settled, sent or []):
        for caller, callee in pairwise(way):
            caller.calls = [callee]
        yield way[0]


def _fenced_to_led(roots: Sequence[Call]) -> Iterator[Call]:
    """The decision and its append; the commit that covers it; what the new leader makes of it.

    Each fetch of a follower looks whether it commits anything: the commit is the last one before the role, mostly of
    the same event.
    """
    decided = next(root for root in roots if root.find("partition_change"))
    left = roots[roots.index(decided) + 1 :]
    led = next(number for number, root in enumerate(left) if root.find("LeaderState.__init__"))
    committed = max(number for number in range(led + 1) if left[number].find("QuorumLeader._commit"))
    yield _only(decided, "partition_change", "QuorumLeader.append")
    for number in sorted({committed, led}):
        yield _only(left[number], "QuorumLeader._commit", "LeaderState.__init__")


def _way(roots: Iterable[Call], name: str) -> list[Call]:
    return next(way for root in roots if (way := root.find(name)))


def _only(root: Call, *names: str) -> Call:
    """The root, with the ways to the first calls of these functions, and without the calls beside them."""
    kept: dict[int, tuple[Call, list[Call]]] = {}
    for way in [way for name in names if (way := root.find(name))]:
        for caller, callee in pairwise(way):
            _, calls = kept.setdefault(id(caller), (caller, []))
            if callee not in calls:
                calls.append(callee)
        way[-1].calls = []
    for caller, calls in kept.values():
        caller.calls = calls
    return root


def _produce_frame(now_ms: int, sequence: int) -> bytes:
    """As clients make it at their defaults: idempotent, with acks=all."""
    from tanist.client.sequences import produce_request
    from tanist.sim.world.clock import EPOCH_MS
    from tanist.wire.batch import NewRecord, encode_batch
    from tanist.wire.frames import encode_request

    records = [NewRecord(EPOCH_MS + now_ms, None, b"value")]
    batch = bytes(encode_batch(records, producer_id=1, producer_epoch=0, base_sequence=sequence))
    return encode_request(produce_request((TOPIC, 0), batch, timeout_ms=5_000), 9, 1, "client")[4:]


def _fetch_frame() -> bytes:
    from tanist.client.positions import fetch_request
    from tanist.wire.frames import encode_request

    return encode_request(fetch_request((TOPIC, 0), 0, max_bytes=1 << 20), 12, 1, "client")[4:]


def main() -> None:
    for name, walk in (
        ("seed", seed_walk()),
        ("produce to one replica", produce_walk()),
        ("produce to three replicas", produce_walk(3)),
        ("fetch", fetch_walk()),
        ("fence to leader", fence_walk()),
    ):
        print(f"{name}: {walk}")
        print(*(f"  {step}" for step in walk.steps), sep="\n")


if __name__ == "__main__":
    main()
