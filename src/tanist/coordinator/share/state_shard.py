"""One partition of `__share_group_state`: the delivery state of share partitions, for the brokers that lead them.

A share partition's state has two epochs. The state epoch is the group's when the state was made: who knows of an older
one is fenced, so an operator's change of offsets is not undone. The leader epoch is that of the partition's leader that
has read it last: an older leader is fenced. Snapshots have a whole state, updates what has changed since; a snapshot
follows after so many updates, and now and then of every state, so that what lies before can go.

Decisions count when they are made (`replay`), so that the next builds on them; the answers wait until they are
committed, those of reads too. Decisions that the log refuses are taken back, the last first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.effects import NEVER_MS, Answer, LogAppend, group_error
from tanist.coordinator.share.records import UNINITIALIZED
from tanist.coordinator.share.runs import StateBatch, as_messages, batches_in, combined
from tanist.wire.errors import ErrorCode
from tanist.wire.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StoredBatch,
)

NO_EPOCH: Final = -1
_NONE: Final = int(ErrorCode.NONE)


class SharePartitionId(NamedTuple):
    """A partition, as one group's."""

    group_id: str
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class ShareState:
    """What is stored of a share partition."""

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED
    delivery_complete_count: int = -1
    batches: tuple[StateBatch, ...] = ()
    updates: int = 0
    """Since the snapshot."""


def is_missing(state: ShareState | None) -> bool:
    """Whether the summary of a state says that there is none: a group's epoch is 1 when it first asks for one."""
    return state is not None and (state.state_epoch, state.start_offset) == (0, UNINITIALIZED)


class Outcome(NamedTuple):
    """The answer to a request about one share partition."""

    error: int = _NONE
    state: ShareState | None = None


_DONE: Final = Outcome()

Record: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class StateAppend(LogAppend):
    """Append these records, which count already; then answer. None: wait for the earlier appends."""

    records: tuple[Record, ...]
    undo: tuple[tuple[SharePartitionId, ShareState | None], ...] = ()
    ticket: object = None
    outcome: Outcome = _DONE


