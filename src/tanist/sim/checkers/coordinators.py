"""Coordinators: what one has in memory is what its log says, and so what the next one will have (C6, Q6, X6).

    C6  groups of all protocols, committed offsets, and those of open transactions
    Q6  states of share partitions
    X6  transactional ids

Judged after each turn in which the log of a coordinator has grown, when all of it is committed: then nothing that the
coordinator has decided is on its way. A shard of its own replays the log from its beginning, as a successor would at
that offset. So a failover needs no look of its own, and a coordinator that has just loaded is judged like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from tanist.broker.coordinator_runtime.loading import Decode
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.node import Node
from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.tables import ConsumerTables
from tanist.coordinator.group import Group
from tanist.coordinator.group_shard import GroupShard
from tanist.coordinator.membership import GroupState
from tanist.coordinator.rebalance import GroupSettings
from tanist.coordinator.share.group import ShareGroup, ShareTables
from tanist.coordinator.share.state_shard import ShareStateShard
from tanist.coordinator.streams.group import StreamsGroup
from tanist.coordinator.streams.tables import StreamsTables
from tanist.coordinator.transactions.transaction_shard import TransactionSettings, TransactionShard
from tanist.log.markers import parse_marker
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Place
from tanist.sim.oracle import batch_bytes
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.batch import decode_batch, iterate_batches
from tanist.wire.coordinator_records import encode_value
from tanist.wire.group_records import GroupMetadataValue, decode_group_record
from tanist.wire.share_state_records import decode_share_state_record
from tanist.wire.transaction_records import decode_transaction_record

State = Mapping[str, object]
"""Everything that a shard has, by a name that a report can show."""


def state_of_groups(shard: GroupShard) -> State:
    """What the records of a partition of `__consumer_offsets` have made."""
    state: dict[str, object] = {}
    for group_id, group in shard.groups.items():
        if not isinstance(group, Group):
            for name, value in _tables_of(group):
                state[f"{group.kind} group {group_id}: {name}"] = value
        elif group.stored is not None:
            state[f"classic group {group_id}"] = encode_value(group.stored)
        elif group_id in shard.offsets or shard.pending.has_group(group_id):
            state[f"group {group_id} of offsets alone"] = True
    for group_id, committed in shard.offsets.items():
        for (topic, index), offset in committed.items():
            state[f"offset of {topic}-{index} of {group_id}"] = offset
    for name, value in vars(shard.pending).items():
        state[f"pending offsets: {name}"] = value
    return state


def _tables_of(group: ConsumerGroup | ShareGroup | StreamsGroup) -> Iterator[tuple[str, object]]:
    """All tables that records make; without members' deadlines, which the log does not know."""
    kinds = (ConsumerTables, ShareTables, StreamsTables)
    (tables,) = (kind for kind in kinds if isinstance(group, kind))
    return ((name, getattr(group, name)) for name in vars(tables(group.group_id)))


def misremembered(shard: GroupShard) -> str | None:
    """A stable group whose members are not those of its record, in words."""
    for group in shard.groups.values():
        if group.state is not GroupState.STABLE or not isinstance(group, Group):
            continue
        _, value = group.record()
        value.current_state_timestamp = group.state_timestamp_ms
        if group.stored is None or encode_value(value) != encode_value(group.stored):
            return f"group {group.group_id} is stable with {_members(value)}, stored with {_members(group.stored)}"
    return None


def _members(value: GroupMetadataValue | None) -> str:
    if value is None:
        return "nothing"
    names = ", ".join(each.member_id for each in value.members)
    return f"{names or 'nobody'} in generation {value.generation}"


def state_of_transactions(shard: TransactionShard) -> State:
    """The values of each transactional id."""
    return dict(shard.described())


def state_of_shares(shard: ShareStateShard) -> State:
    """The state of each share partition."""
    return {
        f"{where.group_id}'s state of {where.topic_id} {where.partition}": each for where, each in shard.states.items()
    }


@dataclass(slots=True)
class _Successor:
    """A shard that has replayed the log up to an offset."""

    shard: Any
    offset: int


