"""The checks of what a request to the controller names: topics to create or delete, configurations to alter.

What is denied is taken out of the request before the controller decides it, and put into the answer. Which check each
is says the table (`security.controller_requirements`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tanist.broker.guard import MESSAGES
from tanist.broker.network.call import Call
from tanist.controller.configs.settings import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from tanist.controller.image.image import MetadataImage
from tanist.security import controller_requirements as rows
from tanist.security.requirements import Row
from tanist.wire.messages import alter_configs_response, incremental_alter_configs_response
from tanist.wire.messages.alter_configs_request import AlterConfigsRequest
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest
from tanist.wire.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from tanist.wire.messages.create_topics_request import CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from tanist.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from tanist.wire.schema import ZERO_UUID

_Narrow = Callable[[Any, Call, MetadataImage], Any]


_NOT_CREATED: Final = "Authorization failed."
"""Apache Kafka's words for a topic alone that may not be created."""


def narrowed(request: Any, call: Call, image: MetadataImage) -> Any:
    """The request without what its client may not do; the call's answer will have that."""
    narrow = _NARROW.get(type(request))
    return request if narrow is None else narrow(request, call, image)


def _create_topics(request: CreateTopicsRequest, call: Call, _image: MetadataImage) -> CreateTopicsRequest:
    names = dict.fromkeys(topic.name for topic in request.topics)
    denied = [name for name in names if not call.may(rows.CREATE_TOPICS_TOPIC, name)]

    def answer(response: CreateTopicsResponse) -> CreateTopicsResponse:
        code = rows.CREATE_TOPICS_TOPIC.code
        refused = (CreatableTopicResult(name=name, error_code=code, error_message=_NOT_CREATED) for name in denied)
        return CreateTopicsResponse(topics=(*map(described, response.topics), *refused))

    def described(result: CreatableTopicResult) -> CreatableTopicResult:
        if result.error_code or call.may(rows.CREATE_TOPICS_CONFIGS, result.name):
            return result
        return CreatableTopicResult(
            name=result.name, topic_id=result.topic_id, topic_config_error_code=rows.CREATE_TOPICS_CONFIGS.code
        )

    call.amend(answer)
    return CreateTopicsRequest(
        topics=tuple(topic for topic in request.topics if topic.name not in denied),
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )


def _delete_topics(request: DeleteTopicsRequest, call: Call, image: MetadataImage) -> DeleteTopicsRequest:
    if call.may(rows.DELETE_TOPICS_ANY):
        return request
    code = int(rows.DELETE_TOPICS_TOPIC.code)
    denied: list[DeletableTopicResult] = []

    def may_delete(asked: DeleteTopicState) -> bool:
        by_id = asked.topic_id != ZERO_UUID and asked.name is None
        found = image.topics.get(asked.topic_id) if by_id else None
        name = found.name if found is not None else asked.name
        if name is None:
            return True  # an id that is nobody's is unknown to all
        described = call.may(rows.DELETE_TOPICS_DESCRIBE, name)
        if (described or by_id) and (image.topic(name) is None or call.may(rows.DELETE_TOPICS_TOPIC, name)):
            return True
        denied.append(
            DeletableTopicResult(
                name=name if described or not by_id else None,
                topic_id=asked.topic_id if by_id else ZERO_UUID,
                error_code=code,
                error_message=MESSAGES[rows.DELETE_TOPICS_TOPIC.code],
            )
        )
        return False

    kept = DeleteTopicsRequest(
        topic_names=tuple(name for name in request.topic_names if may_delete(DeleteTopicState(name=name))),
        topics=tuple(topic for topic in request.topics if may_delete(topic)),
        timeout_ms=request.timeout_ms,
    )
    call.amend(lambda response: DeleteTopicsResponse(responses=(*response.responses, *denied)))
    return kept


def _create_partitions(request: CreatePartitionsRequest, call: Call, _image: MetadataImage) -> CreatePartitionsRequest:
    names = dict.fromkeys(topic.name for topic in request.topics)
    denied = [name for name in names if not call.may(rows.CREATE_PARTITIONS_TOPIC, name)]
    code = rows.CREATE_PARTITIONS_TOPIC.code
    refused = [CreatePartitionsTopicResult(name=name, error_code=code, error_message=MESSAGES[code]) for name in denied]
    call.amend(lambda response: CreatePartitionsResponse(results=(*response.results, *refused)))
    return CreatePartitionsRequest(
        topics=tuple(topic for topic in request.topics if topic.name not in denied),
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )


_REPLACED: Final[dict[int, Row]] = {
    BROKER_RESOURCE: rows.ALTER_CONFIGS_CLUSTER,
    CLIENT_METRICS_RESOURCE: rows.ALTER_CONFIGS_CLUSTER,
    TOPIC_RESOURCE: rows.ALTER_CONFIGS_TOPIC,
    GROUP_RESOURCE: rows.ALTER_CONFIGS_GROUP,
}
_INCREMENTED: Final[dict[int, Row]] = {
    BROKER_RESOURCE: rows.INCREMENTAL_CONFIGS_CLUSTER,
    CLIENT_METRICS_RESOURCE: rows.INCREMENTAL_CONFIGS_CLUSTER,
    TOPIC_RESOURCE: rows.INCREMENTAL_CONFIGS_TOPIC,
    GROUP_RESOURCE: rows.INCREMENTAL_CONFIGS_GROUP,
}


def _configs(by_type: dict[int, Row], messages: Any) -> _Narrow:
    """Of both requests; `messages` has the classes of the answer. A resource of another type is nobody's to alter."""

    def narrow(request: Any, call: Call, _image: MetadataImage) -> Any:
        kept, refused = [], []
        for resource in request.resources:
            row = by_type.get(resource.resource_type)
            if row is None or call.may(row, resource.resource_name):
                kept.append(resource)
                continue
            refused.append(
                messages.AlterConfigsResourceResponse(
                    error_code=row.code,
                    error_message=MESSAGES[row.code],
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        call.amend(lambda response: type(response)(responses=(*response.responses, *refused)))
        return type(request)(resources=tuple(kept), validate_only=request.validate_only)

    return narrow


_NARROW: Final[dict[type, _Narrow]] = {
    CreateTopicsRequest: _create_topics,
    DeleteTopicsRequest: _delete_topics,
    CreatePartitionsRequest: _create_partitions,
    AlterConfigsRequest: _configs(_REPLACED, alter_configs_response),
    IncrementalAlterConfigsRequest: _configs(_INCREMENTED, incremental_alter_configs_response),
}
