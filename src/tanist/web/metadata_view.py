"""The metadata log as the view shows it: partitions, their successions, and each change with a sentence of why.

Owns a metadata image that grows with the log. The sentences are those of `tanist topics describe --explain`, and who
would lead after a death is the controller's own decision (`partition_change`). A view of the records in their order
can use it: a live cluster reads them from a node's log, the simulator takes them from its nodes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

from tanist.controller.decision import ControllerSettings
from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.image import BROKER, TOPIC, MetadataImage
from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.controller.partitions.change import Intent, merge, partition_change
from tanist.controller.partitions.context import PartitionContexts
from tanist.controller.partitions.recovery_strategy import elr_in_force, recovers_uncleanly, recovery_strategy
from tanist.runtime.client.explain import Situation, explain
from tanist.text import counted
from tanist.web.changes import change_text, is_worse, weight_of
from tanist.web.partition_positions import Succession
from tanist.web.state import Json, MetadataEvent, PartitionView, danger_of, plain
from tanist.wire.internal_topics import INTERNAL_TOPICS
from tanist.wire.metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from tanist.wire.schema import MetadataRecord

EVENTS_MAX = 400
_BURST = 24
"""So many partition changes of one burst are shown one by one: a broker that is fenced may change ten thousand."""
_BURST_MS = 1000
_UNSET = "its default"


@dataclass(slots=True)
class _Burst:
    """Partition changes that follow each other closely."""

    began_ms: int = -_BURST_MS
    number: int = 0
    weight: int = 0
    """The highest of those that are not shown one by one."""
    worse: bool | None = None
    """Whether any of those is for the worse, or all that are one or the other for the better."""
    key: str | None = None
    """The event that stands for them."""


_Pending: TypeAlias = tuple[int, int, MetadataRecord, ImageDelta, Mapping[tuple[UUID, int], PartitionState]]


class MetadataView:
    """All that follows from the metadata log."""

    def __init__(
        self,
        static_configs: Mapping[str, str] | None = None,
        settings: ControllerSettings | None = None,
        *,
        high_watermark_waits: bool = True,
    ) -> None:
        self.image = MetadataImage(static_configs)
        self.settings = settings or ControllerSettings()
        self._high_watermark_waits = high_watermark_waits
        self.next_offset = 0
        self.not_running: frozenset[int] = frozenset()
        """Brokers whose processes are dead or paused, whatever the metadata has (`note_not_running`)."""
        self._events: OrderedDict[str, Json] = OrderedDict()
        self._partitions: dict[str, Json] = {}
        self._dirty: dict[tuple[UUID, int], None] = {}
        self._burst = _Burst()
        self._pending: list[_Pending] = []

    # -- growing

    def replay(self, offset: int, at_ms: int, record: MetadataRecord, *, quiet: bool = False) -> None:
        """Apply one record. `quiet`: it is part of a snapshot, and no change. `ImageError` if it does not fit."""
        if self._pending and self._pending[0][1] != at_ms:
            self._describe_pending()
        delta = ImageDelta()
        self.image.replay(record, delta)
        self.next_offset = max(self.next_offset, offset + 1)
        self._mark(delta)
        if not quiet:
            self._pending.append((offset, at_ms, record, delta, self._states(delta)))

    def _states(self, delta: ImageDelta) -> dict[tuple[UUID, int], PartitionState]:
        """The changed partitions as the record has left them."""
        topics = self.image.topics
        return {
            (topic_id, index): topics[topic_id].partitions[index]
            for topic_id, partitions in delta.partitions.items()
            for index in partitions
        }

    def _describe_pending(self) -> None:
        """Words for the records of one moment, once all are applied: a broker's fence stands behind what it causes."""
        pending, self._pending = self._pending, []
        for offset, at_ms, record, delta, states in pending:
            for number, event in enumerate(self._changes(offset, at_ms, record, delta, states)):
                self._add(event, number)

    def note_not_running(self, brokers: Collection[int]) -> None:
        """Which brokers do not run, as the source sees it: the metadata learns it later."""
        changed = self.not_running.symmetric_difference(brokers)
        self.not_running = frozenset(brokers)
        for broker in changed:
            self._dirty.update(dict.fromkeys(self.image.partitions_on(broker)))

    def note(self, event: MetadataEvent) -> None:
        """An event that is no record of the metadata: a leader of the quorum."""
        self._describe_pending()
        self.next_offset = max(self.next_offset, event.offset + 1)
        self._add(event)

    def _add(self, event: MetadataEvent, number: int = 0) -> None:
        self._events[f"e/{event.offset}/{number}" if number else f"e/{event.offset}"] = plain(event)
        while len(self._events) > EVENTS_MAX:
            self._events.popitem(last=False)

    def _mark(self, delta: ImageDelta) -> None:
        for topic_id, partitions in delta.partitions.items():
            self._dirty.update(dict.fromkeys((topic_id, each) for each in partitions))
        for deleted in delta.deleted_topics.values():
            for index in deleted.partitions:
                self._partitions.pop(f"p/{deleted.name}/{index}", None)
        for broker_id, before in delta.brokers.items():
            after = self.image.brokers.get(broker_id)
            if (
                before is None
                or after is None
                or (before.active, before.directories)
                != (
                    after.active,
                    after.directories,
                )
            ):
                self._dirty.update(dict.fromkeys(self.image.partitions_on(broker_id)))
        for kind, name in delta.configs:
            self._mark_topics(name if kind == TOPIC else None)
        if delta.features:
            self._mark_topics(None)

    def _mark_topics(self, name: str | None) -> None:
        for topic_id, topic in self.image.topics.items():
            if name is None or topic.name == name:
                self._dirty.update(dict.fromkeys((topic_id, index) for index in topic.partitions))

    # -- what there is

    @property
    def events(self) -> Mapping[str, Json]:
        """The latest changes, by key, the oldest first."""
        self._describe_pending()
        return self._events

    def partitions(self) -> Mapping[str, Json]:
        """All partitions, by key. Only those that something has changed are worked out again."""
        for topic_id, index in self._dirty:
            topic = self.image.topics.get(topic_id)
            if topic is not None and index in topic.partitions:
                self._partitions[f"p/{topic.name}/{index}"] = plain(self.view(topic_id, index, topic.partitions[index]))
        self._dirty.clear()
        return self._partitions

    def partition_count(self, topic: str) -> int:
        topic_id = self.image.topic_ids.get(topic)
        return 0 if topic_id is None else len(self.image.topics[topic_id].partitions)

    def state(self, topic: str, partition: int) -> PartitionState | None:
        topic_id = self.image.topic_ids.get(topic)
        return None if topic_id is None else self.image.partition(topic_id, partition)

    def view(self, topic_id: UUID, index: int, state: PartitionState) -> PartitionView:
        """A partition in one of its states, in the cluster as it is now."""
        name = self.image.topics[topic_id].name
        situation = self._situation(name, state)
        return PartitionView(
            topic=name,
            partition=index,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            replicas=state.replicas,
            isr=state.isr,
            danger=danger_of(
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=len(state.isr),
                replicas=len(state.replicas),
                min_isr=situation.effective_min_isr,
                recovering=state.recovering,
                last_unclean_epoch=state.last_unclean_epoch,
            ),
            why=explain(situation),
            min_isr=situation.effective_min_isr,
            elr=state.elr,
            last_known_elr=state.last_known_elr,
            partition_epoch=state.partition_epoch,
            recovering=state.recovering,
            last_unclean_epoch=state.last_unclean_epoch,
            strategy=situation.strategy if situation.recovery_manager else None,
            internal=name in INTERNAL_TOPICS,
        )

    def successions(self, topic: str, partition: int, *, of: Collection[int] | None = None) -> dict[int, Succession]:
        """For each live replica (or those in `of`): what the controller would decide if it were fenced now.

        Brokers that do not run, and that the metadata does not show as fenced yet, are fenced first.
        """
        topic_id = self.image.topic_ids.get(topic)
        state = None if topic_id is None else self.image.partition(topic_id, partition)
        if topic_id is None or state is None:
            return {}
        contexts = PartitionContexts(self.image, self.settings)
        # The brokers that still count although they are dead, in the order in which they are fenced: any will do.
        early = [each for each in state.replicas if each in self.not_running and self.unfenced(each)]
        fenced: list[int] = []
        for broker in early:
            fenced.append(broker)
            state = _without(contexts, topic_id, partition, state, broker, fenced)
        found = {}
        for broker in state.replicas if of is None else of:
            if broker in state.replicas and broker not in fenced and self.unfenced(broker):
                after = _without(contexts, topic_id, partition, state, broker, [*fenced, broker])
                why = explain(self._situation(topic, after, without=(*fenced, broker)))
                found[broker] = Succession(after.leader, after.isr, after.elr, why, tuple(fenced))
        return found

    def unfenced(self, broker: int) -> bool:
        registration = self.image.brokers.get(broker)
        return registration is not None and not registration.fenced

    def _situation(self, topic: str, state: PartitionState, *, without: Collection[int] = ()) -> Situation:
        image = self.image

        live = {
            each: registration
            for each in state.replicas
            if (registration := image.brokers.get(each)) is not None and each not in without and registration.active
        }
        serving = {
            each for each, registration in live.items() if registration.has_online_directory(state.directory_of(each))
        }
        return Situation(
            leader=state.leader,
            replicas=state.replicas,
            isr=state.isr,
            elr=state.elr,
            last_known_elr=state.last_known_elr,
            offline=frozenset(state.replicas) - serving,
            without_directory=frozenset(live) - serving,
            not_running=self.not_running.intersection(state.replicas),
            unregistered=frozenset(each for each in state.replicas if each not in image.brokers),
            min_isr=image.min_insync_replicas(topic),
            high_watermark_waits=self._high_watermark_waits,
            elr_enabled=elr_in_force(image),
            recovery_manager=recovers_uncleanly(image, self.settings),
            strategy=recovery_strategy(image, topic, -1).value,
            last_unclean_epoch=state.last_unclean_epoch,
            unclean_election=image.unclean_election_enabled(topic),
        )

    # -- a record in words

    def _changes(
        self,
        offset: int,
        at_ms: int,
        record: MetadataRecord,
        delta: ImageDelta,
        states: Mapping[tuple[UUID, int], PartitionState],
    ) -> Iterator[MetadataEvent]:
        name = type(record).__name__
        for topic_id, topic_name in delta.created_topics.items():
            if topic_id not in delta.partitions:
                yield MetadataEvent(offset, at_ms, name, f"topic {topic_name} is created", topic=topic_name)
        for deleted in delta.deleted_topics.values():
            yield MetadataEvent(offset, at_ms, name, f"topic {deleted.name} is deleted", topic=deleted.name, weight=2)
        if not isinstance(record, PartitionRecord):
            for topic_id, partitions in delta.partitions.items():
                if topic_id not in self.image.topics:
                    continue  # deleted in the same moment
                for index, before in partitions.items():
                    after = states[topic_id, index]
                    if self._shown_alone(at_ms):
                        yield self._partition_event(offset, at_ms, name, topic_id, index, before, after)
                    else:
                        self._count(offset, at_ms, name, weight_of(before, after), is_worse(before, after))
        for broker_id, registered in delta.brokers.items():
            yield self._broker_event(offset, at_ms, record, broker_id, registered)
        if isinstance(record, ConfigRecord):
            of = {TOPIC: "topic", BROKER: "broker"}.get(record.resource_type, "resource")
            whose = f"{of} {record.resource_name}" if record.resource_name else "all brokers"
            text = f"{record.name} of {whose} is {_UNSET if record.value is None else record.value}"
            topic = record.resource_name if record.resource_type == TOPIC else None
            yield MetadataEvent(offset, at_ms, name, text, topic=topic)
        elif isinstance(record, FeatureLevelRecord):
            yield MetadataEvent(offset, at_ms, name, f"feature {record.name} is at level {record.feature_level}")

    def _shown_alone(self, at_ms: int) -> bool:
        burst = self._burst
        if not 0 <= at_ms - burst.began_ms < _BURST_MS:
            burst = self._burst = _Burst(at_ms)
        burst.number += 1
        return burst.number <= _BURST

    def _count(self, offset: int, at_ms: int, record: str, weight: int, worse: bool | None) -> None:
        """One event stands for the rest of a burst, at the place of its last change."""
        burst = self._burst
        if burst.key is not None:
            self._events.pop(burst.key, None)
        burst.key, burst.weight = f"e/{offset}/more", max(burst.weight, weight)
        if not burst.worse and worse is not None:
            burst.worse = worse
        text = f"and {counted(burst.number - _BURST, 'more partition')} changed"
        event = MetadataEvent(offset, at_ms, record, text, weight=burst.weight, worse=burst.worse)
        self._events[burst.key] = plain(event)

    def _partition_event(
        self,
        offset: int,
        at_ms: int,
        record: str,
        topic_id: UUID,
        index: int,
        before: PartitionState | None,
        after: PartitionState,
    ) -> MetadataEvent:
        view = self.view(topic_id, index, after)
        return MetadataEvent(
            offset,
            at_ms,
            record,
            f"{view.topic}-{index}: {change_text(before, after)}",
            topic=view.topic,
            partition=index,
            why=view.why,
            weight=weight_of(before, after),
            worse=is_worse(before, after),
            after=view,
        )

    def _broker_event(
        self, offset: int, at_ms: int, record: MetadataRecord, broker_id: int, before: BrokerRegistration | None
    ) -> MetadataEvent:
        after = self.image.brokers.get(broker_id)
        weight, worse = 2, None
        if after is None:
            text = "is unregistered"
        elif isinstance(record, RegisterBrokerRecord):
            text, weight = f"registers with broker epoch {after.epoch}", 1
        elif before is not None and before.fenced != after.fenced:
            text, worse = "is fenced" if after.fenced else "is unfenced", after.fenced
        elif after.in_controlled_shutdown:
            text = "shuts down in a controlled way"
        else:
            text, weight = "changes its registration", 0
        if (
            isinstance(record, BrokerRegistrationChangeRecord)
            and before is not None
            and after is not None
            and len(after.directories) < len(before.directories)
        ):
            lost = counted(len(before.directories) - len(after.directories), "log directory")
            text, weight, worse = f"loses {lost}", 2, True
        name, text = type(record).__name__, f"broker {broker_id} {text}"
        return MetadataEvent(offset, at_ms, name, text, broker=broker_id, weight=weight, worse=worse)


def _without(
    contexts: PartitionContexts,
    topic_id: UUID,
    partition: int,
    state: PartitionState,
    broker: int,
    gone: Collection[int],
) -> PartitionState:
    """A partition after the controller has fenced `broker`; none of `gone` can lead."""
    intent = Intent(
        topic_id=topic_id,
        partition=partition,
        target_isr=tuple(each for each in state.isr if each != broker),
        election=contexts.election(topic_id),
        removed_broker=broker,
    )
    context = contexts.of(topic_id, state)
    acceptable = context.acceptable
    record = partition_change(
        state, intent, replace(context, acceptable=lambda each: each not in gone and acceptable(each))
    )
    return state if record is None else merge(state, record)
