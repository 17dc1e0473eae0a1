"""An exactly-once application in the virtual world: it reads a position, writes what follows, and commits both at once.

Its input is a count: a transaction that finds the group's offset at `n` writes the numbers from `n` on, to any
partitions, and commits the offset behind them in the same transaction. So each number must be committed once, whatever
happens (X1). Several instances share a transactional id; one that was paused goes on as a zombie.

The client is one of `transaction.version` 2 (`bumps`), or an older one, which names its partitions first and keeps its
epoch. It does what client libraries do: the same request again after a lost answer, a new InitProducerId after an error
that it cannot get over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from tanist.sim.workload.clients import BACKOFF_MS, REQUEST_TIMEOUT_MS, SimClient
from tanist.sim.workload.group_members import GroupMember
from tanist.sim.workload.history import History
from tanist.sim.world.world import World
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import RETRIABLE, ErrorCode
from tanist.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from tanist.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP, TRANSACTION = 0, 1
"""Types of coordinators."""

_FIND_COORDINATOR_VERSION: Final = 4
_INIT_PRODUCER_ID_VERSION: Final = 4
_OFFSET_FETCH_VERSION: Final = 9
_ADD_PARTITIONS_VERSION: Final = 3
_ADD_OFFSETS_VERSION: Final = 3
_OLD = {"produce": 9, "offsets": 3, "end": 3}
_BUMPING = {"produce": 12, "offsets": 5, "end": 5}

_ELSEWHERE: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
_AGAIN: Final = _ELSEWHERE | {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
_FENCED_MEMBER: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
"""The group has given the partition away, or is about to: the transaction is aborted (KIP-447)."""
_GIVES_UP_SHARE: Final = 0.2
"""Of the failed attempts to write a batch: the application aborts instead of trying again."""
_HELD_UP_MS: Final = 400
"""How long the network may hold up a batch of a transaction that was aborted."""
_TRIES_MAX: Final = 60
"""Of one step: about six seconds, then the application starts again."""


class TransactionWitness(Protocol):
    """Gets the answers to clients of transactions."""

    def reads(self, source: str, group: str, partition: int, *, bumps: bool) -> None:
        """An application will number what it makes of a partition of its input."""

    def initialized(self, transactional_id: str, producer: tuple[int, int]) -> None:
        """A client has a new epoch."""

    def offset_committed(self, attempt: Attempt, group: str, topic: str, sent_us: int) -> None:
        """The offset of a transaction was taken; it was sent at this time."""

    def ended(self, attempt: Attempt, *, committed: bool) -> None:
        """A client has heard that its transaction is committed, or aborted."""


@dataclass(slots=True, eq=False)
class Attempt:
    """One transaction of one client."""

    client: str
    transactional_id: str
    producer: tuple[int, int]
    commits: bool
    """Whether the client means to commit it."""
    source: str = ""
    """The name before its numbers."""
    partition: int = 0
    """Of the input."""
    member: tuple[str, int] = ("", -1)
    """Member id and generation with which it reads the partition."""
    first: int = -1
    numbers: dict[int, list[int]] = field(default_factory=dict)
    """By partition: the numbers that it writes there."""

    @property
    def next(self) -> int:
        return self.first + sum(len(each) for each in self.numbers.values())


class TransactionalClient(SimClient):
    """One instance of an exactly-once application."""

    def __init__(
        self,
        world: World,
        name: str,
        witness: TransactionWitness,
        transactional_id: str,
        topic: str,
        partitions: int,
        *,
        bumps: bool,
        timeout_ms: int,
        pause_ms: int,
        abort_share: float,
        application: str = "",
        small_batches: bool = False,
    ) -> None:
        """With `application` it reads the partitions that a group gives it, and shares none with other instances.

        `small_batches`: of one record each, so that a transaction has several in a partition.
        """
        super().__init__(world, name, History())
        self.transactional_id = transactional_id
        self.group = f"{application or transactional_id}-group"
        self.member: GroupMember | None = None
        if application:
            self._sources = [f"{application}/{index}" for index in range(partitions)]
        else:
            self._sources = [transactional_id]
        for index, source in enumerate(self._sources):
            witness.reads(source, self.group, index, bumps=bumps)
        self.topic = topic
        self.partitions = partitions
        self.bumps = bumps
        self.committed = 0
        """Transactions whose commit was acknowledged."""
        self.errors: Counter[int] = Counter()
        self._versions = _BUMPING if bumps else _OLD
        self._witness = witness
        self._timeout_ms = timeout_ms
        self._pause_ms = pause_ms
        self._abort_share = abort_share
        self._small_batches = small_batches
        self._coordinators: dict[int, tuple[str, int]] = {}
        self._producer = (-1, -1)
        self._sequences: dict[int, int] = {}
        self._sequences_of = (-1, -1)
        self._life = 0

    def start(self) -> None:
        if self.member is not None:
            self.run(self.member.start)
        self.run(self._initialize)

    def stop(self) -> None:
        """Begin no new transaction."""
        self.stopped = True
        if self.member is not None:
            self.run(self.member.leave)

    def abandon(self) -> None:
        """The client is gone for good, perhaps in the middle of a transaction."""
        self.stopped = True
        self._life += 1
        if self.member is not None:
            self.run(self.member.die)

    # -- requests

    def _to_coordinator(
        self, kind: int, request: Any, version: int, error_of: Callable[[Any], int], done: Callable[[Any, int], None]
    ) -> None:
        """Ask until there is an answer that is not a plain "later"; `done` gets it with its error."""
        life, tries = self._life, 0

        def ask() -> None:
            nonlocal tries
            if self._life != life:
                return
            tries += 1
            if tries > _TRIES_MAX:
                self._start_again()
                return
            where = self._coordinators.get(kind)
            if where is None:
                self._find(kind, ask)
                return
            self.channel(where).call(request, version, REQUEST_TIMEOUT_MS, answered)

        def answered(response: Any) -> None:
            if self._life != life:
                return
            if response is None:
                self._coordinators.pop(kind, None)
                self.later(BACKOFF_MS, ask)
                return
            error = error_of(response)
            if error:
                self.errors[error] += 1
            if error in _ELSEWHERE:
                self._coordinators.pop(kind, None)
            if error in _AGAIN:
                self.later(BACKOFF_MS, ask)
                return
            done(response, error)

        ask()

    def _find(self, kind: int, then: Callable[[], None]) -> None:
        key = self.transactional_id if kind == TRANSACTION else self.group

        def answered(response: Any) -> None:
            found = None if response is None else response.coordinators[0]
            if found is not None and not found.error_code:
                self._coordinators[kind] = (found.host, found.port)
            self.later(0 if kind in self._coordinators else BACKOFF_MS, then)

        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
        self.any_broker().call(request, _FIND_COORDINATOR_VERSION, REQUEST_TIMEOUT_MS, answered)

    # -- the course of a transaction

    def _start_again(self) -> None:
        """An error that the application cannot get over: its next life fences this one."""
        self.world.counts["transactions: applications that start again"] += 1
        self._life += 1
        life = self._life
        pause_ms = self.rng.randint(0, 4 * self._pause_ms + 100)
        self.later(pause_ms, lambda: self._initialize() if self._life == life else None)

    def _give_up(self, attempt: Attempt, partition: int, request: ProduceRequest) -> None:
        """Abort without an answer to each batch. One that the network has held up arrives after the marker."""
        self.world.counts["transactions: aborted with batches under way"] += 1
        self._life += 1
        attempt.commits = False
        self._end(attempt, goes_on=self.bumps, late=(partition, request))

    def _initialize(self, expected: tuple[int, int] = (-1, -1)) -> None:
        """A new epoch; with `expected` for a producer that goes on after an error (KIP-360)."""
        if self.stopped:
            return

        def done(response: Any, error: int) -> None:
            if error:
                self._start_again()
                return
            self._producer = (response.producer_id, response.producer_epoch)
            self._witness.initialized(self.transactional_id, self._producer)
            self._read()

        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        self._to_coordinator(
            TRANSACTION, request, _INIT_PRODUCER_ID_VERSION, lambda response: int(response.error_code), done
        )

    def _read(self) -> None:
        """Where the input has been read to, with no transaction open on it (KIP-447)."""
        if self.stopped:
            return
        partition, member = 0, ("", -1)
        if self.member is not None:
            owned = sorted(self.member.owned)
            if not owned:
                life = self._life
                self.later(BACKOFF_MS, lambda: self._read() if self._life == life else None)
                return
            partition, member = self.rng.choice(owned)[1], (self.member.member_id, self.member.epoch)

        def error_of(response: Any) -> int:
            group = response.groups[0]
            return int(group.error_code or group.topics[0].partitions[0].error_code)

        def done(response: Any, error: int) -> None:
            if error:
                self._start_again()
                return
            offset = response.groups[0].topics[0].partitions[0].committed_offset
            self._begin(max(0, offset), partition, member)

        group = OffsetFetchRequestGroup(
            group_id=self.group, topics=(OffsetFetchRequestTopics(name=self.topic, partition_indexes=(partition,)),)
        )
        request = OffsetFetchRequest(groups=(group,), require_stable=True)
        self._to_coordinator(GROUP, request, _OFFSET_FETCH_VERSION, error_of, done)

    def _begin(self, first: int, partition: int, member: tuple[str, int]) -> None:
        attempt = Attempt(self.name, self.transactional_id, self._producer, self.rng.random() >= self._abort_share)
        attempt.source, attempt.partition, attempt.member = self._sources[partition], partition, member
        attempt.first = number = first
        for target in sorted(self.rng.sample(range(self.partitions), self.rng.randint(1, self.partitions))):
            count = self.rng.randint(1, 3)
            attempt.numbers[target] = list(range(number, number + count))
            number += count
        if self._sequences_of != self._producer:
            self._sequences_of, self._sequences = self._producer, {}
        if self.bumps:
            self._produce(attempt, list(attempt.numbers))
        else:
            self._add_partitions(attempt)

    def _add_partitions(self, attempt: Attempt) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=attempt.producer[0],
            v3_and_below_producer_epoch=attempt.producer[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=self.topic, partitions=tuple(attempt.numbers)),),
        )

        def error_of(response: Any) -> int:
            results = response.results_by_topic_v3_and_below[0].results_by_partition
            return next((int(each.partition_error_code) for each in results if each.partition_error_code), 0)

        def done(response: Any, error: int) -> None:
            if error:
                self._start_again()
            else:
                self._produce(attempt, list(attempt.numbers))

        self._to_coordinator(TRANSACTION, request, _ADD_PARTITIONS_VERSION, error_of, done)

    def _produce(self, attempt: Attempt, partitions: list[int]) -> None:
        """One partition after the other, or all at once."""
        left = set(partitions)

        def written(partition: int) -> None:
            left.discard(partition)
            if not left:
                self._commit_offset(attempt)

        for partition in partitions:
            numbers = attempt.numbers[partition]
            batches = [[number] for number in numbers] if self._small_batches else [numbers]
            self._produce_to(attempt, partition, batches, partial(written, partition))

    def _produce_to(
        self, attempt: Attempt, partition: int, batches: Sequence[list[int]], written: Callable[[], None]
    ) -> None:
        """Batches of these numbers, one after the other."""
        life, tries = self._life, 0
        numbers = batches[0]
        sequence = self._sequences.get(partition, 0)

        def ask() -> None:
            nonlocal tries
            if self._life != life:
                return
            tries += 1
            where = self.leader_of(self.topic, partition)
            if tries > _TRIES_MAX:
                self._start_again()
                return
            if where is None:
                self.refresh([self.topic])
                self.later(BACKOFF_MS, ask)
                return
            request = self._produce_request(attempt, partition, numbers, sequence)
            where[2].call(request, self._versions["produce"], REQUEST_TIMEOUT_MS, answered)

        def answered(response: Any) -> None:
            if self._life != life:
                return
            error = -1 if response is None else int(response.responses[0].partition_responses[0].error_code)
            if error in (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._sequences[partition] = sequence + len(numbers)
                if len(batches) > 1:
                    self._produce_to(attempt, partition, batches[1:], written)
                else:
                    written()
                return
            if error > 0:
                self.errors[error] += 1
            if error and self.rng.random() < _GIVES_UP_SHARE:
                self._give_up(attempt, partition, self._produce_request(attempt, partition, numbers, sequence))
            elif error == -1 or error in RETRIABLE or error == ErrorCode.CONCURRENT_TRANSACTIONS:
                self.refresh([self.topic])
                self.later(BACKOFF_MS, ask)
            else:
                self._start_again()

        ask()

    def _produce_request(
        self, attempt: Attempt, partition: int, numbers: Sequence[int], sequence: int
    ) -> ProduceRequest:
        wall_ms = self.clock.wall_ms()
        values = [f"{attempt.source}:{number}".encode() for number in numbers]
        records = encode_batch(
            [NewRecord(wall_ms, None, value) for value in values],
            producer_id=attempt.producer[0],
            producer_epoch=attempt.producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=partition, records=bytes(records))
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=2_000,
            topic_data=(TopicProduceData(name=self.topic, partition_data=(data,)),),
        )

    def _commit_offset(self, attempt: Attempt) -> None:
        if self.bumps:
            self._send_offset(attempt)
            return
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=attempt.producer[0],
            producer_epoch=attempt.producer[1],
            group_id=self.group,
        )

        def done(response: Any, error: int) -> None:
            if error:
                self._start_again()
            else:
                self._send_offset(attempt)

        self._to_coordinator(
            TRANSACTION, request, _ADD_OFFSETS_VERSION, lambda response: int(response.error_code), done
        )

    def _send_offset(self, attempt: Attempt) -> None:
        offset = TxnOffsetCommitRequestPartition(partition_index=attempt.partition, committed_offset=attempt.next)
        sent_us = self.now_us
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group,
            producer_id=attempt.producer[0],
            producer_epoch=attempt.producer[1],
            member_id=attempt.member[0],
            generation_id=attempt.member[1],
            topics=(TxnOffsetCommitRequestTopic(name=self.topic, partitions=(offset,)),),
        )

        def done(response: Any, error: int) -> None:
            if error in _FENCED_MEMBER and self.member is not None:
                self.world.counts["transactions: generations fenced"] += 1
                attempt.commits = False
                self._end(attempt)
            elif error:
                self._start_again()
            else:
                self._witness.offset_committed(attempt, self.group, self.topic, sent_us)
                self._end(attempt)

        self._to_coordinator(
            GROUP,
            request,
            self._versions["offsets"],
            lambda response: int(response.topics[0].partitions[0].error_code),
            done,
        )

    def _end(self, attempt: Attempt, *, goes_on: bool = True, late: tuple[int, ProduceRequest] | None = None) -> None:
        """Commit or abort; without `goes_on` the producer needs another epoch before it goes on.

        `late`: a partition, and a batch for it that arrives when the transaction has ended.
        """
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=attempt.producer[0],
            producer_epoch=attempt.producer[1],
            committed=attempt.commits,
        )

        def done(response: Any, error: int) -> None:
            if error:
                self._start_again()
                return
            self._witness.ended(attempt, committed=attempt.commits)
            self.committed += attempt.commits
            if self.bumps:
                self._producer = (response.producer_id, response.producer_epoch)
            if late is not None:
                self.later(self.rng.randint(0, _HELD_UP_MS), lambda: self._arrive_late(*late))
            life = self._life
            following = self._read if goes_on else lambda: self._initialize(attempt.producer)
            pause_ms = self.rng.randint(0, self._pause_ms if goes_on else _HELD_UP_MS)
            self.later(pause_ms, lambda: following() if self._life == life else None)

        self._to_coordinator(
            TRANSACTION, request, self._versions["end"], lambda response: int(response.error_code), done
        )

    def _arrive_late(self, partition: int, request: ProduceRequest) -> None:
        where = self.leader_of(self.topic, partition)
        if where is not None:
            where[2].call(request, self._versions["produce"], REQUEST_TIMEOUT_MS, lambda response: None)
