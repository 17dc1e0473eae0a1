"""One controller and the brokers that are played to it: their epochs, and the metadata log as they would read it.

The state is read where brokers read it, by fetching the metadata log, and kept as an image. What differs between two
controllers without meaning anything (epochs of brokers, ids of topics, the order in an ELR) is taken out by `view`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tanist.controller.image.image import MetadataImage, PartitionState
from tanist.lab.scenarios import requests
from tanist.lab.scenarios.partitions import described
from tanist.quorum.storage.batches import decode_values, read_headers
from tanist.runtime.client.client import BrokerConnection
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tanist.wire.metadata import decode_record
from tanist.wire.schema import Request
from tests.interop import apache
from tests.interop.controllers.nodes import ControllerNode
from tests.interop.waiting import wait_for

FEATURES = {
    "metadata.version": (7, apache.PIN.metadata_version),
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "share.version": (0, apache.PIN.share_version),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
"""What Apache Kafka's brokers say of themselves."""

Features = Mapping[str, tuple[int, int]]
LATEST = FEATURES["metadata.version"][1]

UP_TO_DATE = 1 << 40
"""A metadata offset beyond any log."""
TIMEOUT_S = 20.0
_OBSERVER = 999
_FETCH_BYTES = 1 << 20
_NO_LEADER_NOW = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.BROKER_NOT_AVAILABLE,
)

Key = tuple[str, int]
View = dict[str, object]


@dataclass(slots=True)
class Side:
    """A controller under play."""

    node: ControllerNode
    image: MetadataImage = field(default_factory=MetadataImage)
    position: int = 0
    last_epoch: int = 0
    leader_epoch: int = 1
    _connection: BrokerConnection | None = None

    def ask(self, request: Request, *, max_version: int | None = None) -> Any:
        """One request, and then the log, so that `image` has what it led to."""
        response = self._connected().ask(request, TIMEOUT_S, max_version)
        self.catch_up()
        return response

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> BrokerConnection:
        if self._connection is None:
            self._connection = self.node.connect()
        return self._connection

    # -- the metadata log

    def catch_up(self) -> None:
        """Replay everything that is committed. A controller that has stepped down is waited for."""
        wait_for(self._fetch_some, f"{self.node.name} has sent all of its metadata log", timeout_s=TIMEOUT_S)

    def _fetch_some(self) -> bool:
        """Fetch once; whether that was all."""
        response: Any = self._connected().ask(self._fetch(), TIMEOUT_S)
        part = response.responses[0].partitions[0]
        if part.error_code in _NO_LEADER_NOW:
            self.leader_epoch = max(self.leader_epoch, part.current_leader.leader_epoch)
            return False
        if part.error_code or part.snapshot_id.epoch >= 0:
            raise AssertionError(f"{self.node.name}: fetching the metadata log gives {part}")
        self._replay(memoryview(bytes(part.records)), part.high_watermark)
        return bool(0 <= part.high_watermark <= self.position)

    def _replay(self, records: memoryview, high_watermark: int) -> None:
        for position, header in read_headers(records):
            if header.base_offset >= high_watermark:
                return
            batch = decode_values(records[position : position + header.size_bytes], header)
            for value in batch.values:
                self.image.replay(decode_record(value))
            self.position = header.next_offset
            self.last_epoch = header.leader_epoch

    def _fetch(self) -> FetchRequest:
        part = FetchPartition(
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self.position,
            last_fetched_epoch=self.last_epoch,
            partition_max_bytes=_FETCH_BYTES,
            replica_directory_id=UUID(int=_OBSERVER),
        )
        return FetchRequest(
            cluster_id=self.node.cluster_id,
            replica_state=ReplicaState(replica_id=_OBSERVER),
            max_wait_ms=0,
            max_bytes=_FETCH_BYTES,
            topics=(FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(part,)),),
        )

    # -- what is known

    def epoch(self, broker_id: int) -> int:
        """The broker's epoch; of one that is not registered, one that nobody has."""
        registration = self.image.brokers.get(broker_id)
        return 0 if registration is None else registration.epoch

    def partition(self, topic: str, partition: int) -> PartitionState | None:
        found = self.image.topic(topic)
        return None if found is None else found.partitions.get(partition)

    def topic_id(self, topic: str) -> UUID:
        return self.image.topic_ids.get(topic, UUID(int=0xDEAD))

    def leads_any(self, broker_id: int) -> bool:
        return self.image.leads_any(broker_id)

    def partitions(self) -> dict[Key, PartitionState]:
        return {
            (topic.name, number): state
            for topic in self.image.topics.values()
            for number, state in topic.partitions.items()
        }

    # -- requests that carry what this side alone knows

    def heartbeat(
        self,
        broker_id: int,
        *,
        epoch: int | None = None,
        offset: int = UP_TO_DATE,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline: tuple[UUID, ...] = (),
    ) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.epoch(broker_id) if epoch is None else epoch,
            current_metadata_offset=offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=offline,
        )

    def registration(
        self,
        broker_id: int,
        incarnation: UUID,
        directories: tuple[UUID, ...],
        *,
        clean: bool,
        features: Features = FEATURES,
    ) -> Request:
        return requests.registration(
            broker_id,
            cluster_id=self.node.cluster_id,
            incarnation=incarnation,
            directories=directories,
            previous_epoch=self.epoch(broker_id) if clean else -1,
            features=features,
        )


def partition_view(state: PartitionState) -> View:
    """A partition's state, by either controller. Directories are the same on both sides."""
    return {**described(state), "directories": state.directories}


def broker_view(side: Side, broker_id: int) -> View | None:
    broker = side.image.brokers.get(broker_id)
    if broker is None:
        return None
    return {
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
        "directories": broker.directories,
        "incarnation": broker.incarnation_id,
        "features": dict(broker.features),
    }
