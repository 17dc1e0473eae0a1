"""metadata.version and the finalized features of the cluster.

Owns the table of metadata versions, the ranges that this software supports, UpdateFeatures, and the feature part of a
new cluster's first records. Rules 58-61, 128. Must never list a level that the code does not implement.

Names, numbers and the "may records have changed" flags are Apache Kafka 4.4's, read off its classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.controller.configs.settings import BROKER_RESOURCE, CLUSTER, MIN_INSYNC_REPLICAS
from tanist.controller.decision import Decision
from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, MetadataImage
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tanist.wire.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from tanist.wire.metadata import ConfigRecord, FeatureLevelRecord
from tanist.wire.schema import MetadataRecord


@dataclass(frozen=True, slots=True)
class MetadataVersion:
    """One level of metadata.version. `changed`: its log may hold records that the level below cannot read."""

    level: int
    name: str
    changed: bool


METADATA_VERSIONS: Final = tuple(
    MetadataVersion(level, name, changed)
    for level, (name, changed) in enumerate(
        (
            ("3.3-IV3", True),
            ("3.4-IV0", True),
            ("3.5-IV0", False),
            ("3.5-IV1", False),
            ("3.5-IV2", True),
            ("3.6-IV0", False),
            ("3.6-IV1", True),
            ("3.6-IV2", True),
            ("3.7-IV0", True),
            ("3.7-IV1", False),
            ("3.7-IV2", True),
            ("3.7-IV3", False),
            ("3.7-IV4", False),
            ("3.8-IV0", False),
            ("3.9-IV0", False),
            ("4.0-IV0", False),
            ("4.0-IV1", True),
            ("4.0-IV2", False),
            ("4.0-IV3", False),
            ("4.1-IV0", False),
            ("4.1-IV1", False),
            ("4.2-IV0", False),
            ("4.2-IV1", False),
            ("4.3-IV0", True),
            ("4.4-IV0", False),
            ("4.4-IV1", True),
            ("4.4-IV2", True),
        ),
        start=7,
    )
)
MINIMUM_METADATA_VERSION: Final = METADATA_VERSIONS[0].level
LATEST_METADATA_VERSION: Final = METADATA_VERSIONS[-1].level
DEFAULT_METADATA_VERSION: Final = 30
"""4.3-IV0: what a new cluster gets. Nodes of Apache Kafka 4.3 can join it, which know no later one."""
_BY_LEVEL: Final = {version.level: version for version in METADATA_VERSIONS}
_BY_NAME: Final = {version.name: version for version in METADATA_VERSIONS}

CONTROLLER_REGISTRATION_FROM: Final = 15
"""3.7-IV0: controllers register, so that an upgrade can ask whether all of them are able."""
DIRECTORY_ASSIGNMENT_FROM: Final = 17
"""3.7-IV2: brokers register their directories (KIP-858)."""
ELR_NEEDS: Final = 23
"""4.0-IV1: the records have the fields of KIP-966 (rule 58)."""
CIDR_ACLS_FROM: Final = 32
"""4.4-IV1: the host of an access control entry may be a range of addresses."""
CONTROLLER_UNREGISTRATION_FROM: Final = 33
"""4.4-IV2: an operator may remove the registration of a controller."""
ELR_DEFAULT_FROM: Final = 26
"""4.1-IV0: a cluster formatted at this level or later has ELR (rule 61)."""

GROUP_VERSION_DEFAULT_FROM: Final = 22
"""4.0-IV0: a cluster formatted at this level or later has the consumer protocol of KIP-848."""

TRANSACTION_VERSION_DEFAULT_FROM: Final = 24
"""4.0-IV2: a cluster formatted at this level or later has the transactions of KIP-890's second part."""

SHARE_VERSION_DEFAULT_FROM: Final = 28
"""4.2-IV0: a cluster formatted at this level or later has share groups (KIP-932)."""

DEAD_LETTERS_DEFAULT_FROM: Final = 31
"""4.4-IV0: a cluster formatted at this level or later has share.version 2, with dead letters (KIP-1191)."""

STREAMS_VERSION_DEFAULT_FROM: Final = 29
"""4.2-IV1: a cluster formatted at this level or later has Streams groups (KIP-1071)."""

GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

SUPPORTED_FEATURES: Final[Mapping[str, tuple[int, int]]] = {
    METADATA_VERSION: (MINIMUM_METADATA_VERSION, LATEST_METADATA_VERSION),
    ELR_VERSION: (0, 1),
    GROUP_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    SHARE_VERSION: (0, 2),
    STREAMS_VERSION: (0, 1),
}
"""The features of this software, for registrations and ApiVersions."""

TOLERATED_FEATURES: Final[Mapping[str, tuple[int, int]]] = {"kraft.version": (0, 1)}
"""Levels that a metadata log of Apache Kafka may have for what tanist does not offer, and that cannot hurt it."""

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def metadata_version_level(name: str) -> int:
    """The level of a version's name; a release ("4.0") means its last level. `ValueError` for an unknown one."""
    if name in _BY_NAME:
        return _BY_NAME[name].level
    levels = [version.level for version in METADATA_VERSIONS if version.name.split("-")[0] == name]
    if not levels:
        raise ValueError(f"metadata.version {name} is not known; the latest is {METADATA_VERSIONS[-1].name}")
    return max(levels)


