"""A producer in the virtual world: unique values, one batch in flight per partition.

It is idempotent, and retries with the same sequence number after retriable errors; or careless, with acks=1 and no
retries, so that logs diverge. Its answers go into the run's history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.client.errors import Meaning, meaning_in
from tanist.client.sequences import NO_PRODUCER, ProducerEpoch, Sequences, new_producer_id, produce_request
from tanist.sim.situations import BEGUN_ANEW, PRODUCED, count
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.cluster_client import BACKOFF_MS, REQUEST_TIMEOUT_MS
from tanist.sim.workload.history import History, Send
from tanist.sim.world.world import World
from tanist.wire.batch import NewRecord
from tanist.wire.errors import ErrorCode

_PRODUCE_VERSION = 9
_INIT_PRODUCER_ID_VERSION = 4


def no_key(value: bytes) -> None:
    """The key of a record whose topic is not compacted: none."""


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
        event_age_ms: int = 0,
        value_bytes: int = 0,
        key_of: Callable[[bytes], bytes | None] = no_key,
    ) -> None:
        """`event_age_ms`: its records have timestamps of so long ago, as those of a backfill.

        `value_bytes`: so long are their values, one in a batch, and so all of its batches have one length.
        """
        super().__init__(world, name, history)
        self.topic = topic
        self.partitions = partitions
        self.acks = acks
        self.pause_ms = pause_ms
        self.idempotent = idempotent
        self.event_age_ms = event_age_ms
        self.value_bytes = value_bytes
        self._key_of = key_of
        self._sequences = Sequences()
        self._open: dict[int, list[Send]] = {}
        self._counter = 0
        self.finished = 0
        """Batches that were answered or given up, in the partition with the fewest."""
        self._finished = dict.fromkeys(range(partitions), 0)

    def start(self) -> None:
        self.run(self._begin)

    @property
    def idle(self) -> bool:
        return not self._open

    def _begin(self) -> None:
        everything = list(range(self.partitions))

        def go(producer: ProducerEpoch) -> None:
            self._sequences.begin(producer)
            for partition in everything:
                self._next_batch(partition)

        if self.idempotent:
            self._identify(go)
        else:
            go(NO_PRODUCER)

    def _identify(self, then: Callable[[ProducerEpoch], None]) -> None:
        def handle_response(response: Any) -> None:
            if response is None or response.error_code:
                self.later(BACKOFF_MS, lambda: self._identify(then))
                return
            then((response.producer_id, response.producer_epoch))

        self.any_broker().call(new_producer_id(), _INIT_PRODUCER_ID_VERSION, REQUEST_TIMEOUT_MS, handle_response)

    def _next_batch(self, partition: int) -> None:
        if self.stopped:
            return
        batch: list[Send] = []
        for _ in range(1 if self.value_bytes else self.rng.randint(1, 3)):
            self._counter += 1
            send = Send(
                self.name,
                self._counter,
                self.topic,
                partition,
                f"{self.name}-{self._counter}".encode().ljust(self.value_bytes, b"."),
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
        event_ms = self.clock.wall_ms() - self.event_age_ms
        place = self.topic, partition
        records = [NewRecord(timestamp=event_ms, key=self._key_of(send.value), value=send.value) for send in batch]
        request = produce_request(place, self._sequences.batch(place, records), acks=self.acks, timeout_ms=2_000)
        batch[0].asked = where[0]
        where[2].call(
            request, _PRODUCE_VERSION, REQUEST_TIMEOUT_MS, lambda r: self._handle_response(partition, batch, r)
        )

    def _handle_response(self, partition: int, batch: list[Send], response: Any) -> None:
        answer = None if response is None else response.responses[0].partition_responses[0]
        count(self.world.counts, PRODUCED, None if answer is None else answer.error_code)
        if self._open.get(partition) is not batch:
            return
        if answer is None:
            self._refresh_and_retry(partition)
            return
        error, meaning = answer.error_code, meaning_in(response)
        # After a planted exception only: any other is a violation by itself. Some of the request may be written.
        may_be_done = meaning.is_retriable or error == ErrorCode.UNKNOWN_SERVER_ERROR
        if error == ErrorCode.NOT_ENOUGH_REPLICAS:
            self.world.counts["produce refused: too few in sync"] += 1
        if meaning is Meaning.DONE:
            for position, send in enumerate(batch):
                offset = answer.base_offset + position if answer.base_offset >= 0 else -1
                self.history.acknowledged(send, offset, self.now_us)
            self._finish(partition, batch)
        elif may_be_done and self.idempotent:
            self._refresh_and_retry(partition)
        elif may_be_done:
            # Without idempotence a retry might write twice: the record stays unknown.
            for send in batch:
                send.error = error
            self._finish(partition, batch)
        elif self.idempotent:
            # The producer keeps the rules of idempotence, so the log has lost earlier records, or the broker is wrong.
            self.history.on_refused(batch[0], error)
            self._begin_anew(partition, batch)
        else:
            for send in batch:
                send.outcome, send.error, send.completed_us = "failed", error, self.now_us
            self._finish(partition, batch)

    def _begin_anew(self, partition: int, batch: list[Send]) -> None:
        """Continue with another producer id; the fate of the batch is unknown."""
        self.world.counts[BEGUN_ANEW] += 1

        def go(producer: ProducerEpoch) -> None:
            self._finish(partition, batch)
            self._sequences.begin_in((self.topic, partition), producer)

        self._identify(go)

    def _finish(self, partition: int, batch: list[Send]) -> None:
        del self._open[partition]
        self._sequences.advance((self.topic, partition), len(batch))
        self._finished[partition] += 1
        self.finished = min(self._finished.values())
        pause_ms = self.pause_ms + self.rng.randint(0, self.pause_ms)
        self.later(pause_ms, lambda: self._next_batch(partition))

    def _refresh_and_retry(self, partition: int) -> None:
        self.world.counts["produce retried"] += 1
        self.refresh([self.topic])
        self.later(BACKOFF_MS, lambda: self._try(partition))
