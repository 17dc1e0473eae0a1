"""`kafka-features upgrade` by Apache Kafka's tool, over brokers of both kinds, under a controller of each kind.

A release is asked for as a whole: all that it has ours have as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tests.interop.apache import FEATURES, PIN, try_tool
from tests.interop.mixed.mixed_cluster import APACHE, TANIST, Kind, Member, MixedCluster
from tests.interop.pair import Asker
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

OURS, THEIRS, CONTROLLER = 1, 2, 11
RELEASE = PIN.release
OLDER = "4.1"


def cluster_of(cluster: MixedCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.bootstrap


def upgrade(cluster: MixedCluster, *what: str) -> tuple[int, str]:
    output = try_tool(FEATURES, *cluster_of(cluster), "upgrade", *what)
    return output.returncode, output.stdout + output.stderr


@pytest.mark.parametrize("controller", [APACHE, TANIST])
def test_a_release_is_had_with_brokers_of_ours(controller: Kind, tmp_path: Path) -> None:
    members = {
        OURS: Member(TANIST, "broker"),
        THEIRS: Member(APACHE, "broker"),
        CONTROLLER: Member(controller, "controller"),
    }
    cluster = MixedCluster(tmp_path, members, release=OLDER)
    cluster.start()
    try:
        code, printed = upgrade(cluster, "--release-version", RELEASE)
        assert code == 0, printed

        def is_final() -> bool:
            with Asker(cluster.address(OURS)) as asker:
                request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
                answer = asker.ask(request, 4, ApiVersionsResponse)
            final = {each.name: each.max_version_level for each in answer.finalized_features}
            return (final["metadata.version"], final["streams.version"]) == (PIN.metadata_version, 1)

        wait_for(is_final, "the broker of ours has the levels", timeout_s=30)
    finally:
        cluster.stop()
