"""The real replicas, one event at a time: a broker's tuple goes in, the real objects decide, a tuple comes out.

Owns the conversion of `components.Broker` to `replica.partition.Partition` (with its `LeaderState` or `FollowerState`
over a `MemoryLog`) and back. Must never decide anything that a replica decides, and must never keep an object: its
results depend on its arguments only, so the search may remember them.

Only time is simplified: a long time may pass between any two events, so a follower counts as caught up only while it is
at the leader's end. (Rule 4 also counts followers that were there a moment ago; that only holds the high watermark
back, so it does not matter for safety.) A follower that is fenced, or that waits before a retry, does not fetch for a
while, as any follower may.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from tanist.lab.model.partition.components import (
    NEVER_FETCHED,
    Answer,
    Broker,
    FollowerReplica,
    LeaderReplica,
    Log,
    Proposal,
    Registration,
    Remote,
    Request,
    View,
    broker_id,
    ids_of,
    mask_of_ids,
)
from tanist.log.epochs import LeaderEpochCache
from tanist.replica.effects import AskOffsets, Effect, HighWatermarkAdvanced, ProposeIsr
from tanist.replica.follower import FetchedPartition, FetchPosition, FollowerState
from tanist.replica.isr import AlterPartitionResult, PendingIsr
from tanist.replica.leader import FollowerFetch, LeaderState
from tanist.replica.memory import Entry, MemoryLog
from tanist.replica.metadata import NO_EPOCH, BrokerStatus, PartitionMetadata, ReplicaConfig
from tanist.replica.partition import Partition
from tanist.replica.remote import NEVER_MS, RemoteReplica
from tanist.wire.ids import NO_LEADER

TOPIC = "t"
TOPIC_ID = UUID(int=9)
NOW_MS = 1 << 40
LAG_MS = 30_000


class Advance(NamedTuple):
    """A move of a leader's high watermark, and the offsets that the leader counted."""

    high_watermark: int
    isr: int
    maximal: int
    min_isr: int


class BrokerResult(NamedTuple):
    """The result of a broker's turn."""

    broker: Broker
    advance: Advance | None = None
    proposals: tuple[Proposal, ...] = ()


class Registrations:
    """A `BrokerView`: the registrations as of the metadata that a broker has applied."""

    def __init__(self, registrations: tuple[Registration, ...]) -> None:
        self.statuses = statuses(registrations)

    def registration(self, number: int, /) -> BrokerStatus | None:
        return self.statuses.get(number)


def statuses(registrations: tuple[Registration, ...]) -> dict[int, BrokerStatus]:
    return {
        broker_id(broker): BrokerStatus(each.epoch, each.fenced, each.shutting_down)
        for broker, each in enumerate(registrations)
    }


# -- events -----------------------------------------------------------------------------------------------------------


def learn(broker: int, state: Broker, view: View) -> BrokerResult:
    """The broker applies metadata up to this view, as one batch: settings first, then its role, as a node does."""
    partition, brokers = rebuilt(broker, state)
    was_leading = partition.leader
    before, brokers.statuses = brokers.statuses, statuses(view.registrations)
    effects: list[Effect] = []
    if partition.config.min_insync_replicas != view.min_isr:
        effects += partition.set_config(_config(view.min_isr))
    effects += partition.apply_metadata(metadata_of(view), NOW_MS)
    leader = partition.leader
    if leader is not None and leader is was_leading:
        changed = [number for number, status in brokers.statuses.items() if before.get(number) != status]
        effects += leader.brokers_changed(changed, NOW_MS)
    return result_of(state, partition, effects, view.registrations)


def write(broker: int, state: Broker, payload: int, acks: int) -> BrokerResult | None:
    """A producer writes here; None where it is refused."""
    partition, _ = rebuilt(broker, state)
    leader = partition.leader
    if leader is None or leader.check_before_append(acks):
        return None
    log = _memory_log(partition)
    log.append_as_leader((str(payload),), leader.leader_epoch)
    return result_of(state, partition, leader.appended(NOW_MS), _registrations(state))


def request(broker: int, state: Broker) -> Request | None:
    """The next fetch of a follower; None while it has no leader."""
    partition, _ = rebuilt(broker, state)
    follower = partition.follower
    if follower is None or not follower.may_fetch(NOW_MS):
        return None
    position = follower.fetch_position()
    return Request(broker, state.epoch, position.offset, position.last_fetched_epoch, position.current_leader_epoch)


