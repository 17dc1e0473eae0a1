"""Feature levels: the table of metadata versions, UpdateFeatures, and how a cluster begins (rules 58-61, 128)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.controller.features import (
    DEFAULT_METADATA_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSIONS,
    SAFE_DOWNGRADE,
    SUPPORTED_FEATURES,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    Bootstrap,
    bootstrap_records,
    kraft_version_refusal,
    metadata_version_level,
    metadata_version_name,
    update_features,
)
from tanist.controller.image.image import MetadataImage
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tanist.wire.metadata import (
    BrokerFeature,
    ConfigRecord,
    ControllerFeature,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

ELR = "eligible.leader.replicas.version"
MV = "metadata.version"


def _image(metadata_version: str = "4.3-IV0", *, elr: int = 0, records: tuple[Any, ...] = ()) -> MetadataImage:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name=MV, feature_level=metadata_version_level(metadata_version)))
    if elr:
        image.replay(FeatureLevelRecord(name=ELR, feature_level=elr))
    for record in records:
        image.replay(record)
    return image


def _update(image: MetadataImage, *updates: tuple[str, int, int], api_version: int = 2, **options: Any) -> Any:
    validate_only = options.pop("validate_only", False)
    request = UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates
        ),
        validate_only=validate_only,
    )
    facts: dict[str, Any] = {"static_min_insync_replicas": 1, "node_id": 1} | options
    return update_features(image, request, api_version=api_version, **facts)


# -- rule 128: names and levels, as org.apache.kafka.server.common.MetadataVersion 4.4.0 has them


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("3.3-IV3", 7),
        ("3.4-IV0", 8),
        ("3.5-IV2", 11),
        ("3.6-IV0", 12),
        ("3.6-IV1", 13),
        ("3.7-IV0", 15),
        ("3.7-IV2", 17),
        ("3.7-IV4", 19),
        ("3.8-IV0", 20),
        ("3.9-IV0", 21),
        ("4.0-IV0", 22),
        ("4.0-IV1", 23),
        ("4.0-IV3", 25),
        ("4.1-IV0", 26),
        ("4.2-IV1", 29),
        ("4.3-IV0", 30),
        ("4.4-IV0", 31),
        ("4.4-IV1", 32),
        ("4.4-IV2", 33),
    ],
)
def test_rule_128_metadata_versions(name: str, level: int) -> None:
    assert metadata_version_level(name) == level
    assert metadata_version_name(level) == name


def test_rule_128_ranges() -> None:
    others = {
        "group.version": (0, 1),
        "transaction.version": (0, 2),
        "share.version": (0, 2),
        "streams.version": (0, 1),
    }
    assert {MV: (7, 33), ELR: (0, 1), **others} == SUPPORTED_FEATURES
    assert [version.level for version in METADATA_VERSIONS] == list(range(7, 34))
    assert {version.name for version in METADATA_VERSIONS if version.changed} == {
        "3.3-IV3",
        "3.4-IV0",
        "3.5-IV2",
        "3.6-IV1",
        "3.6-IV2",
        "3.7-IV0",
        "3.7-IV2",
        "4.0-IV1",
        "4.3-IV0",
        "4.4-IV1",
        "4.4-IV2",
    }


def test_a_release_means_its_last_level() -> None:
    assert metadata_version_level("4.0") == 25
    assert metadata_version_level("3.7") == 19
    assert metadata_version_level("4.4") == 33
    for name in ("5.0", "4.5-IV0", "", "4"):
        with pytest.raises(ValueError, match="not known"):
            metadata_version_level(name)
    for level in (6, 34):
        with pytest.raises(ValueError, match="is not one of"):
            metadata_version_name(level)


# -- rules 59 and 61: the first records


def test_rule_59_a_new_cluster_pins_min_insync_replicas() -> None:
    assert bootstrap_records(Bootstrap(), 2) == (
        FeatureLevelRecord(name=MV, feature_level=30),
        FeatureLevelRecord(name=ELR, feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="share.version", feature_level=1),
        FeatureLevelRecord(name="streams.version", feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"),
    )


def test_rule_59_not_without_elr_and_not_twice() -> None:
    assert bootstrap_records(Bootstrap(features={ELR: 0}), 2) == (FeatureLevelRecord(name=MV, feature_level=30),)
    own = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="3")
    records = bootstrap_records(Bootstrap(extra_records=(own,)), 2)
    assert [record for record in records if isinstance(record, ConfigRecord)] == [own]


@pytest.mark.parametrize(("metadata_version", "elr"), [("4.0-IV3", False), ("4.1-IV0", True), ("4.3-IV0", True)])
def test_rule_61_elr_is_on_from_4_1(metadata_version: str, elr: bool) -> None:
    records = bootstrap_records(Bootstrap(metadata_version=metadata_version_level(metadata_version)), 1)
    assert (FeatureLevelRecord(name=ELR, feature_level=1) in records) is elr


@pytest.mark.parametrize(
    "bootstrap",
    [
        Bootstrap(metadata_version=34),
        Bootstrap(metadata_version=6),
        Bootstrap(features={"no.such.feature": 1}),
        Bootstrap(features={ELR: 2}),
        Bootstrap(metadata_version=22, features={ELR: 1}),
    ],
)
def test_a_cluster_cannot_begin_with_what_is_not_supported(bootstrap: Bootstrap) -> None:
    with pytest.raises(ValueError, match=r"support|needs"):
        bootstrap_records(bootstrap, 1)


def test_an_opt_in_at_4_0() -> None:
    records = bootstrap_records(Bootstrap(metadata_version=23, features={ELR: 1}), 1)
    assert [type(record).__name__ for record in records] == ["FeatureLevelRecord", "FeatureLevelRecord", "ConfigRecord"]


# -- rule 58: turning ELR on


def test_rule_58_enabling_makes_all_brokers_agree_first() -> None:
    image = _image(
        "4.0-IV1",
        records=(ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value="3"),),
    )
    decision = _update(image, (ELR, 1, UPGRADE), static_min_insync_replicas=2)
    assert decision.response.error_code == ErrorCode.NONE
    assert decision.records == (
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"),
        ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value=None),
        FeatureLevelRecord(name=ELR, feature_level=1),
    )
    assert decision.atomic


def test_rule_58_a_value_for_the_cluster_is_left_alone() -> None:
    image = _image(records=(ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="3"),))
    assert _update(image, (ELR, 1, UPGRADE)).records == (FeatureLevelRecord(name=ELR, feature_level=1),)


def test_rule_58_needs_a_metadata_version() -> None:
    image = _image("4.0-IV0")
    decision = _update(image, (ELR, 1, UPGRADE))
    assert decision.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "needs metadata.version 4.0-IV1" in decision.response.error_message
    assert decision.records == ()
    together = _update(image, (MV, 23, UPGRADE), (ELR, 1, UPGRADE))
    assert together.response.error_code == ErrorCode.NONE
    assert [record.name for record in together.records if isinstance(record, FeatureLevelRecord)] == [MV, ELR]


# -- rule 60: turning it off


def test_rule_60_disabling_needs_a_downgrade_and_writes_nothing_else() -> None:
    image = _image(elr=1)
    refused = _update(image, (ELR, 0, UPGRADE))
    assert refused.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "without setting the upgrade type" in refused.response.error_message
    for kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        assert _update(image, (ELR, 0, kind)).records == (FeatureLevelRecord(name=ELR, feature_level=0),)


# -- UpdateFeatures at large


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ((ELR, 1, 0), "does not support the given upgrade type"),
        ((ELR, 1, 4), "does not support the given upgrade type"),
        ((ELR, -1, UNSAFE_DOWNGRADE), "cannot be less than 0"),
        ((ELR, 2, UPGRADE), "Local controller 1 only supports versions 0-1"),
        ((ELR, 1, SAFE_DOWNGRADE), "Can't downgrade to a newer version."),
        (("no.such.feature", 1, UPGRADE), "does not support this feature"),
        (("no.such.feature", 0, SAFE_DOWNGRADE), "does not support this feature"),
        ((MV, 34, UPGRADE), "Local controller 1 only supports versions 7-33"),
        ((MV, 6, UNSAFE_DOWNGRADE), "Local controller 1 only supports versions 7-33"),
        ((MV, 28, UPGRADE), "without setting the upgrade type"),
        ((MV, 29, SAFE_DOWNGRADE), "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform"),
        ((MV, 29, UNSAFE_DOWNGRADE), "Unsafe metadata downgrade is not supported"),
    ],
)
def test_refusals(update: tuple[str, int, int], words: str) -> None:
    decision = _update(_image(), update)
    assert decision.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert words in decision.response.error_message
    assert decision.records == ()


def test_a_lossless_downgrade_of_the_metadata_version() -> None:
    decision = _update(_image("4.2-IV1"), (MV, 23, SAFE_DOWNGRADE))
    assert decision.records == (FeatureLevelRecord(name=MV, feature_level=23),)
    assert _update(_image("4.2-IV1"), (MV, 22, SAFE_DOWNGRADE)).records == ()


def test_a_level_needs_brokers_that_have_it() -> None:
    """As `kafka-features upgrade --release-version 4.3` asks for them, over brokers that have them, and over ours."""
    wanted = [("share.version", 2), ("streams.version", 1), ("group.version", 1)]
    updates = [(name, level, UPGRADE) for name, level in wanted]

    def broker(share: int) -> RegisterBrokerRecord:
        ranges = {**SUPPORTED_FEATURES, "share.version": (0, share)}
        features = tuple(
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in ranges.items()
        )
        return RegisterBrokerRecord(broker_id=1, incarnation_id=UUID(int=1), features=features)

    decision = _update(_image("4.3-IV0", records=(broker(2),)), *updates)
    assert [(record.name, record.feature_level) for record in decision.records] == wanted
    refused = _update(_image("4.3-IV0", records=(broker(1),)), *updates)
    assert "Broker 1 only supports versions 0-1" in refused.response.error_message
    assert refused.records == ()


def test_everybody_must_be_able() -> None:
    able = tuple(
        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    )
    old = (BrokerFeature(name=MV, min_supported_version=7, max_supported_version=25),)

    def broker(broker_id: int, features: tuple[BrokerFeature, ...]) -> RegisterBrokerRecord:
        return RegisterBrokerRecord(broker_id=broker_id, incarnation_id=UUID(int=broker_id), features=features)

    image = _image("4.0-IV3", records=(broker(1, able), broker(2, old)))
    assert "Broker 2 only supports versions 7-25" in _update(image, (MV, 26, UPGRADE)).response.error_message
    assert "Broker 2 does not support this feature" in _update(image, (ELR, 1, UPGRADE)).response.error_message
    image.replay(broker(2, able))
    assert _update(image, (MV, 26, UPGRADE)).response.error_code == ErrorCode.NONE
    image.replay(
        RegisterControllerRecord(
            controller_id=9,
            features=(ControllerFeature(name=MV, min_supported_version=7, max_supported_version=25),),
        )
    )
    assert "Controller 9 only supports" in _update(image, (MV, 26, UPGRADE)).response.error_message


def test_voters_must_have_registered() -> None:
    image = _image("4.0-IV3")
    decision = _update(image, (MV, 26, UPGRADE), voter_ids=(1, 2))
    assert "controller 2 has not registered" in decision.response.error_message
    # Before controllers register at all, nothing can be known of them.
    assert _update(_image("3.6-IV2"), (MV, 26, UPGRADE), voter_ids=(1, 2)).response.error_code == ErrorCode.NONE


def test_one_refusal_refuses_all() -> None:
    decision = _update(_image("4.2-IV0"), (MV, 30, UPGRADE), (ELR, 9, UPGRADE))
    assert decision.records == ()
    assert decision.response.error_message.startswith("The update failed for all features")


def test_validate_only_writes_nothing() -> None:
    assert _update(_image(), (ELR, 1, UPGRADE), validate_only=True).records == ()
    assert _update(_image(), (ELR, 2, UPGRADE), validate_only=True).response.error_code != ErrorCode.NONE


def test_old_versions_answer_per_feature() -> None:
    answer = _update(_image(), (ELR, 1, UPGRADE), api_version=1).response
    assert [(result.feature, result.error_code) for result in answer.results] == [(ELR, ErrorCode.NONE)]
    assert _update(_image(), (ELR, 1, UPGRADE), api_version=2).response.results == ()


def test_version_0_says_allow_downgrade() -> None:
    image = _image(elr=1)
    request = UpdateFeaturesRequest(
        feature_updates=(FeatureUpdateKey(feature=ELR, max_version_level=0, allow_downgrade=True),)
    )
    decision = update_features(image, request, static_min_insync_replicas=1, node_id=1, api_version=0)
    assert decision.records == (FeatureLevelRecord(name=ELR, feature_level=0),)
    request.feature_updates[0].allow_downgrade = False
    decision = update_features(image, request, static_min_insync_replicas=1, node_id=1, api_version=0)
    assert decision.records == ()


def test_a_new_cluster_gets_a_level_at_which_nodes_of_apache_kafka_4_3_can_join() -> None:
    assert Bootstrap().metadata_version == DEFAULT_METADATA_VERSION == metadata_version_level("4.3")
    assert metadata_version_level("4.4") == LATEST_METADATA_VERSION


def test_a_level_of_4_4_is_left_only_for_one_that_can_read_the_log() -> None:
    """4.4-IV1 and -IV2 may have left records that the level below does not know."""
    four_three, four_four = (metadata_version_level(name) for name in ("4.3", "4.4"))
    assert _update(_image("4.3-IV0"), (MV, four_four, UPGRADE)).records == (
        FeatureLevelRecord(name=MV, feature_level=four_four),
    )
    assert _update(_image("4.4-IV2"), (MV, four_three, SAFE_DOWNGRADE)).records == ()
    assert _update(_image("4.4-IV0"), (MV, four_three, SAFE_DOWNGRADE)).records == (
        FeatureLevelRecord(name=MV, feature_level=four_three),
    )


# -- kraft.version, whose levels are the quorum's


@pytest.mark.parametrize(
    ("level", "current", "upgrade_type", "words"),
    [
        (1, 0, UPGRADE, None),
        (1, 1, SAFE_DOWNGRADE, None),
        (1, 0, 0, "does not support the given upgrade type"),
        (-1, 0, UPGRADE, "cannot be less than 0"),
        (1, 0, SAFE_DOWNGRADE, "Can't downgrade to a newer version."),
        (0, 1, UPGRADE, "without setting the upgrade type"),
    ],
)
def test_kraft_version_is_judged_as_any_feature(level: int, current: int, upgrade_type: int, words: str | None) -> None:
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=level, upgrade_type=upgrade_type)
    reason = kraft_version_refusal(update, current, 2)
    assert (words is None and reason is None) or str(words) in str(reason)
