"""DeleteRecords (key 21), versions 0-2: give up everything below an offset, on all replicas (KIP-107)."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.context import NodeContext
from tanist.broker.network.client_connection import Call, Handler
from tanist.broker.parts import BrokerParts
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replicas import Replicas
from tanist.broker.turn import Turn
from tanist.log.log import Log
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.delete_records_request import DeleteRecordsRequest
from tanist.wire.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_HIGH_WATERMARK = -1
_UNKNOWN = -1
_LOOK_AGAIN_MS = 20


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The handler of DeleteRecords."""

    context: NodeContext
    turn: Turn
    replicas: Replicas

    def handle(self, request: DeleteRecordsRequest, call: Call) -> None:
        """Advance the log starts, and answer when all live replicas have followed or the time is up."""
        results: dict[str, list[DeleteRecordsPartitionResult]] = {}
        waiting: list[tuple[HostedPartition, int, DeleteRecordsPartitionResult]] = []
        for topic in request.topics:
            for wanted in topic.partitions:
                result = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=_UNKNOWN)
                results.setdefault(topic.name, []).append(result)
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
        call.wait()
        deadline_ms = self.context.clock.now_ms() + request.timeout_ms

        def look() -> None:
            rest = []
            for hosted, offset, result in waiting:
                if hosted.leader is None:
                    result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    continue
                low_watermark = hosted.leader.low_watermark
                if low_watermark >= offset:
                    result.low_watermark = low_watermark
                elif self.context.clock.now_ms() >= deadline_ms:
                    result.error_code = ErrorCode.REQUEST_TIMED_OUT
                else:
                    rest.append((hosted, offset, result))
            waiting[:] = rest
            if waiting:
                # Followers report their log start with each fetch; those long polls end within half a second.
                self.context.clock.call_at(self.context.clock.now_ms() + _LOOK_AGAIN_MS, look)
                return
            call.reply(
                DeleteRecordsResponse(
                    topics=tuple(
                        DeleteRecordsTopicResult(name=name, partitions=tuple(parts)) for name, parts in results.items()
                    )
                )
            )

        look()


def refusal(log: Log, offset: int, high_watermark: int) -> int:
    """The error for a log that may not begin at `offset`; 0 if it may."""
    if "delete" not in log.config.cleanup_policy:
        return ErrorCode.POLICY_VIOLATION
    return 0 if 0 <= offset <= high_watermark else ErrorCode.OFFSET_OUT_OF_RANGE


def build(parts: BrokerParts) -> Handler:
    return DeleteRecords(parts.context, parts.turn, parts.replicas).handle
