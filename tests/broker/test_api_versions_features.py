"""ApiVersions: whether this is the node that the client means, and the features, supported and final.

Of the supported ones an answer has those that the client can read, of the final ones all.
"""

from __future__ import annotations

from typing import Any

import pytest

from tanist.controller.features import LATEST_METADATA_VERSION, MINIMUM_METADATA_VERSION, default_features
from tanist.sim.world.world import CONTROLLER_PORT
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tests.api_versions import API_VERSIONS
from tests.broker.cluster_rig import Cluster


def test_a_feature_whose_lowest_level_is_0_is_named_from_version_4_on() -> None:
    """Java clients before 3.9, which ask in version 3, end their connection over such a feature (KAFKA-17492)."""
    cluster = Cluster(nodes=1)
    supported = {
        version: {
            each.name: (each.min_version, each.max_version)
            for each in cluster.ask(API_VERSIONS, version).supported_features
        }
        for version in (3, 4)
    }
    assert supported[3] == {"metadata.version": (MINIMUM_METADATA_VERSION, LATEST_METADATA_VERSION)}
    assert supported[4] == supported[3] | {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }


def test_all_finalized_features_are_named() -> None:
    levels = default_features(LATEST_METADATA_VERSION)
    assert levels["share.version"] == 2
    cluster = Cluster(nodes=1, features={"metadata.version": LATEST_METADATA_VERSION, **levels})
    for version in (3, 4, 5):
        answer = cluster.ask(API_VERSIONS, version)
        finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        assert finalized == levels | {"metadata.version": LATEST_METADATA_VERSION}
        supported = {each.name: each.max_version for each in answer.supported_features}
        assert supported.get("share.version", 2) == 2


def asking(**fields: Any) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="tests", client_software_version="1", **fields)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error"),
    [
        (None, -1, ErrorCode.NONE),
        ("the cluster's", 1, ErrorCode.NONE),
        ("another's", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("the cluster's", 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (None, 1, ErrorCode.INVALID_REQUEST),
        ("the cluster's", -1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_that_means_another_node_has_to_look_for_it_anew(
    cluster_id: str | None, node_id: int, error: ErrorCode
) -> None:
    """KIP-1242: the address has changed hands. With its answer the client learns nothing of this cluster."""
    cluster = Cluster(nodes=1)
    meant = cluster.node(1).components.context.cluster_id if cluster_id == "the cluster's" else cluster_id
    request = asking(cluster_id=meant, node_id=node_id)
    answer = cluster.ask(request, 5)
    assert answer.error_code == error
    assert bool(answer.api_keys) == (error == ErrorCode.NONE)
    assert cluster.ask(request, 4).error_code == ErrorCode.NONE


@pytest.mark.parametrize("cluster_id", ["another's", None])
def test_a_controller_does_not_ask_who_is_meant(cluster_id: str | None) -> None:
    """As with Apache Kafka, which refuses there only what makes no sense."""
    cluster = Cluster(nodes=1)
    answer = cluster.ask(asking(cluster_id=cluster_id, node_id=1), 5, port=CONTROLLER_PORT)
    assert answer.error_code == (ErrorCode.INVALID_REQUEST if cluster_id is None else ErrorCode.NONE)


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        ("apache-kafka-java", "4.4.0", ErrorCode.NONE),
        ("a", "1", ErrorCode.NONE),
        ("", "1", ErrorCode.INVALID_REQUEST),
        ("librdkafka", "", ErrorCode.INVALID_REQUEST),
        ("-a", "1", ErrorCode.INVALID_REQUEST),
        ("a.", "1", ErrorCode.INVALID_REQUEST),
        ("a b", "1", ErrorCode.INVALID_REQUEST),
        ("a", "1_0", ErrorCode.INVALID_REQUEST),
        ("a\n", "1", ErrorCode.INVALID_REQUEST),
        ("\u00e9", "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_says_which_software_it_is(name: str, version: str, error: ErrorCode) -> None:
    """KIP-511. A connection that is refused may ask again."""
    cluster = Cluster(nodes=1)
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    for api_version in (3, 4, 5):
        answer = cluster.ask(request, api_version)
        assert (answer.error_code, bool(answer.api_keys)) == (error, error == ErrorCode.NONE)
    assert cluster.ask(request, 2).error_code == ErrorCode.NONE  # it has no place for them
    (connection,) = (each for each in cluster.node(1).components.connections if each.client_id == "client")
    assert connection.software == ((name, version) if error == ErrorCode.NONE else ("unknown", "unknown"))
