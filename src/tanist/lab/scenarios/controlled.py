"""A controller whose decisions take effect at once, and the comparison with Apache's controller.

Owns the log, the first brokers and topics of a scenario, and `apart`: the partitions for which Apache's controller
would have another state by now, by a rule of `deviations`. Their later states may differ too; `apart` distinguishes
them from defects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from tanist.controller.configs.settings import MIN_INSYNC_REPLICAS
from tanist.controller.controller import Controller
from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.features import SUPPORTED_FEATURES
from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, MetadataImage, PartitionState
from tanist.lab.scenarios import requests
from tanist.lab.scenarios.deviations import Explained, Step, deviations
from tanist.lab.scenarios.fields import Fields, NotUnderstood
from tanist.lab.scenarios.outcome import Mismatch
from tanist.lab.scenarios.partitions import level_of
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.metadata import (
    BrokerFeature,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from tanist.wire.schema import MetadataRecord

CLUSTER_ID = "scenario"
CONTROLLER_ID = 0
CAUGHT_UP = 1 << 40
"""A metadata offset beyond any log."""
LATEST = "4.3-IV0"
A_LONG_TIME_MS = 1_000_000
NO_SUCH_TOPIC = UUID(int=0xDEAD)

Written = tuple[MetadataRecord, ...]


def phase_one(**changes: Any) -> ControllerSettings:
    """The settings for the comparison with Apache's behaviour: KIP-966's first phase."""
    return ControllerSettings(node_id=CONTROLLER_ID, unclean_recovery_manager_enabled=False, **changes)


class _CountingRandom:
    """The `Random` port without randomness. Topic ids count upwards."""

    def __init__(self) -> None:
        self._count = 0

    def below(self, n: int) -> int:
        return n - 1

    def bytes(self, n: int) -> bytes:
        self._count += 1
        return b"\x55" * (n - 8) + self._count.to_bytes(8, "big")


class Controlled:
    """An active controller; every decision takes effect before the next event."""

    def __init__(self, cluster: Fields, topics: Fields) -> None:
        static = {str(name): str(value) for name, value in cluster.inner("static_config").plain().items()}
        minimum = int(static.get(MIN_INSYNC_REPLICAS, "1"))
        self.settings = phase_one(static_configs=static, min_insync_replicas=minimum)
        self.image = MetadataImage(self.settings.topic_defaults())
        self.controller = Controller(CONTROLLER_ID, self.image, self.settings, _CountingRandom(), cluster_id=CLUSTER_ID)
        self.now_ms = 0
        self.offset = 1000
        self.incarnations = 0
        self.apart: dict[TopicIdPartition, list[Explained]] = {}
        """Partitions that Apache's controller would have changed differently by now, and the rules."""
        self.kept_in: dict[int, tuple[UUID, ...]] = {}
        self.controller.activate(1, self.now_ms, self.offset)
        self._begin(cluster)
        for name in topics:
            topic = topics.inner(str(name))
            self._create(str(name), topic)

    def _begin(self, cluster: Fields) -> None:
        self.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level_of(cluster.get("mv", LATEST))))
        self.replay(RegisterControllerRecord(controller_id=CONTROLLER_ID, incarnation_id=UUID(int=1)))
        if cluster.get("elr", False):
            self.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
        several = cluster.inner("dirs").plain()
        unfenced = cluster.ids("unfenced")
        for broker_id in cluster.ids("brokers"):
            self.kept_in[broker_id] = directories(broker_id, several.get(broker_id, 1))
            self.incarnations += 1
            self.replay(
                RegisterBrokerRecord(
                    broker_id=broker_id,
                    incarnation_id=UUID(int=self.incarnations),
                    broker_epoch=broker_id + 100,
                    fenced=broker_id not in unfenced,
                    features=tuple(
                        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                        for name, (low, high) in SUPPORTED_FEATURES.items()
                    ),
                    log_dirs=self.kept_in[broker_id],
                )
            )
        convention = cluster.get("broker_epoch", "id+100")
        if convention != "id+100":
            raise NotUnderstood(f"cluster.broker_epoch: {convention!r}")

    def _create(self, name: str, topic: Fields) -> None:
        assignments = topic["assignments"]
        request = requests.create_topic(name, assignments, topic.inner("config").plain())
        error, _ = self.ask(request)
        if error != ErrorCode.NONE:
            raise Mismatch(f"creating topic {name}", "NONE", ErrorCode.name_of(error))

    # -- the log

    def replay(self, *records: MetadataRecord) -> Written:
        self.controller.appended(records, self.now_ms)
        self.offset += len(records)
        return records

    def apply(self, decision: Decision | None) -> Written:
        return () if decision is None else self.replay(*decision.records)

    def ask(self, request: Any, api_version: int | None = None) -> tuple[int, Written]:
        """A request to the controller: the error of its answer, and the written records."""
        response, written = self.answer(request, api_version)
        return requests.error_in(response), written

    def answer(self, request: Any, api_version: int | None = None) -> tuple[Any, Written]:
        version = type(request).VERSIONS[1] if api_version is None else api_version
        decision = self.controller.handle(request, self.now_ms, next_offset=self.offset, api_version=version)
        return decision.response, self.apply(decision)

    # -- deviations

    def asked(
        self,
        request: Any,
        *,
        api_version: int | None = None,
        unregistered: int | None = None,
        min_isr: bool = False,
        moved: TopicIdPartition | None = None,
        cancels: bool = False,
    ) -> tuple[int, Written]:
        """A request, compared. The arguments are those that `deviations` needs."""
        return self.watched(
            lambda: self.ask(request, api_version),
            unregistered=unregistered,
            min_isr=min_isr,
            moved=moved,
            cancels=cancels,
        )

    def happened(self, event: Callable[[], Written]) -> Written:
        """An event that is not a request, compared."""
        return self.watched(lambda: (ErrorCode.NONE, event()))[1]

    def watched(
        self,
        event: Callable[[], tuple[int, Written]],
        *,
        unregistered: int | None = None,
        min_isr: bool = False,
        moved: TopicIdPartition | None = None,
        cancels: bool = False,
    ) -> tuple[int, Written]:
        before = dict(self.partitions())
        elr = self.image.elr_enabled
        minima = {key: self.image.min_insync_replicas(self.image.topics[key[0]].name) for key in before}
        error, written = event()
        for key, state in before.items():
            after = self.image.partition(*key)
            if after is None:
                continue
            step = Step(
                before=state,
                after=after,
                elr=elr,
                min_isr=minima[key],
                first_replicas=len(before.get((key[0], 0), state).replicas),
                unregistered=unregistered,
                min_isr_written=min_isr and bool(written),
                reassigned=key == moved and not cancels,
                cancelled=key == moved and cancels,
                refused=error == ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            )
            explained = list(deviations(step))
            if explained:
                self.apart.setdefault(key, []).extend(explained)
        return error, written

    def explanation(self, key: TopicIdPartition | None, field: str = "") -> Explained | None:
        """The rule by which this field of a partition (None: any) differs: one about the field, else an earlier one."""
        rules = [each for where, several in self.apart.items() if key in (None, where) for each in several]
        return next((each for each in rules if field in each.fields), rules[0] if rules else None)

    def partitions(self) -> Iterable[tuple[TopicIdPartition, PartitionState]]:
        for topic_id, topic in self.image.topics.items():
            for number, state in topic.partitions.items():
                yield (topic_id, number), state

    def partition(self, topic: str, number: int) -> tuple[UUID, PartitionState | None]:
        topic_id = self.image.topic_ids.get(topic, NO_SUCH_TOPIC)
        return topic_id, self.image.partition(topic_id, number)

    def epoch(self, broker_id: int) -> int:
        registration = self.image.brokers.get(broker_id)
        return -1 if registration is None else registration.epoch


def directories(broker_id: int, several: object) -> tuple[UUID, ...]:
    names = range(several) if isinstance(several, int) else several
    if not isinstance(names, (list, range)):
        raise NotUnderstood(f"directories of broker {broker_id}: {several!r}")
    return tuple(directory(broker_id, name) for name in names)


def directory(broker_id: int, name: object) -> UUID:
    return UUID(bytes=(b"dir" + str(name).encode())[:8].ljust(8, b"\0") + (1000 + broker_id).to_bytes(8, "big"))
