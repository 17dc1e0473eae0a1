"""What each request answers to a client that lacks something: Apache Kafka's one node with its authorizer, and ours.

There is no authentication here: everybody is ANONYMOUS, and hosts tell clients from nodes. Nodes are at 127.0.0.1, the
client that lacks things at 127.0.0.2. As long as there is no entry, everybody may do all; so both nodes start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tanist.broker.guard import MESSAGES
from tanist.controller.features import CIDR_ACLS_FROM
from tanist.security import controller_requirements, requirements
from tanist.security.controller_requirements import CONTROLLER_ROWS
from tanist.security.requirements import BROKER_ROWS, Need, Row
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.apis import BROKER_APIS, CONTROLLER_APIS, ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_acls_response import CreateAclsResponse
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.delete_acls_response import DeleteAclsResponse
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.describe_acls_response import DescribeAclsResponse
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.describe_groups_response import DescribeGroupsResponse
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tanist.wire.schema import Response, Struct
from tests.broker.acl_requests import GROUP, TOPIC, TRANSACTION, Sample, acl_of, samples
from tests.broker.acl_rig import DENIED
from tests.interop import apache
from tests.interop.apache import tool
from tests.interop.pair import Asker, Pair, pair
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

ACLS: Final = "org.apache.kafka.tools.AclCommand"
NODES, STRANGER = "127.0.0.1", "127.0.0.2"
PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
_ROWS: Final = {
    name: value
    for name, value in {**vars(requirements), **vars(controller_requirements)}.items()
    if isinstance(value, Row)
}
SAMPLES: Final = [
    sample
    for sample in (
        *samples(BROKER_ROWS, _ROWS, controller=False),
        *samples(CONTROLLER_ROWS, _ROWS, controller=True),
    )
    if sample.api in (CONTROLLER_APIS if sample.controller else BROKER_APIS)
]


def entry(
    need: tuple[AclOperation, ResourceType, str], host: str, permission: AclPermission = AclPermission.ALLOW
) -> AclCreation:
    operation, kind, name = need
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:ANONYMOUS",
        host=host,
        operation=operation,
        permission_type=permission,
    )


def create(node: tuple[str, int], *entries: AclCreation) -> list[tuple[int, str | None]]:
    with Asker(node) as asker:
        answer = asker.ask(CreateAclsRequest(creations=entries), 3, CreateAclsResponse)
    return [(each.error_code, each.error_message or "") for each in answer.results]


def wanted(host: str | None = None) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=host,
        operation=AclOperation.ANY,
        permission_type=AclPermission.ANY,
    )


def listed(node: tuple[str, int], request: DescribeAclsRequest) -> set[tuple[object, ...]]:
    """The entries that a filter means."""
    with Asker(node) as asker:
        answer = asker.ask(request, 3, DescribeAclsResponse)
    assert answer.error_code == 0
    return {
        (each.resource_type, each.resource_name, each.pattern_type, *(getattr(acl, field.name) for field in acl.FIELDS))
        for each in answer.resources
        for acl in each.acls
    }


def allow(node: tuple[str, int], needs: set[Need]) -> None:
    """Let the stranger do exactly these."""
    with Asker(node) as asker:
        request = wanted(STRANGER)
        filters = DeleteAclsFilter(**{field.name: getattr(request, field.name) for field in request.FIELDS})
        answer = asker.ask(DeleteAclsRequest(filters=(filters,)), 3, DeleteAclsResponse)
    assert answer.filter_results[0].error_code == 0
    entries = [entry(acl_of(need), STRANGER) for need in needs]
    if entries:
        assert create(node, *entries) == [(0, "")] * len(entries)
    wait_for(lambda: len(listed(node, wanted(STRANGER))) == len(entries), "the entries", timeout_s=10)


def denials(answer: object, path: str = "") -> set[tuple[str, int, str]]:
    """The errors of denials in an answer, with their places and their words."""
    found: set[tuple[str, int, str]] = set()
    if isinstance(answer, Struct):
        for field in answer.FIELDS:
            value = getattr(answer, field.name)
            if field.name.endswith("error_code"):
                if value in DENIED:
                    found.add((f"{path}.{field.name}", value, _words(answer, value)))
            else:
                found |= denials(value, f"{path}.{field.name}")
    elif isinstance(answer, tuple | list):
        for each in answer:
            found |= denials(each, f"{path}[]")
    return found


def _words(answer: Struct, code: int) -> str:
    """What a client says that the error is: where the answer has no words, its own."""
    words = getattr(answer, "error_message", None)
    # Apache Kafka's text of its request tells of buffers and threads: ours says what the error is called.
    if not words or words.startswith("Request Request("):
        words = MESSAGES[ErrorCode(code)]
    return str(words)


@pytest.fixture(scope="module")
def nodes(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair(tmp_path_factory.mktemp("acls"), PROPERTIES) as both:
        for node in (both.apache, both.tanist):
            _prepare(node)
        yield both


def _prepare(node: tuple[str, int]) -> None:
    """A topic and coordinators, and entries by which only nodes' host may do anything."""
    with Asker(node) as asker:
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
        assert asker.ask(request, 7, CreateTopicsResponse).topics[0].error_code == 0
        for key_type, key in ((0, GROUP), (1, TRANSACTION)):
            find = FindCoordinatorRequest(key=key, key_type=key_type)
            wait_for(
                lambda find=find: not asker.ask(find, 3, FindCoordinatorResponse).error_code,  # type: ignore[misc]
                "a coordinator",
                timeout_s=30,
            )
        describe = DescribeGroupsRequest(groups=(GROUP,))
        wait_for(
            lambda: not asker.ask(describe, 5, DescribeGroupsResponse).groups[0].error_code, "the group", timeout_s=30
        )
    everything = [
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
        (ResourceType.CLUSTER, "kafka-cluster"),
    ]
    entries = [entry((AclOperation.ALL, *resource), NODES) for resource in everything]
    assert create(node, *entries) == [(0, "")] * len(entries)
    wait_for(lambda: len(listed(node, wanted())) == len(entries), "the entries", timeout_s=10)


