"""DescribeLogDirs (key 35), versions 1-5: what lies in which log directory, and how big it is."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.replication.replicas import Replicas
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from tanist.wire.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@dataclass(frozen=True, slots=True)
class DescribeLogDirs:
    """The handler of DescribeLogDirs."""

    replicas: Replicas

    def handle(self, request: DescribeLogDirsRequest, call: Call) -> None:
        """Describe the partitions asked for (None: all) by directory."""
        wanted: set[tuple[str, int]] | None = None
        if request.topics is not None:
            wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
        results: list[DescribeLogDirsResult] = []
        for directory in self.replicas.directories:
            if directory.failed is not None:
                results.append(DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path))
                continue
            topics: dict[str, list[DescribeLogDirsPartition]] = {}
            for hosted in self.replicas:
                key = (hosted.topic, hosted.index)
                if wanted is not None and key not in wanted:
                    continue
                future = directory.futures.get(key)
                if hosted.directory is directory:
                    log, end = hosted.log, hosted.replica.high_watermark
                elif future is not None:
                    log, end = future, hosted.log.log_end_offset
                else:
                    continue
                topics.setdefault(hosted.topic, []).append(
                    DescribeLogDirsPartition(
                        partition_index=hosted.index,
                        partition_size=log.size_bytes,
                        offset_lag=max(0, end - log.log_end_offset),
                        is_future_key=log is future,
                    )
                )
            results.append(
                DescribeLogDirsResult(
                    log_dir=directory.path,
                    topics=tuple(
                        DescribeLogDirsTopic(name=name, partitions=tuple(parts))
                        for name, parts in sorted(topics.items())
                    ),
                )
            )
        call.reply(DescribeLogDirsResponse(results=tuple(results)))


def build(components: NodeComponents) -> Handler:
    return DescribeLogDirs(components.replicas).handle
