"""Transactions: what is committed against what each application must have committed (X1-X12).

While the run goes on:

    X4  when a client has a new epoch of a transactional id, no transaction of an older epoch is committed any more
    X12 a write is refused with an error of Produce only, its sequence never, and without faults not before its time
    X11 when another member of a group has a partition, an earlier generation commits no offset of it (KIP-447)
    X5  a partition's last stable offset never goes back, and is never above the high watermark

After the faults, by a scan of the logs:

    X1  each number of an application is committed once, up to its committed offset: atomic over partitions and offsets
    X2  a transaction whose commit was acknowledged is committed whole; one whose abort was acknowledged, not at all
    X3  a marker ends a transaction of its own epoch, or (with bumps) of the one before
    X7  no transaction stays open: each last stable offset reaches the high watermark
    X10 a reader of committed records has got each of them once, in the order of the log, and nothing else
    X8  on each replica the producers and the aborted transactions are those of a scan of its log

Retention and DeleteRecords take records of any transaction away; `checkers/trimming.py` has the history whole. X1 to X3
hold for the history, and X10 for what the reader was not too late for. A record that a log has lost so may be written
again: by a retry, at a leader that knows nothing of its producer. X8 allows a replica to know of records below its
start, and X5 a last stable offset that goes back to a leader that knows of more.

Unclean elections lose committed records. X5, X7, X8 and X10 hold all the same; X5 begins anew, and X10 is a reader's
that begins after the faults. X1 to X4 are judged if the logs of the coordinators have lost nothing, and of X1 only
that nothing is committed twice or without its offset: numbers may be lost. An old client's next transaction may have
joined one that has lost its marker, so there X1 is not judged at all. X6, that a coordinator's table is the replay of
its log, is judged by `checkers/coordinators.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.transactions.transaction_coordinator import TransactionCoordinator
from tanist.coordinator.transactions.state import (
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionValues,
    values_of,
)
from tanist.events.coordination import HangingTransactionEnded
from tanist.events.event import Event
from tanist.log.log import Log
from tanist.log.markers import parse_marker
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Place
from tanist.sim.oracle import batch_bytes
from tanist.sim.workload.committed_reader import CommittedReader
from tanist.sim.workload.membership import Assignments
from tanist.sim.workload.transactional import Attempt, TransactionWitness
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.batch import BatchHeader, decode_batch, iterate_batches
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import OffsetCommitKey, OffsetCommitValue, decode_group_record
from tanist.wire.ids import TopicIdPartition
from tanist.wire.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tanist.wire.transaction_records import TransactionKey, TransactionValue, decode_transaction_record

_OF_COORDINATORS = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    )
)
_OF_TROUBLE = frozenset(
    (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
    )
)
"""Other producers, or faults."""
_PATIENCE_US = 98_000
"""For so long a broker waits for the transaction before: `add.partitions.to.txn.retry.backoff.max.ms`, rounded."""
_UNDER_WAY = frozenset((ONGOING, PREPARE_COMMIT, PREPARE_ABORT))


@dataclass(slots=True)
class Scan:
    """The transactions of one log."""

    committed: list[tuple[int, bytes | None, bytes | None]] = field(default_factory=list)
    """Offset, key and value of records that count, in the order in which they came to count."""
    open: dict[int, int] = field(default_factory=dict)
    """Producer -> the first offset of its open transaction."""
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """(producer, first offset, offset of the marker)."""
    epochs: dict[int, int] = field(default_factory=dict)
    """Producer -> its last epoch."""
    wrong_markers: list[str] = field(default_factory=list)


class TransactionChecks(Watcher, TransactionWitness):
    """The `TransactionWitness` of a run's clients, and a `Watcher` of its world."""

    def __init__(self, world: World, replicas: ReplicaChecks, *, calm: bool = False) -> None:
        """`calm`: there are no faults."""
        self._world = world
        self._calm = calm
        self._replicas = replicas
        self._stable: dict[tuple[TopicIdPartition, int, int], int] = {}
        """By partition, the number of unclean elections, and with trimmed logs the leader epoch."""
        self._epochs: dict[str, tuple[int, int]] = {}
        """The newest epoch that a client has of each transactional id."""
        self._producer_ids: dict[str, list[int]] = {}
        """Of each transactional id, in the order of its log; brokers have blocks of them, so they may go down."""
        self._retired: dict[str, set[int]] = {}
        """Producer ids that a transactional id has had before."""
        self._read: dict[TopicIdPartition, int] = {}
        self.assignments = Assignments(world)
        self._sources: dict[str, tuple[str, int]] = {}
        """Group and partition of the input, by the name before the numbers."""
        self._bumping: set[str] = set()
        """Those whose clients are of `transaction.version` 2."""
        self.committed: list[Attempt] = []
        self.aborted: list[Attempt] = []
        world.watchers.append(self)

    # -- clients

    def reads(self, source: str, group: str, partition: int, *, bumps: bool) -> None:
        self._sources[source] = (group, partition)
        if bumps:
            self._bumping.add(source)

    def offset_committed(self, attempt: Attempt, group: str, topic: str, sent_us: int) -> None:
        member_id, generation = attempt.member
        since_us = self.assignments.since(group, (topic, attempt.partition), generation, member_id)
        if since_us is not None and since_us < sent_us and not self._has_lost(OFFSETS_TOPIC):
            self._fail(
                "X11",
                f"{attempt.client} commits {group}'s offset of {topic}-{attempt.partition} in generation "
                f"{generation}, and another member has had it since {since_us / 1e6:.3f} s",
            )

    def initialized(self, transactional_id: str, producer: tuple[int, int]) -> None:
        self._world.counts["transactions: producers initialized"] += 1
        known = self._producer_ids.setdefault(transactional_id, [])
        if producer[0] not in known:
            known.append(producer[0])

        def age(one: tuple[int, int]) -> tuple[int, int]:
            return known.index(one[0]), one[1]

        # A client that was paused hears late of an epoch that is over by then.
        older, newest = sorted((self._epochs.get(transactional_id, producer), producer), key=age)
        if older[0] != newest[0]:
            self._retired.setdefault(transactional_id, set()).add(older[0])
        self._epochs[transactional_id] = newest

    def ended(self, attempt: Attempt, *, committed: bool) -> None:
        self._world.counts[f"transactions: {'committed' if committed else 'aborted'}"] += 1
        (self.committed if committed else self.aborted).append(attempt)

    def refused(self, client: str, where: tuple[str, int], error: int, waited_us: int) -> None:
        out_of_order = error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self.has_lost
        too_early = error == ErrorCode.CONCURRENT_TRANSACTIONS and waited_us < _PATIENCE_US
        calm = self._calm and (too_early or error in _OF_TROUBLE)
        if error in _OF_COORDINATORS or out_of_order or calm:
            self._fail("X12", f"{client}'s batch of {where[0]}-{where[1]} is refused with error {error}")

    # -- the world

    def turn_ended(self, host: Host) -> None:
        node = host.node
        if node is None:
            return
        for hosted in node.replicas:
            if hosted.leader is None or hosted.stale:
                continue
            key = (hosted.topic_id, hosted.index)
            oracle = self._replicas.oracles.get(key)
            if oracle is None or hosted.leader_epoch < oracle.unclean_epoch:
                continue
            if hosted.leader.high_watermark < oracle.high_watermark:
                continue
            high_watermark = hosted.leader.high_watermark
            stable = hosted.log.producers.last_stable_offset(high_watermark)
            since = (key, oracle.unclean, 0 if oracle.trimming is None else hosted.leader_epoch)
            before = self._stable.get(since, 0)
            if stable > high_watermark or stable < before:
                self._fail("X5", f"{oracle.name}: last stable offset {stable} after {before}, at {high_watermark}")
            self._stable[since] = stable
            if hosted.topic == TRANSACTIONS_TOPIC and not self._has_lost(TRANSACTIONS_TOPIC):
                self._read_decisions(hosted, key, oracle.high_watermark)

    def observed(self, host: Host, event: Event) -> None:
        if isinstance(event, HangingTransactionEnded):
            self._world.counts["transactions: lost markers"] += 1

    def _read_decisions(self, hosted: HostedPartition, key: TopicIdPartition, high_watermark: int) -> None:
        at = self._read.get(key, 0)
        if high_watermark <= at:
            return
        self._read[key] = high_watermark
        for transactional_id, values in _states(hosted.log, at, high_watermark):
            known = self._producer_ids.setdefault(transactional_id, [])
            if values is not None and values.producer_id not in known:
                known.append(values.producer_id)
            if values is None or values.state is not PREPARE_COMMIT:
                continue
            newest = self._epochs.get(transactional_id)
            epoch = values.producer_epoch - values.bumps_epoch
            retired = values.producer_id in self._retired.get(transactional_id, ())
            if retired or (newest is not None and newest[0] == values.producer_id and epoch < newest[1]):
                self._fail(
                    "X4", f"{transactional_id} commits in epoch {epoch} of {values.producer_id}, a client has {newest}"
                )

    # -- after the faults

    def none_open(self) -> bool:
        """X7: no transaction is open, every marker is written, and all that is written is committed."""
        return not self.open_transactions()

    def open_transactions(self) -> list[str]:
        found: list[str] = []
        followed: dict[TopicIdPartition, str] = {}
        led: set[TopicIdPartition] = set()
        for node in self._world.nodes():
            for hosted in node.replicas:
                key = (hosted.topic_id, hosted.index)
                followed[key] = f"{hosted.topic}-{hosted.index}"
                if hosted.leader is not None:
                    led.add(key)
                    stable = hosted.log.producers.last_stable_offset(hosted.leader.high_watermark)
                    if stable < hosted.leader.high_watermark:
                        found.append(f"{hosted.topic}-{hosted.index} is stable to {stable}")
                    elif hosted.leader.high_watermark < hosted.log.log_end_offset:
                        found.append(f"{hosted.topic}-{hosted.index} is committed to {hosted.leader.high_watermark}")
            coordinator = node.components.transactions.loaded
            if coordinator is not None:
                found += self._under_way(coordinator)
        # The metadata may name a leader that has been killed, and is back before its session has ended.
        found += [f"{name} is led by nobody" for key, name in followed.items() if key not in led]
        return found

    def _under_way(self, coordinator: TransactionCoordinator) -> Iterator[str]:
        """Transactions that the coordinator has begun and not ended, whether they have written anything or not."""
        for partition in coordinator.partitions():
            for transactional_id, values in partition.shard.described():
                if values.state in _UNDER_WAY:
                    yield f"{transactional_id} is {values.state.name}"

    def check(self, reader: CommittedReader) -> None:
        """X1 to X3, X8 and X10. All replicas are equal, and nothing is written any more."""
        decided = not self._has_lost(TRANSACTIONS_TOPIC) and not self._has_lost(OFFSETS_TOPIC)
        offsets: dict[tuple[str, int], int] = {}
        numbers: Counter[str] = Counter()
        for node in self._world.nodes():
            for hosted in node.replicas:
                own = scan_of(batch_bytes(hosted.log, hosted.log.log_start_offset, hosted.log.log_end_offset))
                oracle = self._replicas.oracles[hosted.topic_id, hosted.index]
                trimming = oracle.trimming
                scan = own if trimming is None else scan_of(trimming.committed_batches())
                aborted = scan.aborted if oracle.compaction is None else oracle.compaction.aborted
                self._check_replica(Place(f"{hosted.topic}-{hosted.index}", node.node_id), hosted.log, own, aborted)
                if hosted.leader is None:
                    continue
                if hosted.topic == reader.topic:
                    self._check_read(hosted, scan, reader)
                    numbers.update(numbers_of(scan, 0 if trimming is None else trimming.highest))
                if not decided:
                    continue
                if scan.wrong_markers:
                    self._fail("X3", f"{hosted.topic}-{hosted.index}: {scan.wrong_markers[0]}")
                if hosted.topic == OFFSETS_TOPIC:
                    offsets.update(_offsets_of(scan))
        if decided:
            self._check_numbers(numbers, offsets)

    @property
    def has_lost(self) -> bool:
        """Whether an unclean election has lost committed records of any partition."""
        return any(oracle.lost for oracle in self._replicas.oracles.values())

    def _has_lost(self, topic: str) -> bool:
        return any(oracle.lost for oracle in self._replicas.oracles.values() if oracle.name.rpartition("-")[0] == topic)

    def _check_read(self, hosted: HostedPartition, scan: Scan, reader: CommittedReader) -> None:
        read, skipped = reader.values[hosted.index], reader.skipped[hosted.index]
        wanted = sorted(
            (offset, value or b"") for offset, _, value in scan.committed if not any(offset in gone for gone in skipped)
        )
        if read != wanted:
            at = next((n for n, pair in enumerate(zip(read, wanted, strict=False)) if pair[0] != pair[1]), len(wanted))
            self._fail(
                "X10",
                f"{hosted.topic}-{hosted.index}: read {read[at : at + 1]} where {wanted[at : at + 1]} is "
                f"committed, {len(read)} records of {len(wanted)}",
            )

    def _check_numbers(self, numbers: Counter[str], offsets: dict[tuple[str, int], int]) -> None:
        wanted = {
            f"{source}:{number}" for source, read in self._sources.items() for number in range(offsets.get(read, 0))
        }
        if self.has_lost:
            # An old client's transactions have the same epochs.
            old = self._sources.keys() - self._bumping
            numbers = Counter({each: count for each, count in numbers.items() if each.partition(":")[0] not in old})
        twice = [number for number, count in numbers.items() if count > 1]
        if twice:
            self._fail("X1", f"committed more than once: {', '.join(sorted(twice)[:5])}")
        if (missing := wanted - numbers.keys()) and not self.has_lost:
            self._fail("X1", f"not committed, though the offset is: {', '.join(sorted(missing)[:5])}")
        if extra := numbers.keys() - wanted:
            self._fail("X1", f"committed without the offset: {', '.join(sorted(extra)[:5])}")
        for attempt in self.committed:
            if attempt.next > offsets.get(self._sources[attempt.source], 0):
                self._fail("X2", f"{attempt.client}: {attempt.next} was acknowledged, and is not committed")

    def _check_replica(self, place: Place, log: Log, own: Scan, aborted: list[tuple[int, int, int]]) -> None:
        """X8, by a scan of the replica's own log, and what was aborted before it was trimmed or compacted."""
        entries = log.producers.entries
        known = {
            producer_id: entry.transaction_first_offset
            for producer_id, entry in entries.items()
            if entry.transaction_first_offset >= 0
        }
        if known != own.open:
            self._fail("X8", place, f": open transactions {known}, a scan finds {own.open}")
        for producer_id, entry in entries.items():
            if entry.epoch != own.epochs.get(producer_id, entry.epoch):
                found = own.epochs[producer_id]
                self._fail("X8", place, f": producer {producer_id} in epoch {entry.epoch}, a scan finds {found}")
        index = [
            (each.producer_id, each.first_offset, each.last_offset)
            for each in log.aborted_transactions(log.log_start_offset, log.log_end_offset)
        ]
        if aborted is not own.aborted:
            self._check_aborted(place, index, own, aborted)
        elif sorted(index) != sorted(own.aborted):
            self._fail("X8", place, f": aborted transactions {sorted(index)}, a scan finds {sorted(own.aborted)}")

    def _check_aborted(
        self, place: Place, index: list[tuple[int, int, int]], own: Scan, aborted: list[tuple[int, int, int]]
    ) -> None:
        """X8 with records that are gone, by trimming or compaction: its index may know of them, or not."""
        known = {(producer_id, last): first for producer_id, first, last in index}
        first_of = {(producer_id, last): first for producer_id, first, last in aborted}
        for producer_id, first, last in own.aborted:
            if known.get((producer_id, last), last) > first:
                self._fail("X8", place, f": aborted transactions {index}, a scan finds {(producer_id, first, last)}")
        for key, first in known.items():
            if key not in first_of or first < first_of[key]:
                self._fail("X8", place, f": an aborted transaction {key} from {first} on, the history has {first_of}")

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)


