"""The cluster as the metadata log describes it, and the one way to change it.

Owns `MetadataImage` and the values in it. `replay(record)` is the only mutator: controllers call it for records that
they write or fetch, brokers for committed ones, so all hold the same image after the same records. A record that does
not fit raises `ImageError` and changes nothing. Must never decide anything or write a record.

Rules: 54-55 (ClearElrRecord), 60 (features), 65-66 (epochs, in `partition_state`), 70-77 (record kinds), 3 and 100
(resolution of configurations). Lookups by broker go through maintained indexes (`topic_table`): a broker with
thousands of partitions is fenced without a scan of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from tanist.controller.configs.settings import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from tanist.controller.image.acls import Acl, replay_acl
from tanist.controller.image.client_quotas import ClientQuotas
from tanist.controller.image.delegation_tokens import DelegationTokens
from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.partition_state import PartitionState, merge, state_of
from tanist.controller.image.registration import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    broker_of,
    changed_broker,
    controller_of,
)
from tanist.controller.image.scram_credentials import ScramCredentials
from tanist.controller.image.topic_table import TopicImage, TopicTable
from tanist.wire.ids import NO_LEADER
from tanist.wire.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from tanist.wire.schema import MetadataRecord

__all__ = [
    "BESIDE_PARTITIONS",
    "BROKER",
    "ELR_VERSION",
    "METADATA_VERSION",
    "NO_LEADER",
    "TOPIC",
    "BrokerRegistration",
    "ControllerRegistration",
    "Endpoint",
    "ImageError",
    "MetadataImage",
    "PartitionState",
    "TopicImage",
]

TOPIC: Final = 2
BROKER: Final = 4
"""Resource types of configurations. The name of a broker's is its id in digits, or "" for the cluster's default."""

METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"

MINIMUM_METADATA_VERSION: Final = 7
"""3.3-IV3: the version of a log without a metadata.version record."""

BESIDE_PARTITIONS: Final = (
    "acls",
    "brokers",
    "controllers",
    "topic_ids",
    "configs",
    "features",
    "next_producer_id",
    "quotas",
    "scram",
    "tokens",
)
"""What two equal images have alike beside their partitions, and beside a metadata transaction under way."""

MAX_TRANSACTION_RECORDS: Final = 1_000_000
"""Bound on the buffer between BeginTransactionRecord and EndTransactionRecord."""


class ImageError(Exception):
    """A record that cannot apply to the image. In a committed log that is corruption, and fatal."""


class MetadataImage:
    """The content of the metadata log at one offset.

    `static_configs` are the node's own defaults, the last place where a configuration is looked up; they are not part
    of the image proper and do not take part in comparisons.
    """

    __slots__ = (
        "_table",
        "_transaction",
        "acls",
        "brokers",
        "configs",
        "controllers",
        "features",
        "next_producer_id",
        "quotas",
        "scram",
        "static_configs",
        "tokens",
    )

    def __init__(self, static_configs: Mapping[str, str] | None = None) -> None:
        self.static_configs: Mapping[str, str] = dict(static_configs or {})
        self.brokers: dict[int, BrokerRegistration] = {}
        self.controllers: dict[int, ControllerRegistration] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.acls: dict[UUID, Acl] = {}
        self.quotas = ClientQuotas()
        self.scram = ScramCredentials()
        self.tokens = DelegationTokens()
        self._transaction: list[MetadataRecord] | None = None
        self._table = TopicTable()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetadataImage):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name) for name in (*BESIDE_PARTITIONS, "topics", "_transaction")
        )

    __hash__ = None  # type: ignore[assignment]

    def copy(self, *, indexed: bool = True) -> MetadataImage:
        """An independent copy. States and registrations are immutable and shared.

        `indexed=False`: only to be listed, as a snapshot does. It finds no partitions by broker, and takes no records.
        """
        clone = MetadataImage(self.static_configs)
        clone.brokers = dict(self.brokers)
        clone.controllers = dict(self.controllers)
        clone._table = self._table.copy(indexed=indexed)
        clone.configs = {resource: dict(values) for resource, values in self.configs.items()}
        clone.features = dict(self.features)
        clone.next_producer_id = self.next_producer_id
        clone.acls = dict(self.acls)
        clone.quotas = self.quotas.copy()
        clone.scram = ScramCredentials(self.scram)
        clone.tokens = DelegationTokens(self.tokens)
        clone._transaction = None if self._transaction is None else list(self._transaction)
        return clone

    # -- partitions ---------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> dict[UUID, TopicImage]:
        return self._table.topics

    @property
    def topic_ids(self) -> dict[str, UUID]:
        return self._table.topic_ids

    def topic(self, name: str) -> TopicImage | None:
        return self._table.topic(name)

    def partition(self, topic_id: UUID, partition: int) -> PartitionState | None:
        topic = self._table.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def partitions_in_isr(self, broker_id: int) -> Iterator[tuple[UUID, int]]:
        return self._table.by_isr.of(broker_id)

    def isr_count(self, broker_id: int) -> int:
        return self._table.by_isr.count(broker_id)

    def partitions_in_elr(self, broker_id: int) -> Iterator[tuple[UUID, int]]:
        return self._table.by_elr.of(broker_id)

    def partitions_led_by(self, broker_id: int) -> Iterator[tuple[UUID, int]]:
        return self._table.by_leader.of(broker_id)

    def partitions_on(self, broker_id: int) -> Iterator[tuple[UUID, int]]:
        return self._table.by_replica.of(broker_id)

    def leaderless_partitions(self) -> Iterator[tuple[UUID, int]]:
        return self._table.by_leader.of(NO_LEADER)

    def leads_any(self, broker_id: int) -> bool:
        """Whether the broker leads a partition; a controlled shutdown waits for that to end (rule 90)."""
        return self._table.by_leader.any(broker_id)

    # -- features and configurations ----------------------------------------------------------------------------------

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, MINIMUM_METADATA_VERSION)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELR_VERSION, 0) >= 1

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def topic_config(self, topic_name: str, key: str) -> str | None:
        """The values set on the topic itself."""
        return self.configs.get((TOPIC, topic_name), {}).get(key)

    def cluster_config(self, key: str) -> str | None:
        """The values set as the default of all brokers."""
        return self.configs.get((BROKER, ""), {}).get(key)

    def resolved_config(
        self, topic_name: str, key: str, *, node_id: int | None = None, broker_key: str | None = None
    ) -> str | None:
        """The value that holds for a topic: topic > node (if given) > cluster > static (rule 100).

        `broker_key` is the configuration's name on brokers where it differs (retention.ms is log.retention.ms there).
        """
        value = self.topic_config(topic_name, key)
        if value is not None:
            return value
        name = broker_key or key
        if node_id is not None:
            value = self.configs.get((BROKER, str(node_id)), {}).get(name)
            if value is not None:
                return value
        value = self.cluster_config(name)
        return value if value is not None else self.static_configs.get(name)

    def min_insync_replicas(self, topic_name: str) -> int:
        """The topic's min.insync.replicas as configured: before it is capped by a number of replicas."""
        value = self.resolved_config(topic_name, MIN_INSYNC_REPLICAS)
        if value is None:
            return 1
        try:
            return int(value)
        except ValueError as error:
            raise ImageError(f"{MIN_INSYNC_REPLICAS} of topic {topic_name} is {value!r}") from error

    def effective_min_isr(self, topic_id: UUID, partition: int = 0) -> int:
        """min.insync.replicas capped by the partition's replicas, adding ones included (rule 3)."""
        topic = self.topics[topic_id]
        configured = self.min_insync_replicas(topic.name)
        state = topic.partitions.get(partition)
        return configured if state is None else min(configured, len(state.replicas))

    def unclean_election_enabled(self, topic_name: str, node_id: int | None = None) -> bool:
        value = self.resolved_config(topic_name, UNCLEAN_LEADER_ELECTION_ENABLE, node_id=node_id)
        return value is not None and value.strip().lower() == "true"

    # -- replay -------------------------------------------------------------------------------------------------------

    def replay(self, record: MetadataRecord, delta: ImageDelta | None = None) -> None:
        """Apply one record, and note in `delta` what it changed. `ImageError`, and no change, when it does not fit.

        Records of a metadata transaction (KIP-868) are kept aside until its end, and forgotten when it is aborted.
        """
        apply = _APPLY.get(type(record))
        if apply is None:
            raise ImageError(f"{type(record).__name__} is not a record of the metadata log")
        if self._transaction is not None and not isinstance(record, _TRANSACTION_MARKERS):
            if len(self._transaction) >= MAX_TRANSACTION_RECORDS:
                raise ImageError(f"a metadata transaction of more than {MAX_TRANSACTION_RECORDS} records")
            self._transaction.append(record)
            return
        try:
            apply(self, record, delta)
        except ValueError as error:
            raise ImageError(f"{type(record).__name__}: {error}") from error

    def _begin_transaction(self, _record: BeginTransactionRecord, _delta: ImageDelta | None) -> None:
        if self._transaction is not None:
            raise ImageError("a metadata transaction begins within another")
        self._transaction = []

    def _end_transaction(self, _record: EndTransactionRecord, delta: ImageDelta | None) -> None:
        if self._transaction is None:
            raise ImageError("a metadata transaction ends that has not begun")
        # All or nothing: tried on a copy, because a record in the middle may not fit.
        trial = self.copy()
        trial._transaction = None
        for each in self._transaction:
            trial.replay(each)
        pending, self._transaction = self._transaction, None
        for each in pending:
            self.replay(each, delta)

    def _abort_transaction(self, _record: AbortTransactionRecord, _delta: ImageDelta | None) -> None:
        if self._transaction is None:
            raise ImageError("a metadata transaction is aborted that has not begun")
        self._transaction = None

    def _no_op(self, _record: NoOpRecord | ZkMigrationStateRecord, _delta: ImageDelta | None) -> None:
        """Moves the log's end, not the image."""

    def _token(self, record: Any, _delta: ImageDelta | None) -> None:
        self.tokens.replay(record)

    def _set_client_quota(self, record: ClientQuotaRecord, delta: ImageDelta | None) -> None:
        self.quotas.replay(record)
        if delta is not None:
            delta.quotas = True

    def _credential(self, record: Any, _delta: ImageDelta | None) -> None:
        self.scram.replay(record)

    # brokers and controllers

    def _register_broker(self, record: RegisterBrokerRecord, delta: ImageDelta | None) -> None:
        if record.broker_id < 0:
            raise ImageError(f"broker id {record.broker_id}")
        self._put_broker(broker_of(record), delta)

    def _unregister_broker(self, record: UnregisterBrokerRecord, delta: ImageDelta | None) -> None:
        registration = self._registered(record.broker_id, record.broker_epoch)
        if delta is not None:
            delta.broker_changed(registration.id, registration)
        del self.brokers[registration.id]

    def _change_registration(self, record: BrokerRegistrationChangeRecord, delta: ImageDelta | None) -> None:
        before = self._registered(record.broker_id, record.broker_epoch)
        self._put_broker(changed_broker(before, record), delta)

    def _fence_broker(self, record: FenceBrokerRecord, delta: ImageDelta | None) -> None:
        self._put_broker(replace(self._registered(record.id, record.epoch), fenced=True), delta)

    def _unfence_broker(self, record: UnfenceBrokerRecord, delta: ImageDelta | None) -> None:
        self._put_broker(replace(self._registered(record.id, record.epoch), fenced=False), delta)

    def _registered(self, broker_id: int, epoch: int) -> BrokerRegistration:
        registration = self.brokers.get(broker_id)
        if registration is None:
            raise ImageError(f"broker {broker_id} is not registered")
        if registration.epoch != epoch:
            raise ImageError(f"broker {broker_id} has epoch {registration.epoch}, not {epoch}")
        return registration

    def _put_broker(self, registration: BrokerRegistration, delta: ImageDelta | None) -> None:
        if delta is not None:
            delta.broker_changed(registration.id, self.brokers.get(registration.id))
        self.brokers[registration.id] = registration

    def _unregister_controller(self, record: UnregisterControllerRecord, delta: ImageDelta | None) -> None:
        if record.controller_id not in self.controllers:
            raise ImageError(f"controller {record.controller_id} is not registered")
        del self.controllers[record.controller_id]
        if delta is not None:
            delta.controllers.add(record.controller_id)

    def _register_controller(self, record: RegisterControllerRecord, delta: ImageDelta | None) -> None:
        if record.controller_id < 0:
            raise ImageError(f"controller id {record.controller_id}")
        self.controllers[record.controller_id] = controller_of(record)
        if delta is not None:
            delta.controllers.add(record.controller_id)

    # topics and partitions

    def _create_topic(self, record: TopicRecord, delta: ImageDelta | None) -> None:
        self._table.create(record.name, record.topic_id, delta)

    def _remove_topic(self, record: RemoveTopicRecord, delta: ImageDelta | None) -> None:
        topic = self._table.remove(record.topic_id, delta)
        if self.configs.pop((TOPIC, topic.name), None) is not None and delta is not None:
            delta.configs.add((TOPIC, topic.name))

    def _create_partition(self, record: PartitionRecord, delta: ImageDelta | None) -> None:
        topic = self._table.existing(record.topic_id)
        if record.partition_id < 0:
            raise ImageError(f"partition {record.partition_id} of topic {topic.name}")
        self._table.put(topic, record.partition_id, state_of(record), delta)

    def _change_partition(self, record: PartitionChangeRecord, delta: ImageDelta | None) -> None:
        topic = self._table.existing(record.topic_id)
        before = topic.partitions.get(record.partition_id)
        if before is None:
            raise ImageError(f"topic {topic.name} has no partition {record.partition_id}")
        self._table.put(topic, record.partition_id, merge(before, record), delta)

    def _clear_elr(self, record: ClearElrRecord, delta: ImageDelta | None) -> None:
        self._table.clear_elr(record.topic_name, delta)

    # configurations, features, producer ids, access control lists

    def _configure(self, record: ConfigRecord, delta: ImageDelta | None) -> None:
        resource = (record.resource_type, record.resource_name)
        if record.value is None:
            values = self.configs.get(resource)
            if values is not None:
                values.pop(record.name, None)
                if not values:
                    del self.configs[resource]
        else:
            self.configs.setdefault(resource, {})[record.name] = record.value
        if delta is not None:
            delta.configs.add(resource)

    def _set_feature(self, record: FeatureLevelRecord, delta: ImageDelta | None) -> None:
        if record.feature_level < 0:
            raise ImageError(f"feature {record.name} at level {record.feature_level}")
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        if delta is not None:
            delta.features.add(record.name)

    def _set_next_producer_id(self, record: ProducerIdsRecord, delta: ImageDelta | None) -> None:
        if record.next_producer_id <= self.next_producer_id:
            raise ImageError(f"next producer id {record.next_producer_id} after {self.next_producer_id}")
        self.next_producer_id = record.next_producer_id
        if delta is not None:
            delta.producer_ids = True

    def _change_acls(
        self, record: AccessControlEntryRecord | RemoveAccessControlEntryRecord, delta: ImageDelta | None
    ) -> None:
        before = replay_acl(self.acls, record)
        if delta is not None:
            delta.acls.setdefault(record.id, before)


