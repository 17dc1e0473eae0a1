"""Consumers and observers in the virtual world. Their answers go into the run's history.

A consumer reads partitions from the start and continues at its position. An observer asks for the ends of partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tanist.broker.network.channel import Channel
from tanist.client.errors import Meaning, meaning_in
from tanist.client.positions import (
    FETCH_VERSION_MAX,
    LATEST,
    Fetched,
    fetch_request,
    list_offsets_request,
    partition_in,
    read_from,
)
from tanist.sim.situations import FETCHED, count
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.cluster_client import BACKOFF_MS, REQUEST_TIMEOUT_MS
from tanist.sim.workload.history import EndSeen, History, Read
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import World
from tanist.wire.errors import ErrorCode

_LIST_OFFSETS_VERSION = 7


class Asked(NamedTuple):
    """The broker that a fetch went to, and when."""

    broker_id: int
    leader_epoch: int
    channel: Channel
    at_us: int


class Reader(SimClient):
    """Reads all partitions of a topic, each from its beginning."""

    READ_COMMITTED = False
    PARTITION_BYTES = 1 << 18

    def __init__(self, world: World, name: str, history: History, topic: str, partitions: int) -> None:
        super().__init__(world, name, history)
        self.topic = topic
        self.positions = dict.fromkeys(range(partitions), 0)

    def start(self) -> None:
        for partition in self.positions:
            self.run(partial(self._fetch, partition))

    def _read(self, partition: int, fetched: Fetched, asked: Asked) -> None:
        """There are records; the position is where they begin."""
        raise NotImplementedError

    def _gone(self, partition: int, asked: Asked) -> None:
        """The log does not have the position: it was cut off, or it begins later."""
        raise NotImplementedError

    def _fetch(self, partition: int) -> None:
        if self.stopped:
            return
        where = self.leader_of(self.topic, partition)
        if where is None:
            self._again(partition)
            return
        asked = Asked(*where, self.now_us)
        position = self.positions[partition]
        request = fetch_request(
            (self.topic, partition),
            position,
            max_bytes=1 << 20,
            partition_bytes=self.PARTITION_BYTES,
            max_wait_ms=200,
            leader_epoch=asked.leader_epoch,
            read_committed=self.READ_COMMITTED,
        )
        handle_response = partial(self._handle_response, partition, position, asked)
        asked.channel.call(request, FETCH_VERSION_MAX, REQUEST_TIMEOUT_MS, handle_response)

    def _handle_response(self, partition: int, position: int, asked: Asked, response: Any) -> None:
        answer = None if response is None else partition_in(response)
        if response is None or answer is not None:
            count(self.world.counts, FETCHED, None if answer is None else answer.error_code)
        if self.stopped or self.positions[partition] != position:
            return
        meaning = Meaning.FIND if answer is None else meaning_in(response)
        if meaning is Meaning.RESET_POSITION:
            self._gone(partition, asked)
        elif meaning is not Meaning.DONE:
            self._again(partition)
        else:
            fetched = read_from(answer, position, read_committed=self.READ_COMMITTED)
            self._read(partition, fetched, asked)
            if fetched.is_corrupt:
                # As any client: it trusts no record of the batch, and fetches again until the broker is repaired.
                self.world.counts["rotten batches refused by consumers"] += 1
                self._again(partition)
            else:
                self.world.scheduler.after(MICROSECONDS, lambda: self._fetch(partition), self.process)

    def _move(self, partition: int, asked: Asked, timestamp: int, moves: Callable[[int], bool]) -> None:
        """Continue at the log's end or start, if `moves` takes that offset."""

        def handle_response(answer: Any) -> None:
            if answer is not None and answer.error_code == 0 and moves(answer.offset):
                self.positions[partition] = answer.offset
                self.history.on_moved(self.topic, partition, self.name, answer.offset)
            self._again(partition)

        ask_offset(asked.channel, self.topic, partition, asked.leader_epoch, timestamp, handle_response)

    def _again(self, partition: int) -> None:
        self.refresh([self.topic])
        self.later(BACKOFF_MS, lambda: self._fetch(partition))


class Consumer(Reader):
    """Notes all that it reads in the history."""

    def __init__(
        self, world: World, name: str, history: History, topic: str, partitions: int, *, reset: int = LATEST
    ) -> None:
        """`reset`: where it continues if its offset is gone (`auto.offset.reset`)."""
        super().__init__(world, name, history, topic, partitions)
        self._reset = reset
        self.reads_again = False
        """At the end of a partition it starts again."""

    def _read(self, partition: int, fetched: Fetched, asked: Asked) -> None:
        before = self.positions[partition]
        for record in fetched.records:
            source = (self.name, self.now_us, asked.broker_id, asked.at_us)
            self.history.read(Read(self.topic, partition, record.offset, bytes(record.value or b""), *source))
        self.positions[partition] = fetched.next_offset
        if self.reads_again and before and fetched.next_offset == before and not fetched.is_corrupt:
            self.positions[partition] = 0
            self.history.on_moved(self.topic, partition, self.name, 0)

    def _gone(self, partition: int, asked: Asked) -> None:
        # After an unclean election that lost records it is ahead of the log; with trimming, behind its start.
        self.history.on_gone(self.topic, partition, self.positions[partition])
        self.world.counts["consumers ahead of the log"] += self._reset == LATEST
        self._move(partition, asked, self._reset, lambda offset: True)


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

    def _ask(self, partition: int) -> None:
        if self.stopped:
            return
        where = self.leader_of(self._topic, partition)
        if where is None:
            self._again(partition, refresh=True)
            return
        _, leader_epoch, channel = where
        least = self._committed_before(self._topic, partition, leader_epoch)

        def handle_response(answer: Any) -> None:
            error = -1 if answer is None else answer.error_code
            if answer is not None and error == 0:
                self.history.on_end(EndSeen(self._topic, partition, answer.offset, leader_epoch, least))
            elif error in (ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE):
                self.world.counts["end not known yet"] += 1
            self._again(partition, refresh=error != 0)

        ask_offset(channel, self._topic, partition, leader_epoch, LATEST, handle_response)

    def _again(self, partition: int, *, refresh: bool) -> None:
        if refresh:
            self.refresh([self._topic])
        self.later(BACKOFF_MS if refresh else self._pause_ms, lambda: self._ask(partition))


def ask_offset(
    channel: Channel,
    topic: str,
    partition: int,
    leader_epoch: int,
    timestamp: int,
    handle_response: Callable[[Any], None],
) -> None:
    """Ask a leader for an offset by its timestamp, `LATEST` or `EARLIEST`. `handle_response` gets the partition's
    answer, None without one.
    """
    request = list_offsets_request({(topic, partition): timestamp}, leader_epoch=leader_epoch)

    def received(response: Any) -> None:
        handle_response(None if response is None else partition_in(response))

    channel.call(request, _LIST_OFFSETS_VERSION, REQUEST_TIMEOUT_MS, received)
