"""An error as the response to each request that a controller decides.

A node that does not lead the quorum must answer nothing from its own image, so the answer is built from the request
alone: NOT_CONTROLLER by a controller that is not active, REQUEST_TIMED_OUT by a broker that has found none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tanist.controller.token_request import TokenRequest
from tanist.wire.apis import response_class
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from tanist.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from tanist.wire.messages.alter_configs_request import AlterConfigsRequest
from tanist.wire.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from tanist.wire.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse
from tanist.wire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from tanist.wire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from tanist.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from tanist.wire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest
from tanist.wire.messages.controller_registration_request import ControllerRegistrationRequest
from tanist.wire.messages.create_acls_request import CreateAclsRequest
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest
from tanist.wire.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from tanist.wire.messages.create_topics_request import CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from tanist.wire.messages.delete_acls_request import DeleteAclsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest
from tanist.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from tanist.wire.messages.describe_quorum_request import DescribeQuorumRequest
from tanist.wire.messages.describe_quorum_response import DescribeQuorumResponse
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from tanist.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from tanist.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.unregister_controller_request import UnregisterControllerRequest
from tanist.wire.messages.update_features_request import UpdateFeaturesRequest
from tanist.wire.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from tanist.wire.schema import Request, Response

NOT_CONTROLLER: Final = "This is not the correct controller for this cluster."
"""Apache Kafka's words."""


def not_controller_response(request: Any) -> Any:
    """The response of a node that is not the active controller."""
    return refusal(request, ErrorCode.NOT_CONTROLLER, NOT_CONTROLLER)


def too_large_response(request: Any) -> Any:
    """The response to a request that would need more records than one batch may have."""
    return refusal(request, ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def refusal(request: Any, code: int, message: str) -> Any:
    """The response that has the error for all that was asked; the message where its version has a place for one."""
    build = _BUILD.get(type(request))
    if build is None:
        raise ValueError(f"{type(request).__name__} is not for a controller")
    return build(request, code, message)


def _topics_not_created(request: CreateTopicsRequest, code: int, message: str) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=tuple(
            CreatableTopicResult(name=name, error_code=code, error_message=message)
            for name in dict.fromkeys(topic.name for topic in request.topics)
        )
    )


def _topics_not_deleted(request: DeleteTopicsRequest, code: int, message: str) -> DeleteTopicsResponse:
    by_name = (DeletableTopicResult(name=name, error_code=code, error_message=message) for name in request.topic_names)
    by_either = (
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message)
        for topic in request.topics
    )
    return DeleteTopicsResponse(responses=(*by_name, *by_either))


def _partitions_not_created(request: CreatePartitionsRequest, code: int, message: str) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
            for name in dict.fromkeys(topic.name for topic in request.topics)
        )
    )


def _features_not_updated(request: UpdateFeaturesRequest, code: int, message: str) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        error_code=code,
        error_message=message,
        results=tuple(
            UpdatableFeatureResult(feature=name, error_code=code, error_message=message)
            for name in dict.fromkeys(update.feature for update in request.feature_updates)
        ),
    )


def _wherever_errors_go(request: Request, code: int, message: str) -> Response:
    """Each element that the request names is refused, and the whole. A request that names none is refused none."""
    answer = error_response(request, request.VERSIONS[1], code, message)
    return response_class(request.API_KEY)() if answer is None else answer


def _credentials_not_altered(
    request: AlterUserScramCredentialsRequest, code: int, message: str
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys([each.name for each in request.deletions] + [each.name for each in request.upsertions])
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message) for user in users
        )
    )


_BUILD: dict[type, Callable[[Any, int, str], Any]] = {
    TokenRequest: lambda asked, code, message: _wherever_errors_go(asked.request, code, message),
    CreateTopicsRequest: _topics_not_created,
    DeleteTopicsRequest: _topics_not_deleted,
    CreatePartitionsRequest: _partitions_not_created,
    UpdateFeaturesRequest: _features_not_updated,
    AlterUserScramCredentialsRequest: _credentials_not_altered,
    AlterPartitionRequest: lambda request, code, message: AlterPartitionResponse(error_code=code),
    AlterPartitionReassignmentsRequest: lambda request, code, message: AlterPartitionReassignmentsResponse(
        error_code=code, error_message=message
    ),
    DescribeQuorumRequest: lambda request, code, message: DescribeQuorumResponse(
        error_code=code, error_message=message
    ),
    AssignReplicasToDirsRequest: lambda request, code, message: AssignReplicasToDirsResponse(error_code=code),
    **dict.fromkeys(
        (
            AddRaftVoterRequest,
            AllocateProducerIdsRequest,
            AlterClientQuotasRequest,
            AlterConfigsRequest,
            BrokerHeartbeatRequest,
            BrokerRegistrationRequest,
            ControllerRegistrationRequest,
            CreateAclsRequest,
            CreateDelegationTokenRequest,
            DeleteAclsRequest,
            ElectLeadersRequest,
            ExpireDelegationTokenRequest,
            IncrementalAlterConfigsRequest,
            ListPartitionReassignmentsRequest,
            RemoveRaftVoterRequest,
            RenewDelegationTokenRequest,
            UnregisterBrokerRequest,
            UnregisterControllerRequest,
        ),
        _wherever_errors_go,
    ),
}
