"""Producers and consumers in the virtual world: real requests over virtual connections, as a client library makes them.

A producer is idempotent and retries what is retriable with the same sequence number; it keeps one batch in flight per
partition. A consumer reads partitions from the start and goes on from where it was. Both look for leaders in Metadata,
believe KIP-951's hints no further than a refresh, and record all they do and see in the run's history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tanist.broker.channel import Channel
from tanist.ports import Clock, Network
from tanist.sim.clock import SimClock, stream
from tanist.sim.history import History, Read, Send
from tanist.sim.scheduler import MICROSECONDS, Process
from tanist.sim.violation import Violation
from tanist.sim.world import BROKER_PORT, World
from tanist.wire.batch import NewRecord, decode_batch, encode_batch, iterate_headers
from tanist.wire.errors import RETRIABLE, ErrorCode
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.metadata_response import MetadataResponse
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

_METADATA_VERSION = 12
_PRODUCE_VERSION = 9
_FETCH_VERSION = 12
_INIT_PRODUCER_ID_VERSION = 4
_LIST_OFFSETS_VERSION = 7
_LATEST = -1
_BACKOFF_MS = 50
_REQUEST_TIMEOUT_MS = 3_000


class SimClient:
    """What every client needs: channels to brokers, leaders of partitions, a process that lives as long as the run."""

    def __init__(self, world: World, name: str, history: History) -> None:
        self.world = world
        self.name = name
        self.history = history
        self.chance = stream(world.seed, name)
        self.process = Process(name)
        self.clock: Clock = SimClock(world.scheduler, self.process)
        self._network: Network = world.network.view(name, self.process)
        self._channels: dict[tuple[str, int], Channel] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._leaders: dict[tuple[str, int], tuple[int, int]] = {}
        """(topic, partition) -> (leader, leader epoch)"""
        self._bootstrap = [(host.name, BROKER_PORT) for host in world.hosts.values()]
        self._next_bootstrap = 0
        self._refreshing = False
        self.stopped = False

    @property
    def now_us(self) -> int:
        return self.world.scheduler.now_us

    def channel(self, address: tuple[str, int]) -> Channel:
        found = self._channels.get(address)
        if found is None:
            found = self._channels[address] = Channel(
                self.clock, self._network, *address, client_id=self.name, max_frame_bytes=64 << 20
            )
        return found

    def any_broker(self) -> Channel:
        self._next_bootstrap += 1
        return self.channel(self._bootstrap[self._next_bootstrap % len(self._bootstrap)])

    def leader_of(self, topic: str, partition: int) -> tuple[int, int, Channel] | None:
        known = self._leaders.get((topic, partition))
        if known is None or known[0] not in self._brokers:
            return None
        return known[0], known[1], self.channel(self._brokers[known[0]])

    def refresh(self, topics: Sequence[str]) -> None:
        """Ask any broker where the leaders are; several wishes at once are one request."""
        if self._refreshing or self.stopped:
            return
        self._refreshing = True
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=topic) for topic in topics), allow_auto_topic_creation=False
        )

        def answered(response: MetadataResponse | None) -> None:
            self._refreshing = False
            if response is None:
                return
            self._brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
            for topic in response.topics:
                for partition in topic.partitions:
                    key = (topic.name or "", partition.partition_index)
                    known = self._leaders.get(key)
                    if known is None or partition.leader_epoch >= known[1]:
                        self._leaders[key] = (partition.leader_id, partition.leader_epoch)

        self.any_broker().call(request, _METADATA_VERSION, _REQUEST_TIMEOUT_MS, answered)

    def later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self.clock.call_at(self.clock.now_ms() + delay_ms, callback)

    def run(self, callback: Callable[[], None]) -> None:
        """Start something as this client's process."""
        self.world.scheduler.after(0, callback, self.process)


