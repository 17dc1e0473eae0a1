"""Markers of the transactions that this broker coordinates, sent to the leaders of their partitions.

Owns which partitions are still without a marker, and the asking again: the marker of a prepared transaction has to be
written, however long that takes. Each leader has one request under way, with the markers of many transactions. Markers
for partitions that are led here go straight to `marker_writes`. A partition that was deleted needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.metadata.barrier import MetadataBarrier
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.peers import Peer, Peers
from tanist.broker.transactions.marker_writes import MARKER_TIMEOUT_MS, Marker, MarkerWrites
from tanist.coordinator.transactions.effects import WriteMarkers
from tanist.coordinator.transactions.state import TopicIndex
from tanist.coordinator.transactions.transaction_shard import TransactionShard
from tanist.ports import Timer
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tanist.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse

_VERSION: Final = 1
_RETRY_MS: Final = 100
_SLACK_MS: Final = 5_000
_MAX_FRAME_BYTES: Final = 16 << 20
_MARKERS_MAX: Final = 2_000
"""Transactions in one request."""

_WRITTEN: Final = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH})
"""A partition that has a newer epoch of the producer has no transaction of this one open."""
_DEPOSED: Final = frozenset({ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""Another coordinator has written markers since: it has this transaction."""

OnWritten = Callable[["CoordinatorPartition[TransactionShard]", WriteMarkers, "list[TopicIndex]"], None]


@dataclass(slots=True, eq=False)
class _Job:
    """The markers of one transaction."""

    partition: CoordinatorPartition[TransactionShard]
    markers: WriteMarkers
    left: set[TopicIndex]

    @property
    def marker(self) -> Marker:
        markers = self.markers
        return Marker(
            markers.producer_id,
            markers.producer_epoch,
            markers.coordinator_epoch,
            markers.committed,
            markers.client_version,
        )


_Queue = dict[_Job, set[TopicIndex]]


