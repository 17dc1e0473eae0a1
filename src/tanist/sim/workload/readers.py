"""Consumers and observers in the virtual world. Their answers go into the run's history.

A consumer reads partitions from the start and continues at its position. An observer asks for the ends of partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tanist.broker.network.channel import Channel
from tanist.sim.situations import FETCHED, count
from tanist.sim.workload.clients import BACKOFF_MS, REQUEST_TIMEOUT_MS, SimClient
from tanist.sim.workload.history import EndSeen, History, Read
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import World
from tanist.wire.batch import crc_matches, decode_batch, iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_FETCH_VERSION = 12
_LIST_OFFSETS_VERSION = 7
LATEST, EARLIEST = -1, -2
"""Where a consumer may continue, as ListOffsets calls them."""


class _Asked(NamedTuple):
    """The broker that a fetch went to, and when."""

    broker_id: int
    leader_epoch: int
    channel: Channel
    at_us: int


class Consumer(SimClient):
    """Reads all partitions of a topic, each from its beginning."""

    def __init__(
        self, world: World, name: str, history: History, topic: str, partitions: int, *, reset: int = LATEST
    ) -> None:
        """`reset`: where it continues if its offset is gone (`auto.offset.reset`)."""
        super().__init__(world, name, history)
        self.topic = topic
        self.positions = dict.fromkeys(range(partitions), 0)
        self._reset = reset
        self.reads_again = False
        """At the end of a partition it starts again."""

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
        broker_id, leader_epoch, channel = where
        position, asked_us = self.positions[partition], self.now_us
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
            REQUEST_TIMEOUT_MS,
            lambda r: self._answered(partition, position, _Asked(broker_id, leader_epoch, channel, asked_us), r),
        )

    def _answered(self, partition: int, position: int, asked: _Asked, response: Any) -> None:
        answer = response.responses[0].partitions[0] if response is not None and response.responses else None
        if response is None or answer is not None:
            count(self.world.counts, FETCHED, None if answer is None else answer.error_code)
        if self.stopped or self.positions[partition] != position:
            return
        if answer is None:
            self._again(partition)
            return
        if answer.error_code:
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                # After an unclean election that lost records it is ahead of the log; with trimming, behind its start.
                self.history.on_gone(self.topic, partition, position)
                self.world.counts["consumers ahead of the log"] += self._reset == LATEST
                self._go_back(partition, asked.leader_epoch, asked.channel)
                return
            self._again(partition)
            return
        records = answer.records
        if records:
            view = memoryview(records)
            for at, header in iterate_headers(view):
                if not crc_matches(view, at, header.size_bytes):
                    # As any client: it trusts no record of the batch, and fetches again until the broker is repaired.
                    self.world.counts["rotten batches refused by consumers"] += 1
                    self._again(partition)
                    return
                if header.is_control:
                    self.positions[partition] = header.next_offset
                    continue
                for record in decode_batch(view[at : at + header.size_bytes]):
                    if record.offset >= self.positions[partition]:
                        value = bytes(record.value or b"")
                        source = (self.name, self.now_us, asked.broker_id, asked.at_us)
                        self.history.read(Read(self.topic, partition, record.offset, value, *source))
                        self.positions[partition] = record.offset + 1
                # Compaction may have removed the last records of a batch, or all of them.
                self.positions[partition] = max(self.positions[partition], header.next_offset)
        if self.reads_again and position and self.positions[partition] == position:
            self.positions[partition] = 0
            self.history.on_moved(self.topic, partition, self.name, 0)
        self.world.scheduler.after(MICROSECONDS, lambda: self._fetch(partition), self.process)

    def _go_back(self, partition: int, leader_epoch: int, channel: Channel) -> None:
        """`auto.offset.reset`: continue at the log's end, or at its start."""

        def answered(answer: Any) -> None:
            if answer is not None and answer.error_code == 0:
                self.positions[partition] = answer.offset
                self.history.on_moved(self.topic, partition, self.name, answer.offset)
            self._again(partition)

        ask_offset(channel, self.topic, partition, leader_epoch, self._reset, answered)

    def _again(self, partition: int) -> None:
        self.refresh([self.topic])
        self.later(BACKOFF_MS, lambda: self._fetch(partition))


class Observer(SimClient):
    """Asks the leaders of a topic for the ends of their partitions, again and again."""

    def __init__(
        self,
        world: World,
        name: str,
        history: History,
        topic: str,
        partitions: int,
        committed_before: Callable[[str, int, int], int],
        *,
        pause_ms: int,
    ) -> None:
        super().__init__(world, name, history)
        self._topic = topic
        self._partitions = partitions
        self._committed_before = committed_before
        """(topic, partition, leader epoch) -> the high watermark when that epoch began."""
        self._pause_ms = pause_ms

    def start(self) -> None:
        for partition in range(self._partitions):
            self.run(partial(self._ask, partition))

    def stop(self) -> None:
        self.stopped = True

    def _ask(self, partition: int) -> None:
        if self.stopped:
            return
        where = self.leader_of(self._topic, partition)
        if where is None:
            self._again(partition, refresh=True)
            return
        _, leader_epoch, channel = where
        least = self._committed_before(self._topic, partition, leader_epoch)

        def answered(answer: Any) -> None:
            error = -1 if answer is None else answer.error_code
            if answer is not None and error == 0:
                self.history.on_end(EndSeen(self._topic, partition, answer.offset, leader_epoch, least))
            elif error in (ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE):
                self.world.counts["end not known yet"] += 1
            self._again(partition, refresh=error != 0)

        ask_offset(channel, self._topic, partition, leader_epoch, LATEST, answered)

    def _again(self, partition: int, *, refresh: bool) -> None:
        if refresh:
            self.refresh([self._topic])
        self.later(BACKOFF_MS if refresh else self._pause_ms, lambda: self._ask(partition))


def ask_offset(
    channel: Channel, topic: str, partition: int, leader_epoch: int, timestamp: int, answered: Callable[[Any], None]
) -> None:
    """Ask a leader for an offset by its timestamp, `LATEST` or `EARLIEST`. `answered` gets the partition's answer, None
    without one.
    """
    wanted = ListOffsetsPartition(partition_index=partition, current_leader_epoch=leader_epoch, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),))

    def received(response: Any) -> None:
        answered(None if response is None else response.topics[0].partitions[0])

    channel.call(request, _LIST_OFFSETS_VERSION, REQUEST_TIMEOUT_MS, received)
