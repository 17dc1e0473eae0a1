"""NOT_CONTROLLER as the response to each request.

Owns one function. A node that does not lead the quorum must answer nothing from its own image, so the answer is built
from the request alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.wire.errors import ErrorCode
from tanist.wire.messages import alter_configs_response, incremental_alter_configs_response
from tanist.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from tanist.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from tanist.wire.messages.alter_configs_request import AlterConfigsRequest
from tanist.wire.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from tanist.wire.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse
from tanist.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from tanist.wire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest
from tanist.wire.messages.broker_registration_response import BrokerRegistrationResponse
from tanist.wire.messages.controller_registration_request import ControllerRegistrationRequest
from tanist.wire.messages.controller_registration_response import ControllerRegistrationResponse
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest
from tanist.wire.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from tanist.wire.messages.create_topics_request import CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest
from tanist.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest
from tanist.wire.messages.elect_leaders_response import ElectLeadersResponse
from tanist.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from tanist.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from tanist.wire.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.unregister_broker_response import UnregisterBrokerResponse
from tanist.wire.messages.update_features_request import UpdateFeaturesRequest
from tanist.wire.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse

_CODE = ErrorCode.NOT_CONTROLLER
_MESSAGE = "This is not the correct controller for this cluster."


def not_controller_response(request: Any) -> Any:
    """The response of a node that is not the active controller."""
    build = _BUILD.get(type(request))
    if build is None:
        raise ValueError(f"{type(request).__name__} is not for a controller")
    return build(request)


def _topics_not_created(request: CreateTopicsRequest) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=tuple(
            CreatableTopicResult(name=name, error_code=_CODE, error_message=_MESSAGE)
            for name in dict.fromkeys(topic.name for topic in request.topics)
        )
    )


def _topics_not_deleted(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    by_name = (
        DeletableTopicResult(name=name, error_code=_CODE, error_message=_MESSAGE) for name in request.topic_names
    )
    by_either = (
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=_CODE, error_message=_MESSAGE)
        for topic in request.topics
    )
    return DeleteTopicsResponse(responses=(*by_name, *by_either))


def _partitions_not_created(request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(name=name, error_code=_CODE, error_message=_MESSAGE)
            for name in dict.fromkeys(topic.name for topic in request.topics)
        )
    )


def _features_not_updated(request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        error_code=_CODE,
        error_message=_MESSAGE,
        results=tuple(
            UpdatableFeatureResult(feature=name, error_code=_CODE, error_message=_MESSAGE)
            for name in dict.fromkeys(update.feature for update in request.feature_updates)
        ),
    )


_BUILD: dict[type, Callable[[Any], Any]] = {
    CreateTopicsRequest: _topics_not_created,
    DeleteTopicsRequest: _topics_not_deleted,
    CreatePartitionsRequest: _partitions_not_created,
    UpdateFeaturesRequest: _features_not_updated,
    IncrementalAlterConfigsRequest: lambda request: incremental_alter_configs_response.IncrementalAlterConfigsResponse(
        responses=tuple(
            incremental_alter_configs_response.AlterConfigsResourceResponse(
                error_code=_CODE,
                error_message=_MESSAGE,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        )
    ),
    AlterConfigsRequest: lambda request: alter_configs_response.AlterConfigsResponse(
        responses=tuple(
            alter_configs_response.AlterConfigsResourceResponse(
                error_code=_CODE,
                error_message=_MESSAGE,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        )
    ),
    AlterPartitionRequest: lambda request: AlterPartitionResponse(error_code=_CODE),
    AlterPartitionReassignmentsRequest: lambda request: AlterPartitionReassignmentsResponse(
        error_code=_CODE, error_message=_MESSAGE
    ),
    ListPartitionReassignmentsRequest: lambda request: ListPartitionReassignmentsResponse(
        error_code=_CODE, error_message=_MESSAGE
    ),
    ElectLeadersRequest: lambda request: ElectLeadersResponse(error_code=_CODE),
    BrokerRegistrationRequest: lambda request: BrokerRegistrationResponse(error_code=_CODE),
    BrokerHeartbeatRequest: lambda request: BrokerHeartbeatResponse(error_code=_CODE),
    UnregisterBrokerRequest: lambda request: UnregisterBrokerResponse(error_code=_CODE, error_message=_MESSAGE),
    ControllerRegistrationRequest: lambda request: ControllerRegistrationResponse(
        error_code=_CODE, error_message=_MESSAGE
    ),
    AllocateProducerIdsRequest: lambda request: AllocateProducerIdsResponse(error_code=_CODE),
    AssignReplicasToDirsRequest: lambda request: AssignReplicasToDirsResponse(error_code=_CODE),
}
