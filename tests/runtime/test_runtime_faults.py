"""The vocabulary of faults, the file that holds them, and how a node learns of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.events.event import Event
from tanist.events.process import AllFaultsHealed, FaultApplied, FaultHealed, FaultsIgnored, FaultsNotAcknowledged
from tanist.events.stream import Events
from tanist.events.text import describe
from tanist.faults import FAULTS, Where
from tanist.runtime.cluster.processes import wait_until
from tanist.runtime.faults import settings as vocabulary
from tanist.runtime.faults.disk import FaultyDisk
from tanist.runtime.faults.node_agent import apply_faults
from tanist.runtime.faults.request_rules import RequestFault
from tanist.runtime.faults.settings import (
    CLEAR,
    CLIENTS,
    REQUEST_SIGNAL,
    BadDisk,
    Fault,
    FaultSet,
    FaultsUnreadable,
    LinkState,
    Partition,
    Slow,
    applied_path,
)
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.network import SocketNetwork
from tanist.wire.apis import ApiKey

PORTS = {1: (9092, 10092), 2: (9093,), 3: (10093,)}
NODES = (1, 2, 3, CLIENTS)
CUT = LinkState(cut=True)

sides = st.sets(st.sampled_from(NODES), min_size=1, max_size=3).map(lambda members: tuple(sorted(members)))
faults = st.one_of(
    st.builds(Partition, sides, sides, st.booleans()),
    st.builds(Slow, sides, sides, st.booleans(), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    st.builds(
        BadDisk,
        st.integers(1, 3),
        st.sampled_from(["full", "slow", "failed", "read-only"]),
        st.none() | st.text(),
        st.integers(0, 9),
        st.booleans(),
    ),
)
sets = st.builds(FaultSet, st.integers(0), st.just(PORTS), st.lists(faults, max_size=4).map(tuple))


# -- what follows from what is said


def test_a_partition_is_between_its_sides_and_nobody_else() -> None:
    cut = FaultSet(ports=PORTS, faults=(Partition((1, 2), (3,)),))
    assert cut.link(1, 3) == cut.link(3, 1) == cut.link(2, 3) == CUT
    assert cut.link(1, 2) == cut.link(1, CLIENTS) == cut.link(CLIENTS, 3) == CLEAR
    assert cut.links(3) == {1: (CUT, CUT), 2: (CUT, CUT)}
    assert cut.links(1) == {3: (CUT, CUT)}
    assert cut.nodes_apart_from_clients() == frozenset()
    assert sorted((1, 2, 3), key=cut.isolation) == [1, 2, 3]


def test_one_way() -> None:
    cut = FaultSet(ports=PORTS, faults=(Partition((1,), (3, CLIENTS), one_way=True),))
    assert cut.links(1) == {3: (CUT, CLEAR), CLIENTS: (CUT, CLEAR)}
    assert cut.links(3) == {1: (CLEAR, CUT)}
    assert cut.nodes_apart_from_clients() == {1}
    assert sorted((1, 2, 3), key=cut.isolation) == [2, 3, 1]


def test_faults_of_one_link_add_up() -> None:
    both = FaultSet(faults=(Slow((1,), (2,), False, 5, 9, 100), Slow((1, 2), (3,)), Slow((2,), (1,), True, 7, 1, 50)))
    assert both.link(1, 2) == LinkState(False, 5, 9, 100)
    assert both.link(2, 1) == LinkState(False, 7, 9, 50)
    assert both.also(Partition((2,), (1,), one_way=True)).link(2, 1) == LinkState(True, 7, 9, 50)


def test_a_fault_takes_the_place_of_its_like() -> None:
    found = FaultSet()
    for fault in (
        Slow((1,), (2,), latency_ms=1),
        Slow((1,), (2,), True, latency_ms=1),
        BadDisk(1, "slow", None, 1),
        BadDisk(1, "slow", "/data", 1),
        Partition((1,), (2,)),
        Slow((1,), (2,), latency_ms=3),
        BadDisk(1, "slow", None, 4, True),
        Partition((1,), (2,)),
    ):
        found = found.also(fault)
    assert found.number == 8
    assert found.faults == (
        Slow((1,), (2,), True, latency_ms=1),
        BadDisk(1, "slow", "/data", 1),
        Slow((1,), (2,), latency_ms=3),
        BadDisk(1, "slow", None, 4, True),
        Partition((1,), (2,)),
    )


def test_healing_some() -> None:
    found = FaultSet(5, PORTS, (Partition((1, 2), (3, CLIENTS)), BadDisk(1, "full"), BadDisk(2, "full")))
    assert found.without({1}) == FaultSet(6, PORTS, (Partition((2,), (3, CLIENTS)), BadDisk(2, "full")))
    assert found.without({3}).without({CLIENTS, 2}) == FaultSet(7, PORTS, (BadDisk(1, "full"),))
    assert found.without() == FaultSet(6, PORTS)


@settings(max_examples=50, deadline=None)
@given(sets, st.sets(st.sampled_from(NODES)))
def test_what_is_healed_is_well_and_the_rest_is_as_it_was(before: FaultSet, healed: set[int]) -> None:
    after = before.without(healed)
    for one in NODES:
        for other in NODES:
            spared = one not in healed and other not in healed
            assert after.link(one, other) == (before.link(one, other) if spared else CLEAR)
        assert after.disks(one) == (() if one in healed else before.disks(one))


@given(faults)
def test_kinds_are_those_of_the_table(fault: Fault) -> None:
    assert FAULTS[fault.kind].where & Where.LIVE
    assert str(fault)


# -- the file


@settings(max_examples=20, deadline=None)  # each is synced to the disk
@given(sets)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, found: FaultSet) -> None:
    folder = tmp_path_factory.mktemp("faults")
    vocabulary.save(folder, found)
    assert vocabulary.load(folder) == found
    vocabulary.forget(folder)
    assert vocabulary.load(folder) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 2}',
        b'{"format": 1, "number": "x", "ports": {}, "faults": []}',
        b'{"format": 1, "number": 1, "ports": [], "faults": []}',
        b'{"format": 1, "number": 1, "ports": {}, "faults": [{}]}',
        b'{"format": 1, "number": 1, "ports": {}, "faults": [{"type": "Meteor", "source": [], "target": []}]}',
        b'{"format": 1, "number": 1, "ports": {}, "faults": [{"type": "BadDisk", "size": 5}]}',
    ],
)
def test_what_cannot_be_understood_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "set.json").write_bytes(content)
    with pytest.raises(FaultsUnreadable):
        vocabulary.load(tmp_path)


# -- a node


class Obedient:
    """A node's ports, in this process, and what it says."""

    def __init__(self, runner: Any, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.runner = runner
        self.folder = folder
        self.network = SocketNetwork(runner.loop)
        self.disk = RealDisk(runner.loop)
        self.said: list[str] = []
        self.heard: list[Event] = []
        self.events = Events()
        self.events.subscribe(self._heard)
        self.switch = apply_faults(
            runner.loop,
            self.network,
            self.disk,
            1,
            self.events,
            {vocabulary.FOLDER_VARIABLE: str(folder)} if environment is None else environment,
        )

    def _heard(self, event: Event) -> None:
        self.heard.append(event)
        line = describe(event)
        assert line is not None
        self.said.append(line[1])

    @property
    def answer(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(applied_path(self.folder, 1).read_bytes())
        return found

    def tell(self) -> None:
        """Have it look; while the loop runs, for it hears no signals otherwise."""
        self.runner.loop.post(lambda: os.kill(os.getpid(), REQUEST_SIGNAL))

    def order(self, number: int, *faults: Fault, requests: tuple[RequestFault, ...] = ()) -> None:
        vocabulary.save(self.folder, FaultSet(number, PORTS, faults, requests=requests))
        self.tell()
        self.runner.until(lambda: applied_path(self.folder, 1).exists() and self.answer["number"] == number)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "faults"
    folder.mkdir(mode=0o700)
    yield folder
    signal.signal(REQUEST_SIGNAL, signal.SIG_DFL)


def test_a_node_obeys_and_says_so(runner: Any, folder: Path) -> None:
    node = Obedient(runner, folder)
    assert not applied_path(folder, 1).exists()
    node.order(1, Partition((1,), (2,)), BadDisk(1, "full"), BadDisk(2, "failed"))
    assert node.answer == {"pid": os.getpid(), "number": 1, "problem": ""}
    assert node.network.faults is not None
    assert isinstance(node.disk, FaultyDisk)
    assert node.said == [
        "fault set: no packet gets from 1 to 2, nor the other way",
        "fault set: the disk of node 1 is full",
    ]
    node.order(2)
    assert node.network.faults is None
    assert type(node.disk) is RealDisk
    assert node.said[2:] == ["all faults are healed"]
    node.disk.close()


def test_each_fault_is_reported_as_it_comes_and_goes(runner: Any, folder: Path) -> None:
    """All are healed when none is left: of links, of the disk, or by request."""
    node, full, error = (
        Obedient(runner, folder),
        BadDisk(1, "full"),
        RequestFault("error", ApiKey.FETCH, rule_id=1),
    )
    node.order(1, full, requests=(error,))
    assert node.heard == [FaultApplied(str(full)), FaultApplied(str(error))]
    node.heard.clear()
    node.order(2, requests=(error,))
    assert node.heard == [FaultHealed(str(full))]
    node.heard.clear()
    node.order(3)
    assert node.heard == [AllFaultsHealed()]
    node.order(4)
    assert node.heard == [AllFaultsHealed()]
    node.disk.close()


def test_what_cannot_be_acknowledged_is_reported(runner: Any, folder: Path) -> None:
    vocabulary.save(folder, FaultSet(7, PORTS, (BadDisk(1, "full"),)))
    path = Path(f"{applied_path(folder, 1)}.tmp")
    path.mkdir()
    node = Obedient(runner, folder)
    assert node.heard == [
        FaultApplied(str(BadDisk(1, "full"))),
        FaultsNotAcknowledged(f"[Errno 21] Is a directory: '{path}'"),
    ]
    node.disk.close()


def test_a_node_that_starts_has_what_is_set(runner: Any, folder: Path) -> None:
    vocabulary.save(folder, FaultSet(7, PORTS, (BadDisk(1, "full"),)))
    node = Obedient(runner, folder)
    assert isinstance(node.disk, FaultyDisk)
    assert node.answer["number"] == 7
    node.disk.close()


def test_what_cannot_be_read_changes_nothing(runner: Any, folder: Path) -> None:
    vocabulary.save(folder, FaultSet(7, PORTS, (BadDisk(1, "full"),)))
    node = Obedient(runner, folder)
    (folder / "set.json").write_bytes(b"{")
    node.tell()
    runner.until(lambda: bool(node.answer["problem"]))
    assert node.answer["number"] is None
    assert isinstance(node.disk, FaultyDisk)
    assert isinstance(node.heard[-1], FaultsIgnored)
    assert node.heard[-1].problem == node.answer["problem"]
    node.disk.close()


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_orders_are_taken_only_from_where_nobody_else_can_give_them(runner: Any, folder: Path, mode: int) -> None:
    vocabulary.save(folder, FaultSet(7, PORTS, (BadDisk(1, "full"),)))
    folder.chmod(mode)
    node = Obedient(runner, folder)
    assert type(node.disk) is RealDisk
    assert "other users" in node.answer["problem"]
    node.disk.close()


def test_a_node_that_was_started_in_any_other_way_obeys_nobody(runner: Any, folder: Path) -> None:
    vocabulary.save(folder, FaultSet(7, PORTS, (BadDisk(1, "full"),)))
    node = Obedient(runner, folder, {})
    assert node.switch is None
    assert type(node.disk) is RealDisk
    assert signal.getsignal(REQUEST_SIGNAL) is signal.SIG_DFL
    node.disk.close()


_STARTING = """
import os, signal, sys
from pathlib import Path
from tanist.runtime.faults import settings as faults
from tanist.runtime.process.serve import load_config, serve

class Node:
    def __init__(self, config, clock, disk, network, random, events, on_fatal, on_crash, read_url):
        self.metrics = None

    def start(self):
        if sys.argv[2] == "ordered":
            folder = Path(os.environ[faults.FOLDER_VARIABLE])
            faults.save(folder, faults.FaultSet(9, {7: (1,)}, (faults.BadDisk(7, "full"),)))
            os.kill(os.getpid(), signal.SIGURG)

    def status(self):
        print(*sorted(name for name in sys.modules if name.startswith("tanist.runtime.faults.")), flush=True)
        return {"state": "RUNNING"}

    def stop(self, done):
        done()

raise SystemExit(serve(load_config(sys.argv[1], {}), Node))
"""


@pytest.fixture
def starting(tmp_path: Path, folder: Path) -> Iterator[Any]:
    (tmp_path / "starting.py").write_text(_STARTING)
    (tmp_path / "data").mkdir()
    (tmp_path / "server.properties").write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\ncontroller.quorum.voters=7@127.0.0.1:9093\n"
        f"log.dirs={tmp_path}/data\ntanist.metrics.listener=127.0.0.1:0\n"
    )
    processes: list[subprocess.Popen[str]] = []

    def start(behaviour: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(tmp_path / "starting.py"), str(tmp_path / "server.properties"), behaviour]
        environment = {**os.environ, vocabulary.FOLDER_VARIABLE: str(folder)}
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_an_order_that_comes_while_a_node_starts_is_not_missed(starting: Any, folder: Path) -> None:
    """Its signal is lost: the loop does not run yet."""
    process = starting("ordered")
    path = applied_path(folder, 7)
    assert wait_until(path.exists, 120)
    assert json.loads(path.read_bytes()) == {"pid": process.pid, "number": 9, "problem": ""}


def test_a_node_without_faults_has_nothing_of_them_but_its_ear(starting: Any) -> None:
    process = starting("plain")
    assert process.stdout is not None
    loaded = next(line for line in process.stdout if line.startswith("tanist."))
    assert loaded.split() == ["tanist.runtime.faults.node_agent", "tanist.runtime.faults.settings"]
