"""What is answered to changes of quotas of clients, one after the other: Apache Kafka 4.3.1 was asked.

The order of the entries in an answer is a hash table's in Apache Kafka; ours is that of the request.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from tanist.wire.errors import ErrorCode
from tanist.wire.messages import alter_client_quotas_response as altered
from tanist.wire.messages import describe_client_quotas_response as described
from tanist.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from tanist.wire.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from tanist.wire.schema import Request

_Entity: TypeAlias = dict[str, str | None]
Outcome: TypeAlias = set[tuple[tuple[tuple[str, str | None], ...], int, str | None]]
"""(entity, error, message) of each entry."""
State: TypeAlias = dict[tuple[tuple[str, str | None], ...], dict[str, float]]

PRODUCE, FETCH, REQUESTS = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
_REFUSED = ErrorCode.INVALID_REQUEST


def alter(*entries: tuple[_Entity, dict[str, float | None]], validate_only: bool = False) -> AlterClientQuotasRequest:
    """A value of None removes a quota."""
    return AlterClientQuotasRequest(
        entries=tuple(
            EntryData(
                entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
                ops=tuple(
                    OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in values.items()
                ),
            )
            for entity, values in entries
        ),
        validate_only=validate_only,
    )


def describe_all() -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(components=())


def describe(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    """(entity type, match type, name)."""
    return DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ),
        strict=strict,
    )


def outcome(answer: altered.AlterClientQuotasResponse) -> Outcome:
    return {
        (
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)),
            entry.error_code,
            entry.error_message,
        )
        for entry in answer.entries
    }


def state(answer: described.DescribeClientQuotasResponse) -> State:
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
    }


def _done(*entities: _Entity) -> Outcome:
    return {(tuple(sorted(entity.items())), ErrorCode.NONE, None) for entity in entities}


def _refused(entity: _Entity, message: str) -> Outcome:
    return {(tuple(sorted(entity.items())), _REFUSED, message)}


_U: _Entity = {"user": "u"}
_DEFAULT_USER: _Entity = {"user": None}
_PAIR: _Entity = {"user": "u", "client-id": None}
_CLIENT: _Entity = {"client-id": "c"}
_IP: _Entity = {"ip": "10.0.0.1"}
_TWICE = AlterClientQuotasRequest(
    entries=(
        EntryData(
            entity=(EntityData(entity_type="user", entity_name="d"),),
            ops=(OpData(key=PRODUCE, value=1.0), OpData(key=PRODUCE, value=2.0)),
        ),
    )
)

STEPS: Final[tuple[tuple[Request, Outcome], ...]] = (
    (alter((_U, {PRODUCE: 1000.0, FETCH: 2000.0})), _done(_U)),
    (
        alter((_DEFAULT_USER, {REQUESTS: 12.5}), (_PAIR, {MUTATIONS: 0.5}), (_CLIENT, {PRODUCE: 5.0})),
        _done(_DEFAULT_USER, _PAIR, _CLIENT),
    ),
    (alter((_IP, {CONNECTIONS: 10.0}), ({"ip": None}, {CONNECTIONS: 20.0})), _done(_IP, {"ip": None})),
    (alter((_U, {FETCH: None, PRODUCE: 1500.0})), _done(_U)),
    (alter((_U, {FETCH: None, "no such key": None})), _done(_U)),
    (alter(({"user": "v"}, {PRODUCE: 1.0}), validate_only=True), _done({"user": "v"})),
    (alter((_CLIENT, {PRODUCE: None})), _done(_CLIENT)),
    (alter((_U, {})), _done(_U)),
    (alter(({}, {PRODUCE: 1.0})), _refused({}, "Invalid empty client quota entity")),
    (alter(({"user": ""}, {PRODUCE: 1.0})), _refused({"user": ""}, "Empty user not supported")),
    (alter(({"group": "g"}, {PRODUCE: 1.0})), _refused({"group": "g"}, "Unhandled client quota entity type: group")),
    (
        alter(({"user": "u", "ip": "10.0.0.1"}, {PRODUCE: 1.0})),
        _refused(
            {"user": "u", "ip": "10.0.0.1"},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
    ),
    (
        alter(({"ip": "no address"}, {CONNECTIONS: 1.0})),
        _refused({"ip": "no address"}, "no address is not a valid IP or resolvable host."),
    ),
    (alter((_U, {CONNECTIONS: 1.0})), _refused(_U, f"Invalid configuration key {CONNECTIONS}")),
    (alter((_IP, {PRODUCE: 1.0})), _refused(_IP, f"Invalid configuration key {PRODUCE}")),
    (alter((_U, {PRODUCE: 0.0})), _refused(_U, f"Quota {PRODUCE} must be greater than 0")),
    (alter((_U, {REQUESTS: -1.0})), _refused(_U, f"Quota {REQUESTS} must be greater than 0")),
    (alter((_U, {PRODUCE: 1.5})), _refused(_U, f"{PRODUCE} cannot be a fractional value.")),
    (alter((_IP, {CONNECTIONS: 1.5})), _refused(_IP, f"{CONNECTIONS} cannot be a fractional value.")),
    (alter((_IP, {CONNECTIONS: 2.0**31})), _refused(_IP, f"Proposed value for {CONNECTIONS} is too large for an INT.")),
    (alter((_U, {FETCH: 2.0**64})), _refused(_U, f"Proposed value for {FETCH} is too large for a LONG.")),
    (
        alter((_U, {FETCH: 7.0, PRODUCE: 0.0})),
        _refused(_U, f"Quota {PRODUCE} must be greater than 0"),
    ),
    (
        alter(({"user": "w"}, {PRODUCE: 1.0}), ({"user": "w"}, {PRODUCE: 2.0})),
        _refused({"user": "w"}, "Ignoring duplicate entity ClientQuotaEntity(entries={user=w})"),
    ),
    (_TWICE, _refused({"user": "d"}, "Ignoring duplicate entity ClientQuotaEntity(entries={user=d})")),
)
"""Each with its outcome."""

STATE: Final[State] = {
    (("user", "u"),): {PRODUCE: 1500.0},
    (("user", None),): {REQUESTS: 12.5},
    (("client-id", None), ("user", "u")): {MUTATIONS: 0.5},
    (("ip", "10.0.0.1"),): {CONNECTIONS: 10.0},
    (("ip", None),): {CONNECTIONS: 20.0},
    (("user", "w"),): {PRODUCE: 1.0},
}
"""What there is after them."""
