"""The records of the metadata log about the cluster: brokers, topics, partitions, configurations, features.

They are declared like messages. `metadata` reads and writes them; the controller gives them their meaning.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, MetadataRecord, Struct


class BrokerEndpoint(Struct):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 4)),
        Field("host", "string", (0, 4)),
        Field("port", "uint16", (0, 4)),
        Field("security_protocol", "int16", (0, 4)),
    )


class BrokerFeature(Struct):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 4)),
        Field("min_supported_version", "int16", (0, 4)),
        Field("max_supported_version", "int16", (0, 4)),
    )


class RegisterBrokerRecord(MetadataRecord):
    """A broker registered: a new incarnation, or a change to this one (rules 75, 82)."""

    broker_id: int = 0
    is_migrating_zk_broker: bool = False
    incarnation_id: UUID = ZERO_UUID
    broker_epoch: int = 0
    end_points: tuple[BrokerEndpoint, ...] = ()
    features: tuple[BrokerFeature, ...] = ()
    rack: str | None = ""
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None

    RECORD_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 4)),
        Field("is_migrating_zk_broker", "bool", (2, 4)),
        Field("incarnation_id", "uuid", (0, 4)),
        Field("broker_epoch", "int64", (0, 4)),
        Field("end_points", Array(BrokerEndpoint), (0, 4)),
        Field("features", Array(BrokerFeature), (0, 4)),
        Field("rack", "string", (0, 4), nullable=(0, 4)),
        Field("fenced", "bool", (0, 4)),
        Field("in_controlled_shutdown", "bool", (1, 4)),
        Field("log_dirs", Array("uuid"), (3, 4), tag=0, tagged=(3, 4)),
        Field("cordoned_log_dirs", Array("uuid"), (4, 4), nullable=(4, 4), tag=1, tagged=(4, 4)),
    )


class UnregisterBrokerRecord(MetadataRecord):
    """A broker was removed for good."""

    broker_id: int = 0
    broker_epoch: int = 0

    RECORD_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 0)),
        Field("broker_epoch", "int64", (0, 0)),
    )


class TopicRecord(MetadataRecord):
    """A topic was created."""

    name: str = ""
    topic_id: UUID = ZERO_UUID

    RECORD_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("topic_id", "uuid", (0, 0)),
    )


class PartitionRecord(MetadataRecord):
    """A partition was created, or stands in a snapshot (rule 70)."""

    partition_id: int = -1
    topic_id: UUID = ZERO_UUID
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: tuple[UUID, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    last_unclean_epoch: int = -1
    """Ours, in a tag that Kafka's readers skip: the last leader epoch that began with an unclean election."""

    RECORD_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_id", "int32", (0, 2)),
        Field("topic_id", "uuid", (0, 2)),
        Field("replicas", Array("int32"), (0, 2)),
        Field("isr", Array("int32"), (0, 2)),
        Field("removing_replicas", Array("int32"), (0, 2)),
        Field("adding_replicas", Array("int32"), (0, 2)),
        Field("leader", "int32", (0, 2)),
        Field("leader_recovery_state", "int8", (0, 2), tag=0, tagged=(0, 2)),
        Field("leader_epoch", "int32", (0, 2)),
        Field("partition_epoch", "int32", (0, 2)),
        Field("directories", Array("uuid"), (1, 2)),
        Field("eligible_leader_replicas", Array("int32"), (2, 2), nullable=(2, 2), tag=1, tagged=(2, 2)),
        Field("last_known_elr", Array("int32"), (2, 2), nullable=(2, 2), tag=2, tagged=(2, 2)),
        Field("last_unclean_epoch", "int32", (0, 2), tag=966, tagged=(0, 2)),
    )


class ConfigRecord(MetadataRecord):
    """A configuration was set, or with a null value deleted."""

    resource_type: int = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = ""

    RECORD_KEY: ClassVar[int] = 4
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (0, 0)),
        Field("resource_name", "string", (0, 0)),
        Field("name", "string", (0, 0)),
        Field("value", "string", (0, 0), nullable=(0, 0)),
    )


class PartitionChangeRecord(MetadataRecord):
    """A partition changed; what is None (or -2, -1) did not (rule 71)."""

    partition_id: int = -1
    topic_id: UUID = ZERO_UUID
    isr: tuple[int, ...] | None = None
    leader: int = -2
    """-2: unchanged; -1: there is no leader."""
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    leader_recovery_state: int = -1
    """-1: unchanged; 0: recovered; 1: recovering."""
    directories: tuple[UUID, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None

    RECORD_KEY: ClassVar[int] = 5
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_id", "int32", (0, 2)),
        Field("topic_id", "uuid", (0, 2)),
        Field("isr", Array("int32"), (0, 2), nullable=(0, 2), tag=0, tagged=(0, 2)),
        Field("leader", "int32", (0, 2), tag=1, tagged=(0, 2)),
        Field("replicas", Array("int32"), (0, 2), nullable=(0, 2), tag=2, tagged=(0, 2)),
        Field("removing_replicas", Array("int32"), (0, 2), nullable=(0, 2), tag=3, tagged=(0, 2)),
        Field("adding_replicas", Array("int32"), (0, 2), nullable=(0, 2), tag=4, tagged=(0, 2)),
        Field("leader_recovery_state", "int8", (0, 2), tag=5, tagged=(0, 2)),
        Field("directories", Array("uuid"), (1, 2), nullable=(1, 2), tag=8, tagged=(1, 2)),
        Field("eligible_leader_replicas", Array("int32"), (2, 2), nullable=(2, 2), tag=6, tagged=(2, 2)),
        Field("last_known_elr", Array("int32"), (2, 2), nullable=(2, 2), tag=7, tagged=(2, 2)),
    )


