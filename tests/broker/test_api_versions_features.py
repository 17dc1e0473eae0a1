"""Features in an answer to ApiVersions: those supported, as far as the client can read them, and all that are final."""

from __future__ import annotations

from tanist.controller.features import LATEST_METADATA_VERSION, MINIMUM_METADATA_VERSION, default_features
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tests.broker.cluster_rig import Cluster


def test_a_feature_whose_lowest_level_is_0_is_named_from_version_4_on() -> None:
    """Java clients before 3.9, which ask in version 3, end their connection over such a feature (KAFKA-17492)."""
    cluster = Cluster(nodes=1)
    supported = {
        version: {
            each.name: (each.min_version, each.max_version)
            for each in cluster.ask(ApiVersionsRequest(), version).supported_features
        }
        for version in (3, 4)
    }
    assert supported[3] == {"metadata.version": (MINIMUM_METADATA_VERSION, LATEST_METADATA_VERSION)}
    assert supported[4] == supported[3] | {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
    }


def test_all_finalized_features_are_named() -> None:
    """Those too that only brokers of Apache Kafka have: they are the cluster's."""
    levels = {**default_features(LATEST_METADATA_VERSION), "share.version": 1}
    cluster = Cluster(nodes=1, features=levels)
    for version in (3, 4):
        answer = cluster.ask(ApiVersionsRequest(), version)
        finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        assert finalized == levels | {"metadata.version": LATEST_METADATA_VERSION}
        assert "share.version" not in {each.name for each in answer.supported_features}
