"""A controller with a log that commits at once, for tests: what it decides is replayed, by it and by a standby."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

from tanist.client.admin import alter_configs_request, create_topics_request, new_topic
from tanist.controller.controller import Bootstrap, Controller
from tanist.controller.decision import ControllerSettings, Decision, ElectionWait
from tanist.controller.image.image import MetadataImage, PartitionState
from tanist.controller.partitions.unclean_recovery import AskReplica
from tanist.events.stream import Events
from tanist.lab.scenarios import requests
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest
from tanist.wire.metadata import decode_record, encode_record, record_version

CLUSTER_ID = "the-cluster"
CAUGHT_UP = 1 << 40
"""A metadata offset beyond every log."""


class Dice:
    """A random generator that is none."""

    def __init__(self) -> None:
        self._count = 0

    def below(self, n: int) -> int:
        return 0 if n == 1 else 1

    def bytes(self, n: int) -> bytes:
        self._count += 1
        return b"\x55" * (n - 4) + self._count.to_bytes(4, "big")


def _after(deadline_ms: int | None, now_ms: int) -> bool:
    return deadline_ms is None or deadline_ms > now_ms


class Cluster:
    """One active controller, its log, and a standby that sees nothing but the log."""

    def __init__(self, *, bootstrap: Bootstrap | None = None, activate: bool = True, **settings: Any) -> None:
        self.settings = replace(ControllerSettings(node_id=100), **settings)
        self.events = Events()
        self.controller = Controller(
            100,
            MetadataImage(self.settings.topic_defaults()),
            self.settings,
            Dice(),
            cluster_id=CLUSTER_ID,
            bootstrap=bootstrap,
            events=self.events,
        )
        self.standby = MetadataImage(self.settings.topic_defaults())
        self.log: list[Any] = []
        self.now_ms = 1_000_000
        self.decisions: list[Decision] = []
        self.asked: list[AskReplica] = []
        """Questions to replicas that nobody has answered."""
        self.finished_elections: list[ElectionWait] = []
        if activate:
            self.commit(self.controller.activate(1, self.now_ms, 0))

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def commit(self, decision: Decision | None) -> Any:
        """Append and replay a decision's records, and give its answer."""
        if decision is None:
            self._after_an_event()
            return None
        self.decisions.append(decision)
        for record in decision.records:
            # The standby gets what a reader of the log gets: bytes of the version that metadata.version prescribes.
            value = encode_record(record, record_version(type(record), self.image.metadata_version))
            self.log.append(record)
            self.controller.appended((record,), self.now_ms)
            self.standby.replay(decode_record(value))
        if self.standby != self.image:
            raise AssertionError("the standby's image differs")
        self._after_an_event()
        return decision.response

    def _after_an_event(self) -> None:
        self.asked += self.controller.questions(self.now_ms)
        self.finished_elections += self.controller.finished_elections(self.now_ms)

    def ask(self, request: Any, api_version: int | None = None) -> Any:
        version = type(request).VERSIONS[1] if api_version is None else api_version
        return self.commit(self.controller.handle(request, self.now_ms, next_offset=len(self.log), api_version=version))

    def written(self, since: int) -> list[str]:
        return [type(record).__name__ for record in self.log[since:]]

    # -- brokers

    def registration(self, broker_id: int, incarnation: int = 1, **fields: Any) -> BrokerRegistrationRequest:
        request = requests.registration(
            broker_id,
            cluster_id=CLUSTER_ID,
            incarnation=UUID(int=broker_id * 1000 + incarnation),
            directories=(directory(broker_id),),
        )
        return replace(request, **fields)

    def register(self, broker_id: int, incarnation: int = 1, api_version: int | None = None, **fields: Any) -> int:
        """Register and give the broker epoch."""
        response = self.ask(self.registration(broker_id, incarnation, **fields), api_version)
        if response.error_code != ErrorCode.NONE:
            raise AssertionError(ErrorCode(response.error_code).name)
        return int(response.broker_epoch)

    def heartbeat(self, broker_id: int, **fields: Any) -> Any:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.image.brokers[broker_id].epoch,
            current_metadata_offset=CAUGHT_UP,
        )
        return self.ask(replace(request, **fields))

    def start(self, *broker_ids: int) -> None:
        """Register and unfence."""
        for broker_id in broker_ids:
            self.register(broker_id)
            self.heartbeat(broker_id)

    def advance(self, by_ms: int, beating: Iterable[int] = ()) -> None:
        """Let time pass, doing what falls due when it falls due, while some brokers keep beating."""
        until_ms = self.now_ms + by_ms
        alive = tuple(beating)
        next_beat_ms = self.now_ms + 2000
        while True:
            deadline_ms = self.controller.next_deadline_ms
            step_ms = min(until_ms, next_beat_ms, until_ms if deadline_ms is None else max(deadline_ms, self.now_ms))
            self.now_ms = step_ms
            if deadline_ms is not None and step_ms >= deadline_ms:
                self.commit(self.controller.tick(self.now_ms, len(self.log)))
            if step_ms == next_beat_ms:
                next_beat_ms += 2000
                for broker_id in alive:
                    self.heartbeat(broker_id)
            if step_ms == until_ms and _after(self.controller.next_deadline_ms, until_ms):
                return

    # -- topics

    def create_topic(self, name: str, *assignments: tuple[int, ...], **configs: str) -> None:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        response = self.ask(create_topics_request(new_topic(name, assignment=assignments, configs=named)))
        if response.topics[0].error_code != ErrorCode.NONE:
            raise AssertionError(response.topics[0])

    def partition(self, topic: str, number: int = 0) -> PartitionState:
        return self.image.topics[self.image.topic_ids[topic]].partitions[number]

    def alter_isr(self, topic: str, isr: tuple[int, ...], number: int = 0) -> int:
        """The leader proposes an ISR with the present epochs; gives the error code."""
        state = self.partition(topic, number)
        request = requests.alter_partition(
            sender=state.leader,
            sender_epoch=self.image.brokers[state.leader].epoch,
            topic_id=self.image.topic_ids[topic],
            partition=number,
            isr=[(member, self.image.brokers[member].epoch) for member in isr],
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
        )
        response = self.ask(request)
        return int(response.error_code or response.topics[0].partitions[0].error_code)

    # -- configs

    def set_config(self, resource: tuple[int, str], name: str, value: str | None, **fields: Any) -> Any:
        """Set, or with None delete, one config; gives the resource's part of the answer."""
        request = alter_configs_request(*resource, {name: value})
        return self.ask(replace(request, **fields)).responses[0]


def directory(broker_id: int, number: int = 0) -> UUID:
    return UUID(int=(1 << 70) + broker_id * 10 + number)


def three_brokers(min_isr: str = "2") -> Cluster:
    """With a topic that all of them have."""
    cluster = Cluster()
    cluster.start(1, 2, 3)
    cluster.create_topic("foo", (1, 2, 3), min_insync_replicas=min_isr)
    return cluster


def end_session(cluster: Cluster, broker_id: int) -> None:
    cluster.commit(cluster.controller.fencing.fence(cluster.image, broker_id, cluster.image.brokers[broker_id].epoch))


def registration_error(cluster: Cluster, api_version: int = 4, **fields: Any) -> str:
    broker_id = fields.pop("broker_id", 1)
    answer = cluster.ask(cluster.registration(broker_id, fields.pop("incarnation", 2), **fields), api_version)
    return ErrorCode(answer.error_code).name
