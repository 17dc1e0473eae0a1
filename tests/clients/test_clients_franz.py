"""franz-go, from Go: groups of it, with both protocols."""

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
def program() -> Path:
    reason = builds.missing_go()
    if reason is not None:
        pytest.skip(reason)
    return builds.franz("member")


@pytest.fixture(params=["classic", "consumer"])
def group(
    request: pytest.FixtureRequest,
    program: Path,
    cluster: Cluster,
    new_topic_name: Callable[[], str],
    tmp_path: Path,
) -> Iterator[Group]:
    kind = Kind(f"franz-{request.param}", lambda *where: (str(program), request.param, *where), by_parts=True)
    with new_group(kind, cluster, new_topic_name(), tmp_path) as members:
        yield members
