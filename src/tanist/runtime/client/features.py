"""The features of any Kafka cluster, asked for and changed through `Client` (ApiVersions, UpdateFeatures).

Owns what a client can know of them: which levels the brokers support, which are finalized, and an update with its kinds
of downgrade. Whether an update is allowed is the controller's decision (rules 58, 60).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tanist.client.admin import UpgradeType
from tanist.runtime.client.changes import ANSWER_MARGIN_S
from tanist.runtime.client.client import Client, KafkaError, Unsupported
from tanist.runtime.client.connection import API_VERSIONS
from tanist.runtime.client.quorum import ask_controller
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tanist.wire.messages.update_features_response import UpdateFeaturesResponse
from tanist.wire.schema import Request


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature. `level` 0: it is off."""

    name: str
    min_supported: int
    max_supported: int
    level: int


@dataclass(frozen=True, slots=True)
class Features:
    """The features that one broker knows, as of the metadata offset `epoch`."""

    epoch: int
    features: tuple[Feature, ...]

    def level(self, name: str) -> int:
        """The finalized level; 0 for what the cluster does not have."""
        return next((feature.level for feature in self.features if feature.name == name), 0)


def describe_features(client: Client, *, node_id: int | None = None) -> Features:
    """The features of the cluster, by name, as any broker knows them, or this one."""

    def attempt() -> Features:
        answer = client.ask(API_VERSIONS, ApiVersionsResponse, node_id=node_id)
        if answer.error_code:
            raise KafkaError(answer.error_code)
        finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
        features = []
        for name in sorted(finalized.keys() | supported.keys()):
            low, high = supported.get(name, (0, 0))
            features.append(Feature(name, low, high, finalized.get(name, 0)))
        return Features(answer.finalized_features_epoch, tuple(features))

    return client.persist(attempt)


def update_features(
    client: Client, levels: Mapping[str, int], upgrade_type: UpgradeType, *, validate_only: bool = False
) -> None:
    """Set features to levels, all of them or none. `KafkaError` with the controller's words if it refuses.

    Safe to ask for again: a level that is there already is granted.
    """
    request = UpdateFeaturesRequest(
        timeout_ms=round(client.timeout_s * 1000),
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level in levels.items()
        ),
        validate_only=validate_only,
    )
    if (known := served_version(client, UpdateFeaturesRequest)) < 1:
        # Version 0 has neither the kinds of downgrade nor `validate_only`: it would do what was only to be tried.
        raise Unsupported(f"the brokers have UpdateFeatures up to version {known}, and this needs version 1")

    def attempt() -> None:
        answer = ask_controller(client, request, UpdateFeaturesResponse, timeout_s=client.timeout_s + ANSWER_MARGIN_S)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
        for result in answer.results:
            if result.error_code:
                raise KafkaError(result.error_code, f"{result.feature}: {result.error_message}")

    client.persist(attempt)


def served_version(client: Client, request: type[Request]) -> int:
    """The highest version of a request that the brokers say they serve; -1 if they do not have it."""

    def attempt() -> int:
        answer = client.ask(API_VERSIONS, ApiVersionsResponse)
        if answer.error_code:
            raise KafkaError(answer.error_code)
        return max((api.max_version for api in answer.api_keys if api.api_key == request.API_KEY), default=-1)

    return client.persist(attempt)
