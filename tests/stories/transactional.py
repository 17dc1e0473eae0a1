"""The transactional clients of stories: one as before KIP-890, one with its epoch bumps. A request can be held back.

    old-client begin | write TOPIC PARTITION VALUE... | commit | abort | deliver
    new-client ...

With `--held` a request of `write` or `commit` stays in the network until `deliver`; the client gives up waiting for it,
as after a timeout. Each verb prints what the cluster answered, and ends when the transaction has its markers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from tanist.client.errors import Meaning, refusal_in
from tanist.client.requests import Ask
from tanist.client.transactions import State, Transactions
from tanist.runtime.client.asking import attempt
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.transactions import describe_transaction
from tanist.text import counted
from tanist.wire.batch import NewRecord
from tanist.wire.schema import Response
from tests.interop.waiting import wait_for

HELD: Final = "--held"


class TransactionalClient:
    """One client with one transactional id."""

    def __init__(self, client: Client, name: str, *, bumps: bool) -> None:
        """`bumps`: by the rules of `transaction.version` 2 (KIP-890)."""
        self._client = client
        self._transactions = Transactions(name, timeout_ms=60_000, adds_itself=bumps)
        self._held: list[Callable[[], str]] = []

    def run(self, words: Sequence[str]) -> str:
        """Carry out one verb; what it prints."""
        held = HELD in words
        verb, *rest = (word for word in words if word != HELD)
        match verb:
            case "begin":
                if self._transactions.state is State.NEW:
                    self._carry_out(self._transactions.initialize())
                return f"a transaction begins; the producer's epoch is {self._transactions.producer[1]}"
            case "write":
                return self._send(self._write(rest[0], int(rest[1]), rest[2:]), held=held)
            case "commit" | "abort":
                return self._send(self._end(committed=verb == "commit"), held=held)
            case "deliver":
                (request,) = self._held
                self._held = []
                return request()
        raise ValueError(f"{verb} is no verb of a client")

    def _send(self, request: Callable[[], str], *, held: bool) -> str:
        if not held:
            return request()
        self._held.append(request)
        return "the network holds the request; the client has no answer"

    def _write(self, topic: str, partition: int, values: Sequence[str]) -> Callable[[], str]:
        transactions, where = self._transactions, (topic, partition)
        adding = transactions.add_partitions([where])
        if adding is not None:
            self._carry_out(adding)
        now_ms = time.time_ns() // 1_000_000
        records = [NewRecord(now_ms, value=value.encode()) for value in values]
        batch = transactions.batch(where, records, timeout_ms=10_000)
        transactions.written(where, len(values))
        return lambda: self._outcome(batch, f"{counted(len(values), 'record')} written to {topic}-{partition}")

    def _end(self, *, committed: bool) -> Callable[[], str]:
        end = self._transactions.end(committed=committed)
        return lambda: self._outcome(end, "committed" if committed else "aborted", ends=True)

    def _outcome(self, asked: Ask, done: str, *, ends: bool = False) -> str:
        try:
            self._carry_out(asked)
        except KafkaError as error:
            return f"refused: {error.name}"
        if ends:
            name = self._transactions.transactional_id
            wait_for(lambda: describe_transaction(self._client, name).state.startswith("Complete"), "all markers")
        return done

    def _carry_out(self, asked: Ask) -> None:
        def once() -> None:
            answer = attempt(self._client, asked, Response)
            if self._transactions.handle_response(answer) is not Meaning.DONE:
                raise KafkaError(*refusal_in(answer))

        self._client.persist(once)
