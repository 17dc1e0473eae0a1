"""Retention and DeleteRecords in the virtual world: the log starts that replicas may have (S26).

Owns the facts with which the checkers judge a log that has lost its oldest records like any other. A log start moves
for a reason: an operator has asked for it (DeleteRecords), the records below it are too old or too many (retention,
whole segments, by the clock of that broker), or another replica of the partition has had it for such a reason.
`highest` is the highest of these starts. No other record may be gone, and no reader gets one from a broker whose log
begins above it.

The mirror of a replica keeps the batches below its log start: those that the replica had, or those of the history H. So
all other properties are checked as if the log were whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image.partition_state import PartitionState
from tanist.log.log import Log
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import DeletionAnswered, DeletionRequested, Event, Place
from tanist.sim.oracle import Batch, Oracle, PartitionOracle, ReplicaMirror, batch_bytes, batches
from tanist.sim.world.world import Host, World
from tanist.wire.batch import BatchHeader
from tanist.wire.errors import ErrorCode

HIGH_WATERMARK: Final = -1
"""The offset of a DeleteRecords that deletes all committed records."""
_WEEK_MS: Final = 604_800_000
_TOPIC: Final = 2


@dataclass(slots=True)
class _Kept:
    """A committed batch."""

    latest_ms: int
    data: bytes


class TrimAllowance:
    """The log starts that one partition's replicas may have."""

    def __init__(self, oracle: PartitionOracle) -> None:
        self._oracle = oracle
        self.highest = 0
        self.requested: set[int] = set()
        """Offsets of DeleteRecords requests."""
        self.all_requested: set[int] = set()
        """Numbers of requests for all committed records that may be carried out still: each once."""
        self.starts: dict[int, list[tuple[int, int]]] = {}
        """Node -> (virtual microseconds, its log start since then)."""
        self._kept: dict[int, _Kept] = {}
        """By first offset."""

    # -- oracle.Trimming

    def committed(self, header: BatchHeader, batch: memoryview) -> None:
        self._kept[header.base_offset] = _Kept(header.max_timestamp, bytes(batch))

    def history_lost(self) -> None:
        self.highest = min(self.highest, self._oracle.high_watermark)

    def whole(
        self, place: Place, log: Log, start: int, end: int, now_us: int, before: Sequence[Batch] = ()
    ) -> list[Batch]:
        found = list(batches(log, max(start, log.first_segment_offset), end))
        for number in range(len(found) - 1, 0, -1):
            # A loss of power may take a segment whose records were all deleted: nobody can read them.
            if found[number - 1].end < found[number].first <= log.log_start_offset:
                found = found[number:]
                break
        first = found[0].first if found else end
        if first > max(start, log.log_start_offset):
            raise Violation("S26", now_us, place, f": begins at {log.log_start_offset}, and its first batch at {first}")
        if first <= start:
            return found
        known = [batch for batch in before if start <= batch.first and batch.end <= first]
        if not known or known[0].first != start or known[-1].end != first:
            known = self.from_history(start, first)
        return known + found

    def committed_batches(self) -> list[memoryview]:
        """The history H whole, with what was trimmed of it."""
        return [memoryview(self._kept[batch.first].data) for batch in self._oracle.history]

    def from_history(self, start: int, end: int) -> list[Batch]:
        oracle, found = self._oracle, []
        position = oracle.position.get(start)
        while position is not None and position < len(oracle.history) and oracle.history[position].end <= end:
            found.append(oracle.history[position])
            position += 1
        return found

    # -- what the checks ask

    def started(self, node_id: int, now_us: int, start: int) -> None:
        """The log of a node has begun at `start` since now."""
        known = self.starts.setdefault(node_id, [])
        if not known or known[-1][1] != start:
            known.append((now_us, start))

    def least_start_since(self, node_id: int, since_us: int) -> int:
        """The lowest start that the log of a node has had since then."""
        known = self.starts.get(node_id, [])
        index = bisect_right(known, since_us, key=lambda each: each[0])
        return min((start for _, start in known[max(0, index - 1) :]), default=0)

    def retention_may_drop(self, start: int, end: int, log: Log, wall_ms: int, retention_ms: int, most: int) -> bool:
        """Whether all batches in [start, end) are too old, or too many without those behind the last that is not.

        Segments go oldest first, by size as long as `most` bytes stay, then by age.
        """
        going = [(batch, self._kept[batch.first]) for batch in self._between(start, end)]
        young = [
            number
            for number, (_, kept) in enumerate(going)
            if retention_ms < 0 or wall_ms - kept.latest_ms <= retention_ms
        ]
        if not young:
            return True
        if most < 0:
            return False
        staying = sum(len(kept.data) for _, kept in going[young[-1] + 1 :])
        return staying + sum(map(len, batch_bytes(log, end, log.log_end_offset))) >= most

    def _between(self, start: int, end: int) -> list[Batch]:
        return [batch for batch in self._oracle.history if batch.end > start and batch.first < end]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A DeleteRecords, as it was sent."""

    request: DeletionRequested
    state: PartitionState | None
    """Of the partition, at that moment."""
    lives: dict[int, int]
    """Of the brokers, at that moment."""


class TrimChecks:
    """All log starts, and the answers of clients about them."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._asked: dict[int, _Asked] = {}

    def begin(self, oracle: PartitionOracle) -> None:
        """Judge the partition's log starts from here on."""
        oracle.trimming = TrimAllowance(oracle)

    # -- log starts

    def check(
        self, place: Place, host: Host, hosted: HostedPartition, oracle: PartitionOracle, mirror: ReplicaMirror
    ) -> None:
        """S26: after a turn that may have moved the log start, and for each log that was opened."""
        allowance = allowance_of(oracle)
        log, replica = hosted.log, hosted.replica
        start = log.log_start_offset
        allowance.started(host.node_id, self._world.now_us, start)
        if log.first_segment_offset > start:
            self._fail(place, f": its first segment begins at {log.first_segment_offset}, its log at {start}")
        if replica.high_watermark < start:
            self._fail(place, f": begins at {start}, above its high watermark {replica.high_watermark}")
        if start <= allowance.highest or replica.leader_epoch < oracle.unclean_epoch or oracle.has_to_truncate(mirror):
            return
        if start > oracle.high_watermark:
            if oracle.unclean:
                return  # it has yet to cut off what an unclean election has lost
            self._fail(place, f": begins at {start}, and {oracle.high_watermark} is committed")
        if start not in allowance.requested and not self._may_drop(host, hosted, allowance):
            if hosted.leader is None or not allowance.all_requested:
                self._fail(
                    place,
                    f": begins at {start}. Nobody has asked for it, retention does not allow it, and no other "
                    f"replica began above {allowance.highest}",
                )
            allowance.all_requested.remove(min(allowance.all_requested))
            self._world.counts["trimming: all committed records deleted"] += 1
        allowance.highest = start
        self._world.counts["trimming: log starts moved"] += 1

    def _may_drop(self, host: Host, hosted: HostedPartition, allowance: TrimAllowance) -> bool:
        log = hosted.log
        start = log.log_start_offset
        if host.clock is None:
            return False
        settings = self._oracle.image.configs.get((_TOPIC, hosted.topic), {})
        since = max([allowance.highest, *(each for each in allowance.requested if each <= start)])
        retention_ms, most = int(settings.get("retention.ms", _WEEK_MS)), int(settings.get("retention.bytes", -1))
        dropped = log.first_segment_offset == start and allowance.retention_may_drop(
            since, start, log, host.clock.wall_ms(), retention_ms, most
        )
        self._world.counts["trimming: segments dropped by retention"] += dropped
        return dropped

    # -- clients

    def happened(self, event: Event) -> None:
        if isinstance(event, DeletionRequested):
            lives = {host.node_id: host.lives for host in self._world.hosts.values()}
            self._asked[event.number] = _Asked(event, self._oracle.states.get(event.partition), lives)
            allowance = allowance_of(self._oracle.partitions[event.partition])
            if event.offset == HIGH_WATERMARK:
                allowance.all_requested.add(event.number)
            else:
                allowance.requested.add(event.offset)
        elif isinstance(event, DeletionAnswered):
            self._check_deletion(event)

    def _check_deletion(self, answer: DeletionAnswered) -> None:
        """S26: an acknowledged offset is the start of the leader and of the whole ISR, in fact."""
        asked = self._asked.pop(answer.number)
        key, offset = asked.request.partition, asked.request.offset
        oracle = self._oracle.partitions[key]
        if answer.error != ErrorCode.REQUEST_TIMED_OUT:
            allowance_of(oracle).all_requested.discard(answer.number)
        if answer.error:
            self._world.counts["trimming: DeleteRecords refused"] += answer.error == ErrorCode.OFFSET_OUT_OF_RANGE
            return
        self._world.counts["trimming: DeleteRecords acknowledged"] += 1
        if answer.low_watermark < offset:
            self._fail(oracle.place, f": {offset} was asked for, and {answer.low_watermark} acknowledged")
        state = self._oracle.states.get(key)
        if oracle.unclean or state is None or state is not asked.state or state.leader != answer.broker_id:
            return
        if answer.low_watermark > oracle.high_watermark:
            self._fail(
                oracle.place, f": deleted below {answer.low_watermark}, and {oracle.high_watermark} is committed"
            )
        for broker_id in state.isr:
            mirror, host = oracle.mirrors.get(broker_id), self._world.hosts[broker_id]
            if mirror is None or host.lives != asked.lives[broker_id] or mirror.life != host.lives:
                continue
            if mirror.most_start < answer.low_watermark:  # (the leader knows it of a life that a crash has ended)
                self._fail(
                    oracle.place,
                    f": {answer.low_watermark} was acknowledged as the low watermark, {broker_id} is in sync "
                    f"and never began above {mirror.most_start}",
                )

    def check_read(self, oracle: PartitionOracle, broker_id: int, offset: int, since_us: int) -> None:
        """S26: no broker gives a record below the start of its log."""
        if oracle.trimming is None:
            return
        least = allowance_of(oracle).least_start_since(broker_id, since_us)
        if offset < least:
            self._fail(oracle.place, f": {offset} was read from {broker_id}, whose log began at {least}")

    def check_reset(self, oracle: PartitionOracle, position: int) -> None:
        """S26: a consumer whose offset is gone goes on at an offset below which records may be gone."""
        if oracle.trimming is not None and position > oracle.trimming.highest and not oracle.unclean:
            self._fail(
                oracle.place,
                f": a consumer is to go on at {position}, and only records below {oracle.trimming.highest} may be gone",
            )

    def _fail(self, *said: object) -> NoReturn:
        raise Violation("S26", self._world.now_us, *said)


def allowance_of(oracle: PartitionOracle) -> TrimAllowance:
    """The allowance of a partition in a run with trimming."""
    if not isinstance(oracle.trimming, TrimAllowance):
        raise TypeError(f"{oracle.name} is in a run without trimming")
    return oracle.trimming