class Producer(SimClient):
    """Writes unique values to all partitions of a topic, one batch in flight a partition."""

    def __init__(
        self,
        world: World,
        name: str,
        history: History,
        topic: str,
        partitions: int,
        *,
        acks: int = -1,
        pause_ms: int = 5,
        idempotent: bool = True,
    ) -> None:
        super().__init__(world, name, history)
        self.topic = topic
        self.partitions = partitions
        self.acks = acks
        self.pause_ms = pause_ms
        self.idempotent = idempotent
        self._producer_id = -1
        self._producer_epoch = -1
        self._sequences = dict.fromkeys(range(partitions), 0)
        self._open: dict[int, list[Send]] = {}
        self._counter = 0
        self.finished = 0
        """Batches that were answered, or given up, in the partition that has the fewest."""
        self._finished = dict.fromkeys(range(partitions), 0)

    def start(self) -> None:
        self.run(self._begin)

    def stop(self) -> None:
        """Begin no new batch; what is open is still tried until it is answered."""
        self.stopped = True

    @property
    def idle(self) -> bool:
        return not self._open

    def _begin(self) -> None:
        if not self.idempotent:
            self._go()
            return
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        def answered(response: Any) -> None:
            if response is None or response.error_code:
                self.later(_BACKOFF_MS, self._begin)
                return
            self._producer_id = response.producer_id
            self._producer_epoch = response.producer_epoch
            self._go()

        self.any_broker().call(request, _INIT_PRODUCER_ID_VERSION, _REQUEST_TIMEOUT_MS, answered)

    def _go(self) -> None:
        for partition in range(self.partitions):
            self._next_batch(partition)

    def _next_batch(self, partition: int) -> None:
        if self.stopped:
            return
        batch: list[Send] = []
        for _ in range(self.chance.randint(1, 3)):
            self._counter += 1
            send = Send(
                self.name,
                self._counter,
                self.topic,
                partition,
                f"{self.name}-{self._counter}".encode(),
                self.now_us,
                promised=self.acks == -1,
                ordered=self.idempotent,
            )
            self.history.sent(send)
            batch.append(send)
        self._open[partition] = batch
        self._try(partition)

    def _try(self, partition: int) -> None:
        batch = self._open.get(partition)
        if batch is None:
            return
        where = self.leader_of(self.topic, partition)
        if where is None:
            self._refresh_and_retry(partition)
            return
        wall_ms = self.clock.wall_ms()
        records = encode_batch(
            [NewRecord(timestamp=wall_ms, key=None, value=send.value) for send in batch],
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequences[partition] if self.idempotent else -1,
        )
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=2_000,
            topic_data=(
                TopicProduceData(
                    name=self.topic, partition_data=(PartitionProduceData(index=partition, records=bytes(records)),)
                ),
            ),
        )
        where[2].call(request, _PRODUCE_VERSION, _REQUEST_TIMEOUT_MS, lambda r: self._answered(partition, batch, r))

    def _answered(self, partition: int, batch: list[Send], response: Any) -> None:
        if self._open.get(partition) is not batch:
            return
        if response is None:
            self._refresh_and_retry(partition)
            return
        answer = response.responses[0].partition_responses[0]
        error = answer.error_code
        if error == 0 or error == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            for position, send in enumerate(batch):
                offset = answer.base_offset + position if answer.base_offset >= 0 else -1
                self.history.acknowledged(send, offset, self.now_us)
            self._finish(partition, batch)
        elif error in RETRIABLE and self.idempotent:
            self._refresh_and_retry(partition)
        elif error in RETRIABLE:
            # Without idempotence a retry might write twice: the record's fate stays open.
            for send in batch:
                send.error = error
            self._finish(partition, batch)
        else:
            for send in batch:
                send.outcome, send.error, send.completed_us = "failed", error, self.now_us
            if self.idempotent:
                # Nothing here breaks the rules of idempotence, so the broker may not say so.
                raise Violation("S20", f"{self.name}, partition {partition}: {ErrorCode(error).name}", self.now_us)
            self._finish(partition, batch)

    def _finish(self, partition: int, batch: list[Send]) -> None:
        del self._open[partition]
        self._sequences[partition] = (self._sequences[partition] + len(batch)) & 0x7FFFFFFF
        self._finished[partition] += 1
        self.finished = min(self._finished.values())
        pause_ms = self.pause_ms + self.chance.randint(0, self.pause_ms)
        self.later(pause_ms, lambda: self._next_batch(partition))

    def _refresh_and_retry(self, partition: int) -> None:
        self.refresh([self.topic])
        self.later(_BACKOFF_MS, lambda: self._try(partition))


