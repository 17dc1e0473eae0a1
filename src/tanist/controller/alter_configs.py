"""Dynamic configuration: IncrementalAlterConfigs and AlterConfigs.

Owns the step from a request to ConfigRecords, and the effect of a change of min.insync.replicas on the ELR. Rules 54
and 57. Each resource of a request succeeds or fails by itself. Must never write a value that `validation` has not
judged: brokers trust the log.

Differs from Apache: brokers' values are validated here, also when a client asks the controller directly (Apache's
brokers validate them before they forward the request, and its controller accepts them).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.settings import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    CLUSTER,
    GROUP_RESOURCE,
    MAX_VALUE_LENGTH,
    MIN_INSYNC_REPLICAS,
    TOPIC_RESOURCE,
    default_of,
    is_list,
)
from tanist.controller.configs.validation import (
    MalformedConfig,
    validate_broker_configs,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from tanist.controller.decision import Decision
from tanist.controller.image.image import MetadataImage
from tanist.controller.partitions import elections
from tanist.controller.topic_names import name_error
from tanist.events.metadata import ElrsEmptied
from tanist.events.stream import NOBODY, Events
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import alter_configs_response, incremental_alter_configs_response
from tanist.wire.messages.alter_configs_request import AlterConfigsRequest
from tanist.wire.messages.alter_configs_response import AlterConfigsResponse
from tanist.wire.messages.incremental_alter_configs_request import AlterableConfig, IncrementalAlterConfigsRequest
from tanist.wire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tanist.wire.metadata import ConfigRecord
from tanist.wire.schema import MetadataRecord

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
_BROKER_NAME = re.compile("-?(0|[1-9][0-9]{0,9})")
"""Without leading zeros: "01" would be stored beside "1" and never be looked up."""
_OPERATION_NAMES = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why one resource was not changed."""

    error: ErrorCode
    message: str


def incremental_alter_configs(
    image: MetadataImage, request: IncrementalAlterConfigsRequest, events: Events = NOBODY
) -> Decision:
    """Set, delete, append to and subtract from single names; other names stay."""
    named = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    records: list[ConfigRecord] = []
    responses = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        outcome: list[ConfigRecord] | Refusal
        if named[key] > 1:
            outcome = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        else:
            outcome = _increment(image, key, resource.configs)
        if not isinstance(outcome, Refusal):
            records.extend(outcome)
        error, message = _verdict(outcome)
        responses.append(
            incremental_alter_configs_response.AlterConfigsResourceResponse(
                error_code=error, error_message=message, resource_type=key[0], resource_name=key[1]
            )
        )
    response = IncrementalAlterConfigsResponse(responses=tuple(responses))
    return _decision(image, records, events, validate_only=request.validate_only, response=response)


def alter_configs(image: MetadataImage, request: AlterConfigsRequest, events: Events = NOBODY) -> Decision:
    """AlterConfigs: the resource has exactly the values of the request afterwards."""
    named = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    records: list[ConfigRecord] = []
    responses = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        names = Counter(config.name for config in resource.configs)
        nulls = [config.name for config in resource.configs if config.value is None]
        outcome: list[ConfigRecord] | Refusal
        if named[key] > 1:
            outcome = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        elif any(count > 1 for count in names.values()):
            outcome = Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        elif nulls:
            outcome = Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(nulls)}")
        else:
            outcome = _replace(image, key, {config.name: config.value or "" for config in resource.configs})
        if not isinstance(outcome, Refusal):
            records.extend(outcome)
        error, message = _verdict(outcome)
        responses.append(
            alter_configs_response.AlterConfigsResourceResponse(
                error_code=error, error_message=message, resource_type=key[0], resource_name=key[1]
            )
        )
    response = AlterConfigsResponse(responses=tuple(responses))
    return _decision(image, records, events, validate_only=request.validate_only, response=response)


def _decision(
    image: MetadataImage, records: list[ConfigRecord], events: Events, *, validate_only: bool, response: object
) -> Decision:
    if validate_only:
        return Decision(response=response)
    cleared = _emptied_elrs(image, records)
    if cleared:
        events.emit(ElrsEmptied(len(cleared)))
    # The ELRs first: members that are not electable any more are safe at any minimum, so a batch may end between.
    return Decision((*cleared, *records), response, atomic=not cleared)


