"""A produce with acks=all that waits until its records are committed, or its client's patience is over."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from tanist.broker.counters import Metrics
from tanist.broker.network.call import Slot
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.ports import Chunk
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.produce import ProduceResult, encode_produce_response


class Answering(Protocol):
    """Encodes the answer (`produce.Produce`)."""

    metrics: Metrics

    def answer(
        self,
        connection: ClientConnection,
        version: int,
        correlation_id: int,
        results: list[tuple[str | UUID, list[ProduceResult]]],
        throttle_ms: int = 0,
    ) -> bytes:
        """A frame; it may name leaders in the results."""


class ProduceWait:
    """An acks=all produce that waits for the high watermark of one or more partitions."""

    __slots__ = (
        "_answering",
        "connection",
        "correlation_id",
        "done",
        "large_bytes",
        "missing",
        "results",
        "slot",
        "throttle_ms",
        "version",
        "where",
    )

    def __init__(
        self,
        answering: Answering,
        connection: ClientConnection,
        version: int,
        correlation_id: int,
        results: list[tuple[str | UUID, list[ProduceResult]]],
    ) -> None:
        self._answering = answering
        self.connection = connection
        self.version = version
        self.correlation_id = correlation_id
        self.results = results
        self.slot: Slot = connection.reserve(self)
        self.large_bytes = 0
        # Where the answer of each waiting partition goes: (its topic's results, position); None when settled.
        self.where: list[tuple[list[ProduceResult], int] | None] = []
        self.missing = 0
        self.throttle_ms = 0
        self.done = False

    def add(self, hosted: HostedPartition, required_offset: int, results: list[ProduceResult]) -> None:
        """Wait for `hosted`'s high watermark to reach `required_offset`, for the result last added to `results`."""
        hosted.wait_for_high_watermark(required_offset, self, len(self.where))
        self.where.append((results, len(results) - 1))
        self.missing += 1

    def count_large(self, size: int) -> None:
        """The request is a large one, of so many bytes."""
        self.large_bytes = size
        self.connection.add_unreplicated(size)

    def complete(self, ticket: int, error: int) -> None:
        """One partition's wait is over, with `error` or 0."""
        place = self.where[ticket]
        if self.done or place is None:
            return
        self.where[ticket] = None
        self.missing -= 1
        try:
            if error:
                results, position = place
                results[position] = results[position]._replace(error=error, base_offset=-1)
            if self.missing == 0:
                self._answer()
        except Exception as unexpected:
            self.done = True
            self.connection.refuse_waiting(ApiKey.PRODUCE, unexpected, self.slot, self._refusal)

    def expire(self) -> None:
        """`timeout.ms` is over: what has not been acknowledged by now may or may not be committed later."""
        self._answering.metrics.expired_produces += 1
        for ticket, place in enumerate(self.where):
            if place is not None:
                self.complete(ticket, ErrorCode.REQUEST_TIMED_OUT)

    def _answer(self) -> None:
        self.done = True
        if self.large_bytes:
            self.connection.replicated(self.large_bytes)
        if self.connection.closed:
            return
        frame = self._answering.answer(
            self.connection, self.version, self.correlation_id, self.results, self.throttle_ms
        )
        self.connection.complete(self.slot, [frame])

    def _refusal(self) -> list[Chunk]:
        """What is appended may be committed all the same: the client cannot know."""
        unknown = int(ErrorCode.UNKNOWN_SERVER_ERROR)
        refused = [
            (topic, [each._replace(error=unknown, base_offset=-1) for each in parts]) for topic, parts in self.results
        ]
        return [encode_produce_response(self.version, self.correlation_id, refused)]
