"""Clusters of processes: up, down, one node at a time, and all that goes wrong. With stand-ins for the nodes."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.log.properties import parse_properties
from tanist.runtime.client.client import BrokerConnection, Client, Unreachable
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import ClusterError, load, load_existing, locked
from tanist.runtime.cluster.processes import ProcessMark, own_mark
from tanist.runtime.cluster.starting import Starter
from tests.cli.cli_rig import free_port

STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in_node.py"))]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture(autouse=True)
def no_late_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine starts nodes slowly, and the cluster says so: that is not what is tested."""
    monkeypatch.setattr("tanist.runtime.cluster.starting._SAY_AFTER_S", 600.0)


@pytest.fixture
def make(tmp_path: Path, said: list[str]) -> Iterator[Callable[[], LocalCluster]]:
    yield lambda: LocalCluster(tmp_path / "c", said.append, STAND_IN)
    cluster = load(tmp_path / "c")
    for node in cluster.nodes if cluster is not None else []:
        if node.process is not None:
            node.process.kill()


def pids(cluster: LocalCluster) -> list[int]:
    return [node.process.pid for node in load_existing(cluster.folder).running if node.process is not None]


def test_a_cluster_comes_up_is_seen_and_goes_down(make: Callable[[], LocalCluster], said: list[str]) -> None:
    cluster = make()
    port = free_port()
    entries = cluster.up(port=port, config={"log.retention.ms": "60000"})
    status = make().status()
    assert [node.state for node in status.nodes] == ["running"] * 3
    assert [node.node_id for node in status.nodes] == [1, 2, 3]
    assert status.controller == 1
    assert status.bootstrap == bootstrap_of(entries)
    assert len({node.pid for node in status.nodes}) == 3
    properties = parse_properties((cluster.folder / "node-2" / "server.properties").read_text())
    assert properties["log.retention.ms"] == "60000"
    assert properties["process.roles"] == "broker,controller"
    assert (cluster.folder / "node-2" / "data" / "meta.properties").exists()
    with pytest.raises(ClusterError, match=r"running already .*tanist down"):
        make().up()
    assert make().down() == [1, 2, 3]
    assert pids(cluster) == []
    assert [node.state for node in make().status().nodes] == ["stopped"] * 3
    assert make().down() == []
    assert all("is shutting down" in (cluster.folder / f"node-{node}" / "node.log").read_text() for node in (1, 2, 3))


def test_a_stopped_cluster_comes_up_again_as_it_was(make: Callable[[], LocalCluster], said: list[str]) -> None:
    cluster = make()
    before = cluster.up(brokers=2, port=free_port())
    meta = (cluster.folder / "node-1" / "data" / "meta.properties").read_bytes()
    cluster.down()
    with pytest.raises(ClusterError, match="2 brokers and 0 separate controllers"):
        make().up(brokers=3)
    again = make().up(brokers=2)
    assert again.cluster_id == before.cluster_id
    assert [node.broker_port for node in again.nodes] == [node.broker_port for node in before.nodes]
    assert (cluster.folder / "node-1" / "data" / "meta.properties").read_bytes() == meta
    assert said == []


def test_taken_ports_move_and_it_is_said(make: Callable[[], LocalCluster], said: list[str]) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        cluster = make()
        entries = cluster.up(brokers=1, port=port)
    assert entries.nodes[0].broker_port > port
    assert said == [f"port {port} is taken: using {entries.nodes[0].broker_port}"]
    cluster.down()
    with socket.create_server(("127.0.0.1", entries.nodes[0].controller_port)):
        moved = make().up()
    assert moved.nodes[0].controller_port > entries.nodes[0].controller_port
    properties = parse_properties((cluster.folder / "node-1" / "server.properties").read_text())
    assert properties["controller.quorum.voters"] == f"1@127.0.0.1:{moved.nodes[0].controller_port}"


