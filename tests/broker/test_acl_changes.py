"""Lists that change under load, and controllers that die: nothing is carried out that was allowed at no moment."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tanist.sim.world.world import BROKER_PORT, Host, Watcher
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.acl_rig import SecuredCluster

ALLOW: Final = CreateAclsRequest(
    creations=(
        AclCreation(
            resource_type=ResourceType.TOPIC,
            resource_name="t",
            principal="User:alice",
            host="*",
            operation=AclOperation.WRITE,
            permission_type=AclPermission.ALLOW,
        ),
    )
)
REVOKE: Final = DeleteAclsRequest(
    filters=(
        DeleteAclsFilter(
            resource_type_filter=ResourceType.TOPIC,
            resource_name_filter="t",
            pattern_type_filter=PatternType.LITERAL,
            principal_filter="User:alice",
            host_filter=None,
            operation=AclOperation.ANY,
            permission_type=AclPermission.ANY,
        ),
    )
)


class Lists(Watcher):
    """When each node had the entry, as its turns end."""

    def __init__(self) -> None:
        self.changes: dict[int, list[tuple[int, bool]]] = {}

    def turn_ended(self, host: Host) -> None:
        if host.node is not None:
            now_us = host.world.scheduler.now_us
            allowed = bool(host.node.metadata.image.acls)
            known = self.changes.setdefault(host.node_id, [(now_us, allowed)])
            if known[-1][1] != allowed:
                known.append((now_us, allowed))

    def stood(self, node_id: int, from_us: int, to_us: int) -> set[bool]:
        """Whether the node had the entry, at some moment of the time, and whether it had not."""
        changes = self.changes[node_id]
        before = [allowed for at_us, allowed in changes if at_us <= from_us]
        return {*before[-1:], *(allowed for at_us, allowed in changes if from_us <= at_us <= to_us)}


@dataclass
class Sent:
    node_id: int
    at_us: int
    answers: list[tuple[int, Any]] = field(default_factory=list)


@pytest.mark.parametrize("seed", range(4))
def test_each_answer_is_that_of_a_moment_of_its_request(seed: int) -> None:
    cluster = SecuredCluster(nodes=3, seed=seed + 1)
    cluster.create_topic("t")
    lists = Lists()
    cluster.world.watchers.append(lists)
    cluster.run(10)
    draw = random.Random(seed)
    records = bytes(encode_batch([NewRecord(timestamp=0, key=None, value=b"v")]))
    data = (TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),)),)
    sent: list[Sent] = []

    def send(user: str, node_id: int, request: Any, version: int) -> None:
        one = Sent(node_id, cluster.world.scheduler.now_us)
        if user == "alice":
            sent.append(one)
        client = cluster.clients[user]
        address = (cluster.world.hosts[node_id].name, BROKER_PORT)

        def answered(response: Any) -> None:
            one.answers.append((cluster.world.scheduler.now_us, response))

        client.run(lambda: client.channel(address).call(request, version, 5_000, answered))

    down: int | None = None
    for round_number in range(150):
        up = [node_id for node_id in cluster.world.hosts if node_id != down]
        leader = cluster.leader("t")
        if leader is not None and leader != down:
            for _ in range(draw.randrange(3)):
                send("alice", leader, ProduceRequest(acks=-1, timeout_ms=2_000, topic_data=data), 9)
        if draw.random() < 0.5:
            send("admin", draw.choice(up), *draw.choice(((ALLOW, 3), (REVOKE, 3))))
        if round_number % 50 == 25:
            down = cluster.controller()
            cluster.world.hosts[down].kill()
        if round_number % 50 == 49 and down is not None:
            cluster.world.hosts[down].start()
            down = None
            cluster.until(cluster.world.ready)
        cluster.run(draw.randrange(1, 60))
    cluster.until(lambda: all(one.answers for one in sent))
    found = {0: 0, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED): 0}
    for one in sent:
        at_us, response = one.answers[0]
        if response is None:
            continue
        error = response.responses[0].partition_responses[0].error_code
        if error in found:
            found[error] += 1
            assert (error == 0) in lists.stood(one.node_id, one.at_us, at_us), (one.node_id, one.at_us, at_us, error)
    assert min(found.values()) > 5, found
