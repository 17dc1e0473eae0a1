"""Transactions as a space of states: one transactional id, two partitions, two instances of its application.

Owns `TransactionModel`, a third model beside `partition` and `quorum`, over `coordinator.transactions.TransactionShard`
and `log.ProducerStates`. The possible steps are here; the real objects decide. A coordinator fails over with or without
the append that was under way; requests, markers and answers are late, doubled or lost; transactions take too long.

X1 a transaction is atomic over partitions; X2 its outcome is the acknowledged one; X3 a marker ends a transaction of
its own epoch; X4 no older epoch commits once a client has a new one; X7 nothing is open when the coordinator has ended
all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from tanist.coordinator.effects import Answer
from tanist.coordinator.transactions.effects import ProducerAnswer, TransactionAppend
from tanist.coordinator.transactions.state import (
    ONGOING,
    PREPARE_COMMIT,
    TopicIndex,
    TransactionValues,
)
from tanist.coordinator.transactions.transaction_shard import Transaction, TransactionSettings, TransactionShard
from tanist.lab.model.steps import Label, State, Step, Table, Violation, directed
from tanist.lab.model.transactions.properties import violation_in
from tanist.lab.model.transactions.state import (
    BUDGET,
    CLIENTS,
    COORDINATOR,
    DEAD,
    GHOSTS,
    NEW,
    OLD,
    PARTITIONS,
    READY,
    STALE,
    Batch,
    Client,
    CoordinatorState,
    Ghosts,
    Pending,
    Request,
    TransactionBudget,
    outcomes_in,
    producers_of,
)
from tanist.lab.model.transactions.trace_format import TransactionTraceFormat
from tanist.wire.errors import ErrorCode

ID: Final = "id"
PRODUCER_ID: Final = 100
_PARTITIONS: Final[tuple[TopicIndex, ...]] = (("t", 0), ("t", 1))
_SETTINGS: Final = TransactionSettings()
_TIMEOUT_MS: Final = 1_000
_LATE_MS: Final = 1_000_000
_LATER: Final = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS})
_NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class TransactionsConfiguration:
    """A search over transactions. `start` is as in `configuration.Configuration`."""

    name: str
    about: str
    budget: TransactionBudget
    bumps: bool = True
    """Whether clients are of `transaction.version` 2."""
    start: tuple[str, ...] = ()


class _StepState:
    """One step under way: the parts of the state that it changes."""

    def __init__(self, model: TransactionModel, state: State) -> None:
        self.coordinator = model.coordinators[state[COORDINATOR]]
        self.partitions = [model.partitions[number] for number in state[PARTITIONS]]
        self.clients = [model.clients[number] for number in state[CLIENTS]]
        self.stale = model.stale[state[STALE]]
        self.ghosts = model.ghosts[state[GHOSTS]]
        self.budget = model.budgets[state[BUDGET]]
        self.violation: Violation | None = None

    def pay(self, price: str) -> None:
        self.budget = self.budget._replace(**{price: getattr(self.budget, price) - 1})


class TransactionModel:
    """The model that a `TransactionsConfiguration` describes."""

    def __init__(self, configuration: TransactionsConfiguration, unwatched: frozenset[str] = frozenset()) -> None:
        self.configuration = configuration
        self._unwatched = unwatched
        self._program = NEW if configuration.bumps else OLD
        self._version = 2 if configuration.bumps else 0
        self.coordinators: Table[CoordinatorState] = Table()
        self.partitions: Table[tuple[Batch, ...]] = Table()
        self.clients: Table[Client] = Table()
        self.stale: Table[tuple[Request, ...]] = Table()
        self.ghosts: Table[Ghosts] = Table()
        self.budgets: Table[TransactionBudget] = Table()
        self.trace_format = TransactionTraceFormat(self.coordinators, self.partitions, self.clients, self._program)
        self._judged = cache(self._judge)

    def initial(self) -> State:
        """Nobody has begun; then the directed start is taken."""
        budget = self.configuration.budget
        state = (
            self.coordinators.number(CoordinatorState()),
            self.partitions.number(()),
            self.partitions.number(()),
            self.clients.number(Client()),
            self.clients.number(Client()),
            self.stale.number(()),
            self.ghosts.number(Ghosts()),
            self.budgets.number(budget),
        )
        return directed(self, state, self.configuration.start)

    # -- steps

    def expand(self, state: State) -> list[Step]:
        """All steps from `state`."""
        return [step for step in self._steps(state) if step[1] != state or step[2] is not None]

    def _steps(self, state: State) -> Iterator[Step]:
        budget = self.budgets[state[BUDGET]]
        for number in range(len(self.clients_of(state))):
            yield from self._of_client(state, number, budget)
        yield from self._of_coordinator(state, budget)
        for request in self.stale[state[STALE]]:
            step = _StepState(self, state)
            step.stale = tuple(each for each in step.stale if each != request)
            self._deliver(step, request, _NOBODY)
            yield self._step(step, Label("late", request.client, request.text))

    def _of_client(self, state: State, number: int, budget: TransactionBudget) -> Iterator[Step]:
        client = self.clients_of(state)[number]
        if client.stage >= len(self._program) or client.waits:
            return
        request = self._request_of(client, number)
        step = self._asking(state, request)
        self._deliver(step, request, number)
        yield self._step(step, Label("send", number, request.text))
        if budget.unanswered:
            step = self._asking(state, request)
            step.pay("unanswered")
            self._deliver(step, request, _NOBODY)
            yield self._step(step, Label("send", number, f"{request.text}, unanswered"))
        if budget.delayed and request not in self.stale[state[STALE]]:
            step = self._asking(state, request)
            step.pay("delayed")
            step.stale = tuple(sorted((*step.stale, request)))
            yield self._step(step, Label("delay", number, request.text))
        if budget.aborts and request.kind == "end" and not client.aborts:
            step = _StepState(self, state)
            step.pay("aborts")
            step.clients[number] = client._replace(aborts=True)
            yield self._step(step, Label("give up", number))

    def _asking(self, state: State, request: Request) -> _StepState:
        step = _StepState(self, state)
        if request.kind == "end" and request.committed:
            step.ghosts = step.ghosts._replace(asked=step.ghosts.asked | {request.attempt})
        return step

    def _of_coordinator(self, state: State, budget: TransactionBudget) -> Iterator[Step]:
        coordinator = self.coordinators[state[COORDINATOR]]
        if coordinator.pending is not None:
            step = _StepState(self, state)
            self._commit(step, answers=True)
            yield self._step(step, Label("commit"))
            if budget.unanswered and coordinator.pending.client >= 0:
                step = _StepState(self, state)
                step.pay("unanswered")
                self._commit(step, answers=False)
                yield self._step(step, Label("commit", detail="unanswered"))
        for partition in sorted(coordinator.left):
            step = _StepState(self, state)
            self._write_marker(step, partition, acknowledged=True)
            yield self._step(step, Label("marker", detail=f"to {partition}"))
            if budget.unanswered:
                step = _StepState(self, state)
                step.pay("unanswered")
                self._write_marker(step, partition, acknowledged=False)
                yield self._step(step, Label("marker", detail=f"to {partition}, unanswered"))
        if budget.failovers:
            for kept in (False, True) if coordinator.pending is not None else (False,):
                for late in (None, *sorted(coordinator.left)) if budget.delayed else (None,):
                    step = _StepState(self, state)
                    step.pay("failovers")
                    detail = "with what was under way" if kept else ""
                    if late is not None:
                        step.pay("delayed")
                        step.stale = tuple(sorted((*step.stale, self._marker(coordinator, late))))
                        detail = f"{detail} leaving a marker to {late}".strip()
                    self._fail_over(step, kept=kept)
                    yield self._step(step, Label("failover", detail=detail))
        values = coordinator.values
        if budget.timeouts and coordinator.pending is None and values is not None and values.state is ONGOING:
            step = _StepState(self, state)
            step.pay("timeouts")
            shard = self._shard(step.coordinator)
            self._carry_out(step, shard, shard.abort_timed_out(_LATE_MS))
            yield self._step(step, Label("timeout"))

    def clients_of(self, state: State) -> list[Client]:
        return [self.clients[number] for number in state[CLIENTS]]

    def _step(self, step: _StepState, label: Label) -> Step:
        after = (
            self.coordinators.number(step.coordinator),
            *(self.partitions.number(each) for each in step.partitions),
            *(self.clients.number(each) for each in step.clients),
            self.stale.number(step.stale),
            self.ghosts.number(step.ghosts),
            self.budgets.number(step.budget),
        )
        violation = step.violation
        return label, after, None if violation is None or violation.name in self._unwatched else violation

    # -- clients

    def _request_of(self, client: Client, number: int) -> Request:
        kind, _, partition = self._program[client.stage].partition(" ")
        return Request(
            kind,
            number,
            client.epoch,
            client.attempt,
            int(partition or -1),
            client.sequence,
            kind == "end" and not client.aborts,
        )

    def _deliver(self, step: _StepState, request: Request, client: int) -> None:
        """A request arrives; `client` gets the answer, if one does."""
        if request.kind == "marker":
            self._append_marker(step, request.partition, request.epoch, request.sequence, committed=request.committed)
            return
        if request.kind == "write":
            error = self._write(step, request)
            if client >= 0:
                self._handle_response(step, client, error)
            return
        shard = self._shard(step.coordinator)
        producer = (PRODUCER_ID, request.epoch)
        ticket = client if client >= 0 else None
        if request.kind == "init":
            effects = shard.init_producer_id(ID, _TIMEOUT_MS, None, PRODUCER_ID, ticket, 0)
        elif request.kind == "add":
            effects = shard.add_partitions(ID, producer, frozenset(_PARTITIONS), self._version, ticket, 0)
        else:
            effects = shard.end(ID, producer, self._version, PRODUCER_ID, ticket, 0, committed=request.committed)
        if client >= 0:
            step.clients[client] = step.clients[client]._replace(waits=True)
        self._carry_out(step, shard, effects)

    def _handle_response(self, step: _StepState, number: int, response: Any) -> None:
        client = step.clients[number]._replace(waits=False)
        error = response.error if isinstance(response, ProducerAnswer) else int(response)
        kind = self._program[client.stage].partition(" ")[0]
        if error in _LATER:
            pass
        elif error:
            client = client._replace(stage=DEAD)
        elif kind == "init":
            step.ghosts = step.ghosts._replace(newest=max(step.ghosts.newest, response.producer_epoch))
            client = self._begin(step, Client(READY, response.producer_epoch), number)
        elif kind == "end":
            step.ghosts = step.ghosts.acknowledged(client.attempt, committed=not client.aborts)
            epoch = response.producer_epoch if self.configuration.bumps else client.epoch
            sequence = client.sequence + 1 if epoch == client.epoch else 0
            if self.configuration.bumps:
                step.ghosts = step.ghosts._replace(newest=max(step.ghosts.newest, epoch))
            client = self._begin(step, Client(READY, epoch, sequence=sequence), number)
        else:
            client = client._replace(stage=client.stage + 1)
        step.clients[number] = client

    def _begin(self, step: _StepState, client: Client, number: int) -> Client:
        """The next transaction, if there is one."""
        if not step.budget.transactions:
            return client._replace(stage=DEAD)
        step.pay("transactions")
        step.ghosts = step.ghosts._replace(attempts=step.ghosts.attempts + 1)
        return client._replace(attempt=step.ghosts.attempts)

    # -- partitions

    def _write(self, step: _StepState, request: Request) -> int:
        """A batch at its leader, which asks the coordinator first where the transaction would begin (KIP-890)."""
        log = step.partitions[request.partition]
        states = producers_of(log, PRODUCER_ID)
        if not states.is_open(PRODUCER_ID, request.epoch) and (error := self._verify(step, request)):
            return error
        entry = states.entries.get(PRODUCER_ID)
        verdict = states.check(entry, request.epoch, request.sequence, 0, transactional=True)
        if verdict.error:
            return verdict.error
        if verdict.duplicate is None:
            batch = Batch("data", request.epoch, request.sequence, request.attempt)
            step.partitions[request.partition] = (*log, batch)
        return 0

    def _verify(self, step: _StepState, request: Request) -> int:
        shard = self._shard(step.coordinator)
        producer, partition = (PRODUCER_ID, request.epoch), _PARTITIONS[request.partition]
        if not self.configuration.bumps:
            return shard.verify(ID, producer, (partition,))[partition]
        answers: list[int] = []
        effects = shard.add_partitions(ID, producer, frozenset((partition,)), self._version, answers, 0)
        self._carry_out(step, shard, effects)
        return int(answers[0]) if answers else int(ErrorCode.CONCURRENT_TRANSACTIONS)

    def _write_marker(self, step: _StepState, partition: int, *, acknowledged: bool) -> None:
        marker = self._marker(step.coordinator, partition)
        written = self._append_marker(step, partition, marker.epoch, marker.sequence, committed=marker.committed)
        if acknowledged and written:
            shard = self._shard(step.coordinator)
            markers = shard.transactions[ID].markers
            if markers is not None:
                self._carry_out(step, shard, shard.marker_written(markers, (_PARTITIONS[partition],), 0))

    def _marker(self, coordinator: CoordinatorState, partition: int) -> Request:
        values = coordinator.values
        if values is None:
            raise RuntimeError("no transaction, and markers of it")
        committed = values.state is PREPARE_COMMIT
        return Request("marker", _NOBODY, values.producer_epoch, -1, partition, coordinator.epoch, committed)

    def _append_marker(
        self, step: _StepState, partition: int, epoch: int, coordinator_epoch: int, *, committed: bool
    ) -> bool:
        """Whether the marker counts as written."""
        log = step.partitions[partition]
        states = producers_of(log, PRODUCER_ID)
        verdict = states.check_marker(states.entries.get(PRODUCER_ID), epoch, coordinator_epoch)
        if verdict.error:
            return verdict.error == ErrorCode.INVALID_PRODUCER_EPOCH
        batch = Batch("commit" if committed else "abort", epoch, coordinator_epoch)
        if not log or log[-1] != batch:
            step.partitions[partition] = (*log, batch)
        return True

    # -- the coordinator

    def _shard(self, known: CoordinatorState) -> TransactionShard:
        """The real coordinator in this state."""
        shard = TransactionShard(_SETTINGS, known.epoch)
        if known.values is None and known.pending is None:
            return shard
        transaction = Transaction(known.values or TransactionValues(PRODUCER_ID))
        shard.transactions[ID] = transaction
        if known.left:
            shard._complete(ID, transaction)
            transaction.markers_left = {_PARTITIONS[each] for each in known.left}
        if known.pending is not None:
            ticket = known.pending.client if known.pending.client >= 0 else None
            transaction.pending = TransactionAppend(ID, known.pending.values, ticket, known.pending.response)
        return shard

    def _carry_out(self, step: _StepState, shard: TransactionShard, effects: Any) -> None:
        """Answers reach their clients, and the shard's state becomes the turn's."""
        answers = [effect for effect in effects if isinstance(effect, Answer)]
        for answer in answers:
            if isinstance(answer.ticket, list):
                answer.ticket.append(answer.response)
        transaction = shard.transactions.get(ID)
        if transaction is None:
            step.coordinator = CoordinatorState(shard.coordinator_epoch)
        else:
            append, pending = transaction.pending, None
            if append is not None and append.values is not None:
                client = append.ticket if isinstance(append.ticket, int) else _NOBODY
                pending = Pending(_timeless(append.values), client, append.response)
            left = transaction.markers_left if transaction.markers is not None else ()
            step.coordinator = CoordinatorState(
                shard.coordinator_epoch,
                _timeless(transaction.values) if transaction.stored else None,
                pending,
                frozenset(_PARTITIONS.index(each) for each in left),
            )
        for answer in answers:
            if isinstance(answer.ticket, int) and step.clients[answer.ticket].waits:
                self._handle_response(step, answer.ticket, answer.response)

    def _commit(self, step: _StepState, *, answers: bool) -> None:
        """What is under way is committed."""
        shard = self._shard(step.coordinator)
        append = shard.transactions[ID].pending
        if append is None:
            return
        client = append.ticket if isinstance(append.ticket, int) else _NOBODY
        effects = shard.apply(append)
        if answers:
            effects = [*effects, *shard.written(append, 0, 0)]
        elif client >= 0:
            step.clients[client] = step.clients[client]._replace(waits=False)
        self._decided(step, append.values)
        self._carry_out(step, shard, effects)

    def _decided(self, step: _StepState, values: TransactionValues | None) -> None:
        if values is not None and values.state is PREPARE_COMMIT:
            epoch = values.producer_epoch - values.bumps_epoch
            if epoch < step.ghosts.newest:
                step.violation = Violation("X4", f"epoch {epoch} commits, and a client has {step.ghosts.newest}")

    def _fail_over(self, step: _StepState, *, kept: bool) -> None:
        """Another broker takes over; `kept`: the append that was under way is committed, and nobody hears of it."""
        before = step.coordinator
        values = before.values
        if kept and before.pending is not None:
            values = before.pending.values
            self._decided(step, values)
        step.clients = [client._replace(waits=False) for client in step.clients]
        shard = TransactionShard(_SETTINGS, before.epoch + 1)
        if values is not None:
            shard.transactions[ID] = Transaction(values)
        self._carry_out(step, shard, shard.loaded(0))

    # -- properties

    def representative(self, state: State) -> State:
        """Each state stands for itself."""
        return state

    def violation_of(self, state: State) -> Violation | None:
        """X1, X2, X3 and X7."""
        found = self._judged(state[COORDINATOR], state[PARTITIONS], state[GHOSTS])
        return None if found is None or found.name in self._unwatched else found

    def _judge(self, coordinator: int, partitions: tuple[int, ...], ghosts: int) -> Violation | None:
        outcomes = [outcomes_in(self.partitions[number], self._version) for number in partitions]
        return violation_in(self.coordinators[coordinator], outcomes, self.ghosts[ghosts])


def _timeless(values: TransactionValues) -> TransactionValues:
    """The model's clock stands still."""
    return replace(values, start_ms=0 if values.start_ms >= 0 else -1, update_ms=0)
