"""The ends of a broker's logs, asked of a broker that has no GetReplicaLogInfo: Apache Kafka's.

Owns the conversation of one inquiry. Any replica answers ListOffsets for a debugging client (replica id -2) with the
end of its log, if the epoch of the request is the one by which it acts. Such an answer has that epoch in it and not
the epoch of the last record. A Fetch finds that out: it names the end of the log as its offset and any epoch as that
of the last record fetched, and the replica compares both with its history (KIP-595). So a search over epochs ends at
the last one that has records.

The ends are asked for once more at the end, and must be the same: else a record of the former leader has come between.
The caller must not take an answer for one of another registration (`replica_log_info`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.broker.network.channel import Channel
from tanist.controller.partitions.log_info import LogInfo
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.fetch import FetchCall, FetchTarget, encode_fetch_request, parse_fetch_response
from tanist.wire.fetch_response import FetchedPartition
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tanist.wire.messages.list_offsets_response import ListOffsetsResponse

LIST_OFFSETS_VERSION: Final = 7
FETCH_VERSION: Final = 12
"""The first with the epoch of the last record fetched; topics have their names in it."""

_DEBUGGING_CLIENT: Final = -2
_LATEST, _EARLIEST = -1, -2
_FETCHED_BYTES: Final = 1
"""Nothing is to be read: a request at the end of a log finds no records."""
_OF_ANOTHER_EPOCH: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)

OnLogs = Callable[["dict[TopicIdPartition, LogInfo] | None"], None]
"""The logs without an error; None: the broker does not answer."""


@dataclass(slots=True)
class EpochSearch:
    """The search for the epoch of a log's last record, between two epochs.

    It goes down from the partition's epoch in steps that double, then halves what is left: most logs end in one of the
    last epochs. `low` is known to be too low, `high` to be high enough.
    """

    high: int
    low: int = -1
    _step: int = 1
    _bounded: bool = False
    any_known: bool = False
    """Whether the log has any epoch."""

    @property
    def done(self) -> bool:
        return self.high - self.low <= 1

    @property
    def next_epoch(self) -> int:
        """The epoch to ask for next."""
        if self._bounded:
            return (self.low + self.high) // 2
        return max(self.low + 1, self.high - self._step)

    def narrow(self, epoch: int, *, too_low: bool) -> None:
        if too_low:
            self.low, self._bounded = epoch, True
        else:
            self.high = epoch
            self._step *= 2


@dataclass(slots=True)
class _Log:
    """One replica's log, as far as it is known."""

    name: str
    partition: int
    leader_epoch: int
    end: int = -1
    start: int = -1
    search: EpochSearch = field(init=False)

    def __post_init__(self) -> None:
        self.search = EpochSearch(self.leader_epoch)

    def starts_at(self, start: int) -> None:
        self.start = start
        if not self.has_records:
            self.search.low = -2  # it may have no epoch at all, or 0

    @property
    def searching(self) -> bool:
        return self.end > 0 and not self.search.done

    @property
    def has_records(self) -> bool:
        return self.end > self.start

    @property
    def fetched_epoch(self) -> int:
        """The epoch that the next Fetch names."""
        # Without records each known epoch ends at the end of the log: the last one is the highest that is known.
        return self.search.next_epoch if self.has_records else self.search.next_epoch + 1

    def compared(self, answer: FetchedPartition) -> None:
        """The replica has compared the end of its log, and `fetched_epoch`, with its history."""
        known = answer.error != ErrorCode.OFFSET_OUT_OF_RANGE
        self.search.any_known |= known
        if self.has_records:
            # The epoch ends before the log does: there are records of a later one.
            too_low = known and answer.diverging_epoch is not None and answer.diverging_epoch[1] < self.end
        else:
            too_low = known
        self.search.narrow(self.search.next_epoch, too_low=too_low)

    def info(self, broker_epoch: int) -> LogInfo:
        last_epoch = self.search.high if self.end > 0 else -1
        if last_epoch == 0 and self.leader_epoch > 0 and self.has_records and not self.search.any_known:
            last_epoch = -1  # it has no epochs at all
        return LogInfo(broker_epoch, self.leader_epoch, last_epoch, self.end)