_TRANSACTION_MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)

_APPLY: dict[type[MetadataRecord], Callable[[MetadataImage, Any, ImageDelta | None], None]] = {
    AbortTransactionRecord: MetadataImage._abort_transaction,
    AccessControlEntryRecord: MetadataImage._change_acls,
    BeginTransactionRecord: MetadataImage._begin_transaction,
    BrokerRegistrationChangeRecord: MetadataImage._change_registration,
    ClearElrRecord: MetadataImage._clear_elr,
    ClientQuotaRecord: MetadataImage._set_client_quota,
    ConfigRecord: MetadataImage._configure,
    EndTransactionRecord: MetadataImage._end_transaction,
    FeatureLevelRecord: MetadataImage._set_feature,
    FenceBrokerRecord: MetadataImage._fence_broker,
    NoOpRecord: MetadataImage._no_op,
    PartitionChangeRecord: MetadataImage._change_partition,
    PartitionRecord: MetadataImage._create_partition,
    ProducerIdsRecord: MetadataImage._set_next_producer_id,
    RegisterBrokerRecord: MetadataImage._register_broker,
    RegisterControllerRecord: MetadataImage._register_controller,
    RemoveAccessControlEntryRecord: MetadataImage._change_acls,
    RemoveTopicRecord: MetadataImage._remove_topic,
    TopicRecord: MetadataImage._create_topic,
    UnfenceBrokerRecord: MetadataImage._unfence_broker,
    UnregisterBrokerRecord: MetadataImage._unregister_broker,
    UnregisterControllerRecord: MetadataImage._unregister_controller,
    ZkMigrationStateRecord: MetadataImage._no_op,
    **dict.fromkeys((RemoveUserScramCredentialRecord, UserScramCredentialRecord), MetadataImage._credential),
    **dict.fromkeys((DelegationTokenRecord, RemoveDelegationTokenRecord), MetadataImage._token),
}