class FenceBrokerRecord(MetadataRecord):
    """Legacy, replayed only: `BrokerRegistrationChangeRecord` is written instead."""

    id: int = 0
    epoch: int = 0

    RECORD_KEY: ClassVar[int] = 7
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "int32", (0, 0)),
        Field("epoch", "int64", (0, 0)),
    )


class UnfenceBrokerRecord(MetadataRecord):
    """Legacy, replayed only: `BrokerRegistrationChangeRecord` is written instead."""

    id: int = 0
    epoch: int = 0

    RECORD_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "int32", (0, 0)),
        Field("epoch", "int64", (0, 0)),
    )


class RemoveTopicRecord(MetadataRecord):
    """A topic was deleted."""

    topic_id: UUID = ZERO_UUID

    RECORD_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_id", "uuid", (0, 0)),)


class FeatureLevelRecord(MetadataRecord):
    """A feature was finalized at a level; 0 removes it."""

    name: str = ""
    feature_level: int = 0

    RECORD_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("feature_level", "int16", (0, 0)),
    )


class ProducerIdsRecord(MetadataRecord):
    """A block of producer ids was given to a broker."""

    broker_id: int = 0
    broker_epoch: int = -1
    next_producer_id: int = 0

    RECORD_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 0)),
        Field("broker_epoch", "int64", (0, 0)),
        Field("next_producer_id", "int64", (0, 0)),
    )


class BrokerRegistrationChangeRecord(MetadataRecord):
    """A broker was fenced, unfenced, is shutting down, or lost directories (rule 76)."""

    broker_id: int = 0
    broker_epoch: int = 0
    fenced: int = 0
    """-1: unfence; 0: unchanged; 1: fence."""
    in_controlled_shutdown: int = 0
    """0: unchanged; 1: shutting down."""
    log_dirs: tuple[UUID, ...] = ()
    """Empty: unchanged."""
    cordoned_log_dirs: tuple[UUID, ...] | None = None

    RECORD_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 3)),
        Field("broker_epoch", "int64", (0, 3)),
        Field("fenced", "int8", (0, 3), tag=0, tagged=(0, 3)),
        Field("in_controlled_shutdown", "int8", (1, 3), tag=1, tagged=(1, 3)),
        Field("log_dirs", Array("uuid"), (2, 3), tag=2, tagged=(2, 3)),
        Field("cordoned_log_dirs", Array("uuid"), (3, 3), nullable=(3, 3), tag=3, tagged=(3, 3)),
    )


class NoOpRecord(MetadataRecord):
    """Written so that an idle log moves."""

    RECORD_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = ()


class ZkMigrationStateRecord(MetadataRecord):
    """Left over from the migration off ZooKeeper; replayed and ignored."""

    zk_migration_state: int = 0

    RECORD_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("zk_migration_state", "int8", (0, 0)),)


class BeginTransactionRecord(MetadataRecord):
    """The next records are one transaction, valid once it ends."""

    name: str | None = None

    RECORD_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("name", "string", (0, 0), nullable=(0, 0), tag=0, tagged=(0, 0)),)


class EndTransactionRecord(MetadataRecord):
    """The transaction is valid."""

    RECORD_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = ()


class AbortTransactionRecord(MetadataRecord):
    """The transaction never happened."""

    reason: str | None = None

    RECORD_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("reason", "string", (0, 0), nullable=(0, 0), tag=0, tagged=(0, 0)),)


class ControllerEndpoint(Struct):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("host", "string", (0, 0)),
        Field("port", "uint16", (0, 0)),
        Field("security_protocol", "int16", (0, 0)),
    )


class ControllerFeature(Struct):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("min_supported_version", "int16", (0, 0)),
        Field("max_supported_version", "int16", (0, 0)),
    )


class RegisterControllerRecord(MetadataRecord):
    """A controller registered."""

    controller_id: int = 0
    incarnation_id: UUID = ZERO_UUID
    zk_migration_ready: bool = False
    end_points: tuple[ControllerEndpoint, ...] = ()
    features: tuple[ControllerFeature, ...] = ()

    RECORD_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("controller_id", "int32", (0, 0)),
        Field("incarnation_id", "uuid", (0, 0)),
        Field("zk_migration_ready", "bool", (0, 0)),
        Field("end_points", Array(ControllerEndpoint), (0, 0)),
        Field("features", Array(ControllerFeature), (0, 0)),
    )


class ClearElrRecord(MetadataRecord):
    """The ELR and last known leader of a topic, or with an empty name of all topics, are void (rules 54, 55, 74)."""

    topic_name: str = ""

    RECORD_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_name", "string", (0, 0)),)


class UnregisterControllerRecord(MetadataRecord):
    """A controller's registration was removed. Since 4.4-IV2."""

    controller_id: int = 0

    RECORD_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("controller_id", "int32", (0, 0)),)
