"""How a cluster on this machine is laid out: ports, roles, settings, the cluster file; no process is started."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tanist.log.properties import parse_properties
from tanist.runtime.client.client import format_bootstrap, parse_bootstrap
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, NodeEntry, load, load_existing
from tanist.runtime.cluster.processes import ProcessMark
from tests.cli.cli_rig import free_port


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


def test_bootstrap_addresses() -> None:
    assert parse_bootstrap("a:1, [::1]:2") == [("a", 1), ("::1", 2)]
    assert format_bootstrap([("a", 1), ("::1", 2)]) == "a:1,[::1]:2"
    for bad in ("a", "a:b", ":1", "a:0", "a:70000", ""):
        with pytest.raises(ValueError, match="host:port"):
            parse_bootstrap(bad)