def fetch(broker: int, state: Broker, asked: Request, at_most: int | None) -> tuple[BrokerResult, Answer | None]:
    """A leader is asked, and sends at most `at_most` records. None for an answer: it does not lead."""
    partition, _ = rebuilt(broker, state)
    leader = partition.leader
    if leader is None:
        return BrokerResult(state), None
    effects, answer = ask(leader, asked, at_most)
    result = result_of(state, partition, effects, _registrations(state))
    role = result.broker.role
    accepted = not answer.error and answer.diverging is None
    if accepted and isinstance(role, LeaderReplica):
        result = result._replace(
            broker=result.broker._replace(role=role._replace(heard=role.heard | 1 << asked.broker))
        )
    return result, answer


def ask(leader: LeaderState, asked: Request, at_most: int | None) -> tuple[list[Effect], Answer]:
    """Handle a fetch as a node does: the leader decides, and the records are read from its log."""
    log = leader.log
    if not isinstance(log, MemoryLog):
        raise TypeError("a replica of the model stands on a MemoryLog")
    decision = leader.follower_fetch(
        FollowerFetch(
            broker_id(asked.broker), asked.broker_epoch, asked.offset, asked.last_epoch, asked.leader_epoch, 0
        ),
        NOW_MS,
    )
    accepted = not decision.error and decision.diverging is None
    records = log.read(asked.offset, log.log_end_offset, at_most) if accepted else ()
    return decision.effects, Answer(
        decision.error, decision.high_watermark, _records(records), decision.diverging, log.log_end_offset, asked
    )


def take(broker: int, state: Broker, answer: Answer) -> Broker:
    """A follower is answered."""
    partition, _ = rebuilt(broker, state)
    if partition.follower is None:
        return state
    tell(partition.follower, answer)
    return result_of(state, partition, (), ()).broker


def tell(follower: FollowerState, answer: Answer) -> None:
    """Pass the answer to the follower. If it is out of range it asks for the leader's log end, and gets it."""
    asked = answer.request
    fetched = FetchedPartition(
        error=answer.error,
        high_watermark=answer.high_watermark,
        log_start_offset=0,
        records=_entries(answer.records, asked.offset),
        diverging_epoch=answer.diverging,
    )
    position = FetchPosition(asked.offset, asked.last_epoch, asked.leader_epoch, 0)
    for effect in follower.fetched(fetched, position, NOW_MS):
        if isinstance(effect, AskOffsets):
            follower.handle_offsets_response(0, answer.leader_end_offset, asked.leader_epoch, NOW_MS)


def handle_alter_partition_response(
    broker: int, state: Broker, proposal: Proposal, result: AlterPartitionResult | None
) -> BrokerResult:
    """The controller has answered, or (None) its answer was lost."""
    partition, _ = rebuilt(broker, state)
    sent = propose_isr(proposal)
    if result is None:
        effects = partition.alter_partition_failed(sent, NOW_MS)
    else:
        effects = partition.alter_partition_done(sent, result, NOW_MS)
    return result_of(state, partition, effects, _registrations(state))


def lag(broker: int, state: Broker, late: int) -> BrokerResult | None:
    """The leader looks for slow followers; those in `late` are slow. None if none of them can be late."""
    partition, _ = rebuilt(broker, state)
    leader = partition.leader
    if leader is None:
        return None
    for remote in leader.remotes.values():
        remote.last_caught_up_ms = NEVER_MS if late >> (remote.broker_id - 1) & 1 else NOW_MS
    effects = leader.check_lag(NOW_MS)
    if not any(isinstance(effect, ProposeIsr) for effect in effects):
        return None
    return result_of(state, partition, effects, _registrations(state))


def restart(state: Broker, epoch: int, keep: int, checkpoint: int) -> Broker:
    """A new process finds the first `keep` records, and a high watermark that was written some time ago.

    It finds only leader epochs that have records, as the recovery of a log does.
    """
    log = _log(state)
    log.truncate_to(keep)
    partition = Partition(1, log, ReplicaConfig(), Registrations(()))
    partition.restore_high_watermark(checkpoint)
    return Broker(epoch, _records(log.entries), log.epochs.entries, partition.high_watermark, None)