def numbers_of(scan: Scan, start: int) -> list[str]:
    """The committed numbers; of one that was written again, those below the `start` of a log do not count."""
    found = [(offset, (value or b"").decode()) for offset, _, value in scan.committed]
    last = {number: offset for offset, number in sorted(found)}
    return [number for offset, number in found if offset >= start or offset == last[number]]


def scan_of(views: Iterable[memoryview]) -> Scan:
    """The transactions of a log, by the batches in it."""
    scan = Scan()
    pending: dict[int, list[tuple[BatchHeader, memoryview]]] = {}
    for view in views:
        for header, batch in iterate_batches(view):
            producer_id = header.producer_id
            if producer_id >= 0:
                scan.epochs[producer_id] = header.producer_epoch
            if header.is_control:
                _end(scan, header, batch, pending.pop(producer_id, []))
            elif header.is_transactional:
                scan.open.setdefault(producer_id, header.base_offset)
                pending.setdefault(producer_id, []).append((header, batch))
            else:
                scan.committed += [(record.offset, record.key, record.value) for record in decode_batch(batch)]
    return scan


def _end(scan: Scan, header: BatchHeader, batch: memoryview, ended: list[tuple[BatchHeader, memoryview]]) -> None:
    marker = parse_marker(batch)
    if marker is None:
        return
    first = scan.open.pop(header.producer_id, -1)
    for data, _ in ended:
        ahead = header.producer_epoch - data.producer_epoch
        if not 0 <= ahead <= (2 if marker.aborted else 1):
            scan.wrong_markers.append(
                f"the marker at {header.base_offset} has epoch {header.producer_epoch}, and ends a batch of "
                f"{data.producer_epoch} at {data.base_offset}"
            )
    if marker.aborted:
        if first >= 0:
            scan.aborted.append((header.producer_id, first, header.base_offset))
        return
    for _, view in ended:
        scan.committed += [(record.offset, record.key, record.value) for record in decode_batch(view)]


def _offsets_of(scan: Scan) -> dict[tuple[str, int], int]:
    """The committed offsets, by group and partition."""
    found: dict[tuple[str, int], int] = {}
    for _, key, value in scan.committed:
        decoded = None if key is None else decode_group_record(key, value)
        if decoded is not None and isinstance(decoded[0], OffsetCommitKey):
            committed = decoded[1]
            if isinstance(committed, OffsetCommitValue):
                found[decoded[0].group, decoded[0].partition] = committed.offset
    return found


def _states(log: Log, start: int, end: int) -> Iterator[tuple[str, TransactionValues | None]]:
    for view in batch_bytes(log, start, end):
        for _, batch in iterate_batches(view):
            for record in decode_batch(batch):
                if record.key is None or not start <= record.offset < end:
                    continue
                decoded = decode_transaction_record(record.key, record.value)
                if decoded is not None and isinstance(decoded[0], TransactionKey):
                    value = decoded[1]
                    stored = values_of(value) if isinstance(value, TransactionValue) else None
                    yield decoded[0].transactional_id, stored
