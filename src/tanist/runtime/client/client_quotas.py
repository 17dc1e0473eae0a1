"""Quotas of clients of any Kafka cluster, asked for and changed through `Client` (KIP-546).

An entity is a mapping of `user`, `client-id` or `ip` to a name, None for the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tanist.client.quotas import quota_entry
from tanist.runtime.client.changes import raise_first_error
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.quorum import ask_controller
from tanist.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from tanist.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tanist.wire.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from tanist.wire.messages.describe_client_quotas_response import DescribeClientQuotasResponse

Entity: TypeAlias = Mapping[str, str | None]
_EXACT, _DEFAULT = 0, 1
KINDS: Final = ("user", "client-id", "ip")
"""In the order in which an entity names them."""


@dataclass(frozen=True, slots=True)
class EntityQuotas:
    """The quotas of one entity."""

    entity: Entity
    values: Mapping[str, float]


def describe_quotas(client: Client, parts: Entity, *, only: bool) -> list[EntityQuotas]:
    """The quotas of all entities that have these parts; `only`: and no other."""
    request = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
            for kind, name in parts.items()
        ),
        strict=only,
    )

    def attempt() -> list[EntityQuotas]:
        answer = client.ask(request, DescribeClientQuotasResponse)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message or "")
        found = [
            EntityQuotas(
                {part.entity_type: part.entity_name for part in entry.entity},
                {value.key: value.value for value in entry.values},
            )
            for entry in answer.entries or ()
        ]
        return sorted(found, key=lambda each: [_order(each.entity, kind) for kind in KINDS])

    return client.persist(attempt)


def _order(entity: Entity, kind: str) -> tuple[bool, str]:
    """Names before the default, and both after entities without the part."""
    name = entity.get(kind, "")
    return name is None, name or ""


def alter_quotas(client: Client, entity: Entity, changes: Mapping[str, float | None]) -> None:
    """Set quotas of one entity; None removes one."""
    entry = quota_entry(entity.items(), changes.items())

    def attempt() -> None:
        answer = ask_controller(client, AlterClientQuotasRequest(entries=(entry,)), AlterClientQuotasResponse)
        raise_first_error(answer.entries)

    client.persist(attempt)
