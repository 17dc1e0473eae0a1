"""A consumer of committed records in the virtual world: it leaves out what was aborted, as clients do (KIP-98)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tanist.broker.network.channel import Channel
from tanist.sim.workload.clients import BACKOFF_MS, REQUEST_TIMEOUT_MS, SimClient
from tanist.sim.workload.history import History
from tanist.sim.workload.readers import EARLIEST, ask_offset
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import World
from tanist.wire.batch import crc_matches, iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.isolation import committed_batches
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

_FETCH_VERSION: Final = 12
_READ_COMMITTED: Final = 1


class CommittedReader(SimClient):
    """Reads all partitions of a topic from the beginning; `values` has what it has got of each."""

    def __init__(
        self, world: World, name: str, history: History, topic: str, partitions: int, *, resets: bool = False
    ) -> None:
        """`resets`: it goes on at the start of a log that begins above its position."""
        super().__init__(world, name, history)
        self._resets = resets
        self.topic = topic
        self.positions = dict.fromkeys(range(partitions), 0)
        self.values: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in range(partitions)}
        """By partition: offset and value."""
        self.skipped: dict[int, list[range]] = {partition: [] for partition in range(partitions)}
        """By partition: offsets that were gone, for the log begins above them (`auto.offset.reset=earliest`)."""

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
        wanted = FetchPartition(
            partition=partition,
            current_leader_epoch=where[1],
            fetch_offset=self.positions[partition],
            last_fetched_epoch=-1,
            partition_max_bytes=4_096,
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=200,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=_READ_COMMITTED,
            session_epoch=-1,
            topics=(FetchTopic(topic=self.topic, partitions=(wanted,)),),
        )
        where[2].call(request, _FETCH_VERSION, REQUEST_TIMEOUT_MS, partial(self._answered, partition, *where[1:]))

    def _answered(self, partition: int, leader_epoch: int, channel: Channel, response: Any) -> None:
        if self.stopped:
            return
        answer = None if response is None or not response.responses else response.responses[0].partitions[0]
        if answer is not None and answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self._resets:
            self._go_to_start(partition, leader_epoch, channel)
            return
        if answer is None or answer.error_code:
            self._again(partition)
            return
        self._take(partition, answer)
        self.world.scheduler.after(MICROSECONDS, lambda: self._fetch(partition), self.process)

    def _take(self, partition: int, answer: Any) -> None:
        data = _intact_batches(memoryview(answer.records or b""))
        aborted = ((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ())
        for header, records in committed_batches(data, aborted):
            self.values[partition] += [
                (record.offset, bytes(record.value or b""))
                for record in records
                if record.offset >= self.positions[partition]
            ]
            self.positions[partition] = max(self.positions[partition], header.next_offset)

    def _go_to_start(self, partition: int, leader_epoch: int, channel: Channel) -> None:
        def answered(answer: Any) -> None:
            position = self.positions[partition]
            if answer is not None and answer.error_code == 0 and answer.offset > position:
                self.skipped[partition].append(range(position, answer.offset))
                self.positions[partition] = answer.offset
                self.world.counts["transactions: readers behind the log start"] += 1
                self.history.on_moved(self.topic, partition, self.name, answer.offset)
            self._again(partition)

        ask_offset(channel, self.topic, partition, leader_epoch, EARLIEST, answered)

    def _again(self, partition: int) -> None:
        self.refresh([self.topic])
        self.later(BACKOFF_MS, lambda: self._fetch(partition))


def _intact_batches(data: memoryview) -> memoryview:
    """The batches before the first one whose CRC does not match."""
    end = 0
    for at, header in iterate_headers(data):
        if not crc_matches(data, at, header.size_bytes):
            break
        end = at + header.size_bytes
    return data[:end]