class ShareStateShard:
    """The states of one partition of the topic."""

    check_ms = NEVER_MS

    def __init__(self, topics: Topics, updates_per_snapshot: int) -> None:
        self._topics = topics
        self._updates_per_snapshot = updates_per_snapshot
        self.states: dict[SharePartitionId, ShareState] = {}

    # -- records

    def replay(self, key: Any, value: Any) -> None:
        """Apply a record; no value is a tombstone."""
        where = SharePartitionId(key.group_id, key.topic_id, key.partition)
        if isinstance(value, ShareSnapshotValue):
            self.states[where] = ShareState(
                value.snapshot_epoch,
                value.state_epoch,
                value.leader_epoch,
                value.start_offset,
                value.delivery_complete_count,
                batches_in(value.state_batches),
            )
        elif isinstance(value, ShareUpdateValue):
            before = self.states.get(where)
            if before is not None:
                self.states[where] = _updated(before, value)
        elif isinstance(key, ShareSnapshotKey):
            self.states.pop(where, None)

    def replay_pending(self, producer_id: int, key: Any, value: Any) -> None:
        """Nobody writes these records in a transaction."""

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Nobody writes these records in a transaction."""

    def loaded(self, now_ms: int) -> Sequence[Any]:
        return ()

    def apply(self, append: StateAppend) -> Sequence[Any]:
        return ()  # it was applied when it was decided

    def written(self, append: StateAppend, error: int, now_ms: int) -> Sequence[Any]:
        """An append is committed, or was refused, or has taken too long: answer, once."""
        if error and error != ErrorCode.REQUEST_TIMED_OUT:
            for where, state in append.undo:
                if state is None:
                    self.states.pop(where, None)
                else:
                    self.states[where] = state
        if append.ticket is None:
            return ()
        return [Answer(append.ticket, Outcome(group_error(error)) if error else append.outcome)]

    def dismiss(self, error: int) -> Sequence[Any]:
        return ()  # all that waits here waits for an append

    def tick(self, now_ms: int) -> Sequence[Any]:
        return ()

    # -- requests

    def read(self, where: SharePartitionId, leader_epoch: int, ticket: object, wall_ms: int) -> Sequence[Any]:
        """The leader of a partition takes its state up: older leaders are fenced from here on."""
        state = self.states.get(where)
        error = ErrorCode.INVALID_REQUEST if state is None else self._fenced(state, where, NO_EPOCH, leader_epoch)
        if state is None or error:
            return [Answer(ticket, Outcome(error))]
        if leader_epoch in (NO_EPOCH, state.leader_epoch):
            return [StateAppend((), ticket=ticket, outcome=Outcome(_NONE, state))]
        update = ShareUpdateValue(
            leader_epoch=leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
        return self._update(where, state, update, ticket, wall_ms, Outcome(_NONE, state))

    def write(
        self,
        where: SharePartitionId,
        epochs: tuple[int, int],
        start_offset: int,
        delivery_complete_count: int,
        batches: Iterable[StateBatch],
        ticket: object,
        wall_ms: int,
    ) -> Sequence[Any]:
        """What has changed, from a leader that has read the state; `epochs`: those of the state and of the leader."""
        state = self.states.get(where)
        error = ErrorCode.INVALID_REQUEST if state is None else self._fenced(state, where, *epochs)
        if state is None or error:
            return [Answer(ticket, Outcome(error))]
        if start_offset < state.start_offset:  # late: it was sent before one that has moved the start
            start_offset, delivery_complete_count = state.start_offset, state.delivery_complete_count
        update = ShareUpdateValue(
            leader_epoch=state.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=as_messages(StoredBatch, combined((), batches, start_offset)),
        )
        return self._update(where, state, update, ticket, wall_ms, _DONE)

    def _update(
        self,
        where: SharePartitionId,
        state: ShareState,
        update: ShareUpdateValue,
        ticket: object,
        wall_ms: int,
        outcome: Outcome,
    ) -> Sequence[Any]:
        if state.updates >= self._updates_per_snapshot:
            after = replace(_updated(state, update), snapshot_epoch=state.snapshot_epoch + 1)
            return self._decide([_snapshot(where, after, wall_ms)], ticket, outcome)
        update.snapshot_epoch = state.snapshot_epoch
        key = ShareUpdateKey(group_id=where.group_id, topic_id=where.topic_id, partition=where.partition)
        return self._decide([(key, update)], ticket, outcome)

    def initialize(
        self, where: SharePartitionId, state_epoch: int, start_offset: int, ticket: object, wall_ms: int
    ) -> Sequence[Any]:
        """A new state. With a start offset, an operator's, in place of the one that there may be; else only where there
        is none: the question may come twice, and late, when members have read for long."""
        before = self.states.get(where)
        if not self._exists(where):
            return [Answer(ticket, Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))]
        if before is not None and before.state_epoch > state_epoch != NO_EPOCH:
            return [Answer(ticket, Outcome(ErrorCode.FENCED_STATE_EPOCH))]
        if before is not None and start_offset == UNINITIALIZED:
            return [StateAppend((), ticket=ticket)]
        state = ShareState(
            snapshot_epoch=0 if before is None else before.snapshot_epoch + 1,
            state_epoch=state_epoch,
            start_offset=start_offset,
            delivery_complete_count=UNINITIALIZED if start_offset == UNINITIALIZED else 0,
        )
        return self._decide([_snapshot(where, state, wall_ms)], ticket, _DONE)

    def delete(self, where: SharePartitionId, ticket: object) -> Sequence[Any]:
        """No more of it."""
        if not self._exists(where):
            return [Answer(ticket, Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))]
        return self._decide([_tombstone(where)] if where in self.states else [], ticket, _DONE)

    def summary(self, where: SharePartitionId, ticket: object) -> Sequence[Any]:
        """The start offset and the epochs; of a state that is not there, as of one that has not begun."""
        if not self._exists(where):
            return [Answer(ticket, Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))]
        return [StateAppend((), ticket=ticket, outcome=Outcome(_NONE, self.states.get(where) or ShareState()))]

    def _fenced(self, state: ShareState, where: SharePartitionId, state_epoch: int, leader_epoch: int) -> int:
        if NO_EPOCH != leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if NO_EPOCH != state_epoch < state.state_epoch:
            return ErrorCode.FENCED_STATE_EPOCH
        return ErrorCode.NONE if self._exists(where) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _exists(self, where: SharePartitionId) -> bool:
        found = self._topics.find(self._topics.name_of(where.topic_id) or "")
        return found is not None and found[0] == where.topic_id and 0 <= where.partition < found[1]

    # -- upkeep

    def forget_missing(self) -> Sequence[Any]:
        """Topics were deleted: nobody asks for their states any more."""
        gone = [where for where in self.states if self._topics.name_of(where.topic_id) is None]
        return self._decide([_tombstone(where) for where in gone], None, _DONE) if gone else ()

    def snapshot_all(self, ticket: object, wall_ms: int) -> Sequence[Any]:
        """A snapshot of each state: once they are committed, nobody needs what lies before them in the log."""
        states = [(where, replace(each, snapshot_epoch=each.snapshot_epoch + 1)) for where, each in self.states.items()]
        return self._decide([_snapshot(where, state, wall_ms) for where, state in states], ticket, _DONE)

    def _decide(self, records: Sequence[Record], ticket: object, outcome: Outcome) -> Sequence[Any]:
        undo = []
        for key, value in records:
            where = SharePartitionId(key.group_id, key.topic_id, key.partition)
            undo.append((where, self.states.get(where)))
            self.replay(key, value)
        return [StateAppend(tuple(records), tuple(reversed(undo)), ticket, outcome)]


def _updated(before: ShareState, update: ShareUpdateValue) -> ShareState:
    start = before.start_offset if update.start_offset == UNINITIALIZED else update.start_offset
    return replace(
        before,
        leader_epoch=before.leader_epoch if update.leader_epoch == NO_EPOCH else update.leader_epoch,
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        batches=combined(before.batches, batches_in(update.state_batches), start),
        updates=before.updates + 1,
    )


def _snapshot(where: SharePartitionId, state: ShareState, wall_ms: int) -> Record:
    key = ShareSnapshotKey(group_id=where.group_id, topic_id=where.topic_id, partition=where.partition)
    return key, ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=wall_ms,
        write_timestamp=wall_ms,
        state_batches=as_messages(StoredBatch, state.batches),
    )


def _tombstone(where: SharePartitionId) -> Record:
    return ShareSnapshotKey(group_id=where.group_id, topic_id=where.topic_id, partition=where.partition), None
