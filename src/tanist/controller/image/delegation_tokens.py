"""Delegation tokens in the image: the last record of each."""

from __future__ import annotations

from tanist.wire.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord


class DelegationTokens(dict[str, DelegationTokenRecord]):
    """By id."""

    def replay(self, record: DelegationTokenRecord | RemoveDelegationTokenRecord) -> None:
        """Keep the record, or drop the one that it removes. `ValueError` when there is none to remove."""
        if isinstance(record, DelegationTokenRecord):
            self[record.token_id] = record
        elif self.pop(record.token_id, None) is None:
            raise ValueError(f"there is no delegation token {record.token_id} to remove")
