"""Clients of several names in virtual time, whose answers are kept with the time of their coming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.frames import encode_request
from tanist.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.cluster_rig import Cluster
from tests.broker.quota_answers import alter

BOUND = 1_000.0


def set_quota(cluster: Cluster, entity: dict[str, str | None], **values: float | None) -> None:
    """Once all nodes know it."""
    answer: AlterClientQuotasResponse = cluster.ask(alter((entity, dict(values))), 1)
    assert [each.error_message for each in answer.entries] == [None]
    key = tuple(sorted(entity.items()))
    kept = {name: value for name, value in values.items() if value is not None}
    cluster.until(
        lambda: all(
            {name: value for name, value in node.metadata.image.quotas.of(key).items() if name in values} == kept
            for node in cluster.world.nodes()
        )
    )


def produce_request(value_bytes: int, *, acks: int = 1, topic: str = "t", partition: int = 0) -> ProduceRequest:
    records = bytes(encode_batch([NewRecord(timestamp=1_000, key=None, value=bytes(value_bytes))]))
    data = (TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=records),)),)
    return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=data)


def fetch_request(
    offset: int = 0,
    *,
    topic: str = "t",
    partitions: Sequence[int] = (0,),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    session_id: int = 0,
    session_epoch: int = -1,
) -> FetchRequest:
    targets = tuple(
        FetchPartition(
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            partition_max_bytes=1 << 20,
        )
        for partition in partitions
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=(FetchTopic(topic=topic, partitions=targets),) if targets else (),
    )


@dataclass(slots=True)
class Sent:
    """One request on its way."""

    size_bytes: int
    """As quotas count it: without its length."""
    response: Any = None
    at_ms: int = -1

    @property
    def answered(self) -> bool:
        return self.at_ms >= 0

    @property
    def throttle_ms(self) -> int:
        throttle_ms: int = self.response.throttle_time_ms
        return throttle_ms

    @property
    def records_bytes(self) -> int:
        """Of a fetch."""
        return sum(len(part.records or b"") for topic in self.response.responses for part in topic.partitions)


class Caller:
    """A client with one connection to each node."""

    def __init__(self, cluster: Cluster, client_id: str) -> None:
        self._cluster = cluster
        self._client_id = client_id
        self.client = SimClient(cluster.world, client_id, History())

    def send(self, request: Any, version: int, *, to: int = 1, port: int = BROKER_PORT) -> Sent:
        """Send, and do not wait."""
        sent = Sent(len(encode_request(request, version, 1, self._client_id)) - 4)
        address = (self._cluster.host(to).name, port)

        def handle_response(response: Any) -> None:
            for topic in getattr(response, "responses", ()):  # frames are only lent
                for partition in getattr(topic, "partitions", ()):
                    partition.records = bytes(partition.records or b"")
            sent.response, sent.at_ms = response, self._cluster.world.now_ms

        self.client.run(lambda: self.client.channel(address).call(request, version, 600_000, handle_response))
        return sent

    def ask(self, request: Any, version: int, *, to: int = 1, port: int = BROKER_PORT) -> Sent:
        sent = self.send(request, version, to=to, port=port)
        self._cluster.until(lambda: sent.answered, within_ms=600_000)
        return sent
