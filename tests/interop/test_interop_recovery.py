"""`tanist recovery` on Apache Kafka: what its public requests tell of replicas without a leader, and the election.

Three things that the command relies on are Kafka's own: replica id -3 reads a log above its high watermark, a partition
without a leader may get its replicas in another order, and an unclean election takes the first live one of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.client.admin import PartitionDescription, describe_topics
from tanist.runtime.client.client import Client
from tanist.runtime.client.records import Producer
from tanist.wire.batch import NewRecord
from tests.interop import apache
from tests.interop.cluster import HOST, wait_in_sync
from tests.interop.tanist_cluster import tanist
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

TOPIC = "orders"


class OneController(apache.ApacheCluster):
    """The last node is the only controller: the others can all be gone."""

    def node_properties(self, node_id: int) -> dict[str, str]:
        found = apache.ApacheCluster.node_properties(self, node_id)
        last = self._members[self.nodes]
        found["controller.quorum.voters"] = f"{last.node_id}@{HOST}:{last.controller_port}"
        if node_id != self.nodes:
            found["process.roles"] = "broker"
            for name in ("listeners", "advertised.listeners"):
                found[name] = found[name].split(",")[0]
        return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneController]:
    settings = {"broker.session.timeout.ms": "6000", "min.insync.replicas": "2"}
    cluster = OneController(tmp_path / "apache", nodes=4, heap="256m", properties=settings)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def test_the_replica_that_is_chosen_leads_and_the_plan_has_said_what_it_costs(cluster: OneController) -> None:
    at = ("--bootstrap", ",".join(f"{host}:{port}" for host, port in map(cluster.address, (4, 2, 3))))
    with Client([cluster.address(node) for node in (4, 2, 3)]) as client:

        def partition() -> PartitionDescription:
            return describe_topics(client, [TOPIC])[0].partitions[0]

        def produce(first: int, last: int, acks: int = -1) -> None:
            records = [NewRecord(number, b"k", f"v{number}".encode()) for number in range(first, last)]
            Producer(client, acks=acks, idempotent=False).send(TOPIC, 0, records)

        # 3 leaves with 10 records, 2 with 30; 1 writes 5 more that are not committed, and goes.
        tanist("topics", "create", TOPIC, "--replica-assignment", "1:2:3", *at)
        wait_in_sync(cluster, TOPIC)
        produce(0, 10)
        cluster.kill_node(3)
        wait_for(lambda: partition().isr == (1, 2), "3 leaves the ISR", timeout_s=60)
        produce(10, 30)
        cluster.kill_node(2)
        wait_for(lambda: partition().isr == (1,), "2 leaves the ISR", timeout_s=60)
        produce(30, 35, acks=1)
        cluster.kill_node(1)
        wait_for(lambda: partition().leader < 0, "nobody leads", timeout_s=60)
        cluster.start_node(2)
        cluster.start_node(3)
        wait_for(lambda: partition().offline == (1,), "2 and 3 are back", timeout_s=120)

        (plan,) = json.loads(tanist("recovery", "plan", TOPIC, "--json", *at))
        ends = {each["broker"]: (each["state"], each["log_end_offset"]) for each in plan["replicas"]}
        assert ends == {1: ("offline", None), 2: ("live", 30), 3: ("live", 10)}
        assert (plan["unknown"], plan["least_loss"], plan["saves_what_is_truncated"]) == ([1], 2, False)
        choices: dict[int, dict[str, Any]] = {each["leader"]: each for each in plan["choices"]}
        assert (choices[2]["lost"], choices[3]["lost"]) == (0, 20)
        assert (choices[3]["first_lost"]["offset"], choices[3]["first_lost"]["record"]["value"]) == (10, "v10")
        assert (choices[3]["last_lost"]["offset"], choices[3]["last_lost"]["record"]["value"]) == (29, "v29")

        # The files of broker 1 say what only it has.
        (more,) = json.loads(tanist("recovery", "plan", TOPIC, "--json", *at, "--data", str(cluster.directory)))
        assert [(each["leader"], each["electable"], each["lost"]) for each in more["choices"]] == [
            (1, False, 0), (2, True, 5), (3, True, 25),
        ]  # fmt: skip
        last = more["choices"][1]["last_lost"]
        assert (last["offset"], last["broker"], last["record"]["value"]) == (34, 1, "v34")

        done = json.loads(tanist("recovery", "apply", TOPIC, "0", "--leader", "3", "--yes", "--json", *at))
        assert (done["elected"], done["lost"]) == (True, 20)
        found = partition()
        assert (found.leader, found.leader_epoch) == (3, done["leader_epoch"])
        assert found.replicas == (1, 2, 3)
