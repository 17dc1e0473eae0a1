"""AlterClientQuotas: quotas of users, client ids and addresses, as records (KIP-546).

Checks as Apache Kafka's ClientQuotaControlManager, in its order and its words. Each entity of a request succeeds or
fails by itself. Deviation: an address must be written as one, for a controller looks up no host names.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from tanist.controller.decision import Decision
from tanist.controller.image.client_quotas import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity, entity_data
from tanist.controller.image.image import MetadataImage
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from tanist.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse, EntityData, EntryData
from tanist.wire.metadata import ClientQuotaRecord

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

_LONG, _INT, _DOUBLE = "LONG", "INT", "DOUBLE"
_CLIENT_KEYS: Final = {
    PRODUCER_BYTE_RATE: _LONG,
    CONSUMER_BYTE_RATE: _LONG,
    REQUEST_PERCENTAGE: _DOUBLE,
    CONTROLLER_MUTATION_RATE: _DOUBLE,
}
_IP_KEYS: Final = {CONNECTION_CREATION_RATE: _INT}
_MOST: Final = {_LONG: float(2**63 - 1), _INT: float(2**31 - 1)}
_WHOLE: Final = 1e-6


class _Invalid(Exception):
    """Why an entity's quotas are not changed: the text is the answer's."""


def alter_client_quotas(image: MetadataImage, request: AlterClientQuotasRequest) -> Decision:
    """Only what differs from what there is becomes a record."""
    records: list[ClientQuotaRecord] = []
    results: dict[Entity, str | None] = {}
    for entry in request.entries:
        entity = tuple(sorted({part.entity_type: part.entity_name for part in entry.entity}.items()))
        try:
            operations = {each.key: None if each.remove else each.value for each in entry.ops}
            if entity in results or len(operations) < len(entry.ops):
                raise _Invalid(f"Ignoring duplicate entity {_text(entity)}")
            changes = _changes(image.quotas.of(entity), entity, operations)
        except _Invalid as invalid:
            results[entity] = str(invalid)
            continue
        results[entity] = None
        records.extend(changes)
    response = AlterClientQuotasResponse(
        entries=tuple(
            EntryData(
                error_code=ErrorCode.NONE if message is None else ErrorCode.INVALID_REQUEST,
                error_message=message,
                entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
            )
            for entity, message in results.items()
        )
    )
    return Decision(records=() if request.validate_only else tuple(records), response=response)


def _changes(
    present: Mapping[str, float], entity: Entity, operations: Mapping[str, float | None]
) -> list[ClientQuotaRecord]:
    """The records of one entity. `operations`: the new value of each key; None: it is to be removed."""
    kinds = _keys_of(dict(entity))
    records = []
    for key, value in operations.items():
        if value is None:
            if key in present:
                records.append(ClientQuotaRecord(entity=entity_data(entity), key=key, remove=True))
            continue
        _check_value(kinds, key, value)
        if present.get(key) != value:
            records.append(ClientQuotaRecord(entity=entity_data(entity), key=key, value=value))
    return records


def _keys_of(parts: Mapping[str, str | None]) -> Mapping[str, str]:
    """The keys that an entity may have, and their types."""
    if not parts:
        raise _Invalid("Invalid empty client quota entity")
    for kind, name in parts.items():
        if kind not in ENTITY_TYPES:
            raise _Invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _Invalid(f"Empty {kind} not supported")
    if IP not in parts:
        return _CLIENT_KEYS
    if USER in parts or CLIENT_ID in parts:
        # The blank is missing there as well.
        raise _Invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = parts[IP]
    if address is not None:
        try:
            ip_address(address)
        except ValueError:
            raise _Invalid(f"{address} is not a valid IP or resolvable host.") from None
    return _IP_KEYS


def _check_value(kinds: Mapping[str, str], key: str, value: float) -> None:
    kind = kinds.get(key)
    if kind is None:
        raise _Invalid(f"Invalid configuration key {key}")
    if value <= 0.0:
        raise _Invalid(f"Quota {key} must be greater than 0")
    if kind == _DOUBLE:
        return
    if value > _MOST[kind]:
        raise _Invalid(f"Proposed value for {key} is too large for a{'n' if kind == _INT else ''} {kind}.")
    if value % 1.0 > _WHOLE:
        raise _Invalid(f"{key} cannot be a fractional value.")


def _text(entity: Entity) -> str:
    """As Java prints a ClientQuotaEntity."""
    return f"ClientQuotaEntity(entries={{{', '.join(f'{kind}={_or_null(name)}' for kind, name in entity)}}})"


def _or_null(name: str | None) -> str:
    return "null" if name is None else name
