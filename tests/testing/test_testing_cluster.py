"""Every operation of `tanist.testing.Cluster` on a cluster of processes."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from tanist.testing import (
    AsyncCluster,
    Cluster,
    ClusterError,
    Condition,
    Kafka,
    NotAvailable,
    NotInTime,
    in_sync,
    led,
)
from tanist.testing.aio import AsyncKafka, AsyncOperations
from tanist.testing.operations import Operations
from tests.testing.conftest import Send, values


def test_a_cluster_ends_with_its_block_and_takes_its_folder_with_it() -> None:
    with Cluster(1, config={"num.partitions": "2"}) as cluster:
        assert len(cluster.bootstrap.split(",")) == 1
        folder = cluster.data
        assert cluster.brokers == cluster.nodes == (1,)
        cluster.create_topic("orders")
        assert cluster.topics() == ["orders"]
        assert folder.is_dir()
    assert not folder.exists()
    cluster.close()


def test_a_kept_folder_stays_and_starts_again() -> None:
    with Cluster(1) as cluster:
        cluster.create_topic("orders")
        folder = cluster.keep()
    assert (folder / "cluster.json").exists()
    again = Cluster(folder=folder)
    with again:
        assert again.topics() == ["orders"]
    assert again.backend.local is None
    from tanist.runtime.cluster import cluster as runtime

    runtime.LocalCluster(folder).down(wipe=True)
    assert not folder.exists()


def test_a_metrics_port_that_is_taken_is_a_warning() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with Cluster(1, config={"tanist.metrics.listener": where}) as cluster:
            assert cluster.topics() == []
            log = (cluster.data / "node-1" / "node.log").read_text()
    assert f"WARN there are no metrics at {where}: " in log


def test_two_that_open_one_folder_at_once_have_one_cluster(tmp_path: Path) -> None:
    from tanist.runtime.cluster import cluster as runtime
    from tanist.runtime.cluster.cluster_file import locked

    folder = tmp_path / "data"
    both = [Cluster(1, folder=folder) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        with locked(folder):  # another run that looks now sees no cluster
            opening = [pool.submit(each.open) for each in both]
            assert not wait(opening, timeout=1).done
        for each in opening:
            each.result(120)
    try:
        assert both[0].bootstrap == both[1].bootstrap
        assert both[1].topics() == []
    finally:
        runtime.LocalCluster(folder).down(wipe=True)


def test_a_setting_that_no_broker_has_is_refused_before_anything_starts() -> None:
    with pytest.raises(ClusterError, match=r"min\.insync\.replica is not a setting of a broker; did you mean"):
        Cluster(config={"min.insync.replica": "1"})


def test_what_is_not_open_says_how_to_open_it() -> None:
    with pytest.raises(ClusterError, match=r"crash: this cluster is not open: use `with Cluster\(\) as cluster`"):
        Cluster().crash(1)


def test_a_partition_s_state(kafka: Kafka, send: Send) -> None:
    topic = kafka.create_topic(kafka.topic("orders"), assignment=[(2, 3, 1)])
    send(topic, ["one", "two"])
    state = kafka.partition_state(topic)
    assert (state.leader, state.replicas, set(state.isr), state.elr) == (2, (2, 3, 1), {1, 2, 3}, ())
    assert (state.recovering, state.log_start_offset, state.high_watermark) == (False, 0, 2)
    assert dict(state.log_end_offsets) == {2: 2, 3: 2, 1: 2}
    assert state.followers == (3, 1)
    assert str(state).startswith(f"{topic}-0: leader 2 (epoch 0), ISR ")
    assert values(kafka, topic) == ["one", "two"]
    with pytest.raises(ClusterError, match="has no partition 1"):
        kafka.partition_state(topic, 1)


def test_crash_stop_and_start(kafka: Kafka) -> None:
    topic = kafka.create_topic(kafka.topic("orders"), assignment=[(1, 2, 3)], config={"min.insync.replicas": "3"})
    kafka.crash(1)
    assert kafka.down == (1,)
    kafka.wait_until(led(topic, by=2))
    assert [fault for fault in kafka.faults() if "down" in fault] == ["node 1 is down"]
    with pytest.raises(ClusterError, match="node 1 is not running: `tanist start 1` starts it"):
        kafka.crash(1)
    kafka.start()
    kafka.wait_until(in_sync(topic))
    kafka.stop(3)
    kafka.wait_until(topic=topic, isr=2)  # two of three controllers are left: without a quorum no wait ends
    assert kafka.partition_state(topic).elr == (3,)
    kafka.crash(1)
    assert [fault for fault in kafka.faults() if "down" in fault] == ["node 1 is down", "node 3 is down"]
    kafka.start()
    kafka.wait_until(in_sync(topic))
    subjects = {event.subject for event in kafka.happened(topic)}
    assert {f"{topic}-0", "broker 1", "test"} <= subjects
    assert any(event.text.startswith("leader 1 -> 2") for event in kafka.happened(topic))


def test_a_power_loss_takes_what_was_not_synced(kafka: Kafka, send: Send) -> None:
    soft = kafka.create_topic(kafka.topic("soft"))
    hard = kafka.create_topic(kafka.topic("hard"), config={"flush.messages": "1"})
    for topic in (soft, hard):
        send(topic, ["one", "two"])
    kafka.crash(*kafka.brokers, lose="page-cache")
    kafka.start()
    kafka.wait_until(in_sync(soft))
    kafka.wait_until(in_sync(hard))
    assert values(kafka, soft) == []
    assert values(kafka, hard) == ["one", "two"]


def test_what_an_election_drops_is_in_the_salvage(kafka: Kafka, send: Send) -> None:
    topic = kafka.create_topic(kafka.topic("orders"), assignment=[(1, 2, 3)])
    send(topic, ["kept"])
    kafka.partition([1], [2, 3])
    send(topic, ["dropped"], acks=1)
    kafka.crash(1)
    kafka.wait_until(Condition(topic, isr=2), timeout=20)
    kafka.heal()
    kafka.start(1)
    kafka.wait_until(in_sync(topic))
    (entry,) = kafka.salvage(topic)
    assert (entry.broker, [record.value for record in entry.records]) == (1, [b"dropped"])
    assert values(kafka, topic) == ["kept"]


def test_where_each_replica_s_log_ends(kafka: Kafka, send: Send) -> None:
    topic = kafka.create_topic(kafka.topic("orders"), assignment=[(1, 2, 3)])
    send(topic, ["one"])
    kafka.partition([1], [2])
    kafka.crash(3)
    send(topic, ["two"], acks=1)
    state = kafka.partition_state(topic)
    assert dict(state.log_end_offsets) == {1: 2, 2: 1, 3: None}
    assert str(state).endswith(", log ends {1: 2, 2: 1, 3: ?}")


def test_a_disk_that_becomes_read_only_takes_its_node_down(kafka: Kafka, send: Send) -> None:
    topic = kafka.create_topic(kafka.topic("orders"), assignment=[(2, 1, 3)])
    send(topic, ["before"])
    kafka.disk(2, "read-only")
    # Its next checkpoint may have taken it down already.
    assert [fault for fault in kafka.faults() if fault != "node 2 is down"] == ["the disk of node 2 is read-only"]
    send(topic, ["after"])
    kafka.wait_until(lambda: kafka.down == (2,))
    with pytest.raises(ClusterError, match="Read-only file system"):
        kafka.start(2)
    kafka.heal(2)
    kafka.start(2)
    kafka.wait_until(in_sync(topic))
    assert values(kafka, topic) == ["before", "after"]


def test_pause_slow_partition_and_disks_are_in_force_until_healed(kafka: Kafka) -> None:
    kafka.pause(2)
    kafka.slow([1], [3], latency_s=0.05)
    kafka.partition([1], ["clients"], one_way=True)
    kafka.disk(3, "slow", latency_s=0.01)
    assert kafka.faults() == [
        "between 1 and 3: 50 ms of latency",
        "no packet gets from 1 to clients",
        "the disk of node 3 takes 10 ms for each sync",
        "node 2 is paused",
    ]
    kafka.resume(2)
    kafka.heal(1)
    assert kafka.faults() == ["the disk of node 3 takes 10 ms for each sync"]
    kafka.heal()
    assert kafka.faults() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda kafka: kafka.crash(), "crash: say which node"),
        (lambda kafka: kafka.crash(1, lose="disk"), "lose is None or"),
        (lambda kafka: kafka.slow([1]), "say how slow"),
        (lambda kafka: kafka.disk(1, "broken"), "a disk can be 'full', 'slow', 'failed', 'read-only'"),
        (lambda kafka: kafka.partition(["brokers"]), "neither a node id nor"),
        (lambda kafka: kafka.wait_until(), "say what to wait for"),
        (lambda kafka: kafka.wait_until(topic="orders", isr=[1, 2]), "isr is how many replicas"),
        (lambda kafka: kafka.wait_until(led("t"), isr=2), "not both"),
    ],
)
def test_wrong_arguments_are_value_errors(kafka: Kafka, call: Callable[[Any], None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(kafka)


def test_a_wait_that_ends_says_what_was_missing(kafka: Kafka) -> None:
    topic = kafka.create_topic(kafka.topic("orders"), assignment=[(1, 2, 3)])
    with pytest.raises(NotInTime, match=r"not within 0\.1 s: there is no topic nothing"):
        kafka.wait_until(led("nothing"), timeout=0.1)
    with pytest.raises(NotInTime, match=r"has 3 replicas in sync \(1, 2, 3\), not 2"):
        kafka.wait_until(in_sync(topic, isr=2), timeout=0.1)
    with pytest.raises(NotInTime, match="has leader 1, not 2"):
        kafka.wait_until(led(topic, by=2), timeout=0.1)
    with pytest.raises(NotInTime, match="gives nothing true"):
        kafka.wait_until(lambda: False, timeout=0.1)
    looks: list[bool] = []

    def at_once() -> bool:
        looks.append(True)
        return True

    kafka.wait_until(at_once)
    assert looks == [True]


def test_any_other_kafka_has_no_faults(kafka_cluster: Cluster) -> None:
    other = Cluster.connect(kafka_cluster.bootstrap)
    with other:
        name = other.create_topic("of-another-kafka")
        assert other.partition_state(name).leader in other.brokers
        other.delete_topic(name)
        calls: dict[str, Callable[[], object]] = {
            "crash": lambda: other.crash(1),
            "stop": lambda: other.stop(1),
            "start": lambda: other.start(1),
            "pause": lambda: other.pause(1),
            "resume": lambda: other.resume(1),
            "partition": lambda: other.partition([1], [2]),
            "slow": lambda: other.slow([1], [2], latency_s=1),
            "disk": lambda: other.disk(1, "full"),
            "heal": lambda: other.heal(),
            "salvage": lambda: other.salvage(),
        }
        for operation, call in calls.items():
            with pytest.raises(
                NotAvailable, match=rf"^{operation}: only clusters that tanist\.testing has started can"
            ):
                call()
    assert kafka_cluster.faults() == []


def test_connecting_to_nothing_is_one_line() -> None:
    with pytest.raises(ClusterError, match="no broker answers") as caught:
        Cluster.connect("127.0.0.1:1")
    assert "\n" not in str(caught.value)
    with pytest.raises(ClusterError, match="give it like localhost:9092"):
        Cluster.connect("localhost")


# -- asyncio


def test_every_operation_can_be_awaited() -> None:
    for name, method in inspect.getmembers(Operations, inspect.isfunction):
        if name.startswith("_"):
            continue
        awaited = getattr(AsyncOperations, name)
        asks_no_node = "Builder" in str(inspect.signature(method).return_annotation) or name == "security"
        assert inspect.iscoroutinefunction(awaited) != asks_no_node, name
        assert list(inspect.signature(awaited).parameters) == list(inspect.signature(method).parameters), name


def test_async_cluster() -> None:
    async def story() -> Path:
        async with AsyncCluster(1) as cluster:
            topic = await cluster.create_topic("orders")
            await cluster.crash(1)
            await cluster.start(1)
            await cluster.wait_until(led(topic))
            assert (await cluster.partition_state(topic)).leader == 1
            return cluster.data

    assert not asyncio.run(story()).exists()


def test_the_loop_goes_on_meanwhile(kafka_async: AsyncKafka) -> None:
    """The operation waits for what the loop does meanwhile."""

    async def story() -> None:
        happened = threading.Event()
        waiting = asyncio.create_task(kafka_async.wait_until(happened.is_set))
        await asyncio.sleep(0)
        happened.set()
        await waiting

    asyncio.run(story())
