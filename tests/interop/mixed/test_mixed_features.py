"""`kafka-features upgrade` by Apache Kafka's tool, over brokers of both kinds, under a controller of each kind.

A release is asked for as a whole. That of 4.4 has a level that our brokers do not have; each feature is asked for by
its name. All that 4.3 has ours have as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tests.interop.apache import CLUSTER, FEATURES, PIN, tool, try_tool
from tests.interop.cluster import metadata
from tests.interop.mixed.mixed_cluster import APACHE, TANIST, Kind, Member, MixedCluster
from tests.interop.pair import Asker
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

OURS, THEIRS, CONTROLLER = 1, 2, 11
RELEASE = PIN.release
OLDER = "4.1"
NOT_OURS = {"share.version"} if PIN.share_version > 1 else set[str]()
QUORUM = "kraft.version"
"""A release has it as well, which makes a static quorum a dynamic one."""


def cluster_of(cluster: MixedCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.bootstrap


def upgrade(cluster: MixedCluster, *what: str) -> tuple[int, str]:
    output = try_tool(FEATURES, *cluster_of(cluster), "upgrade", *what)
    return output.returncode, output.stdout + output.stderr


def finalized(cluster: MixedCluster) -> Mapping[str, str]:
    """As the tool reports them: those that the broker has which it happens to ask."""
    printed = tool(FEATURES, *cluster_of(cluster), "describe").stdout
    return dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", printed))


@pytest.mark.skipif(bool(NOT_OURS), reason=f"{RELEASE} has more than ours")
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


@pytest.mark.skipif(not NOT_OURS, reason=f"ours have all of {RELEASE}")
@pytest.mark.parametrize("controller", [APACHE, TANIST])
def test_a_release_is_refused_and_its_features_are_not(controller: Kind, tmp_path: Path) -> None:
    members = {
        OURS: Member(TANIST, "broker"),
        THEIRS: Member(APACHE, "broker"),
        CONTROLLER: Member(controller, "controller"),
    }
    cluster = MixedCluster(tmp_path, members, release=OLDER)
    cluster.start()
    try:
        before = finalized(cluster)
        assert before["metadata.version"].startswith(OLDER)
        code, printed = upgrade(cluster, "--release-version", RELEASE)
        assert code == 1, printed
        assert f"for feature {min(NOT_OURS)}. Broker {OURS} " in printed
        # Apache's controller takes kraft.version to 1 while it refuses the rest; ours does all or nothing.
        changed = {name for name, level in finalized(cluster).items() if before.get(name, "0") != level}
        assert changed == ({QUORUM} if controller == APACHE else set())

        listed = tool(FEATURES, *cluster_of(cluster), "version-mapping", "--release-version", RELEASE).stdout
        levels = dict(re.findall(r"^(\S+)=(\d+)", listed, re.MULTILINE))
        assert NOT_OURS | {QUORUM} <= set(levels)
        named = {name: level for name, level in levels.items() if name not in NOT_OURS | {QUORUM}}
        code, printed = upgrade(cluster, *(f"--feature={name}={level}" for name, level in named.items()))
        assert code == 0, printed
        wait_for(
            lambda: finalized(cluster)["metadata.version"].startswith(RELEASE),
            f"metadata.version is that of {RELEASE}",
            timeout_s=30,
        )

        # Without the broker of ours all of the release can be had; and it joins the cluster that has it.
        cluster.stop_node(OURS)
        tool(CLUSTER, "unregister", *cluster_of(cluster), "--id", str(OURS))
        code, printed = upgrade(cluster, "--release-version", RELEASE)
        assert code == 0, printed
        cluster.start_node(OURS)
        wait_for(lambda: OURS in metadata(cluster, THEIRS, ()).brokers, "the broker of ours is back", timeout_s=60)
        request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
        for node_id in (OURS, THEIRS):
            with Asker(cluster.address(node_id)) as asker:
                answer = asker.ask(request, 4, ApiVersionsResponse)
            final = {each.name: each.max_version_level for each in answer.finalized_features}
            assert NOT_OURS & set(final) == NOT_OURS
            offered = {each.name for each in answer.supported_features if each.max_version >= final.get(each.name, 1)}
            assert NOT_OURS & offered == (NOT_OURS if node_id == THEIRS else set())
    finally:
        cluster.stop()