def _emptied_elrs(image: MetadataImage, records: Iterable[ConfigRecord]) -> list[MetadataRecord]:
    """The effect of a change of min.insync.replicas on the ELR (A32).

    KIP: "when updating the config min.insync.replicas, if the new min ISR <= current ISR, the ELR will be removed": the
    high watermark moves from then on, without the members of the ELR. DEVIATION from rules 54 and 55: Apache writes a
    ClearElrRecord for every such change, so that raising the minimum, or writing the same value for the cluster again,
    takes away the only candidates of a partition that is waiting for one of them. An ELR left over from before the
    feature was turned off can still be elected from (rule 38), so it is treated alike.
    """
    written = {
        (record.resource_type, record.resource_name): record.value
        for record in records
        if record.name == MIN_INSYNC_REPLICAS
    }
    if not written:
        return []
    cluster = written.get((BROKER_RESOURCE, CLUSTER), image.cluster_config(MIN_INSYNC_REPLICAS))
    if cluster is None:
        cluster = image.static_configs.get(MIN_INSYNC_REPLICAS, default_of(BROKER_RESOURCE, MIN_INSYNC_REPLICAS))
    emptied: list[MetadataRecord] = []
    for name, topic_id in image.topic_ids.items():
        own = written.get((TOPIC_RESOURCE, name), image.topic_config(name, MIN_INSYNC_REPLICAS))
        if (TOPIC_RESOURCE, name) in written or (own is None and (BROKER_RESOURCE, CLUSTER) in written):
            emptied.extend(elections.min_isr_changed(image, topic_id, int(own or cluster or 1)))
    return emptied


def _verdict(outcome: object) -> tuple[int, str | None]:
    return (outcome.error, outcome.message) if isinstance(outcome, Refusal) else (ErrorCode.NONE, None)


def _increment(
    image: MetadataImage, resource: tuple[int, str], configs: Sequence[AlterableConfig]
) -> list[ConfigRecord] | Refusal:
    if resource[0] not in _JUDGES:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource[0]}")
    changes = changes_of(image, resource, configs)
    return changes if isinstance(changes, Refusal) else _changed(image, resource, changes)


def changes_of(
    image: MetadataImage, resource: tuple[int, str], configs: Sequence[AlterableConfig]
) -> dict[str, str | None] | Refusal:
    """The new value of each name of an incremental change; None takes the name away."""
    if any(count > 1 for count in Counter(config.name for config in configs).values()):
        return Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [config.name for config in configs if config.value is None and config.config_operation != DELETE]
    if nulls:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(nulls)}")
    current = image.configs.get(resource, {})
    changes: dict[str, str | None] = {}
    for config in configs:
        operation = config.config_operation
        if operation == SET:
            changes[config.name] = config.value
        elif operation == DELETE:
            changes[config.name] = None
        elif operation in _OPERATION_NAMES:
            if not is_list(resource[0], config.name):
                return Refusal(ErrorCode.INVALID_CONFIG, _no_list(resource[0], config.name, operation))
            before = current.get(config.name)
            if before is None:
                before = default_of(resource[0], config.name) or ""
            changes[config.name] = _edited(before, operation, config.value or "")
        else:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return changes


def _no_list(resource_type: int, name: str, operation: int) -> str:
    """Apache Kafka's brokers and its controller word this differently."""
    if resource_type != BROKER_RESOURCE:
        return f"Can't {_OPERATION_NAMES[operation]} to key {name} because its type is not LIST."
    setting = BROKER_SETTINGS.get(name)
    if setting is None or setting.is_dynamic_only:
        return f"Unknown config name: {name}"
    return f"Config value {_OPERATION_NAMES[operation].lower()} is not allowed for config key: {name}"


def _edited(before: str, operation: int, value: str) -> str:
    elements = [element.strip() for element in before.split(",") if element.strip()]
    for element in (each.strip() for each in value.split(",")):
        if operation == APPEND and element not in elements:
            elements.append(element)
        elif operation == SUBTRACT and element in elements:
            elements.remove(element)
    return ",".join(elements)


def _replace(
    image: MetadataImage, resource: tuple[int, str], values: Mapping[str, str]
) -> list[ConfigRecord] | Refusal:
    gone = [name for name in image.configs.get(resource, {}) if name not in values]
    return _changed(image, resource, {**values, **dict.fromkeys(gone)})


