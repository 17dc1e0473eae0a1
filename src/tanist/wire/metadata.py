"""The metadata log's records as bytes: `encode_record`, `decode_record`, and the version to write.

A record's value is framed: a frame version, the record's key, its version, each an unsigned varint, then the body. The
version that is written follows from the cluster's metadata.version, so that every node that may be in the cluster can
read it.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import Final

from tanist.wire.codec import UnsupportedVersion, WireError, decoder, encoder
from tanist.wire.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    ZkMigrationStateRecord,
)
from tanist.wire.metadata_records_security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from tanist.wire.primitives import Buffer, read_uvarint, write_uvarint
from tanist.wire.schema import MetadataRecord

__all__ = [
    "FRAME_VERSION",
    "METADATA_VERSIONS",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "ControllerEndpoint",
    "ControllerFeature",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "EntityData",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "MetadataRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationStateRecord",
    "decode_record",
    "encode_record",
    "record_version",
]

FRAME_VERSION: Final = 1

METADATA_VERSIONS: Final[dict[str, int]] = {
    "3.3-IV3": 7,
    "3.4-IV0": 8,
    "3.5-IV0": 9,
    "3.5-IV1": 10,
    "3.5-IV2": 11,
    "3.6-IV0": 12,
    "3.6-IV1": 13,
    "3.6-IV2": 14,
    "3.7-IV0": 15,
    "3.7-IV1": 16,
    "3.7-IV2": 17,
    "3.7-IV3": 18,
    "3.7-IV4": 19,
    "3.8-IV0": 20,
    "3.9-IV0": 21,
    "4.0-IV0": 22,
    "4.0-IV1": 23,
    "4.0-IV2": 24,
    "4.0-IV3": 25,
    "4.1-IV0": 26,
    "4.1-IV1": 27,
    "4.2-IV0": 28,
    "4.2-IV1": 29,
    "4.3-IV0": 30,
    "4.4-IV0": 31,
    "4.4-IV1": 32,
    "4.4-IV2": 33,
}
"""The levels of the feature metadata.version by Kafka's names for them, up to the last that is stable in 4.4."""

_IV_3_4: Final = METADATA_VERSIONS["3.4-IV0"]
_DIRECTORIES: Final = METADATA_VERSIONS["3.7-IV2"]
_ELR: Final = METADATA_VERSIONS["4.0-IV1"]
_CORDONING: Final = METADATA_VERSIONS["4.3-IV0"]

_WRITTEN: Final[dict[type[MetadataRecord], tuple[tuple[int, int], ...]]] = {
    RegisterBrokerRecord: ((_CORDONING, 4), (_DIRECTORIES, 3), (_IV_3_4, 2), (0, 1)),
    PartitionRecord: ((_ELR, 2), (_DIRECTORIES, 1), (0, 0)),
    PartitionChangeRecord: ((_ELR, 2), (_DIRECTORIES, 1), (0, 0)),
    BrokerRegistrationChangeRecord: ((_CORDONING, 3), (_DIRECTORIES, 2), (0, 1)),
}
"""(metadata.version from which, version of the record), highest first. Other records have one version. Rules 72, 75."""

_RECORDS: Final[dict[int, type[MetadataRecord]]] = {
    record.RECORD_KEY: record
    for record in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        PartitionChangeRecord,
        FenceBrokerRecord,
        UnfenceBrokerRecord,
        RemoveTopicRecord,
        FeatureLevelRecord,
        ProducerIdsRecord,
        BrokerRegistrationChangeRecord,
        NoOpRecord,
        ZkMigrationStateRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
        RegisterControllerRecord,
        ClearElrRecord,
        UnregisterControllerRecord,
        DelegationTokenRecord,
        UserScramCredentialRecord,
        ClientQuotaRecord,
        AccessControlEntryRecord,
        RemoveAccessControlEntryRecord,
        RemoveUserScramCredentialRecord,
        RemoveDelegationTokenRecord,
    )
}


def record_version(cls: type[MetadataRecord], metadata_version: int) -> int:
    """The version in which this record is written in a cluster of this metadata.version (its level, as in 23)."""
    for since, version in _WRITTEN.get(cls, ()):
        if metadata_version >= since:
            return version
    return cls.VERSIONS[1]


def encode_record(record: MetadataRecord, version: int) -> bytes:
    """The value of a record of the metadata log. Fields that the version lacks are dropped."""
    frame = bytes((FRAME_VERSION,)) + write_uvarint(record.RECORD_KEY) + write_uvarint(version)
    return frame + encoder(type(record), version)(record)


def decode_record(value: Buffer) -> MetadataRecord:
    """The record in a value of the metadata log. `WireError` if it is unknown or not whole."""
    try:
        frame_version, position = read_uvarint(value, 0)
        key, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
    except (IndexError, struct_error) as error:
        raise WireError(f"a metadata record of {len(value)} bytes is cut short") from error
    if frame_version != FRAME_VERSION:
        raise UnsupportedVersion(f"metadata record frames have version {FRAME_VERSION}, not {frame_version}")
    cls = _RECORDS.get(key)
    if cls is None:
        raise UnsupportedVersion(f"there is no metadata record with key {key} (version {version})")
    record, end = decoder(cls, version)(value, position)
    if end != len(value):
        raise WireError(f"{len(value) - end} bytes after {cls.__name__} (key {key}, version {version})")
    return record