def metadata_version_name(level: int) -> str:
    """The name of a level. `ValueError` for an unknown one."""
    if level not in _BY_LEVEL:
        raise ValueError(f"metadata.version {level} is not one of {MINIMUM_METADATA_VERSION}-{LATEST_METADATA_VERSION}")
    return _BY_LEVEL[level].name


def default_features(metadata_version: int) -> dict[str, int]:
    """The features that a cluster formatted at this level starts with (rule 61)."""
    levels = {}
    if metadata_version >= ELR_DEFAULT_FROM:
        levels[ELR_VERSION] = 1
    if metadata_version >= GROUP_VERSION_DEFAULT_FROM:
        levels[GROUP_VERSION] = 1
    if metadata_version >= TRANSACTION_VERSION_DEFAULT_FROM:
        levels[TRANSACTION_VERSION] = 2
    if metadata_version >= SHARE_VERSION_DEFAULT_FROM:
        levels[SHARE_VERSION] = 2 if metadata_version >= DEAD_LETTERS_DEFAULT_FROM else 1
    if metadata_version >= STREAMS_VERSION_DEFAULT_FROM:
        levels[STREAMS_VERSION] = 1
    return levels


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How to begin an empty metadata log. `features` None: the defaults of the metadata version."""

    metadata_version: int = DEFAULT_METADATA_VERSION
    features: Mapping[str, int] | None = None
    extra_records: tuple[MetadataRecord, ...] = field(default=())

    def levels(self) -> dict[str, int]:
        chosen = default_features(self.metadata_version) if self.features is None else dict(self.features)
        return {name: level for name, level in sorted(chosen.items()) if level > 0}


def bootstrap_records(bootstrap: Bootstrap, static_min_insync_replicas: int) -> tuple[MetadataRecord, ...]:
    """The first records of a cluster. With ELR they pin the cluster's min.insync.replicas (rule 59)."""
    if bootstrap.metadata_version not in _BY_LEVEL:
        raise ValueError(f"metadata.version {bootstrap.metadata_version} is not supported")
    levels = bootstrap.levels()
    for name, level in levels.items():
        reason = _not_in_range(name, level, SUPPORTED_FEATURES) or _unmet(name, level, bootstrap.metadata_version)
        if reason is not None:
            raise ValueError(f"{name} {level}: {reason}")
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=bootstrap.metadata_version),
        *(FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()),
        *bootstrap.extra_records,
    ]
    already = any(
        isinstance(record, ConfigRecord)
        and (record.resource_type, record.resource_name, record.name) == (BROKER_RESOURCE, CLUSTER, MIN_INSYNC_REPLICAS)
        for record in bootstrap.extra_records
    )
    if levels.get(ELR_VERSION, 0) and not already:
        records.append(_cluster_min_isr(static_min_insync_replicas))
    return tuple(records)


def elr_safety_records(image: MetadataImage, static_min_insync_replicas: int) -> Iterator[MetadataRecord]:
    """Make all brokers and the controller agree on min.insync.replicas before ELR starts (rule 58, A32)."""
    if MIN_INSYNC_REPLICAS not in image.configs.get((BROKER_RESOURCE, CLUSTER), {}):
        yield _cluster_min_isr(static_min_insync_replicas)
    for (resource_type, name), values in sorted(image.configs.items()):
        if resource_type == BROKER_RESOURCE and name != CLUSTER and MIN_INSYNC_REPLICAS in values:
            yield ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=name, name=MIN_INSYNC_REPLICAS, value=None)


def _cluster_min_isr(value: int) -> ConfigRecord:
    return ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name=CLUSTER, name=MIN_INSYNC_REPLICAS, value=str(value)
    )


# ---- UpdateFeatures


def update_features(
    image: MetadataImage,
    request: UpdateFeaturesRequest,
    *,
    static_min_insync_replicas: int,
    node_id: int,
    voter_ids: Collection[int] = (),
    api_version: int,
) -> Decision:
    """All of the updates or none of them. `voter_ids`: the controllers that must have registered before an upgrade."""
    # A feature named twice counts once, as its last mention says.
    updates = {update.feature: update for update in request.feature_updates}
    levels = {METADATA_VERSION: image.metadata_version, **image.features}
    levels.update((name, update.max_version_level) for name, update in updates.items())
    records: list[MetadataRecord] = []
    for name, update in updates.items():
        level, upgrade_type = update.max_version_level, _upgrade_type(update, api_version)
        complaint = _refusal(image, name, level, upgrade_type, levels, node_id, voter_ids)
        if complaint is not None:
            return Decision(
                response=update_features_response(request, ErrorCode.INVALID_UPDATE_VERSION, complaint, api_version)
            )
        records.append(FeatureLevelRecord(name=name, feature_level=level))
    if request.validate_only:
        return Decision(response=update_features_response(request, ErrorCode.NONE, None, api_version))
    if ELR_VERSION in updates and updates[ELR_VERSION].max_version_level > 0:
        records[:0] = elr_safety_records(image, static_min_insync_replicas)
    return Decision(tuple(records), update_features_response(request, ErrorCode.NONE, None, api_version))


