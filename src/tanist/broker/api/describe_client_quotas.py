"""DescribeClientQuotas (key 48), versions 0-1: the quotas of clients that fit a filter, as this broker knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.image.client_quotas import ENTITY_TYPES
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from tanist.wire.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2
_Entity: TypeAlias = Mapping[str, str | None]
"""By type: a name, or None for the default."""


@dataclass(frozen=True, slots=True)
class DescribeClientQuotas:
    """The handler of DescribeClientQuotas."""

    metadata: MetadataView

    def handle(self, request: DescribeClientQuotasRequest, call: Call) -> None:
        """Give the quotas of the entities that the filter fits."""
        error = _complaint(request.components)
        if error is not None:
            code, message = error
            call.reply(DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None))
            return
        call.reply(
            DescribeClientQuotasResponse(
                entries=tuple(
                    EntryData(
                        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
                        values=tuple(ValueData(key=key, value=value) for key, value in values.items()),
                    )
                    for entity, values in self.metadata.image.quotas.by_entity.items()
                    if _fits(dict(entity), request)
                )
            )
        )


def _fits(entity: _Entity, request: DescribeClientQuotasRequest) -> bool:
    if request.strict and len(entity) != len(request.components):
        return False
    return all(
        part.entity_type in entity and (part.match_type == _SPECIFIED or entity[part.entity_type] == part.match)
        for part in request.components
    )


def _complaint(components: Iterable[ComponentData]) -> tuple[ErrorCode, str] | None:
    """What is wrong with a filter, in Apache Kafka's words."""
    seen: set[str] = set()
    for part in components:
        kind = part.entity_type
        if not kind:
            return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
        if kind in seen:
            return ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
        if kind not in ENTITY_TYPES:
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
        if part.match_type == _EXACT and part.match is None:
            return ErrorCode.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."
        if part.match_type in (_DEFAULT, _SPECIFIED) and part.match is not None:
            name = "MATCH_TYPE_DEFAULT" if part.match_type == _DEFAULT else "MATCH_TYPE_SPECIFIED"
            return ErrorCode.INVALID_REQUEST, f"Request specified {name}, but also specified a match string."
        if part.match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
            return ErrorCode.INVALID_REQUEST, f"Unknown match type {part.match_type}"
        seen.add(kind)
    if "ip" in seen and len(seen) > 1:
        return ErrorCode.INVALID_REQUEST, (
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
    return None


def build(components: NodeComponents) -> Handler:
    return DescribeClientQuotas(components.metadata).handle
