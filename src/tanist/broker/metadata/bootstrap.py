"""`bootstrap.checkpoint`: with which features a new cluster begins, as `kafka-storage format` writes it.

Owns the file, which lies in each folder: records of the metadata log in the format of a snapshot. The first active
controller of a cluster whose metadata log is empty begins it with them; afterwards nobody needs them. A level that
cannot be had is refused before the node serves anything; never is it replaced by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tanist.broker.endpoints import ConfigError
from tanist.controller.features import (
    DEFAULT_METADATA_VERSION,
    TOLERATED_FEATURES,
    Bootstrap,
    bootstrap_records,
    default_features,
)
from tanist.controller.image.image import METADATA_VERSION
from tanist.controller.security.scram import SCRAM_FROM
from tanist.events.metadata import FeatureLeftOut
from tanist.events.stream import Events
from tanist.ports import Disk
from tanist.quorum.storage.batches import check_crc, decode_values, read_headers
from tanist.quorum.storage.raft_log import CorruptBatch
from tanist.quorum.storage.snapshots import encode_snapshot
from tanist.quorum.voters import SnapshotId
from tanist.wire.errors import WireError
from tanist.wire.metadata import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
    record_version,
)

FILE_NAME = "bootstrap.checkpoint"


def bootstrap_of(
    features: Mapping[str, int],
    credentials: Iterable[UserScramCredentialRecord] = (),
    acls: Iterable[AccessControlEntryRecord] = (),
) -> Bootstrap:
    """A beginning with these levels, and the defaults of its metadata.version for the others. `ValueError`.

    `credentials`, `acls`: the users of SCRAM that the cluster has from the start, and what users may do.
    """
    levels = dict(features)
    metadata_version = levels.pop(METADATA_VERSION, DEFAULT_METADATA_VERSION)
    users = tuple(credentials)
    if users and metadata_version < SCRAM_FROM:
        raise ValueError("SCRAM is only supported in metadata.version 3.5-IV2 or later")
    bootstrap = Bootstrap(metadata_version, default_features(metadata_version) | levels, (*users, *acls))
    bootstrap_records(bootstrap, 1)  # says what does not go
    return bootstrap


def encode_bootstrap(bootstrap: Bootstrap, wall_ms: int) -> bytes:
    """The file. A feature that is off is not in it, as with Kafka; reading it, nothing is taken by default."""
    levels = {METADATA_VERSION: bootstrap.metadata_version} | bootstrap.levels()
    records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    values = [
        encode_record(record, record_version(type(record), bootstrap.metadata_version))
        for record in (*records, *bootstrap.extra_records)
    ]
    return b"".join(encode_snapshot(SnapshotId(0, 0), values, wall_ms=wall_ms, last_contained_log_timestamp=0))


def read_bootstrap(disk: Disk, folder: str, events: Events) -> Bootstrap | None:
    """Features that the folder was formatted with; None if none were named. `ConfigError` if this node lacks them."""
    path = f"{folder}/{FILE_NAME}"
    if not disk.exists(path):
        return None
    try:
        records = _decode(memoryview(bytearray(disk.read_file(path))))
    except (CorruptBatch, WireError) as error:
        raise ConfigError(f"{path} is damaged ({error}); format the folder anew") from None
    levels = {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}
    for name in [name for name in levels if name in TOLERATED_FEATURES]:
        events.emit(FeatureLeftOut(path, name, levels.pop(name)))
    metadata_version = levels.pop(METADATA_VERSION, None)
    if metadata_version is None:
        raise ConfigError(f"{path} names no metadata.version; format the folder anew")
    others = tuple(record for record in records if not isinstance(record, FeatureLevelRecord))
    bootstrap = Bootstrap(metadata_version, levels, others)
    try:
        bootstrap_records(bootstrap, 1)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}; format the folder anew, with other features") from None
    return bootstrap


def _decode(content: memoryview) -> list[MetadataRecord]:
    """The records in the file; the marks of its beginning and end are no records of the metadata."""
    records: list[MetadataRecord] = []
    end = 0
    for position, header in read_headers(content):
        check_crc(content, position, header)
        end = position + header.size_bytes
        batch = decode_values(content[position:end], header)
        records += (decode_record(value) for value in batch.values)
    if end != len(content):
        raise CorruptBatch("it ends within a batch")
    return records
