"""Clusters of processes: up, down, one node at a time, and all that goes wrong. With stand-ins for the nodes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.log.properties import parse_properties
from tanist.runtime.client.client import BrokerConnection, Client, Unreachable, format_bootstrap, parse_bootstrap
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, NodeEntry, load, load_existing, locked
from tanist.runtime.cluster.processes import Launcher, LaunchFailed, ProcessMark, own_mark, start_time, wait_until
from tanist.runtime.cluster.starting import Starter
from tanist.runtime.readiness import Readiness

STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in_node.py"))]


def free_port() -> int:
    """The first of enough free ports for a cluster, below those that the system gives to outgoing connections."""
    while True:
        port = random.randrange(12_000, 29_000)
        try:
            for node in range(16):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + node))
        except OSError:
            continue
        return port


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


def test_ports_are_consecutive_brokers_then_controllers_then_metrics() -> None:
    def ports(port: int, **config: str) -> tuple[list[int], list[int], list[str | None]]:
        given = {name.replace("_", "."): value for name, value in config.items()}
        cluster, _ = layout.lay_out(cluster_id="c", brokers=2, controllers=1, host="127.0.0.1", port=port, config=given)
        for node in cluster.nodes:
            reported = layout.properties_of(cluster, node, Path("/data")).get("tanist.metrics.listener")
            assert (reported or None) == layout.metrics_address(cluster, node)
        return (
            [node.broker_port for node in cluster.brokers],
            [node.controller_port for node in cluster.controllers],
            [layout.metrics_address(cluster, node) for node in cluster.nodes],
        )

    port = free_port()
    metrics = [f"127.0.0.1:{port + 3 + number}" for number in range(3)]
    assert ports(port) == ([port, port + 1], [port + 2], metrics)
    assert ports(65_530)[2] == [f"127.0.0.1:{65_533 + number}" for number in range(3)]
    assert ports(65_531)[2] == [None, None, None]
    assert ports(port, tanist_metrics_listener="")[2] == [None, None, None]


def test_a_port_that_is_taken_is_replaced_from_behind_the_others() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port + 1)):
        cluster, moved = layout.lay_out(
            cluster_id="c", brokers=3, controllers=0, host="127.0.0.1", port=port, config={}
        )
    assert [node.broker_port for node in cluster.nodes] == [port, port + 9, port + 2]
    assert [str(each) for each in moved] == [f"port {port + 1} is taken: using {port + 9}"]
    assert cluster.port == port


def test_any_ports_are_next_to_each_other_and_none_that_an_outgoing_connection_could_have() -> None:
    """A cluster that is stopped has none of its ports, and a connection would be in the way of its next start."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    cluster, moved = layout.lay_out(cluster_id="c", brokers=3, controllers=0, host="127.0.0.1", port=0, config={})
    ports = sorted(port for node in cluster.nodes for port in node.ports)
    assert ports == list(range(ports[0], ports[0] + 9))
    assert ports[-1] < first
    assert moved == []


def test_a_system_whose_connections_may_have_any_port_gives_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everywhere = tmp_path / "range"
    everywhere.write_text("1024\t65535\n")
    monkeypatch.setattr(layout, "_EPHEMERAL_RANGE", everywhere)
    cluster, _ = layout.lay_out(cluster_id="c", brokers=3, controllers=0, host="127.0.0.1", port=0, config={})
    assert len({port for node in cluster.nodes for port in node.ports}) == 9


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


def test_a_damaged_or_absent_cluster_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no cluster in .*tanist up --data"):
        load_existing(tmp_path)
    with pytest.raises(ClusterError, match="tanist up --data '/a b'"):
        load_existing(Path("/a b"))
    (tmp_path / "cluster.json").write_text('{"format": 1, "nodes": 3}')
    with pytest.raises(ClusterError, match="damaged"):
        load(tmp_path)
    (tmp_path / "cluster.json").write_text('{"format": 99}')
    with pytest.raises(ClusterError, match="another version"):
        load(tmp_path)


def test_the_cluster_file_round_trips(tmp_path: Path) -> None:
    nodes = [
        NodeEntry(1, ("broker",), 9092, 0, "a", ProcessMark(77, "123"), 9098),
        NodeEntry(1001, ("controller",), 0, 9),
    ]
    written = ClusterFile("id", "127.0.0.1", nodes, {"a": "b"})
    written.save(tmp_path)
    assert load(tmp_path) == written
    assert json.loads((tmp_path / "cluster.json").read_text())["nodes"][0]["process"] == {"pid": 77, "started": "123"}


# -- processes


