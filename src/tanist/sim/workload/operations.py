"""Operations: a list that is drawn before the run begins, and the admin client that sends them.

They are drawn like faults (`faults/schedule.py`), from a random stream of their own. Requests go to any broker, as an
admin client's do. Their success is not checked; their changes are judged from the committed metadata.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tanist.broker.network.channel import Channel
from tanist.broker.replication.quotas import MOVES_RATE
from tanist.client.admin import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ElectionType,
    UpgradeType,
    alter_configs_request,
    create_topics_request,
    elect_request,
    move_logs_request,
    new_topic,
    reassign_request,
    update_feature_request,
)
from tanist.sim.events import (
    ConfigRequested,
    DirectoryRequested,
    ElrVersionRequested,
    PreferredLeadersRequested,
    ReassignmentRequested,
    ThrottlesRemoved,
    UncleanElectionRequested,
    UnregistrationRequested,
)
from tanist.sim.oracle import Oracle
from tanist.sim.promise import AGGRESSIVE, BALANCED, FIRST_PHASE, NONE, Promise
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.clock import stream
from tanist.sim.world.world import BROKER_PORT, World
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest

OPERATIONS: dict[str, str] = {
    "reassign": "other replicas for a partition, perhaps more or fewer of them",
    "cancel": "a reassignment under way is cancelled",
    "min_isr": "another min.insync.replicas for a topic, or none of its own",
    "cluster_min_isr": "another min.insync.replicas for the cluster",
    "strategy": "another unclean.recovery.strategy for a topic",
    "preferred": "preferred leaders are elected for all partitions",
    "unclean": "an unclean election is asked for, of one of the KIP's kinds",
    "unregister": "a broker is unregistered",
}
RARE_OPERATIONS: dict[str, str] = {
    "features": "eligible.leader.replicas.version goes down, or up again",
    "configs": "topic configurations that change how logs are written, and not what they promise",
}
"""Kinds that only some profiles draw (`profiles.EXTRAS`)."""

VOTER_OPERATIONS: dict[str, str] = {
    "add_voter": "a controller is added to the voters of the quorum",
    "remove_voter": "a voter is removed: one without its disk, the active controller, or any",
}
"""Kinds that only runs with dynamic voters draw (`voter_operations.py`)."""

THROTTLE_OPERATIONS: dict[str, str] = {
    "throttled_move": "other replicas for a partition, with a rate for the replicas that are not in sync (KIP-73)",
    "unthrottle": "the rates are taken away",
}
"""Kinds that only runs with throttles draw."""

MOVE_OPERATIONS: dict[str, str] = {
    "move_log": "a replica goes to another log directory of its broker (KIP-113)",
    "slow_move_log": "a replica goes there, with a rate of its broker",
}
"""Kinds that only runs with several log directories draw."""

TRIM_OPERATIONS: dict[str, str] = {
    "delete_records": "DeleteRecords at an offset of a committed record",
    "delete_all": "DeleteRecords of all committed records (offset -1)",
    "delete_beyond": "DeleteRecords beyond the high watermark, which is refused",
}
"""Kinds that only runs with trimming draw (`trimmer.py`)."""

SHARE_OPERATIONS: dict[str, str] = {
    "alter_offsets": "an empty share group goes on from another offset of a partition",
    "alter_offsets_twice": "and, before it has members again, from yet another one",
    "delete_offsets": "an empty share group forgets a topic, and begins anew",
    "alter_offsets_in_use": "another offset for a share group that may have members, which is refused",
}
"""Kinds that only runs with share groups draw (`share_operator.py`)."""

ACCESS_OPERATIONS: dict[str, str] = {
    "allow": "an entry that allows a subject something is made",
    "deny": "an entry that denies a subject something is made",
    "revoke": "entries are removed: one of them, or all of a subject",
    "password": "a user of SCRAM gets another password",
    "forget_user": "a user of SCRAM is removed",
    "give_token": "a delegation token is made",
    "end_token": "a delegation token is revoked, or ends soon",
}
"""Kinds that only secured runs draw (`access_admin.py`)."""

QUOTA_OPERATIONS: dict[str, str] = {
    "set_quota": "a user, a client id, both, all of these, or an address gets a quota, or another one",
    "drop_quota": "a quota is removed",
    "drop_quotas": "all quotas of a key are removed",
}
"""Kinds that only secured runs with quotas draw (`quota_admin.py`)."""

RISKY = ("unclean", "unregister", "min_isr", "cluster_min_isr")
"""Kinds that weaken the promise of the protocol."""

_TIMEOUT_MS = 5_000
_CREATE_TOPICS_VERSION = 7
_ELR_VERSION = "eligible.leader.replicas.version"
_SIDES = ("leader", "follower")
_LOG_CONFIGS = (("flush.messages", "1"), ("flush.messages", None), ("segment.ms", "700"), ("segment.ms", None))
_UNCLEAN_KINDS = (
    ElectionType.LONGEST_LOG_BALANCED,
    ElectionType.LONGEST_LOG_AGGRESSIVE,
    ElectionType.UNCLEAN,
    ElectionType.DESIGNATION,
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a run, as it is created."""

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One action of an operator. `first` and `second` are random numbers in [0, 1) for its choices."""

    at_us: int
    kind: str
    first: float
    second: float


def draw_operations(
    rng: random.Random, kinds: Sequence[str], time_us: int, pause_us: tuple[int, int]
) -> list[Operation]:
    """A list of operations of these kinds, in order of time, over `time_us`."""
    operations: list[Operation] = []
    at_us = 0
    while kinds:
        at_us += rng.randint(*pause_us)
        if at_us >= time_us:
            break
        operations.append(Operation(at_us, rng.choice(kinds), rng.random(), rng.random()))
    return operations


class Operator(SimClient):
    """Sends the operations of a list. A kind of operation is a method of its name."""

    def __init__(self, world: World, name: str, history: History) -> None:
        super().__init__(world, name, history)
        self._under_way = 0

    @property
    def idle(self) -> bool:
        """Whether all requests are answered or given up."""
        return not self._under_way

    def start(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            self.world.scheduler.after(operation.at_us, partial(self._act, operation), self.process)

    def _act(self, operation: Operation) -> None:
        getattr(self, f"_{operation.kind}")(operation)


class Admin(Operator):
    """The operator of topics and brokers."""

    def __init__(
        self,
        world: World,
        history: History,
        oracle: Oracle,
        promise: Promise,
        topics: Sequence[Topic],
        throttle_bytes: int = 0,
        move_bytes: int = 0,
    ) -> None:
        """`throttle_bytes`: the rate of throttled replicas, in a second; `move_bytes`: of a move that is slow."""
        super().__init__(world, "admin", history)
        self._oracle = oracle
        self._promise = promise
        self._topics = topics
        self._throttle_bytes = throttle_bytes
        self._move_bytes = move_bytes

    def create_topics(self, done: Callable[[], None], topics: Sequence[Topic] | None = None) -> None:
        """Repeat until all of its topics exist, or these."""
        wanted = {topic.name: topic for topic in (self._topics if topics is None else topics)}

        def ask() -> None:
            request = create_topics_request(
                *(
                    new_topic(
                        topic.name,
                        partitions=topic.partitions,
                        replication_factor=topic.replication_factor,
                        configs=dict(topic.configs),
                    )
                    for topic in wanted.values()
                )
            )
            self.any_broker().call(request, _CREATE_TOPICS_VERSION, 10_000, handle_response)

        def handle_response(response: Any) -> None:
            for topic in () if response is None else response.topics:
                if topic.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
                    wanted.pop(topic.name, None)
            if wanted:
                self.later(100, ask)
            else:
                done()

        self.run(ask)

    # -- reassignments

    def _reassign(self, operation: Operation) -> None:
        key, name, replicas = self._move(operation)
        self.world.emit(ReassignmentRequested(f"{name}-{key[1]}", replicas))
        self._place(name, key[1], replicas)

    def _move(self, operation: Operation) -> tuple[TopicIdPartition, str, tuple[int, ...]]:
        """A partition, and other replicas for it."""
        key, name = self._partition(operation.first)
        brokers = [host.node_id for host in self.world.brokers]
        rng = stream(self.world.seed, f"reassign/{operation.at_us}")
        size = min(len(brokers), max(1, len(self._oracle.states[key].replicas) + rng.choice((-1, 0, 0, 1))))
        return key, name, tuple(rng.sample(brokers, size))

    def _throttled_move(self, operation: Operation) -> None:
        """As `kafka-reassign-partitions --throttle`: rates of the brokers, replicas of the topic, the reassignment."""
        key, name, replicas = self._move(operation)
        old = self._oracle.states[key].replicas
        self.world.emit(ReassignmentRequested(f"{name}-{key[1]}", replicas, self._throttle_bytes))
        self._rate({*old, *replicas}, str(self._throttle_bytes))
        for side, each in zip(_SIDES, (old, replicas), strict=True):
            named = "*" if operation.second < 0.5 else ",".join(f"{key[1]}:{broker_id}" for broker_id in each)
            self._configure(TOPIC_RESOURCE, name, f"{side}.replication.throttled.replicas", named)
        self.world.counts["reassignments throttled"] += 1
        self._place(name, key[1], replicas)

    def _unthrottle(self, operation: Operation) -> None:
        self.world.emit(ThrottlesRemoved())
        self._rate({host.node_id for host in self.world.brokers}, None)
        for topic in self._topics:
            for side in _SIDES:
                self._configure(TOPIC_RESOURCE, topic.name, f"{side}.replication.throttled.replicas", None)

    def _rate(self, broker_ids: set[int], value: str | None) -> None:
        for broker_id in sorted(broker_ids):
            self._set_rates(broker_id, {f"{side}.replication.throttled.rate": value for side in _SIDES})

    def _set_rates(self, broker_id: int, rates: dict[str, str | None]) -> None:
        """A broker checks its own configuration before it passes it on."""
        self._send(alter_configs_request(BROKER_RESOURCE, str(broker_id), rates), 1, self._at(broker_id))

    def _at(self, broker_id: int) -> Channel:
        return self.channel((self.world.hosts[broker_id].name, BROKER_PORT))

    def _cancel(self, operation: Operation) -> None:
        moving = [key for key, state in self._oracle.states.items() if state.reassigning]
        if moving:
            key = moving[int(operation.first * len(moving))]
            name = self._name(key)
            self.world.emit(ReassignmentRequested(f"{name}-{key[1]}", None))
            self._place(name, key[1], None)

    def _place(self, name: str, partition: int, replicas: tuple[int, ...] | None) -> None:
        self._send(reassign_request(name, partition, replicas), 0)

    # -- moves between log directories

    def _move_log(self, operation: Operation) -> None:
        self._change_directory(operation, None)

    def _slow_move_log(self, operation: Operation) -> None:
        self._change_directory(operation, self._move_bytes)

    def _change_directory(self, operation: Operation, rate: int | None) -> None:
        key, name = self._partition(operation.first)
        replicas = self._oracle.states[key].replicas
        broker_id = replicas[int(operation.second * 997) % len(replicas)]
        directories = self.world.hosts[broker_id].directories
        path = directories[int(operation.second * len(directories))]
        self.world.emit(DirectoryRequested(broker_id, f"{name}-{key[1]}", path, rate))
        self._set_rates(broker_id, {MOVES_RATE: None if rate is None else str(rate)})
        self._send(move_logs_request({(name, key[1]): path}), 2, self._at(broker_id))

    # -- configurations

    def _min_isr(self, operation: Operation) -> None:
        topic = self._topics[int(operation.first * len(self._topics))]
        value = (None, "1", "2", "2", "3")[int(operation.second * 5)]
        self._configure(TOPIC_RESOURCE, topic.name, "min.insync.replicas", value)
        self.world.counts["min.insync.replicas changed"] += 1

    def _cluster_min_isr(self, operation: Operation) -> None:
        self._configure(BROKER_RESOURCE, "", "min.insync.replicas", ("1", "2", "2", "3")[int(operation.second * 4)])
        self.world.counts["min.insync.replicas changed"] += 1

    def _strategy(self, operation: Operation) -> None:
        topic = self._topics[int(operation.first * len(self._topics))]
        strategies = (NONE, BALANCED, AGGRESSIVE)
        if self._first_phase():
            value = ("true", "false")[int(operation.second * 2)]
            self._configure(TOPIC_RESOURCE, topic.name, "unclean.leader.election.enable", value)
        else:
            value = strategies[int(operation.second * len(strategies))]
            self._configure(TOPIC_RESOURCE, topic.name, "unclean.recovery.strategy", value)
        self.world.counts["strategies changed"] += 1

    def _configs(self, operation: Operation) -> None:
        topic = self._topics[int(operation.first * len(self._topics))]
        self._configure(TOPIC_RESOURCE, topic.name, *_LOG_CONFIGS[int(operation.second * len(_LOG_CONFIGS))])
        self.world.counts["logs configured"] += 1

    def _features(self, operation: Operation) -> None:
        """Off and on again. Off only while no replica has lost records: without an ELR nothing compensates for it."""
        level = 0 if self._oracle.image.elr_enabled and operation.first < 0.7 else 1
        if not level and not self._promise.elr_may_end():
            return
        self.world.emit(ElrVersionRequested(level))
        kind = UpgradeType.UPGRADE if level else UpgradeType.SAFE_DOWNGRADE
        self._send(update_feature_request(_ELR_VERSION, level, kind), 2)

    def _configure(self, resource: int, name: str, key: str, value: str | None) -> None:
        self.world.emit(ConfigRequested(name, key, value))
        self._send(alter_configs_request(resource, name, {key: value}), 1)

    # -- elections and brokers

    def _preferred(self, operation: Operation) -> None:
        self.world.emit(PreferredLeadersRequested())
        self.world.counts["preferred elections asked for"] += 1
        self._send(elect_request(ElectionType.PREFERRED), 2)

    def _unclean(self, operation: Operation) -> None:
        key, _ = self._partition(operation.first)
        self.elect_uncleanly(key, operation.second)

    def elect_uncleanly(self, key: TopicIdPartition, choice: float = 0.0) -> None:
        """By one of the election types; by default the longest log."""
        name = self._name(key)
        replicas = self._oracle.states[key].replicas
        kinds = (ElectionType.UNCLEAN,) if self._first_phase() else _UNCLEAN_KINDS
        kind = kinds[int(choice * len(kinds))]
        desired = (replicas[int(choice * 997) % len(replicas)],) if kind is ElectionType.DESIGNATION else None
        self.world.emit(
            UncleanElectionRequested(key, f"{name}-{key[1]}", kind, None if desired is None else desired[0])
        )
        version = 2 if self._first_phase() else 3
        self._send(elect_request(kind, name, key[1], desired=desired), version)

    def _unregister(self, operation: Operation) -> None:
        hosts = [host for host in self.world.brokers if not host.up] or self.world.brokers
        host = hosts[int(operation.first * len(hosts))]
        self.world.emit(UnregistrationRequested(host.node_id))
        self.world.counts["brokers unregistered"] += 1
        self._send(UnregisterBrokerRequest(broker_id=host.node_id), 0)

    # -- bits

    def _send(self, request: Any, version: int, to: Channel | None = None) -> None:
        self._under_way += 1

        def handle_response(response: Any) -> None:
            self._under_way -= 1

        (to or self.any_broker()).call(request, version, _TIMEOUT_MS + 1_000, handle_response)

    def _partition(self, choice: float) -> tuple[TopicIdPartition, str]:
        keys = list(self._oracle.states)
        key = keys[int(choice * len(keys))]
        return key, self._name(key)

    def _name(self, key: TopicIdPartition) -> str:
        return self._oracle.image.topics[key[0]].name

    def _first_phase(self) -> bool:
        return all(self._promise.strategy(oracle) == FIRST_PHASE for oracle in self._oracle.partitions.values())
