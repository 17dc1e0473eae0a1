"""An exactly-once application in the virtual world: it reads a position, writes what follows, and commits both at once.

Its input is a count: a transaction that finds the group's offset at `n` writes the numbers from `n` on, to any
partitions, and commits the offset behind them in the same transaction. So each number must be committed once, whatever
happens (X1). Several instances share a transactional id; one that was paused goes on as a zombie.

The client is one of `transaction.version` 2 (`bumps`), or an older one, which names its partitions first and keeps its
epoch. It does what client libraries do: the same request again after a lost answer, a new InitProducerId after an error
that it cannot get over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tanist.client.errors import Meaning, error_in
from tanist.client.offsets import offsets_in
from tanist.client.requests import Ask, Leader
from tanist.client.transactions import Transactions
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.cluster_client import BACKOFF_MS, REQUEST_TIMEOUT_MS
from tanist.sim.workload.group_members import SimGroupMember
from tanist.sim.workload.history import History
from tanist.sim.world.world import World
from tanist.wire.batch import NewRecord

_PRODUCE_TIMEOUT_MS: Final = 2_000
_GIVES_UP_SHARE: Final = 0.2
"""Of the failed attempts to write a batch: the application aborts instead of trying again."""
_HELD_UP_MS: Final = 400
"""How long the network may hold up a batch of a transaction that was aborted."""
_TRIES_MAX: Final = 60
"""Of one step: about six seconds, then the application starts again."""


class TransactionWitness:
    """Gets the answers to clients of transactions. This one looks at nothing."""

    def reads(self, source: str, group: str, partition: int, *, bumps: bool) -> None:
        """An application will number what it makes of a partition of its input."""

    def initialized(self, transactional_id: str, producer: tuple[int, int]) -> None:
        """A client has a new epoch."""

    def offset_committed(self, attempt: Attempt, group: str, topic: str, sent_us: int) -> None:
        """The offset of a transaction was taken; it was sent at this time."""

    def ended(self, attempt: Attempt, *, committed: bool) -> None:
        """A client has heard that its transaction is committed, or aborted."""

    def refused(self, client: str, where: tuple[str, int], error: int, waited_us: int) -> None:
        """A batch of a transaction was not written; the answer took so long."""


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
        self.member: SimGroupMember | None = None
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
        self.transactions = Transactions(transactional_id, timeout_ms=timeout_ms, adds_itself=bumps)
        self._witness = witness
        self._pause_ms = pause_ms
        self._abort_share = abort_share
        self._small_batches = small_batches
        self._attempt: Attempt
        """The transaction that is open, or was last."""

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
        self.next_life()
        if self.member is not None:
            self.run(self.member.die)

    # -- requests

    def _carry_out(self, asked: Ask | None, done: Callable[[Any, Meaning], None]) -> None:
        """Ask until there is an answer that is not a plain "later"; `done` gets it. None: nothing is to be asked."""
        tries = sent_us = 0

        def ask() -> None:
            nonlocal tries, sent_us
            tries, sent_us = tries + 1, self.now_us
            if tries > _TRIES_MAX:
                self._start_again()
            elif asked is None:
                done(None, Meaning.DONE)
            else:
                self.ask(asked, handle_response)

        def handle_response(response: Any) -> None:
            meaning = self.transactions.handle_response(response)
            is_batch = asked is not None and isinstance(asked.to, Leader)
            if asked is not None and isinstance(asked.to, Leader) and response is not None and error_in(response):
                where = (asked.to.topic, asked.to.partition)
                self._witness.refused(self.name, where, error_in(response), self.now_us - sent_us)
            if asked is not None and is_batch and meaning is not Meaning.DONE and self.rng.random() < _GIVES_UP_SHARE:
                self._give_up(asked)
            elif meaning.is_retriable:
                self.later(BACKOFF_MS, ask)
            else:
                done(response, meaning)

        ask()

    # -- the course of a transaction

    def _start_again(self) -> None:
        """An error that the application cannot get over: its next life fences this one."""
        self.world.counts["transactions: applications that start again"] += 1
        self.next_life()
        self.later(self.rng.randint(0, 4 * self._pause_ms + 100), self._initialize)

    def _give_up(self, batch: Ask) -> None:
        """Abort without an answer to each batch. One that the network has held up arrives after the marker."""
        self.world.counts["transactions: aborted with batches under way"] += 1
        self.next_life()
        self._attempt.commits = False
        self._end(goes_on=self.bumps, late=batch)

    def _initialize(self, *, keeps_id: bool = False) -> None:
        """A new epoch; with `keeps_id` for a producer that goes on after an error (KIP-360)."""
        if self.stopped:
            return

        def initialized() -> None:
            self._witness.initialized(self.transactional_id, self.transactions.producer)
            self._read()

        self._step(self.transactions.initialize(keeps_id=keeps_id), initialized)

    def _step(self, asked: Ask | None, then: Callable[[], None]) -> None:
        """Carry out, or start again."""
        self._carry_out(asked, lambda _, meaning: then() if meaning is Meaning.DONE else self._start_again())

    def _read(self) -> None:
        """Where the input has been read to, with no transaction open on it (KIP-447)."""
        if self.stopped:
            return
        partition, member = 0, ("", -1)
        if self.member is not None:
            owned = sorted(self.member.owned)
            if not owned:
                self.later(BACKOFF_MS, self._read)
                return
            partition, member = self.rng.choice(owned)[1], (self.member.member_id, self.member.epoch)

        def done(response: Any, meaning: Meaning) -> None:
            if meaning is Meaning.DONE:
                self._begin(max(0, offsets_in(response)[self.topic, partition][0]), partition, member)
            else:
                self._start_again()

        self._carry_out(self.transactions.stable_offsets(self.group, [(self.topic, partition)]), done)

    def _begin(self, first: int, partition: int, member: tuple[str, int]) -> None:
        producer = self.transactions.producer
        attempt = Attempt(self.name, self.transactional_id, producer, self.rng.random() >= self._abort_share)
        attempt.source, attempt.partition, attempt.member = self._sources[partition], partition, member
        attempt.first = number = first
        for target in sorted(self.rng.sample(range(self.partitions), self.rng.randint(1, self.partitions))):
            count = self.rng.randint(1, 3)
            attempt.numbers[target] = list(range(number, number + count))
            number += count
        self._attempt = attempt
        self._step(self.transactions.add_partitions((self.topic, each) for each in attempt.numbers), self._produce)

    def _produce(self) -> None:
        """To all partitions at once."""
        left = set(self._attempt.numbers)

        def written(partition: int) -> None:
            left.discard(partition)
            if not left:
                self._step(self.transactions.add_offsets(self.group), self._send_offset)

        for partition, numbers in self._attempt.numbers.items():
            batches = [[number] for number in numbers] if self._small_batches else [numbers]
            self._produce_to(partition, batches, partial(written, partition))

    def _produce_to(self, partition: int, batches: Sequence[list[int]], written: Callable[[], None]) -> None:
        """Batches of these numbers, one after the other."""
        where, (numbers, *others) = (self.topic, partition), batches
        wall_ms = self.clock.wall_ms()
        records = [NewRecord(wall_ms, None, f"{self._attempt.source}:{number}".encode()) for number in numbers]

        def done() -> None:
            self.transactions.written(where, len(numbers))
            if others:
                self._produce_to(partition, others, written)
            else:
                written()

        self._step(self.transactions.batch(where, records, timeout_ms=_PRODUCE_TIMEOUT_MS), done)

    def _send_offset(self) -> None:
        attempt, sent_us = self._attempt, self.now_us
        member_id, epoch = attempt.member
        asked = self.transactions.commit_offsets(
            self.group, {(self.topic, attempt.partition): attempt.next}, member_id=member_id, epoch=epoch
        )

        def done(_: Any, meaning: Meaning) -> None:
            if meaning is Meaning.ABORT and self.member is not None:
                self.world.counts["transactions: generations fenced"] += 1
                attempt.commits = False
                self._end()
            elif meaning is Meaning.DONE:
                self._witness.offset_committed(attempt, self.group, self.topic, sent_us)
                self._end()
            else:
                self._start_again()

        self._carry_out(asked, done)

    def _end(self, *, goes_on: bool = True, late: Ask | None = None) -> None:
        """Commit or abort; without `goes_on` the producer needs another epoch before it goes on.

        `late`: a batch that arrives when the transaction has ended.
        """
        attempt = self._attempt

        def ended() -> None:
            self._witness.ended(attempt, committed=attempt.commits)
            self.committed += attempt.commits
            if late is not None:
                held_up_ms = self.rng.randint(0, _HELD_UP_MS)
                self.clock.call_at(self.clock.now_ms() + held_up_ms, lambda: self._arrive_late(late))
            following = self._read if goes_on else partial(self._initialize, keeps_id=True)
            pause_ms = self.rng.randint(0, self._pause_ms if goes_on else _HELD_UP_MS)
            self.later(pause_ms, following)

        self._step(self.transactions.end(committed=attempt.commits), ended)

    def _arrive_late(self, batch: Ask) -> None:
        where = self.channel_to(batch.to)
        if where is not None:
            where.call(batch.request, batch.newest, REQUEST_TIMEOUT_MS, lambda response: None)
