"""The security records of the metadata log: credentials, tokens, ACLs, quotas.

Read so that a log written by Kafka can be replayed.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, MetadataRecord, Struct


class DelegationTokenRecord(MetadataRecord):
    """A delegation token was created or changed."""

    owner: str = ""
    requester: str = ""
    renewers: tuple[str, ...] = ()
    issue_timestamp: int = 0
    max_timestamp: int = 0
    expiration_timestamp: int = 0
    token_id: str = ""

    RECORD_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owner", "string", (0, 0)),
        Field("requester", "string", (0, 0)),
        Field("renewers", Array("string"), (0, 0)),
        Field("issue_timestamp", "int64", (0, 0)),
        Field("max_timestamp", "int64", (0, 0)),
        Field("expiration_timestamp", "int64", (0, 0)),
        Field("token_id", "string", (0, 0)),
    )


class UserScramCredentialRecord(MetadataRecord):
    """A user has this SCRAM credential."""

    name: str = ""
    mechanism: int = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: int = 0

    RECORD_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("mechanism", "int8", (0, 0)),
        Field("salt", "bytes", (0, 0)),
        Field("stored_key", "bytes", (0, 0)),
        Field("server_key", "bytes", (0, 0)),
        Field("iterations", "int32", (0, 0)),
    )


class EntityData(Struct):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", (0, 0)),
        Field("entity_name", "string", (0, 0), nullable=(0, 0)),
    )


class ClientQuotaRecord(MetadataRecord):
    """A quota of users, clients or addresses was set or removed."""

    entity: tuple[EntityData, ...] = ()
    key: str = ""
    value: float = 0.0
    remove: bool = False

    RECORD_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", Array(EntityData), (0, 0)),
        Field("key", "string", (0, 0)),
        Field("value", "float64", (0, 0)),
        Field("remove", "bool", (0, 0)),
    )


class AccessControlEntryRecord(MetadataRecord):
    """An ACL was added."""

    id: UUID = ZERO_UUID
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 0
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    RECORD_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "uuid", (0, 0)),
        Field("resource_type", "int8", (0, 0)),
        Field("resource_name", "string", (0, 0)),
        Field("pattern_type", "int8", (0, 0)),
        Field("principal", "string", (0, 0)),
        Field("host", "string", (0, 0)),
        Field("operation", "int8", (0, 0)),
        Field("permission_type", "int8", (0, 0)),
    )


class RemoveAccessControlEntryRecord(MetadataRecord):
    """An ACL was removed."""

    id: UUID = ZERO_UUID

    RECORD_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("id", "uuid", (0, 0)),)


class RemoveUserScramCredentialRecord(MetadataRecord):
    """A user lost a SCRAM credential."""

    name: str = ""
    mechanism: int = 0

    RECORD_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("mechanism", "int8", (0, 0)),
    )


class RemoveDelegationTokenRecord(MetadataRecord):
    """A delegation token is void."""

    token_id: str = ""

    RECORD_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("token_id", "string", (0, 0)),)