class Consumer(SimClient):
    """Reads all partitions of a topic, each from its beginning."""

    def __init__(self, world: World, name: str, history: History, topic: str, partitions: int) -> None:
        super().__init__(world, name, history)
        self.topic = topic
        self.positions = dict.fromkeys(range(partitions), 0)

    def start(self) -> None:
        for partition in self.positions:
            self.run(partial(self._fetch, partition))

    def stop(self) -> None:
        self.stopped = True

    def _fetch(self, partition: int) -> None:
        if self.stopped:
            return
        where = self.leader_of(self.topic, partition)
        if where is None:
            self._again(partition)
            return
        _, leader_epoch, channel = where
        position = self.positions[partition]
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=200,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=(
                FetchTopic(
                    topic=self.topic,
                    partitions=(
                        FetchPartition(
                            partition=partition,
                            current_leader_epoch=leader_epoch,
                            fetch_offset=position,
                            last_fetched_epoch=-1,
                            partition_max_bytes=1 << 18,
                        ),
                    ),
                ),
            ),
        )
        channel.call(
            request,
            _FETCH_VERSION,
            _REQUEST_TIMEOUT_MS,
            lambda r: self._answered(partition, position, leader_epoch, channel, r),
        )

    def _answered(self, partition: int, position: int, leader_epoch: int, channel: Channel, response: Any) -> None:
        if self.stopped or self.positions[partition] != position:
            return
        if response is None or not response.responses:
            self._again(partition)
            return
        answer = response.responses[0].partitions[0]
        if answer.error_code:
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                # Nothing is deleted here, so a consumer is ahead of the log only if committed records were given up.
                self.history.on_gone(self.topic, partition, position)
                self._go_back(partition, leader_epoch, channel)
                return
            self._again(partition)
            return
        records = answer.records
        if records:
            view = memoryview(records)
            for at, header in iterate_headers(view):
                if header.is_control:
                    self.positions[partition] = header.next_offset
                    continue
                for record in decode_batch(view[at : at + header.size_bytes]):
                    if record.offset >= self.positions[partition]:
                        value = bytes(record.value or b"")
                        self.history.read(Read(self.topic, partition, record.offset, value, self.name, self.now_us))
                        self.positions[partition] = record.offset + 1
        self.world.scheduler.after(MICROSECONDS, lambda: self._fetch(partition), self.process)

    def _go_back(self, partition: int, leader_epoch: int, channel: Channel) -> None:
        """`auto.offset.reset=latest`: go on from the log's end."""
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(
                    name=self.topic,
                    partitions=(
                        ListOffsetsPartition(
                            partition_index=partition, current_leader_epoch=leader_epoch, timestamp=_LATEST
                        ),
                    ),
                ),
            ),
        )

        def answered(response: Any) -> None:
            answer = None if response is None else response.topics[0].partitions[0]
            if answer is not None and answer.error_code == 0:
                self.positions[partition] = answer.offset
            self._again(partition)

        channel.call(request, _LIST_OFFSETS_VERSION, _REQUEST_TIMEOUT_MS, answered)

    def _again(self, partition: int) -> None:
        self.refresh([self.topic])
        self.later(_BACKOFF_MS, lambda: self._fetch(partition))
