"""A ShareFetch that reads, or waits until a share partition has records for its member.

Records are read from where the share partition says, and whole batches go out that have an acquired record. A fetch
that waits is looked at when a partition has more records or another role, and when a share partition has records again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.share.delivery import Deliveries
from tanist.broker.share.partitions import LedShare
from tanist.broker.share.sessions import Place
from tanist.coordinator.share.portions import FetchedBatch, Wanted
from tanist.coordinator.share.runs import Acquired
from tanist.log.log import OffsetOutOfRange
from tanist.log.markers import parse_marker
from tanist.log.scan import DamagedBatch
from tanist.replica.reads import READ_COMMITTED, READ_UNCOMMITTED, consumer_fetch_bounds
from tanist.wire.batch import BatchHeader, iterate_batches
from tanist.wire.errors import ErrorCode, WireError


class Ask(NamedTuple):
    """What a member asks for."""

    group_id: str
    wanted: Wanted
    min_bytes: int
    max_bytes: int
    places: Sequence[Place]


@dataclass(slots=True)
class Delivered:
    """One partition of the answer."""

    error: int = 0
    records: bytes | memoryview = b""
    acquired: list[Acquired] = field(default_factory=list)


OnDelivered = Callable[[dict[Place, Delivered]], None]


class ShareFetching:
    """A fetch, until it is answered. It waits on partitions, on share partitions, and in the purgatory."""

    def __init__(
        self,
        deliveries: Deliveries,
        ask: Ask,
        then: OnDelivered,
        is_gone: Callable[[], bool] = lambda: False,
        *,
        failed: bool = False,
    ) -> None:
        """`is_gone`: the member's connection has ended, so that nobody would get the records. `failed`: the answer has
        errors of other partitions to tell.
        """
        self._is_gone = is_gone
        self._deliveries = deliveries
        self._ask = ask
        self._then = then
        self._shares: dict[Place, LedShare] = {}
        self._errors: dict[Place, int] = {}
        values = deliveries.values
        committed = values.text(ask.group_id, "share.isolation.level") == "read_committed"
        self._isolation_level = READ_COMMITTED if committed else READ_UNCOMMITTED
        self._failed = failed
        self.done = False

    def begin(self, max_wait_ms: int) -> None:
        """Answer at once if there is enough; else wait."""
        for place in self._ask.places:
            found = self._deliveries.open(self._ask.group_id, place)
            if isinstance(found, int):
                self._errors[place] = found
            else:
                self._shares[place] = found
        if max_wait_ms <= 0 or self._ask.wanted.max_records <= 0 or not self._ask.places or self._has_enough():
            self.expire()
            return
        for share in self._shares.values():
            share.wait(self)
            share.hosted.wait_for_data(self)
        self._deliveries.purgatory.add(self._deliveries.turn.time_ms() + max_wait_ms, self)

    # -- waiting

    def try_complete(self, changed: HostedPartition) -> None:
        self.wake()

    def wake(self) -> None:
        """There may be enough by now."""
        if self._is_gone():
            self.done = True
        elif not self.done and self._has_enough():
            self.expire()

    def expire(self) -> None:
        """Answer with what there is."""
        if not self.done:
            self.done = True
            if not self._is_gone():
                self._then(self._delivered())

    def _has_enough(self) -> bool:
        missing = min(self._ask.min_bytes, self._ask.max_bytes)
        limits = self._deliveries.led.limits(self._ask.group_id)
        found, failed, is_read = False, self._failed or bool(self._errors), True
        for share in self._shares.values():
            if share.error or not share.is_led:
                failed = True
                continue
            delivery = share.delivery
            is_read = is_read and delivery is not None
            if delivery is None or not delivery.can_acquire(limits):
                continue
            offset, upper = delivery.next_fetch_offset, self._upper(share.hosted)
            if offset < upper:
                found = True
                missing -= share.hosted.log.bytes_available(offset, upper)
        # What could not be read is no reason to answer before the others' states are read.
        return (found and missing <= 0) or (failed and is_read)

    def _upper(self, hosted: HostedPartition) -> int:
        high_watermark = hosted.replica.high_watermark
        stable_offset = hosted.log.last_stable_offset(high_watermark)
        return consumer_fetch_bounds(self._isolation_level, high_watermark, stable_offset)

    # -- reading

    def _delivered(self) -> dict[Place, Delivered]:
        answers = {place: Delivered(error) for place, error in self._errors.items()}
        wanted, left = self._ask.wanted, self._ask.max_bytes
        now_ms = self._deliveries.context.clock.now_ms()
        for place, share in self._shares.items():
            if share.error or not share.is_led:
                answers[place] = Delivered(share.error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
                continue
            answer = answers[place] = Delivered()
            if share.delivery is None or wanted.max_records <= 0 or left <= 0:
                continue
            try:
                self._deliver(share, wanted, left, now_ms, answer)
            except OSError as failure:
                share.hosted.disk_failed(failure)
                answer.error = ErrorCode.KAFKA_STORAGE_ERROR
            except (DamagedBatch, WireError):
                answer.error = ErrorCode.CORRUPT_MESSAGE
            self._deliveries.led.arm(share)
            left -= len(answer.records)
            count = sum(each.last - each.first + 1 for each in answer.acquired)
            wanted = wanted._replace(max_records=wanted.max_records - count)
        return answers

    def _deliver(self, share: LedShare, wanted: Wanted, left: int, now_ms: int, answer: Delivered) -> None:
        delivery, log = share.delivery, share.hosted.log
        limits = self._deliveries.led.limits(share.where.group_id)
        if delivery is None or not delivery.can_acquire(limits):
            return
        delivery.log_start_moved(log.log_start_offset)
        offset, upper = delivery.next_fetch_offset, self._upper(share.hosted)
        try:
            piece = log.read(offset, left, upper)
        except OffsetOutOfRange:
            return
        if piece is None:
            return
        data = memoryview(piece.chunk.file.read(piece.chunk.offset, piece.chunk.length))
        aborted: dict[int, list[int]] = {}
        if self._isolation_level == READ_COMMITTED:
            for each in log.aborted_within(piece, offset, upper):
                aborted.setdefault(each.producer_id, []).append(each.first_offset)
        read = list(iterate_batches(data))
        batches = list(fetched(read, aborted))
        answer.acquired = delivery.acquire(wanted, offset, batches, limits, now_ms)
        if answer.acquired:
            self._deliveries.led.tell_acquired(share, wanted.member_id, answer.acquired)
            answer.records = around(data, [header for header, _ in read], answer.acquired)


def fetched(read: Iterable[tuple[BatchHeader, memoryview]], aborted: dict[int, list[int]]) -> Iterable[FetchedBatch]:
    """The batches; those of aborted transactions are marked. `aborted`: by producer, where they begin."""
    open_ids: set[int] = set()
    for header, batch in read:
        begun = aborted.get(header.producer_id, [])
        if any(first <= header.last_offset for first in begun):
            open_ids.add(header.producer_id)
            aborted[header.producer_id] = [first for first in begun if first > header.last_offset]
        is_aborted = header.is_transactional and not header.is_control and header.producer_id in open_ids
        if header.is_control and (marker := parse_marker(batch)) is not None and marker.aborted:
            open_ids.discard(header.producer_id)
        yield FetchedBatch(header.base_offset, header.last_offset, is_aborted)


def around(data: memoryview, headers: Sequence[BatchHeader], acquired: Sequence[Acquired]) -> memoryview:
    """The batches from the first acquired record to the last."""
    begin = end = 0
    for header in headers:
        if header.last_offset < acquired[0].first:
            begin += header.size_bytes
        if header.base_offset <= acquired[-1].last:
            end += header.size_bytes
    return data[begin:end]