def name_of(sample: Sample) -> str:
    return f"{'controller' if sample.controller else 'broker'}-{sample.api.name.lower()}-{sample.rows[-1].when}"


def asked(node: tuple[str, int], sample: Sample) -> dict[int, object]:
    """The denials in the answer of each version, or that the connection was closed."""
    found: dict[int, object] = {}
    for version in sample.versions:
        if sample.api == ApiKey.ELECT_LEADERS and version > _LAST_ELECTION_VERSION:
            continue
        with Asker(node, source=STRANGER) as asker:
            try:
                found[version] = denials(asker.ask(sample.request(), version, Response))
            except OSError:
                found[version] = "closed"
    return found


_LAST_ELECTION_VERSION: Final = 2
"""Of Apache Kafka's; the next is KIP-966's."""


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_the_same_is_denied_at_the_same_places(nodes: Pair, sample: Sample) -> None:
    needs = {row.needs[-1] for row in sample.rows}
    theirs, ours = (
        (nodes.apache_controller, nodes.tanist_controller) if sample.controller else (nodes.apache, nodes.tanist)
    )
    ways = [set(), *({each for each in needs if each is not missing} for missing in needs)]
    for granted in ways if len(needs) > 1 else ways[:1]:
        for node in (nodes.apache, nodes.tanist):
            allow(node, granted)
        expected = asked(theirs, sample)
        assert asked(ours, sample) == expected, granted


def test_what_is_refused_of_new_entries_is_refused_in_the_same_words(nodes: Pair) -> None:
    topic = (AclOperation.READ, ResourceType.TOPIC, "new")
    legal = entry(topic, "10.0.0.1")
    changes: list[dict[str, object]] = [
        {"resource_type": 4},
        {"resource_name": ""},
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"operation": 99},
        {"permission_type": 1},
        {"principal": "alice"},
        {},
    ]
    if apache.PIN.metadata_version >= CIDR_ACLS_FROM:
        # Older versions take any host, and never see a client at such a one.
        changes += ({"host": host} for host in ("", "10.0.0.0/8", "10.0.0.0/33", "::1/", "2001:db8::/32", "/", "a/8"))
    entries = [
        AclCreation(**{**{field.name: getattr(legal, field.name) for field in legal.FIELDS}, **change})
        for change in changes
    ]
    for each in entries:
        found, expected = create(nodes.tanist, each), create(nodes.apache, each)
        if expected == [(ErrorCode.UNKNOWN_SERVER_ERROR, "")]:
            # Its own exception for a number that only filters have: ours says what is wrong.
            assert found[0][0] == ErrorCode.INVALID_REQUEST, each
        else:
            assert found == expected, each


def test_filters_mean_the_same_entries(nodes: Pair) -> None:
    entries = [
        AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal="User:filtered",
            host="10.0.0.9",
            operation=AclOperation.READ,
            permission_type=AclPermission.DENY,
        )
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        for name in ("f", "fo", "foo", "*")
        for pattern in (PatternType.LITERAL, PatternType.PREFIXED)
    ]
    for node in (nodes.apache, nodes.tanist):
        assert {code for code, _ in create(node, *entries)} == {0}
    for kind in (ResourceType.ANY, ResourceType.TOPIC):
        for pattern in (PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED):
            for name in (None, "foo", "f", "*", "*x"):
                request = wanted("10.0.0.9")
                request.resource_type_filter, request.pattern_type_filter = kind, pattern
                request.resource_name_filter = name
                assert listed(nodes.tanist, request) == listed(nodes.apache, request), (kind, pattern, name)


def test_kafka_acls_does_and_says_the_same(nodes: Pair) -> None:
    """Apache Kafka's tool, at each node: what it adds it lists, and what it removes is gone."""
    said = []
    for host, port in (nodes.apache, nodes.tanist):
        at = ("--bootstrap-server", f"{host}:{port}")
        who = ("--allow-principal", "User:CN=tool,O=x")
        lines = []
        for arguments in (
            ("--add", *who, "--producer", "--topic", "tool-", "--resource-pattern-type", "prefixed", "--idempotent"),
            ("--add", *who, "--consumer", "--topic", "tool", "--group", "*", "--allow-host", "10.0.0.1"),
            ("--add", "--deny-principal", "User:*", "--operation", "All", "--transactional-id", "tool"),
            ("--list", "--topic", "tool-x", "--resource-pattern-type", "match"),
            ("--remove", "--force", "--topic", "tool", "--resource-pattern-type", "any"),
            ("--list", "--transactional-id", "tool"),
        ):
            lines.append(sorted(tool(ACLS, *at, *arguments).stdout.splitlines()))
        said.append(lines)
    theirs, ours = said
    assert ours == theirs
    assert any("User:CN=tool,O=x" in line for line in ours[0])