class MarkerSender:
    """The markers that are still to be written."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        barrier: MetadataBarrier,
        writes: MarkerWrites,
        is_served: Callable[[CoordinatorPartition[TransactionShard]], bool],
        on_written: OnWritten,
    ) -> None:
        """`is_served`: the transaction is still coordinated here; if not, its markers are another's."""
        self._context = context
        self._metadata = metadata
        self._barrier = barrier
        self._writes = writes
        self._is_served = is_served
        self._on_written = on_written
        self._peers: Peers[_Queue] = Peers(
            context, metadata.inter_broker_endpoint, "markers", _MAX_FRAME_BYTES, dict, self._send_queue
        )
        self._again: _Queue = {}
        self._timer: Timer | None = None
        self._begun: list[_Job] = []
        """Transactions that were prepared in this turn."""
        self.jobs: set[_Job] = set()
        """Transactions whose markers are not all written."""
        self._closed = False

    def begin(self, partition: CoordinatorPartition[TransactionShard], markers: WriteMarkers) -> None:
        """Write these markers, until all are written or the transaction is another coordinator's."""
        job = _Job(partition, markers, set(markers.partitions))
        self.jobs.add(job)
        # The client's answer is in this turn, and goes out at its end. Markers come after it.
        self._begun.append(job)
        if len(self._begun) == 1:
            self._context.clock.call_at(self._context.clock.now_ms(), self._send_begun)

    def _send_begun(self) -> None:
        begun, self._begun = self._begun, []
        for job in begun:
            self._send(job, job.left)

    @property
    def waiting_count(self) -> int:
        """Markers whose partition has no leader that is known here, or whose leader could not write them."""
        return sum(len(partitions) for partitions in self._again.values())

    def close(self) -> None:
        """The broker is going down."""
        self._closed = True
        self.jobs.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._peers.close()

    # -- where markers go

    def _send(self, job: _Job, partitions: Iterable[TopicIndex]) -> None:
        if not self._is_served(job.partition) or self._closed:
            self.jobs.discard(job)
            return
        by_leader: dict[int, set[TopicIndex]] = {}
        gone: list[TopicIndex] = []
        later: set[TopicIndex] = set()
        for each in sorted(partitions):
            state = self._metadata.current_leader(*each)
            if state is None:
                if self._barrier.up_to_date_since(job.partition.began_ms):
                    gone.append(each)
                else:
                    later.add(each)  # its topic may be newer than what this broker knows
            elif state[0] < 0:
                later.add(each)
            else:
                by_leader.setdefault(state[0], set()).add(each)
        for leader, those in by_leader.items():
            if leader == self._context.node_id:
                self._write_here(job, those)
            elif (peer := self._peers.find(leader)) is None:
                later |= those
            else:
                peer.queue.setdefault(job, set()).update(those)
                peer.schedule()
        if later:
            self._send_again(job, later)
        if gone:
            self._done(job, gone)

    def _write_here(self, job: _Job, partitions: set[TopicIndex]) -> None:
        self._writes.write(job.marker, sorted(partitions), partial(self._handle_response, job))

    def _send_queue(self, peer: Peer[_Queue]) -> None:
        if self._closed:
            return
        sent: dict[int, tuple[_Job, set[TopicIndex]]] = {}
        for job in list(peer.queue):
            # The answer names markers by their producer: one of each.
            if job.markers.producer_id not in sent and len(sent) < _MARKERS_MAX:
                sent[job.markers.producer_id] = (job, peer.queue.pop(job))
        if not sent:
            return
        request = WriteTxnMarkersRequest(
            markers=tuple(
                WritableTxnMarker(
                    producer_id=job.markers.producer_id,
                    producer_epoch=job.markers.producer_epoch,
                    transaction_result=job.markers.committed,
                    coordinator_epoch=job.markers.coordinator_epoch,
                    transaction_version=job.markers.client_version,
                    topics=tuple(
                        WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(indexes))
                        for topic, indexes in indexes_by_topic(partitions).items()
                    ),
                )
                for job, partitions in sent.values()
            )
        )
        peer.call(request, _VERSION, MARKER_TIMEOUT_MS + _SLACK_MS, partial(self._received, sent))

    # -- answers

    def _received(
        self, sent: dict[int, tuple[_Job, set[TopicIndex]]], response: WriteTxnMarkersResponse | None
    ) -> None:
        answers: dict[int, dict[TopicIndex, int]] = {}
        for result in response.markers if response is not None else ():
            errors = answers.setdefault(result.producer_id, {})
            for topic in result.topics:
                for each in topic.partitions:
                    errors[topic.name, each.partition_index] = each.error_code
        for producer_id, (job, partitions) in sent.items():
            known = answers.get(producer_id, {})
            self._handle_response(job, {each: known.get(each, int(ErrorCode.NETWORK_EXCEPTION)) for each in partitions})

    def _handle_response(self, job: _Job, errors: dict[TopicIndex, int]) -> None:
        written = [each for each, error in errors.items() if error in _WRITTEN]
        again = {each for each, error in errors.items() if error not in _WRITTEN and error not in _DEPOSED}
        if any(error in _DEPOSED for error in errors.values()):
            self.jobs.discard(job)
        if again:
            self._send_again(job, again)
        if written:
            self._done(job, written)

    def _done(self, job: _Job, partitions: list[TopicIndex]) -> None:
        job.left.difference_update(partitions)
        if not job.left:
            self.jobs.discard(job)
        if self._is_served(job.partition):
            self._on_written(job.partition, job.markers, partitions)

    def _send_again(self, job: _Job, partitions: set[TopicIndex]) -> None:
        if self._closed:
            return
        self._again.setdefault(job, set()).update(partitions)
        if self._timer is None:
            self._timer = self._context.clock.call_at(self._context.clock.now_ms() + _RETRY_MS, self._resend)

    def _resend(self) -> None:
        self._timer = None
        again, self._again = self._again, {}
        for job, partitions in again.items():
            self._send(job, partitions)
