"""IncrementalAlterConfigs (key 44), versions 0-1, and AlterConfigs (key 33), versions 0-2, on a broker's listener.

The active controller decides; what only this broker can judge is judged before: whether the values of a BROKER resource
go with what else the broker has, its properties file included (`controller.configs.relations`). Resources that are
refused here do not go to the controller, and the rest of the request does. There are no loggers whose level could be
set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.guard import MESSAGES
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.tls_profiles import NodeProfiles
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.alter_configs import APPEND, DELETE, SET, SUBTRACT, Refusal, changes_of
from tanist.controller.configs.relations import complaint, refusal_of
from tanist.controller.configs.settings import BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, CLUSTER, Levels
from tanist.controller.configs.validation import validate_broker_configs
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_response, encode_request, encode_response
from tanist.wire.messages import alter_configs_request, alter_configs_response
from tanist.wire.messages import incremental_alter_configs_request as incremental_request
from tanist.wire.messages import incremental_alter_configs_response as incremental_response

_Key: TypeAlias = tuple[int, str]
_Judge: TypeAlias = Callable[[Any], Refusal | None]
_UNSUITED = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """The handler of AlterConfigs."""

    context: NodeContext
    metadata: MetadataView
    controller_channel: ControllerChannel
    tls: NodeProfiles

    def increment(self, request: incremental_request.IncrementalAlterConfigsRequest, call: Call) -> None:
        """Judge what is this broker's to judge, and have the controller decide the rest."""

        def judge(resource: incremental_request.AlterConfigsResource) -> Refusal | None:
            if resource.resource_type == BROKER_LOGGER_RESOURCE:
                if not call.may(rows.ALTER_LOGGERS):
                    return Refusal(rows.ALTER_LOGGERS.code, MESSAGES[rows.ALTER_LOGGERS.code])
                return self._no_logger(resource)
            if resource.resource_type != BROKER_RESOURCE:
                return None
            foreign = self._foreign(resource.resource_name)
            if foreign is not None:
                return foreign
            key = (resource.resource_type, resource.resource_name)
            changes = changes_of(self.metadata.image, key, resource.configs)
            return None if isinstance(changes, Refusal) else self._unrelated(resource.resource_name, changes)

        self._decide(request, call, judge, incremental_response)

    def replace(self, request: alter_configs_request.AlterConfigsRequest, call: Call) -> None:
        """The old way: a resource has exactly the values of the request afterwards."""

        def judge(resource: alter_configs_request.AlterConfigsResource) -> Refusal | None:
            if resource.resource_type != BROKER_RESOURCE:
                return None
            foreign = self._foreign(resource.resource_name)
            if foreign is not None:
                return foreign
            gone = self.metadata.image.configs.get((BROKER_RESOURCE, resource.resource_name), {})
            values = {config.name: config.value for config in resource.configs}
            return self._unrelated(resource.resource_name, {**dict.fromkeys(gone), **values})

        self._decide(request, call, judge, alter_configs_response)

    def _foreign(self, name: str) -> Refusal | None:
        """A broker's configuration is changed where its other values are known: at itself."""
        if name == CLUSTER:
            return None
        if not name.removeprefix("-").isdecimal():
            return Refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        if int(name) != self.context.node_id:
            message = f"Unexpected broker id, expected {self.context.node_id}, but received {name}"
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        return None

    def _unrelated(self, name: str, changes: dict[str, str | None]) -> Refusal | None:
        """Whether the changes contradict the broker's other values; None also if one is wrong by itself."""
        given = {key: value for key, value in changes.items() if value is not None}
        if validate_broker_configs(given, cluster=name == CLUSTER) is not None:
            return None  # the controller says so
        configs = self.metadata.image.configs
        key = (BROKER_RESOURCE, name)
        after = {**configs, key: {k: v for k, v in {**configs.get(key, {}), **changes}.items() if v is not None}}
        static = self.context.config.static
        levels = Levels.of(after, self.context.node_id, static)
        found = complaint(changes.keys(), Levels.of(configs, self.context.node_id, static), levels)
        if found is None and (unusable := self.tls.complaint(changes.keys(), levels)) is not None:
            found = refusal_of(unusable)
        return None if found is None else Refusal(ErrorCode.INVALID_REQUEST, found)

    def _no_logger(self, resource: incremental_request.AlterConfigsResource) -> Refusal:
        name = resource.resource_name
        if not name.removeprefix("-").isdecimal():
            return Refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        if int(name) != self.context.node_id:
            message = f"Unexpected node id. Expected {self.context.node_id}, but received {name}"
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        for config in resource.configs:
            if config.config_operation not in (SET, DELETE):
                unsuited, number = _UNSUITED.get(config.config_operation), config.config_operation
                operation = f"{unsuited} operation" if unsuited else f"Unknown operation type {number}"
                return Refusal(ErrorCode.INVALID_REQUEST, f"{operation} is not allowed for the BROKER_LOGGER resource")
            return Refusal(ErrorCode.INVALID_CONFIG, f"Logger {config.name} does not exist!")
        return Refusal(ErrorCode.NONE, "")

    def _decide(self, request: Any, call: Call, judge: _Judge, messages: Any) -> None:
        """Answer for the resources that `judge` refuses, and pass the others on."""
        refused: dict[int, Refusal] = {}
        for index, resource in enumerate(request.resources):
            refusal = judge(resource)
            if refusal is not None:
                refused[index] = refusal
        if not refused:
            self.controller_channel.forward(call, request)
            return
        here = {
            index: messages.AlterConfigsResourceResponse(
                error_code=refusal.error,
                error_message=refusal.message or None,
                resource_type=request.resources[index].resource_type,
                resource_name=request.resources[index].resource_name,
            )
            for index, refusal in refused.items()
        }
        response_type: Any = (
            incremental_response.IncrementalAlterConfigsResponse
            if messages is incremental_response
            else alter_configs_response.AlterConfigsResponse
        )
        rest = tuple(each for index, each in enumerate(request.resources) if index not in refused)
        if not rest:
            call.reply(response_type(responses=tuple(here.values())))
            return

        def amend(data: bytes) -> bytes:
            answer: Any = decode_response(request.API_KEY, call.version, memoryview(data))
            decided = iter(answer.responses)
            answers = tuple(here[index] if index in here else next(decided) for index in range(len(request.resources)))
            whole = response_type(throttle_time_ms=answer.throttle_time_ms, responses=answers)
            return encode_response(whole, call.version, call.header.correlation_id)[4:]

        part = type(request)(resources=rest, validate_only=request.validate_only)
        header = call.header
        body = encode_request(part, header.api_version, header.correlation_id, header.client_id)[4:]
        self.controller_channel.forward(call, request, body=body, amend=amend)


def _build(components: NodeComponents) -> AlterConfigs:
    return AlterConfigs(components.context, components.metadata, components.controller_channel, components.tls)


def build_increment(components: NodeComponents) -> Handler:
    return _build(components).increment


def build_replace(components: NodeComponents) -> Handler:
    return _build(components).replace
