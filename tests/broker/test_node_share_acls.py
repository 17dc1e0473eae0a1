"""What a member of a share group needs for topics: those that it fetches, acknowledges, and hears of."""

from __future__ import annotations

from typing import Any

from tanist.controller.configs.settings import GROUP_RESOURCE
from tanist.controller.features import SHARE_VERSION
from tanist.wire.acls import AclOperation, ResourceType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from tests.broker.acl_rig import SecuredCluster
from tests.broker.test_node_share_groups import ACCEPT, CONFIG, Member

READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE


def errors_of(answer: Any) -> list[tuple[int, int]]:
    return [(part.error_code, part.acknowledge_error_code) for topic in answer.responses for part in topic.partitions]


def test_a_member_reads_and_acknowledges_only_topics_that_it_may_read() -> None:
    cluster = SecuredCluster(
        nodes=1, config={**CONFIG, "offsets.topic.replication.factor": "1"}, features={SHARE_VERSION: 1}
    )
    cluster.create_topic("t", factor=1)
    cluster.configure(GROUP_RESOURCE, "g", {"share.auto.offset.reset": "earliest"})
    assert cluster.produce("t", [b"value"]).error_code == 0
    alice = Member(cluster, "a")
    alice.client = cluster.clients["alice"]
    cluster.allow("alice", (READ, ResourceType.GROUP, "g"), (READ, ResourceType.TOPIC, "t"))
    alice.take_part()
    assert alice.fetch() == [(0, 0, 1)]
    describe = ShareGroupDescribeRequest(group_ids=("g",))
    assert cluster.ask_as("alice", describe, 1).groups[0].members
    cluster.revoke("alice")
    cluster.allow("alice", (READ, ResourceType.GROUP, "g"))
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert errors_of(alice.fetch_once((0, 0, ACCEPT))) == [(denied, denied)]
    assert alice.acknowledge((0, 0, ACCEPT)) == denied
    (described,) = cluster.ask_as("alice", describe, 1).groups
    assert (described.error_code, described.members) == (denied, ())