def _upgrade_type(update: FeatureUpdateKey, api_version: int) -> int:
    if api_version == 0:
        return SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    return update.upgrade_type


def _refusal(
    image: MetadataImage,
    name: str,
    level: int,
    upgrade_type: int,
    levels: Mapping[str, int],
    node_id: int,
    voter_ids: Collection[int],
) -> str | None:
    """The message that refuses a level to a feature, or None. `levels` are all features as they will be."""
    current = image.metadata_version if name == METADATA_VERSION else image.features.get(name, 0)
    reason = (
        _malformed(level, upgrade_type)
        or _not_supported(image, name, level, node_id, voter_ids)
        or _wrong_way(level, current, upgrade_type)
    )
    if reason is None and name == METADATA_VERSION:
        lost = _metadata_downgrade(current, level, unsafe=upgrade_type == UNSAFE_DOWNGRADE)
        return None if lost is None else f"Unsupported metadata.version downgrade from {current} to {level}. {lost}"
    if reason is None:
        reason = _unmet(name, level, levels[METADATA_VERSION])
    return None if reason is None else f"Invalid update version {level} for feature {name}. {reason}"


def kraft_version_refusal(update: FeatureUpdateKey, current: int, api_version: int) -> str | None:
    """Why kraft.version cannot be updated like this; its levels are the quorum's business."""
    level, upgrade_type = update.max_version_level, _upgrade_type(update, api_version)
    return _malformed(level, upgrade_type) or _wrong_way(level, current, upgrade_type)


def _malformed(level: int, upgrade_type: int) -> str | None:
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    return "A feature version cannot be less than 0." if level < 0 else None


def _wrong_way(level: int, current: int, upgrade_type: int) -> str | None:
    if level < current and upgrade_type == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > current and upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _metadata_downgrade(current: int, level: int, *, unsafe: bool) -> str | None:
    """Going back is refused where records may exist that the older level cannot read.

    So nobody can go below 4.0-IV1 again, and ELR never loses the metadata version it needs.
    """
    lost = any(version.changed for version in METADATA_VERSIONS if level < version.level <= current)
    if not lost:
        return None
    if unsafe:
        return "Unsafe metadata downgrade is not supported in this version."
    return "Refusing to perform the requested downgrade because it might delete metadata information."


def _unmet(name: str, level: int, metadata_version: int) -> str | None:
    if name == ELR_VERSION and level > 0 and metadata_version < ELR_NEEDS:
        return f"{ELR_VERSION} {level} needs metadata.version {_BY_LEVEL[ELR_NEEDS].name} ({ELR_NEEDS}) or later."
    return None


def _not_supported(image: MetadataImage, name: str, level: int, node_id: int, voter_ids: Collection[int]) -> str | None:
    """The first registered node that lacks a level, and why: this controller, then brokers, then controllers."""
    reason = _not_in_range(name, level, SUPPORTED_FEATURES)
    if reason is not None:
        return f"Local controller {node_id} {reason}"
    for broker_id, broker in sorted(image.brokers.items()):
        reason = _not_in_range(name, level, broker.features)
        if reason is not None:
            return f"Broker {broker_id} {reason}"
    if image.metadata_version >= CONTROLLER_REGISTRATION_FROM:
        for controller_id, controller in sorted(image.controllers.items()):
            reason = _not_in_range(name, level, controller.features)
            if reason is not None and controller_id != node_id:
                return f"Controller {controller_id} {reason}"
        for voter_id in sorted(voter_ids):
            if voter_id != node_id and voter_id not in image.controllers:
                return f"controller {voter_id} has not registered, and may not support this feature"
    return None


def _not_in_range(name: str, level: int, supported: Mapping[str, tuple[int, int]]) -> str | None:
    if name not in supported:
        # What nobody has heard of is off everywhere.
        return None if level == 0 and name in SUPPORTED_FEATURES else "does not support this feature."
    low, high = supported[name]
    if low <= level <= high:
        return None
    return f"only supports versions {low}-{high}" if high > 0 else "does not support this feature."


def update_features_response(
    request: UpdateFeaturesRequest, error: ErrorCode, message: str | None, api_version: int
) -> UpdateFeaturesResponse:
    results: tuple[UpdatableFeatureResult, ...] = ()
    if api_version <= 1:
        results = tuple(
            UpdatableFeatureResult(feature=name, error_code=error, error_message=message)
            for name in dict.fromkeys(update.feature for update in request.feature_updates)
        )
    if message is not None:
        message = f"The update failed for all features since the following feature had an error: {message}"
    return UpdateFeaturesResponse(error_code=error, error_message=message, results=results)
