"""A shard of transactions with a log that commits at once or on demand, and markers that are written on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tanist.coordinator.effects import Answer
from tanist.coordinator.transactions.effects import (
    ProducerAnswer,
    TransactionAppend,
    TransactionEffect,
    WriteMarkers,
)
from tanist.coordinator.transactions.state import TopicIndex, TransactionValues, record_of
from tanist.coordinator.transactions.transaction_shard import TransactionSettings, TransactionShard
from tanist.events.event import Event
from tanist.events.stream import Events
from tanist.wire.coordinator_records import encode_key, encode_value
from tanist.wire.transaction_records import decode_transaction_record

ID = "tx"
P0, P1 = ("t", 0), ("t", 1)
OLD, BUMPS = 0, 2


class Rig:
    """One shard. Answers are in `answers`, by ticket; markers that are to be written in `markers`."""

    def __init__(self, *, commits: bool = True, writes_markers: bool = True, **settings: Any) -> None:
        self.settings = TransactionSettings(**settings)
        self.heard: list[Event] = []
        self.events = Events()
        self.events.subscribe(self.heard.append, fine=True)
        self.shard = TransactionShard(self.settings, 1, self.events)
        self.now_ms = 1_000
        self.wall_ms = 1_000_000
        self.commits = commits
        self.writes_markers = writes_markers
        self.log: list[tuple[bytes, bytes | None]] = []
        self.uncommitted: list[TransactionAppend] = []
        self.markers: list[WriteMarkers] = []
        self.written: list[WriteMarkers] = []
        self.answers: dict[int, Any] = {}
        self._tickets = 0
        self._producer_ids = 100

    def carry_out(self, effects: Sequence[TransactionEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Answer):
                assert isinstance(effect.ticket, int)
                assert effect.ticket not in self.answers, "answered twice"
                self.answers[effect.ticket] = effect.response
            elif isinstance(effect, WriteMarkers):
                self.markers.append(effect)
                if self.writes_markers:
                    self.write_markers()
            else:
                self.uncommitted.append(effect)
                if self.commits:
                    self.commit_all()

    def commit_all(self) -> None:
        while self.uncommitted:
            append = self.uncommitted.pop(0)
            key, value = record_of(append.transactional_id, append.values)
            self.log.append((encode_key(key), None if value is None else encode_value(value)))
            self.carry_out(self.shard.apply(append))
            self.carry_out(self.shard.written(append, 0, self.now_ms))

    def refuse(self, error: int) -> None:
        self.carry_out(self.shard.written(self.uncommitted.pop(0), error, self.now_ms))

    def write_markers(self) -> None:
        while self.markers:
            markers = self.markers.pop(0)
            self.written.append(markers)
            self.carry_out(self.shard.marker_written(markers, markers.partitions, self.wall_ms))

    def failover(self) -> None:
        """Another broker takes over: it has what was committed, and none of the requests that waited."""
        self.shard = TransactionShard(self.settings, self.shard.coordinator_epoch + 1, self.events)
        for key, value in self.log:
            decoded = decode_transaction_record(key, value)
            assert decoded is not None
            self.shard.replay(*decoded)
        self.uncommitted.clear()
        self.markers.clear()
        self.carry_out(self.shard.loaded(self.now_ms))

    # -- clients

    def ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def init(self, expected: tuple[int, int] | None = None, *, timeout_ms: int = 60_000, **options: bool) -> Any:
        """The answer, or the ticket if there is none yet."""
        ticket = self.ticket()
        self._producer_ids += 1
        self.carry_out(
            self.shard.init_producer_id(ID, timeout_ms, expected, self._producer_ids, ticket, self.wall_ms, **options)
        )
        return self.answers.get(ticket, ticket)

    def begin(self) -> tuple[int, int]:
        """A producer that has initialized: its id and epoch."""
        answer = self.init()
        assert isinstance(answer, ProducerAnswer)
        assert not answer.error
        return answer.producer_id, answer.producer_epoch

    def add(self, producer: tuple[int, int], *partitions: TopicIndex, version: int = OLD) -> Any:
        ticket = self.ticket()
        self.carry_out(self.shard.add_partitions(ID, producer, frozenset(partitions), version, ticket, self.wall_ms))
        return self.answers.get(ticket, ticket)

    def end(self, producer: tuple[int, int], *, committed: bool = True, version: int = OLD) -> Any:
        ticket = self.ticket()
        self._producer_ids += 1
        self.carry_out(
            self.shard.end(ID, producer, version, self._producer_ids, ticket, self.wall_ms, committed=committed)
        )
        return self.answers.get(ticket, ticket)

    @property
    def values(self) -> TransactionValues:
        return self.shard.transactions[ID].values