def unreplicated(state: Broker) -> Broker:
    """The state of a broker after it has dropped the partition."""
    return Broker(state.epoch, (), (), 0, None)


def late_members(state: Broker) -> int:
    """Followers in a leader's ISR that are not at its end, so they may be late."""
    role = state.role
    if not isinstance(role, LeaderReplica) or role.pending is not None:
        return 0
    at_end = 0
    for remote in role.remotes:
        if remote.end_offset == len(state.log):
            at_end |= 1 << remote.broker
    others = 0
    for remote in role.remotes:
        others |= 1 << remote.broker
    return role.isr & others & ~at_end


def knows_what_is_committed(broker: int, state: Broker) -> bool:
    """Whether a leader would answer a question for the committed end (S19)."""
    partition, _ = rebuilt(broker, state)
    return partition.leader is not None and partition.leader.knows_what_is_committed()


# -- from tuples to objects -------------------------------------------------------------------------------------------


def propose_isr(proposal: Proposal) -> ProposeIsr:
    return ProposeIsr(
        topic_id=TOPIC_ID,
        partition=0,
        leader_epoch=proposal.leader_epoch,
        partition_epoch=proposal.partition_epoch,
        isr=tuple((broker_id(broker), epoch) for broker, epoch in proposal.isr),
        recovering=False,
    )


def metadata_of(view: View | LeaderReplica, leader: int | None = None) -> PartitionMetadata:
    if isinstance(view, View):
        leader = NO_LEADER if view.leader < 0 else broker_id(view.leader)
    if leader is None:
        raise ValueError("who leads?")
    return PartitionMetadata(
        topic=TOPIC,
        topic_id=TOPIC_ID,
        partition=0,
        leader=leader,
        leader_epoch=view.leader_epoch,
        partition_epoch=view.partition_epoch,
        replicas=ids_of(view.replicas),
        isr=ids_of(view.isr),
        adding=ids_of(view.adding),
        removing=ids_of(view.removing),
        recovering=view.recovering,
    )


def _log(state: Broker) -> MemoryLog:
    log = MemoryLog()
    log.entries = _entries(state.log, 0)
    log.epochs = LeaderEpochCache(state.epochs)
    return log


def _entries(records: Log, first: int) -> tuple[Entry, ...]:
    return tuple(Entry(first + at, epoch, str(payload)) for at, (epoch, payload) in enumerate(records))


def _registrations(state: Broker) -> tuple[Registration, ...]:
    return state.role.registrations if isinstance(state.role, LeaderReplica) else ()


def rebuilt(broker: int, state: Broker) -> tuple[Partition, Registrations]:
    """The real replica that a tuple stands for, and its view of the brokers."""
    number = broker_id(broker)
    log = _log(state)
    role = state.role
    brokers = Registrations(_registrations(state))
    config = _config(1 if role is None else role.min_isr)
    partition = Partition(number, log, config, brokers)
    partition.restore_high_watermark(state.high_watermark)
    if isinstance(role, FollowerReplica):
        leader = NO_LEADER if role.leader < 0 else broker_id(role.leader)
        metadata = PartitionMetadata(TOPIC, TOPIC_ID, 0, leader, role.leader_epoch, 0, (number,), ())
        partition.role = Partition.follower_class(number, log, config, metadata, state.high_watermark)
    elif role is not None:
        partition.role = _leader(number, log, config, brokers, state.high_watermark, role)
        log.epochs = LeaderEpochCache(state.epochs)  # unchanged: a new leader has noted the start of its epoch
    return partition, brokers


def _config(min_isr: int) -> ReplicaConfig:
    return ReplicaConfig(min_insync_replicas=min_isr, replica_lag_time_max_ms=LAG_MS)


