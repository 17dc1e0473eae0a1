"""Every row of the table of requirements on a node: the answer with nothing, with all but this row, with all.

What is left out of answers instead of being an error has tests of its own (`test_node_acls`).
"""

from __future__ import annotations

import pytest

from tanist.controller.features import SHARE_VERSION, STREAMS_VERSION
from tanist.security import controller_requirements, requirements
from tanist.security.controller_requirements import CONTROLLER_ROWS
from tanist.security.requirements import BROKER_ROWS, Need, Row
from tanist.sim.world.world import BROKER_PORT, CONTROLLER_PORT
from tanist.wire.acls import AclOperation
from tanist.wire.apis import FORWARDABLE, ApiKey
from tanist.wire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tanist.wire.schema import Request
from tests.broker.acl_requests import GROUP, TOPIC, TRANSACTION, Sample, acl_of, samples
from tests.broker.acl_rig import DENIED, SecuredCluster, error_codes

NAMED = {name: value for name, value in {**vars(requirements), **vars(controller_requirements)}.items()
         if isinstance(value, Row)}  # fmt: skip
SAMPLES = [
    *samples(BROKER_ROWS, NAMED, controller=False),
    *samples(CONTROLLER_ROWS, NAMED, controller=True),
]
IMPLIED = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}

ELSEWHERE = {
    "METADATA_BY_ID",
    "METADATA_CREATE",
    "CONSUMER_GROUP_DESCRIBE_TOPIC",
    "SHARE_ACKNOWLEDGE_TOPIC",
    "SHARE_FETCH_TOPIC",
    "SHARE_GROUP_DESCRIBE_TOPIC",
    "STREAMS_GROUP_DESCRIBE_TOPIC",
    "CREATE_TOKEN_OWNER",
    "DELETE_TOPICS_DESCRIBE",
    "DELETE_TOPICS_TOPIC",
}
"""Rows that `test_node_acls_lists`, `test_sasl_acls`, `test_node_share_acls` and `test_node_streams_groups` show; two
more are about what only unstable versions have."""

ALONE = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}


def eventually(cluster: SecuredCluster, request: Request) -> None:
    """Ask until there is no error."""
    for _ in range(100):
        if error_codes(cluster.ask(request, 3)) == {0}:
            return
        cluster.run(100)
    raise AssertionError(request)


@pytest.fixture(scope="module")
def cluster() -> SecuredCluster:
    """One node: it leads everything and is the controller."""
    cluster = SecuredCluster(nodes=1, config=ALONE, features={SHARE_VERSION: 1, STREAMS_VERSION: 1})
    cluster.create_topic(TOPIC, factor=1)
    for key_type, key in ((0, GROUP), (1, TRANSACTION)):
        eventually(cluster, FindCoordinatorRequest(key=key, key_type=key_type))
    eventually(cluster, DescribeGroupsRequest(groups=(GROUP,)))
    return cluster


def gives(granted: set[Need], need: Need) -> bool:
    """Whether these allow what another one names."""
    return any(
        each.resource_type == need.resource_type
        and (each.operation == need.operation or each.operation in IMPLIED.get(need.operation, ()))
        for each in granted
    )


def answers(cluster: SecuredCluster, sample: Sample, *, forwarded: bool = False) -> list[tuple[int, set[int] | None]]:
    """The errors in the answer of each version; None where the connection was closed."""
    port = CONTROLLER_PORT if sample.controller and not forwarded else BROKER_PORT
    found: list[tuple[int, set[int] | None]] = []
    for version in sample.versions:
        answer = cluster.ask_as("alice", sample.request(), version, port=port)
        found.append((version, None if answer is None else error_codes(answer) & DENIED))
    return found


def name_of(sample: Sample) -> str:
    return f"{'controller' if sample.controller else 'broker'}-{sample.api.name.lower()}-{sample.rows[-1].when}"


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_a_request_needs_what_its_rows_say(cluster: SecuredCluster, sample: Sample) -> None:
    cluster.revoke("alice")  # what a failed test has left
    cluster.ask(DeleteGroupsRequest(groups_names=(GROUP,)), 2)
    if sample.api in (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS):
        place = AlterShareGroupOffsetsRequestPartition(partition_index=0)
        topics = (AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=(place,)),)
        cluster.ask(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=topics), 0)
    else:
        committed = OffsetCommitRequestTopic(name=TOPIC, partitions=(OffsetCommitRequestPartition(partition_index=0),))
        cluster.ask(OffsetCommitRequest(group_id=GROUP, topics=(committed,)), 8)  # there is such a group
    ways = [False, True] if sample.controller and sample.api in FORWARDABLE else [False]
    for forwarded in ways:
        for version, found in answers(cluster, sample, forwarded=forwarded):
            assert found == {sample.rows[0].code}, (version, "nothing", forwarded)
        for missing in sample.rows:
            granted = {row.needs[-1] for row in sample.rows if row.needs[-1] != missing.needs[-1]}
            if any(gives(granted, need) for need in missing.needs):
                continue
            if granted:
                cluster.allow("alice", *map(acl_of, granted))
            for version, found in answers(cluster, sample, forwarded=forwarded):
                assert found == {missing.code}, (version, missing.resource, forwarded)
            cluster.revoke("alice")
        for row in sample.rows:
            for way in row.needs:
                others = {each.needs[-1] for each in sample.rows if each is not row}
                cluster.allow("alice", *map(acl_of, {way, *others}))
                for version, found in answers(cluster, sample, forwarded=forwarded):
                    assert found == set(), (version, "all", way, forwarded)
                cluster.revoke("alice")


def test_each_row_with_an_error_has_a_sample() -> None:
    shown = {row for sample in SAMPLES for row in sample.rows}
    left = {row for row in (*BROKER_ROWS, *CONTROLLER_ROWS) if row not in shown and row.logged and not row.bits}
    two_phase = next(each for each in BROKER_ROWS if "enable_2pc" in each.when)
    share_group = next(each for each in BROKER_ROWS if "share group" in each.when)
    assert left == {NAMED[name] for name in ELSEWHERE} | {two_phase, share_group}
