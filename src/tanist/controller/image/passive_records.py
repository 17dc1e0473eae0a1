"""Records of the metadata log that are kept, passed on and described, and have no effect here.

Owns `PassiveRecords`: quotas and delegation tokens. A log that Apache Kafka wrote may hold
them, and a snapshot of ours must not lose them. Nothing here may act on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tanist.wire.metadata import (
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from tanist.wire.schema import MetadataRecord

Key: TypeAlias = tuple[object, ...]


class PassiveRecords:
    """The last record about each object, by the object's key."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[Key, MetadataRecord] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PassiveRecords):
            return NotImplemented
        return self._records == other._records

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[MetadataRecord]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def copy(self) -> PassiveRecords:
        clone = PassiveRecords()
        clone._records = dict(self._records)
        return clone

    def replay(self, record: MetadataRecord) -> None:
        """Keep the record, or drop the one that it removes. `ValueError` when there is none to remove."""
        key, removes = _key(record)
        if not removes:
            self._records[key] = record
        elif key in self._records:
            del self._records[key]
        else:
            raise ValueError(f"there is no {key[0]} {key[1:]} to remove")


def _key(record: MetadataRecord) -> tuple[Key, bool]:
    """The key of the record's object, and whether the record removes it."""
    match record:
        case DelegationTokenRecord():
            return ("delegation token", record.token_id), False
        case RemoveDelegationTokenRecord():
            return ("delegation token", record.token_id), True
        case ClientQuotaRecord():
            entity = tuple(sorted((each.entity_type, each.entity_name or "") for each in record.entity))
            default = tuple(sorted(each.entity_type for each in record.entity if each.entity_name is None))
            return ("client quota", entity, default, record.key), record.remove
    raise ValueError(f"{type(record).__name__} is not kept")