def test_a_process_id_that_was_used_again_is_never_signalled() -> None:
    own = ProcessMark(os.getpid(), "another time")
    assert not own.alive
    assert not own.signal(signal.SIGKILL)  # or this would be the end of the tests
    assert ProcessMark(os.getpid(), start_time(os.getpid()) or "").alive


MAIN_THREAD_ENDS_FIRST = """
import ctypes, sys, threading
def other():
    print("runs", flush=True)
    sys.stdin.read()
threading.Thread(target=other).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system has no zombies with threads")
def test_a_process_whose_main_thread_has_ended_lives_on_in_the_others() -> None:
    """After a SIGKILL a thread may be in a sync for seconds: the files are open and their locks held until it ends."""
    command = [sys.executable, "-c", MAIN_THREAD_ENDS_FIRST]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"runs\n"
        mark = ProcessMark(child.pid, start_time(child.pid) or "ended")
        status = Path(f"/proc/{child.pid}/stat")
        assert wait_until(lambda: status.read_text().rsplit(")", 1)[1].split()[0] == "Z", 120)
        assert mark.alive
        assert not mark.paused
        mark.kill()
        assert not mark.alive


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    mark = ProcessMark(child.pid, start_time(child.pid) or "ended")
    assert wait_until(lambda: not mark.alive, 120)
    assert Path(f"/proc/{child.pid}").exists()
    child.wait()


def test_a_launcher_that_fails_is_reported() -> None:
    command = [sys.executable, "-c", "import sys; print('what a pity', file=sys.stderr); sys.exit(3)"]
    with Launcher(command, {}) as launcher, pytest.raises(LaunchFailed, match=r"(?s)ended with 3:.*what a pity"):
        launcher.launch([])


def test_a_launcher_that_is_not_used_leaves_nothing() -> None:
    with Launcher([sys.executable, "-c", "import sys; sys.stdin.read()"], {}) as launcher:
        process = launcher._process
    assert process.returncode == -signal.SIGKILL


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


def test_readiness_is_heard_from_any_process() -> None:
    tell = "from tanist.runtime.readiness import tell_ready; tell_ready()"
    with Readiness() as readiness:
        environment = os.environ | readiness.environment
        teller = subprocess.Popen([sys.executable, "-c", tell], env=environment)
        assert wait_until(lambda: readiness.is_ready(teller.pid), 120)
        assert not readiness.is_ready(os.getpid())
        teller.wait()
    subprocess.run([sys.executable, "-c", tell], env=environment, check=True)  # nobody listens any more


# -- layout


@pytest.mark.parametrize(("brokers", "combined"), [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (7, 5)])
def test_combined_clusters_have_an_odd_number_of_controllers(brokers: int, combined: int) -> None:
    cluster, _ = layout.lay_out(
        cluster_id="x", brokers=brokers, controllers=0, host="127.0.0.1", port=free_port(), config={}
    )
    assert len(cluster.brokers) == brokers
    assert len(cluster.controllers) == combined


@pytest.mark.parametrize(
    ("brokers", "replicas", "least_isr"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_small_clusters_get_what_they_can_hold(tmp_path: Path, brokers: int, replicas: str, least_isr: str) -> None:
    cluster, _ = layout.lay_out(
        cluster_id="x", brokers=brokers, controllers=0, host="127.0.0.1", port=free_port(), config={}
    )
    properties = layout.properties_of(cluster, cluster.nodes[0], tmp_path)
    assert properties["default.replication.factor"] == replicas
    assert properties["min.insync.replicas"] == least_isr
    assert properties["offsets.topic.replication.factor"] == replicas


def test_what_is_given_wins_and_survives_the_file() -> None:
    cluster, _ = layout.lay_out(
        cluster_id="x", brokers=1, controllers=0, host="127.0.0.1", port=free_port(),
        config={"num.partitions": "7", "odd.value": " back\\slash\nand line"},
    )  # fmt: skip
    properties = layout.properties_of(cluster, cluster.nodes[0], Path("/d"))
    assert properties["num.partitions"] == "7"
    assert parse_properties(layout.properties_text(properties)) == properties


# -- the client's connections


def test_bootstrap_addresses() -> None:
    assert parse_bootstrap("a:1, [::1]:2") == [("a", 1), ("::1", 2)]
    assert format_bootstrap([("a", 1), ("::1", 2)]) == "a:1,[::1]:2"
    for bad in ("a", "a:b", ":1", "a:0", "a:70000", ""):
        with pytest.raises(ValueError, match="host:port"):
            parse_bootstrap(bad)


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