class CoordinatorChecks(Watcher):
    """A `Watcher` of a world with coordinators."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._successors: WeakKeyDictionary[CoordinatorPartition[Any], _Successor] = WeakKeyDictionary()
        self.on_share_states: Callable[[CoordinatorPartition[ShareStateShard]], None] = lambda partition: None
        """Called when the states of share partitions were found to be those of their log, which is committed."""
        world.watchers.append(self)

    def turn_ended(self, host: Host) -> None:
        node = host.node
        if node is None:
            return
        failing, host.disk.failing = host.disk.failing, []  # a failing disk does not hinder the checkers
        self._check_coordinators(node)
        host.disk.failing = failing

    def _check_coordinators(self, node: Node) -> None:
        groups, transactions = node.components.groups.loaded, node.components.transactions.loaded
        if groups is not None:
            for of_groups in groups.partitions():
                if self._advance(of_groups, decode_group_record, _new_groups):
                    self._compare("C6", of_groups, state_of_groups)
                    if wrong := misremembered(of_groups.shard):
                        raise Violation("C6", self._world.now_us, Place(of_groups.name), f": {wrong}")
        if transactions is not None:
            for partition in transactions.partitions():
                if self._advance(partition, decode_transaction_record, _new_transactions):
                    self._compare("X6", partition, state_of_transactions)
        states = node.components.shares.loaded
        if states is not None:
            for of_shares in states.partitions():
                if self._advance(of_shares, decode_share_state_record, _new_states):
                    self._compare("Q6", of_shares, state_of_shares)
                    self.on_share_states(of_shares)

    def _advance(self, partition: CoordinatorPartition[Any], decode: Decode, make: Callable[[], Any]) -> bool:
        """Replay what is new; False if there is nothing to compare."""
        hosted = partition.hosted
        end = hosted.log.log_end_offset
        if not partition.ready or partition.gathered or hosted.leader is None or hosted.stale:
            return False
        if hosted.log.failed is not None or hosted.leader.high_watermark < end:
            return False
        known = self._successors.get(partition)
        if known is None:
            known = self._successors[partition] = _Successor(make(), hosted.log.log_start_offset)
        elif known.offset == end:
            return False
        for view in batch_bytes(hosted.log, known.offset, end):
            for header, batch in iterate_batches(view):
                marker = parse_marker(batch) if header.is_control else None
                if marker is not None:
                    known.shard.replay_marker(header.producer_id, committed=not marker.aborted)
                elif not header.is_control:
                    for record in decode_batch(batch):
                        decoded = None if record.key is None else decode(record.key, record.value)
                        if decoded is None:
                            continue
                        if header.is_transactional:
                            known.shard.replay_pending(header.producer_id, *decoded)
                        else:
                            known.shard.replay(*decoded)
        known.offset = end
        return True

    def _compare(
        self, property_id: str, partition: CoordinatorPartition[Any], state_of: Callable[[Any], State]
    ) -> None:
        self._world.counts["coordinators: compared with the replay of their log"] += 1
        has, says = state_of(partition.shard), state_of(self._successors[partition].shard)
        if has != says:
            name = next(name for name in sorted({*has, *says}) if has.get(name) != says.get(name))
            raise Violation(
                property_id,
                self._world.now_us,
                Place(partition.name),
                f" up to {partition.hosted.log.log_end_offset}: {name} is {has.get(name)!r} at the "
                f"coordinator, {says.get(name)!r} by the replay of its log",
            )


def _new_groups() -> GroupShard:
    return GroupShard(GroupSettings(), _NoTopics())


def _new_transactions() -> TransactionShard:
    return TransactionShard(TransactionSettings(), 0)


def _new_states() -> ShareStateShard:
    return ShareStateShard(_NoTopics(), 0)


class _NoTopics:
    """Records are replayed without a look at topics."""

    version = 0

    def find(self, name: str) -> None:
        return None

    def name_of(self, topic_id: object) -> None:
        return None

    def names(self) -> tuple[str, ...]:
        return ()