class ReplicaLogEnds:
    """One inquiry to one broker, on the connection of its present registration."""

    def __init__(
        self,
        channel: Channel,
        client_id: str,
        broker_epoch: int,
        partitions: Mapping[TopicIdPartition, tuple[str, int]],
        timeout_ms: int,
        on_logs: OnLogs,
    ) -> None:
        """`partitions`: the topic's name and the leader epoch of each. `broker_epoch` is put into the answers."""
        self._channel = channel
        self._client_id = client_id
        self._broker_epoch = broker_epoch
        self._timeout_ms = timeout_ms
        self._on_logs = on_logs
        self._of_another_epoch: dict[TopicIdPartition, LogInfo] = {}
        self.confirming = False
        """Whether all is known, and the ends are asked for once more."""
        self._logs = {key: _Log(name, key[1], epoch) for key, (name, epoch) in partitions.items()}

    def begin(self) -> None:
        self._list(_LATEST, self._ends_listed)

    # -- ends and starts

    def _list(self, timestamp: int, on_offsets: Callable[[dict[tuple[str, int], tuple[int, int]]], None]) -> None:
        """Ask for an offset of each log; `on_offsets` gets (error, offset) by topic and partition."""
        by_topic: dict[str, list[ListOffsetsPartition]] = {}
        for log in self._logs.values():
            by_topic.setdefault(log.name, []).append(
                ListOffsetsPartition(
                    partition_index=log.partition, current_leader_epoch=log.leader_epoch, timestamp=timestamp
                )
            )
        request = ListOffsetsRequest(
            replica_id=_DEBUGGING_CLIENT,
            topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(each)) for name, each in by_topic.items()),
        )

        def handle_response(response: ListOffsetsResponse | None) -> None:
            if response is None:
                self._on_logs(None)
                return
            on_offsets(
                {
                    (topic.name, each.partition_index): (each.error_code, each.offset)
                    for topic in response.topics
                    for each in topic.partitions
                }
            )

        self._channel.call(request, LIST_OFFSETS_VERSION, self._timeout_ms, handle_response)

    def _ends_listed(self, offsets: dict[tuple[str, int], tuple[int, int]]) -> None:
        for key, log in list(self._logs.items()):
            error, log.end = offsets.get((log.name, log.partition), (int(ErrorCode.UNKNOWN_SERVER_ERROR), -1))
            if error or log.end < 0:
                self._drop(key, error)
        if self._logs:
            self._list(_EARLIEST, self._starts_listed)
        else:
            self._finish()

    def _starts_listed(self, offsets: dict[tuple[str, int], tuple[int, int]]) -> None:
        for key, log in list(self._logs.items()):
            error, start = offsets.get((log.name, log.partition), (int(ErrorCode.UNKNOWN_SERVER_ERROR), -1))
            log.starts_at(start)
            if error:
                self._drop(key, error)
        self._search()

    def _ends_listed_again(self, offsets: dict[tuple[str, int], tuple[int, int]]) -> None:
        for key, log in list(self._logs.items()):
            error, end = offsets.get((log.name, log.partition), (int(ErrorCode.UNKNOWN_SERVER_ERROR), -1))
            if error or end != log.end:
                self._drop(key, error)
        self._finish()

    # -- last epochs

    def _search(self) -> None:
        by_topic: dict[str, list[FetchTarget]] = {}
        for log in self._logs.values():
            if log.searching:
                by_topic.setdefault(log.name, []).append(
                    FetchTarget(log.partition, log.leader_epoch, log.end, log.fetched_epoch, max_bytes=_FETCHED_BYTES)
                )
        if not by_topic:
            if self._logs:
                self.confirming = True
                self._list(_LATEST, self._ends_listed_again)
            else:
                self._finish()
            return
        call = FetchCall(topics=list(by_topic.items()))
        self._channel.call_raw(
            lambda correlation_id: encode_fetch_request(FETCH_VERSION, correlation_id, self._client_id, call),
            self._timeout_ms,
            self._fetched,
        )

    def _fetched(self, frame: memoryview | None) -> None:
        if frame is None:
            self._on_logs(None)
            return
        try:
            reply = parse_fetch_response(frame, FETCH_VERSION)
        except WireError:
            self._on_logs(None)
            return
        if reply.error:
            self._on_logs(None)
            return
        answers = {(topic, each.partition): each for topic, parts in reply.topics for each in parts}
        for key, log in list(self._logs.items()):
            if not log.searching:
                continue
            answer = answers.get((log.name, log.partition))
            if answer is not None and answer.error in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
                log.compared(answer)
            else:
                self._drop(key, ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else answer.error)
        self._search()

    # -- the answer

    def _drop(self, key: TopicIdPartition, error: int) -> None:
        """There is no answer for this log, or one that says that the replica is in another epoch: ask again soon."""
        log = self._logs.pop(key)
        if error in _OF_ANOTHER_EPOCH:
            self._of_another_epoch[key] = LogInfo(self._broker_epoch, -1, -1, log.end)

    def _finish(self) -> None:
        found = {key: log.info(self._broker_epoch) for key, log in self._logs.items()}
        self._on_logs(found | self._of_another_epoch)
