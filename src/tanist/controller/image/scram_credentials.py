"""SCRAM credentials in the image: the last record of each user and mechanism."""

from __future__ import annotations

from tanist.wire.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord


class ScramCredentials(dict[tuple[str, int], UserScramCredentialRecord]):
    """By user and type of mechanism."""

    def replay(self, record: UserScramCredentialRecord | RemoveUserScramCredentialRecord) -> None:
        """Keep the record, or drop the one that it removes. `ValueError` when there is none to remove."""
        key = (record.name, record.mechanism)
        if isinstance(record, UserScramCredentialRecord):
            self[key] = record
        elif self.pop(key, None) is None:
            raise ValueError(f"there is no SCRAM credential {key} to remove")
