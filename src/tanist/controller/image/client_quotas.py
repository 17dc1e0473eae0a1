"""The quotas of clients as the metadata log has them.

Owns `ClientQuotas`: by entity, the value of each key. Only `replay` changes it. Nothing here decides whose quota
counts; that is `security.quotas`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from tanist.wire.metadata import ClientQuotaRecord
from tanist.wire.metadata_records_security import EntityData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Whose quota it is: (type, name) of each part, by type. The name None stands for the default."""


class ClientQuotas:
    """The quotas of a cluster."""

    __slots__ = ("_by_entity",)

    def __init__(self) -> None:
        self._by_entity: dict[Entity, dict[str, float]] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClientQuotas):
            return NotImplemented
        return self._by_entity == other._by_entity

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClientQuotas({self._by_entity})"

    def __bool__(self) -> bool:
        return bool(self._by_entity)

    @property
    def by_entity(self) -> Mapping[Entity, Mapping[str, float]]:
        return self._by_entity

    def of(self, entity: Entity) -> Mapping[str, float]:
        """The values of one entity, by key; none if it has no quota."""
        return self._by_entity.get(entity, {})

    def copy(self) -> ClientQuotas:
        clone = ClientQuotas()
        clone._by_entity = {entity: dict(values) for entity, values in self._by_entity.items()}
        return clone

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set a quota, or drop it. `ValueError` when there is none to drop."""
        entity = entity_of(record.entity)
        if not record.remove:
            self._by_entity.setdefault(entity, {})[record.key] = record.value
            return
        values = self._by_entity.get(entity)
        if values is None or record.key not in values:
            raise ValueError(f"there is no client quota {record.key} of {dict(entity)} to remove")
        del values[record.key]
        if not values:
            del self._by_entity[entity]

    def records(self) -> Iterator[ClientQuotaRecord]:
        """Those of a snapshot."""
        for entity, values in self._by_entity.items():
            for key, value in values.items():
                yield ClientQuotaRecord(entity=entity_data(entity), key=key, value=value)


def entity_of(parts: tuple[EntityData, ...]) -> Entity:
    """The entity of a record: the order of its parts makes no difference."""
    return tuple(sorted(((part.entity_type, part.entity_name) for part in parts), key=lambda part: part[0]))


def entity_data(entity: Entity) -> tuple[EntityData, ...]:
    """The entity in a record."""
    return tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
