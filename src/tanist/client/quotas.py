"""Changes of client quotas, as requests say them (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable

from tanist.wire.messages.alter_client_quotas_request import EntityData, EntryData, OpData


def quota_entry(entity: Iterable[tuple[str, str | None]], changes: Iterable[tuple[str, float | None]]) -> EntryData:
    """Changes of one entity. `entity`: (type, name) of each part, the name None is the default's. `changes`: (key,
    value), None removes."""
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        ops=tuple(
            OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
            for key, value in changes
        ),
    )