def _changed(
    image: MetadataImage, resource: tuple[int, str], changes: Mapping[str, str | None]
) -> list[ConfigRecord] | Refusal:
    """The records of some changes to one resource, all of them or none."""
    resource_type, name = resource
    current = image.configs.get(resource, {})
    # A broker's unchanged value is written too, as in Apache: brokers reload keystores by it.
    effective = {
        key: value for key, value in changes.items() if resource_type == BROKER_RESOURCE or value != current.get(key)
    }
    judge = _JUDGES.get(resource_type)
    if judge is None:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    refusal = judge(image, name, effective)
    if refusal is not None:
        return refusal
    return [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        for key, value in effective.items()
    ]


def _forbidden(image: MetadataImage, resource: tuple[int, str], changes: Mapping[str, str | None]) -> Refusal | None:
    """Rule 57: with ELR, one min.insync.replicas holds for all brokers, and it always has a value."""
    for key, value in changes.items():
        if key == MIN_INSYNC_REPLICAS and resource[0] == BROKER_RESOURCE and image.elr_enabled:
            if resource[1] != CLUSTER:
                return Refusal(
                    ErrorCode.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
                )
            if value is None:
                return Refusal(
                    ErrorCode.INVALID_CONFIG,
                    "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
                )
        if value is not None and len(value) > MAX_VALUE_LENGTH:
            return Refusal(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_LENGTH} bytes.",
            )
    return None


def _with(image: MetadataImage, resource: tuple[int, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """All values of the resource after the changes."""
    values = {**image.configs.get(resource, {}), **changes}
    return {key: value for key, value in values.items() if value is not None}


def _topic_refusal(image: MetadataImage, name: str, changes: Mapping[str, str | None]) -> Refusal | None:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    invalid = name_error(name)
    if invalid is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
    refusal = _forbidden(image, (TOPIC_RESOURCE, name), changes)
    if refusal is not None:
        return refusal
    complaint = validate_topic_configs(_with(image, (TOPIC_RESOURCE, name), changes))
    if complaint is not None:
        return Refusal(ErrorCode.INVALID_CONFIG, complaint)
    if name not in image.topic_ids:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return None


def _broker_refusal(image: MetadataImage, name: str, changes: Mapping[str, str | None]) -> Refusal | None:
    if name != CLUSTER:
        if _BROKER_NAME.fullmatch(name) is None:
            return Refusal(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
        if name[0] == "-":
            return Refusal(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
    # Any value can be deleted.
    complaint = validate_broker_configs(
        {key: value for key, value in changes.items() if value is not None}, cluster=name == CLUSTER
    )
    if complaint is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, complaint)
    refusal = _forbidden(image, (BROKER_RESOURCE, name), changes)
    if refusal is not None:
        return refusal
    if name != CLUSTER and int(name) not in image.brokers and int(name) not in image.controllers:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {int(name)} found.")
    return None


def _group_refusal(image: MetadataImage, name: str, changes: Mapping[str, str | None]) -> Refusal | None:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    refusal = _forbidden(image, (GROUP_RESOURCE, name), changes)
    if refusal is not None:
        return refusal
    complaint = validate_group_configs(_with(image, (GROUP_RESOURCE, name), changes), image.static_configs)
    return None if complaint is None else Refusal(ErrorCode.INVALID_CONFIG, complaint)


def _client_metrics_refusal(image: MetadataImage, name: str, changes: Mapping[str, str | None]) -> Refusal | None:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    refusal = _forbidden(image, (CLIENT_METRICS_RESOURCE, name), changes)
    if refusal is not None:
        return refusal
    try:
        complaint = validate_client_metrics_configs(_with(image, (CLIENT_METRICS_RESOURCE, name), changes))
    except MalformedConfig as malformed:
        return Refusal(ErrorCode.INVALID_REQUEST, str(malformed))
    return None if complaint is None else Refusal(ErrorCode.INVALID_CONFIG, complaint)


_JUDGES = {
    TOPIC_RESOURCE: _topic_refusal,
    BROKER_RESOURCE: _broker_refusal,
    GROUP_RESOURCE: _group_refusal,
    CLIENT_METRICS_RESOURCE: _client_metrics_refusal,
}
