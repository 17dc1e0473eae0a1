"""group.version: the consumer protocol (KIP-848) is there from level 1 on; and the levels that a broker registers."""

from __future__ import annotations

from tanist.broker.metadata.features import NODE_FEATURES, TANIST_VERSION
from tanist.controller.features import GROUP_VERSION
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.cluster_rig import Cluster

SAFE_DOWNGRADE = 2


def test_the_consumer_protocol_is_there_from_group_version_1_on() -> None:
    cluster = Cluster(nodes=3)
    cluster.create_topic("t")
    join = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1_000)
    describe = ConsumerGroupDescribeRequest(group_ids=("g",))
    assert cluster.node(1).metadata.image.features[GROUP_VERSION] == 1
    assert cluster.ask(join, 1).error_code != ErrorCode.UNSUPPORTED_VERSION
    off = FeatureUpdateKey(feature=GROUP_VERSION, max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
    assert cluster.ask(UpdateFeaturesRequest(feature_updates=(off,), timeout_ms=5_000), 1).error_code == 0
    cluster.until(lambda: not cluster.node(1).metadata.image.features.get(GROUP_VERSION, 0))
    assert cluster.ask(join, 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [each.error_code for each in cluster.ask(describe, 1).groups] == [ErrorCode.UNSUPPORTED_VERSION]


def test_a_node_names_its_levels() -> None:
    assert NODE_FEATURES["share.version"] == (0, 2)
    assert TANIST_VERSION in NODE_FEATURES