def test_separate_controllers(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    cluster.up(brokers=2, controllers=1, port=free_port())
    status = cluster.status()
    assert [(node.node_id, node.roles) for node in status.nodes] == [
        (1, ("broker",)),
        (2, ("broker",)),
        (1001, ("controller",)),
    ]
    assert {node.state for node in status.nodes} == {"running"}
    cluster.stop(1001)
    cluster.start(1001)
    assert {node.state for node in cluster.status().nodes} == {"running"}


def test_a_node_that_dies_at_its_start_fails_the_whole_and_leaves_nothing(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    with pytest.raises(ClusterError, match=r"^node \d cannot start: this folder smells \(its log: .*node\.log\)$"):
        cluster.up(port=free_port(), config={"stand.in": "dies"})
    assert pids(cluster) == []


@pytest.mark.parametrize(
    ("behaviour", "reported"),
    [
        ("mute", "does not answer"),
        ("lonely", "does not know of brokers"),
        ("late", "better days"),
    ],
)
def test_a_cluster_that_does_not_get_ready_says_what_it_lacks_and_leaves_nothing(
    make: Callable[[], LocalCluster], monkeypatch: pytest.MonkeyPatch, behaviour: str, reported: str
) -> None:
    monkeypatch.setattr("tanist.runtime.cluster.starting._ASK_PATIENCE_S", 0.2)
    cluster = make()
    for patience_s in (1.0, 5.0, 25.0):
        with pytest.raises(ClusterError, match=rf"not ready after {patience_s:.0f} s: node \d: ") as caught:
            cluster.up(brokers=2, port=free_port(), config={"stand.in": behaviour}, patience_s=patience_s)
        assert pids(cluster) == []
        if "it has not joined the cluster yet" not in str(caught.value):
            break
        shutil.rmtree(cluster.folder)  # the machine is so busy that the process has not begun
    assert reported in str(caught.value)


def test_settings_that_a_node_refuses_are_reported_before_anything_starts(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    with pytest.raises(ClusterError, match=r"log\.retention\.ms"):
        cluster.up(port=free_port(), config={"log.retention.ms": "soon"})
    assert not (cluster.folder / "node-1" / "node.log").exists()
    cluster.up(brokers=1, port=free_port(), config={"log.retention.ms": "60000"})


def test_crash_stop_start(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    cluster.up(port=free_port())
    cluster.crash(2)
    assert [node.state for node in cluster.status().nodes] == ["running", "crashed", "running"]
    for action in (cluster.crash, cluster.stop):
        with pytest.raises(ClusterError, match=r"node 2 is not running: `tanist start 2`"):
            action(2)
    with pytest.raises(ClusterError, match="node 1 is running already"):
        cluster.start(1)
    with pytest.raises(ClusterError, match="no node 7; the nodes are 1, 2, 3"):
        cluster.crash(7)
    cluster.start(2)
    cluster.stop(3)
    assert [node.state for node in cluster.status().nodes] == ["running", "running", "stopped"]
    assert "is shutting down" in (cluster.folder / "node-3" / "node.log").read_text()
    assert "is shutting down" not in (cluster.folder / "node-2" / "node.log").read_text()


def test_without_a_majority_a_started_node_is_not_waited_for(make: Callable[[], LocalCluster], said: list[str]) -> None:
    cluster = make()
    cluster.up(port=free_port())
    for node_id in (1, 2, 3):
        cluster.crash(node_id)
    cluster.start(3)
    assert said == ["node 3 waits for a majority: 1 of 3 controllers run"]
    cluster.start(1)
    assert len(pids(cluster)) == 2


def test_a_node_that_does_not_stop_is_killed_and_it_is_said(make: Callable[[], LocalCluster], said: list[str]) -> None:
    cluster = make()
    cluster.up(brokers=1, port=free_port(), config={"stand.in": "stubborn"})
    cluster.down(patience_s=0.3)
    assert said == ["node 1 did not stop within 0 s: killed"]
    assert pids(cluster) == []


@pytest.mark.long
def test_a_watcher_stops_only_what_its_own_command_has_started(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    cluster.up(brokers=2, port=free_port(), ends_with_us=True)
    owner = load_existing(cluster.folder).owner
    assert owner == own_mark()
    assert make().down_if_owned_by(ProcessMark(owner.pid, "another life of it"), []) == []
    assert len(pids(cluster)) == 2
    assert cluster.down() == [1, 2]
    cluster.up()  # by nobody's leave: it lives on
    assert load_existing(cluster.folder).owner is None
    assert make().down_if_owned_by(owner, []) == []
    assert len(pids(cluster)) == 2
    cluster.down()


def test_a_watcher_stops_nodes_that_its_command_had_no_time_to_note(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    entries = cluster.up(brokers=2, port=free_port(), ends_with_us=True)
    marks = [node.process for node in entries.nodes if node.process is not None]
    for node in entries.nodes:
        node.process = None
    entries.save(cluster.folder)
    assert make().down_if_owned_by(own_mark(), marks) == [1, 2]
    assert not any(mark.alive for mark in marks)
    cluster.let_go()


def test_commands_take_turns(tmp_path: Path) -> None:
    order: list[str] = []
    inside = threading.Event()
    let_go = threading.Event()

    def first() -> None:
        with locked(tmp_path):
            inside.set()
            let_go.wait(120)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(120)
    threading.Timer(0.05, let_go.set).start()
    with locked(tmp_path):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_a_node_that_starts_alone_moves_out_of_the_way(make: Callable[[], LocalCluster], said: list[str]) -> None:
    """Its listener and its metrics: the others learn of them. What stands in their configuration cannot move."""
    cluster = make()
    port = free_port()
    cluster.up(port=port)
    make().stop(2)
    with socket.create_server(("127.0.0.1", port + 1)), socket.create_server(("127.0.0.1", port + 7)):
        make().start(2)
    assert said == [f"port {port + 1} is taken: using {port + 9}", f"port {port + 7} is taken: using {port + 10}"]
    assert load_existing(cluster.folder).node(2).ports == (port + 9, port + 4, port + 10)
    properties = parse_properties((cluster.folder / "node-2" / "server.properties").read_text())
    assert properties["advertised.listeners"] == f"PLAINTEXT://127.0.0.1:{port + 9}"
    make().crash(2)
    make().start(2)
    assert load_existing(cluster.folder).node(2).ports == (port + 1, port + 4, port + 7)


def test_a_controllers_port_is_not_moved_from_under_the_others(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    port = free_port()
    cluster.up(port=port)
    make().stop(2)
    with (
        socket.create_server(("127.0.0.1", port + 4)),
        pytest.raises(ClusterError, match=rf"node 2 cannot start: process {os.getpid()} \(.*\) has its controller's"),
    ):
        make().start(2)
    assert [node.node_id for node in load_existing(cluster.folder).running] == [1, 3]
    make().start(2)
    make().down()
    with socket.create_server(("127.0.0.1", port + 4)):
        make().start(1, 2, 3)  # nobody runs: all may move
    assert load_existing(cluster.folder).node(2).controller_port == port + 9


def test_a_port_that_is_taken_while_the_nodes_start_is_moved_as_well(
    make: Callable[[], LocalCluster], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another cluster has looked at the same moment."""
    port = free_port()
    cluster = make()
    launch = Starter.launch
    taken: list[socket.socket] = []

    def launch_late(starter: Starter, *arguments: Any) -> None:
        if not taken:
            taken.append(socket.create_server(("127.0.0.1", port)))
        launch(starter, *arguments)

    monkeypatch.setattr(Starter, "launch", launch_late)
    try:
        entries = cluster.up(brokers=1, port=port)
    finally:
        taken[0].close()
    assert entries.nodes[0].broker_port == port + 3
    assert said == [f"port {port} is taken: using {port + 3}"]


def test_a_node_has_a_session_and_a_name_of_its_own(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    cluster.up(brokers=2, port=free_port())
    for node, pid in enumerate(pids(cluster), start=1):
        assert os.getsid(pid) == pid
        assert Path(f"/proc/{pid}/comm").read_text() == f"tanist-{node}\n"


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux")
def test_nodes_of_a_cluster_do_not_preempt_each_other(make: Callable[[], LocalCluster]) -> None:
    """Decision 6."""
    cluster = make()
    cluster.up(brokers=3, port=free_port())
    assert [os.sched_getscheduler(pid) for pid in pids(cluster)] == [os.SCHED_BATCH] * 3


# -- the client's connections


def test_versions_are_negotiated_down(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    entries = cluster.up(brokers=1, port=free_port())
    connection = BrokerConnection((entries.host, entries.nodes[0].broker_port), "test", 5.0)
    from tanist.wire.messages.metadata_request import MetadataRequest

    assert connection.version_for(MetadataRequest) == 1
    connection.close()


def test_no_broker_is_reported_with_its_address() -> None:
    port = free_port()
    with Client([("127.0.0.1", port)], timeout_s=1.0) as client, pytest.raises(Unreachable, match=rf"127.0.0.1:{port}"):
        client.metadata()


def test_what_is_no_kafka_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with (
            Client([server.getsockname()], timeout_s=5.0) as client,
            pytest.raises(Unreachable, match=r"is .* a Kafka broker"),
        ):
            client.metadata()
        thread.join()


# -- up again, otherwise than before


def test_ports_move_back_when_they_are_free_again(make: Callable[[], LocalCluster], said: list[str]) -> None:
    cluster = make()
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        moved = cluster.up(brokers=1, port=port).nodes[0].broker_port
        cluster.down()
        said.clear()
        assert make().up().nodes[0].broker_port == moved
        assert said == []  # nothing is new
        cluster.down()
    assert make().up(port=port).nodes[0].broker_port == port
    assert said == [f"port {port} is free again: using it instead of {moved}"]
    cluster.down()
    properties = parse_properties((cluster.folder / "node-1" / "server.properties").read_text())
    assert properties["listeners"].startswith(f"PLAINTEXT://127.0.0.1:{port},")
    assert make().up().nodes[0].broker_port == port
    assert len(said) == 1


def test_another_place_than_the_cluster_has_is_refused(make: Callable[[], LocalCluster]) -> None:
    cluster = make()
    port = free_port()
    cluster.up(brokers=1, port=port)
    cluster.down()
    with pytest.raises(
        ClusterError, match=rf"is at 127\.0\.0\.1:{port}, not 127\.0\.0\.1:{port + 1}: leave out --host and"
    ):
        make().up(port=port + 1)
    with pytest.raises(ClusterError, match=rf"not 127\.0\.0\.2:{port}: .* or name another folder with --data"):
        make().up(host="127.0.0.2")
    make().up(host="127.0.0.1", port=0)  # any port: it has one


def test_a_start_that_takes_long_says_what_it_waits_for(
    make: Callable[[], LocalCluster], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tanist.runtime.cluster.starting._SAY_AFTER_S", 0.2)
    with pytest.raises(ClusterError, match="not ready after 4 s: node 1: better days"):
        make().up(brokers=1, port=free_port(), config={"stand.in": "late"}, patience_s=4.0)
    # On a slow machine the node takes longer than that to say what it waits for.
    assert [line for line in said if "has not joined" not in line] == ["waiting for node 1: better days"]
