"""DeleteRecords (key 21), versions 0-2: give up everything below an offset, on all replicas (KIP-107)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.purgatory import Purgatory
from tanist.broker.replication.replicas import Replicas
from tanist.broker.turn import Turn
from tanist.log.log import Log
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.delete_records_request import DeleteRecordsRequest
from tanist.wire.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_HIGH_WATERMARK = -1
_UNKNOWN = -1

_Results: TypeAlias = dict[str, list[DeleteRecordsPartitionResult]]
_Waiting: TypeAlias = tuple[HostedPartition, int, DeleteRecordsPartitionResult]
"""A partition, where its log is to begin, and its part of the answer."""


class DeleteRecordsWait:
    """A request that waits for the low watermarks of its partitions. In the purgatory, too."""

    __slots__ = ("_call", "_missing", "_results", "_waiting", "done")

    def __init__(self, call: Call, results: _Results, waiting: list[_Waiting]) -> None:
        self._call = call
        self._results = results
        self._waiting: list[_Waiting | None] = list(waiting)
        """By their tickets; None when settled."""
        self._missing = len(waiting)
        self.done = False
        if not waiting:
            self._answer()

    def complete(self, ticket: int, error: int) -> None:
        """One partition's wait is over, with `error` or 0."""
        self._call.go_on(self._complete, ticket, error)

    def _complete(self, ticket: int, error: int) -> None:
        place = self._waiting[ticket]
        if self.done or place is None:
            return
        self._waiting[ticket] = None
        self._missing -= 1
        hosted, _, result = place
        result.error_code = error
        if not error and hosted.leader is not None:
            result.low_watermark = hosted.leader.low_watermark
        if not self._missing:
            self._answer()

    def expire(self) -> None:
        """`timeout.ms` is over. The records are gone here; replicas that have not followed will do so some time."""
        for ticket, place in enumerate(self._waiting):
            if place is not None:
                self.complete(ticket, ErrorCode.REQUEST_TIMED_OUT)

    def _answer(self) -> None:
        self.done = True
        topics = (DeleteRecordsTopicResult(name=name, partitions=tuple(parts)) for name, parts in self._results.items())
        self._call.reply(DeleteRecordsResponse(topics=tuple(topics)))


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The handler of DeleteRecords."""

    turn: Turn
    purgatory: Purgatory
    replicas: Replicas

    def handle(self, request: DeleteRecordsRequest, call: Call) -> None:
        """Advance the log starts, and answer when all live replicas have followed or the time is up."""
        results: _Results = {}
        waiting: list[_Waiting] = []
        for topic in request.topics:
            for wanted in topic.partitions:
                result = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=_UNKNOWN)
                results.setdefault(topic.name, []).append(result)
                if not call.may(rows.DELETE_RECORDS_TOPIC, topic.name):
                    result.error_code = rows.DELETE_RECORDS_TOPIC.code
                    continue
                hosted = self.replicas.get(topic.name, wanted.partition_index)
                if hosted is None or hosted.leader is None:
                    result.error_code = (
                        self.replicas.absent_error(topic.name, wanted.partition_index)
                        if hosted is None
                        else ErrorCode.NOT_LEADER_OR_FOLLOWER
                    )
                    continue
                high_watermark = hosted.leader.high_watermark
                offset = high_watermark if wanted.offset == _HIGH_WATERMARK else wanted.offset
                result.error_code = refusal(hosted.log, offset, high_watermark)
                if not result.error_code:
                    try:
                        hosted.log.advance_log_start_offset(offset)
                    except OSError as failure:
                        hosted.disk_failed(failure)
                        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                        continue
                    self.turn.mark_dirty(hosted)  # followers that wait hear of the new log start
                    waiting.append((hosted, offset, result))
        wait = DeleteRecordsWait(call, results, waiting)
        for ticket, (hosted, offset, _) in enumerate(waiting):
            hosted.wait_for_low_watermark(offset, wait, ticket)
        if wait.done:
            return
        call.wait(wait)
        self.purgatory.add(self.turn.time_ms() + request.timeout_ms, wait)


def refusal(log: Log, offset: int, high_watermark: int) -> int:
    """The error for a log that may not begin at `offset`; 0 if it may."""
    if "delete" not in log.config.cleanup_policy:
        return ErrorCode.POLICY_VIOLATION
    return 0 if 0 <= offset <= high_watermark else ErrorCode.OFFSET_OUT_OF_RANGE


def build(components: NodeComponents) -> Handler:
    return DeleteRecords(components.turn, components.purgatory, components.replicas).handle