def _leader(
    number: int, log: MemoryLog, config: ReplicaConfig, brokers: Registrations, high_watermark: int, role: LeaderReplica
) -> LeaderState:
    metadata = metadata_of(role, number)
    leader = Partition.leader_class(number, log, config, brokers, metadata, high_watermark, NOW_MS)
    leader.leader_epoch_start_offset = role.start_offset
    for known in role.remotes:
        remote = leader.remotes[broker_id(known.broker)] = RemoteReplica(broker_id(known.broker))
        if known.broker_epoch != NEVER_FETCHED:
            remote.broker_epoch = known.broker_epoch
        remote.log_end_offset = known.end_offset
        remote.log_start_offset = 0 if known.end_offset >= 0 else -1
    if role.pending is not None:
        leader.pending = PendingIsr(propose_isr(role.pending), frozenset(ids_of(role.maximal)))
    leader.set_config(config)  # derives the rest of its state
    return leader


def _memory_log(partition: Partition) -> MemoryLog:
    if not isinstance(partition.log, MemoryLog):
        raise TypeError("a replica of the model stands on a MemoryLog")
    return partition.log


# -- and back ---------------------------------------------------------------------------------------------------------


def _records(entries: Iterable[Entry]) -> Log:
    return tuple((entry.leader_epoch, int(entry.value)) for entry in entries)


def result_of(
    before: Broker, partition: Partition, effects: Iterable[Effect], registrations: tuple[Registration, ...]
) -> BrokerResult:
    """The tuple of a real replica, and its effects on others. `before` has the fields that the replica does not
    show."""
    log = _memory_log(partition)
    role = partition.role
    advance = None
    proposals: list[Proposal] = []
    if isinstance(role, LeaderState):
        advance = _advanced(role, effects)
        proposals = [_proposal(effect) for effect in effects if isinstance(effect, ProposeIsr)]
        after: LeaderReplica | FollowerReplica | None = _leading(before, role, registrations)
    elif isinstance(role, FollowerState):
        leader = NO_LEADER if role.leader < 0 else role.leader - 1
        after = FollowerReplica(leader, role.leader_epoch, role.config.min_insync_replicas)
    else:
        return BrokerResult(unreplicated(before))
    broker = Broker(before.epoch, _records(log.entries), log.epochs.entries, partition.high_watermark, after)
    return BrokerResult(broker, advance, tuple(proposals))


def _proposal(effect: ProposeIsr) -> Proposal:
    isr = tuple(sorted((number - 1, epoch) for number, epoch in effect.isr))
    return Proposal(effect.leader_epoch, effect.partition_epoch, isr)


def _remotes(leader: LeaderState) -> tuple[Remote, ...]:
    return tuple(
        Remote(
            number - 1,
            NEVER_FETCHED if remote.broker_epoch is None else remote.broker_epoch,
            remote.log_end_offset,
        )
        for number, remote in sorted(leader.remotes.items())
    )


def _advanced(leader: LeaderState, effects: Iterable[Effect]) -> Advance | None:
    """The offsets that the leader counts, if it has moved its high watermark."""
    moved = [effect.high_watermark for effect in effects if isinstance(effect, HighWatermarkAdvanced)]
    if not moved:
        return None
    return Advance(
        moved[-1],
        mask_of_ids(leader.isr),
        mask_of_ids(tuple(leader.maximal_isr)),
        min(leader.config.min_insync_replicas, len(leader.metadata.replicas)),
    )


def _leading(before: Broker, leader: LeaderState, registrations: tuple[Registration, ...]) -> LeaderReplica:
    metadata = leader.metadata
    was = before.role
    same_epoch = isinstance(was, LeaderReplica) and was.leader_epoch == metadata.leader_epoch
    return LeaderReplica(
        leader_epoch=metadata.leader_epoch,
        partition_epoch=metadata.partition_epoch,
        replicas=mask_of_ids(metadata.replicas),
        isr=mask_of_ids(metadata.isr),
        adding=mask_of_ids(metadata.adding),
        removing=mask_of_ids(metadata.removing),
        recovering=metadata.recovering,
        min_isr=leader.config.min_insync_replicas,
        registrations=registrations,
        start_offset=leader.leader_epoch_start_offset,
        pending=None if leader.pending is None else _proposal(leader.pending.proposal),
        maximal=mask_of_ids(tuple(leader.maximal_isr)),
        remotes=_remotes(leader),
        heard=was.heard if isinstance(was, LeaderReplica) and same_epoch else 0,
    )


if NO_EPOCH == NEVER_FETCHED:
    raise RuntimeError("a follower that gave no broker epoch must not look like one that never fetched")
