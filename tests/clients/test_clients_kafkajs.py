"""kafkajs, from Node.js: groups of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients import builds
from tests.clients.groups import Group, Kind, new_group
from tests.clients.test_clients_groups import (  # noqa: F401
    test_a_group_that_comes_back_goes_on_where_it_was_when_its_coordinator_died,
    test_three_members_share_a_topic_one_leaves_and_one_is_killed,
)
from tests.interop.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]


@pytest.fixture(scope="module")
def kafkajs() -> Kind:
    reason = builds.missing_node()
    if reason is not None:
        pytest.skip(reason)
    environment = {"NODE_PATH": str(builds.node_modules()), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    script = str(builds.KAFKAJS / "member.js")
    return Kind("kafkajs", lambda *where: ("node", script, *where), environment=environment)


@pytest.fixture
def group(kafkajs: Kind, cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path) -> Iterator[Group]:
    with new_group(kafkajs, cluster, new_topic_name(), tmp_path) as members:
        yield members
