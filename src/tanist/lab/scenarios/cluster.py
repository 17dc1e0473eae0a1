"""The events of a cluster, as a controller sees them: kind `controller`.

Owns the events of the schema, a method of `Cluster` for each, and the checks of their expected results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from tanist.client.admin import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ElectionType,
    UpgradeType,
    delete_topic_request,
    elect_request,
    reassign_request,
    update_feature_request,
)
from tanist.controller.brokers import UNFENCE
from tanist.controller.configs.settings import MIN_INSYNC_REPLICAS
from tanist.controller.image.image import METADATA_VERSION
from tanist.controller.partitions import elections
from tanist.lab.scenarios import requests
from tanist.lab.scenarios.controlled import (
    A_LONG_TIME_MS,
    CAUGHT_UP,
    CLUSTER_ID,
    NO_SUCH_TOPIC,
    Controlled,
    Written,
    directories,
    directory,
)
from tanist.lab.scenarios.deviations import MIN_ISR_CHANGE, Explained
from tanist.lab.scenarios.fields import Fields, NotUnderstood, event_of, ids
from tanist.lab.scenarios.outcome import Difference, Mismatch, error_name, value_text
from tanist.lab.scenarios.partitions import comparable, described, is_recovering, level_of
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.metadata import BrokerRegistrationChangeRecord, ClearElrRecord, PartitionChangeRecord
from tanist.wire.schema import MetadataRecord

_NO_SUCH_TYPE = 99


class ScenarioCluster(Controlled):
    """A running scenario. `differences`: those that a rule explains."""

    def __init__(self, cluster: Fields, topics: Fields) -> None:
        super().__init__(cluster, topics)
        self.differences: list[Difference] = []

    def play(self, event: Fields) -> None:
        name, argument = event_of(event)
        handler = EVENTS.get(name)
        if handler is None:
            raise NotUnderstood(f"there is no event {name}")
        handler(self, event.inner(name) if argument is None or isinstance(argument, dict) else argument)

    def fence(self, broker_id: int) -> None:
        with_epoch = self.epoch(broker_id)
        self.happened(lambda: self.apply(self.controller.fencing.fence(self.image, broker_id, with_epoch)))

    def unfence(self, broker_id: int) -> None:
        """Write the records that unfence a broker, without the check that it may be unfenced."""
        change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=self.epoch(broker_id), fenced=UNFENCE)
        records = elections.broker_unfenced(self.image, broker_id, self.settings)
        self.happened(lambda: self.replay(change, *records))

    def controlled_shutdown(self, broker_id: int) -> None:
        """Write the records of a leading broker's controlled shutdown, without the check that it leads."""
        change = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=self.epoch(broker_id), in_controlled_shutdown=1
        )
        records = elections.broker_controlled_shutdown(self.image, broker_id, self.settings)
        self.happened(lambda: self.replay(change, *records))

    def register(self, event: Fields) -> None:
        """A new incarnation, whose predecessor's session is long over."""
        broker_id, clean = event.number("broker"), bool(event["clean"])
        self.now_ms += A_LONG_TIME_MS
        self.incarnations += 1
        known = self.image.brokers.get(broker_id)
        request = requests.registration(
            broker_id,
            cluster_id=CLUSTER_ID,
            incarnation=UUID(int=self.incarnations),
            directories=self.kept_in.setdefault(broker_id, directories(broker_id, 1)),
            previous_epoch=known.epoch if known is not None and clean else -1,
        )
        error, _ = self.asked(request)
        self._expect_error("register", event, error)

    def unregister(self, argument: Any) -> None:
        event = argument if isinstance(argument, Fields) else Fields({"broker": argument}, "unregister")
        broker_id = event.number("broker")
        request = UnregisterBrokerRequest(broker_id=broker_id)
        error, _ = self.asked(request, unregistered=broker_id)
        self._expect_error("unregister", event, error)

    def alter_partition(self, event: Fields) -> None:
        topic_id, state = self.partition(event["topic"], event.number("p"))
        sender = event.number("from")
        epochs = event.inner("isr_epochs").plain()
        request = requests.alter_partition(
            sender=sender,
            sender_epoch=event.number("broker_epoch", self.epoch(sender)),
            topic_id=topic_id,
            partition=event.number("p"),
            isr=[(member, int(epochs.get(member, self.epoch(member)))) for member in event.ids("isr")],
            leader_epoch=event.number("leader_epoch", 0 if state is None else state.leader_epoch),
            partition_epoch=event.number("partition_epoch", 0 if state is None else state.partition_epoch),
            recovering=is_recovering(event.get("recovery", "RECOVERED")),
        )
        error, written = self.asked(request)
        self._expect_error("alter_partition", event, error, (topic_id, event.number("p")))
        self._expect_records("alter_partition", event, written)

    def set_config(self, event: Fields) -> None:
        if "topic" in event:
            resource = TOPIC_RESOURCE, str(event["topic"])
        elif "broker" in event:
            resource = BROKER_RESOURCE, str(event["broker"])
        else:
            event["cluster"]
            resource = BROKER_RESOURCE, ""
        key = str(event["key"])
        request = requests.set_config(*resource, key, event["value"])
        error, written = self.asked(request, min_isr=key == MIN_INSYNC_REPLICAS)
        self._expect_error("set_config", event, error)
        self._expect_records("set_config", event, written)

    def elect(self, event: Fields) -> None:
        kinds = {"PREFERRED": ElectionType.PREFERRED, "UNCLEAN": ElectionType.UNCLEAN}
        kind = kinds.get(str(event["type"]), _NO_SUCH_TYPE)
        topic, partition = event.get("topic"), event.number("p", 0)
        error, written = self.asked(elect_request(kind, topic, partition), api_version=2)
        self._expect_error("elect", event, error, (self.image.topic_ids.get(topic, NO_SUCH_TOPIC), partition))
        self._expect_records("elect", event, written)

    def balance(self, event: Fields) -> None:
        records, _ = elections.preferred_elections(self.image, self.settings)
        self._expect_records("balance", event, self.happened(lambda: self.replay(*records)))

    def unclean_sweep(self, event: Fields) -> None:
        records, _ = elections.unclean_elections(self.image, self.settings)
        self._expect_records("unclean_sweep", event, self.happened(lambda: self.replay(*records)))

    def reassign(self, event: Fields) -> None:
        topic, partition, replicas = event["topic"], event.number("p"), event["replicas"]
        topic_id, _ = self.partition(topic, partition)
        wanted = None if replicas is None else ids(replicas, "reassign.replicas")
        allowed = bool(event.get("allow_rf_change", True))
        request = reassign_request(topic, partition, wanted, allow_replication_factor_change=allowed)
        error, written = self.asked(request, moved=(topic_id, partition), cancels=wanted is None)
        self._expect_error("reassign", event, error, (topic_id, partition))
        self._expect_records("reassign", event, written)

    def delete_topic(self, name: str) -> None:
        self.asked(delete_topic_request(name), api_version=5)

    def feature(self, event: Fields) -> None:
        name, level = str(event["name"]), event["level"]
        if name == METADATA_VERSION and isinstance(level, str):
            level = level_of(level)
        kind = str(event.get("upgrade_type", UpgradeType.UPGRADE.name))
        if kind not in UpgradeType.__members__:
            raise NotUnderstood(f"{kind!r} is no upgrade type")
        request = update_feature_request(name, int(level), UpgradeType[kind])
        error, written = self.asked(request)
        self._expect_error("feature", event, error)
        self._expect_records("feature", event, written)

    def heartbeat(self, event: Fields) -> None:
        broker_id = event.number("broker")
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=event.number("broker_epoch", self.epoch(broker_id)),
            current_metadata_offset=event.number("offset", 0),
            want_fence=bool(event.get("want_fence", False)),
            want_shut_down=bool(event.get("want_shutdown", False)),
        )
        answers: list[Any] = []

        def ask() -> Written:
            response, written = self.answer(request)
            answers.append(response)
            return written

        written = self.happened(ask)
        response = answers[0]
        self._expect_error("heartbeat", event, response.error_code)
        self._expect_records("heartbeat", event, written)
        broker = self.image.brokers.get(broker_id)
        shutting_down = broker is not None and broker.in_controlled_shutdown
        seen = {
            **dict.fromkeys(("caught_up", "is_caught_up"), response.is_caught_up),
            **dict.fromkeys(("fenced", "is_fenced"), response.is_fenced),
            **dict.fromkeys(("should_shut_down", "should_shutdown", "shut_down"), response.should_shut_down),
            **dict.fromkeys(("in_controlled_shutdown", "controlled_shutdown"), shutting_down),
            **dict.fromkeys(("next", "state"), _reported_state(response, shutting_down)),
        }
        expect = event.inner("expect")
        for name in expect:
            if name not in seen:
                raise NotUnderstood(f"not understood: {expect.where}.{name}")
            if seen[name] != expect[name]:
                # Whether a broker may stop depends on the partitions that it leads.
                self._differ(f"heartbeat of {broker_id}: {name}", expect[name], seen[name], self.explanation(None))

    def offline_dirs(self, event: Fields) -> None:
        """A heartbeat that reports failed directories."""
        broker_id, reported = event.number("broker"), event.get("dirs", True)
        own = self.kept_in.get(broker_id, ())
        if isinstance(reported, list):
            lost = own[: len(reported)] if len(own) <= 1 else tuple(directory(broker_id, name) for name in reported)
        elif isinstance(reported, int) and not isinstance(reported, bool):
            lost = own[:reported]
        else:
            lost = own if reported else ()
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.epoch(broker_id),
            current_metadata_offset=CAUGHT_UP,
            offline_log_dirs=lost,
        )
        self.asked(request)

    def expect(self, wanted: Fields) -> None:
        for where in wanted:
            topic, _, number = str(where).rpartition("-")
            if not number.isdigit():
                raise NotUnderstood(f"{where!r} names no partition")
            topic_id, state = self.partition(topic, int(number))
            if wanted[where] is None:
                if state is not None:
                    raise Mismatch(str(where), None, described(state))
                continue
            if state is None:
                raise Mismatch(str(where), "a partition", None)
            seen = described(state)
            fields = wanted.inner(str(where))
            for name in fields:
                if name not in seen:
                    raise NotUnderstood(f"not understood: {fields.where}.{name}")
                value = comparable(name, fields[name])
                if seen[name] != value:
                    self._differ(f"{where}.{name}", value, seen[name], self.explanation((topic_id, int(number)), name))

    # -- expected results of an event

    def _expect_error(self, what: str, event: Fields, error: int, key: TopicIdPartition | None = None) -> None:
        expected = error_name(event.given("expect_error", "error"))
        seen = ErrorCode.name_of(error)
        if seen != expected:
            self._differ(what, expected, seen, None if key is None else self.explanation(key))

    def _expect_records(self, what: str, event: Fields, written: Sequence[MetadataRecord]) -> None:
        names = [type(record).__name__ for record in written]
        if "expect_records" in event:
            expected = event["expect_records"]
            if expected != names:
                ours = [name for name in names if name != PartitionChangeRecord.__name__]
                theirs = [name for name in expected if name != ClearElrRecord.__name__]
                by_rule = ClearElrRecord.__name__ in expected and ours == theirs
                explained = Explained(MIN_ISR_CHANGE, frozenset()) if by_rule else self.explanation(None)
                self._differ(f"records of {what}", expected, names, explained)
        if "records" in event and event["records"] != len(written):
            self._differ(f"number of records of {what}", event["records"], len(written), self.explanation(None))

    def _differ(self, what: str, expected: object, seen: object, explained: Explained | None) -> None:
        if explained is None:
            raise Mismatch(what, expected, seen)
        self.differences.append(Difference(what, value_text(expected), value_text(seen), explained.by))


def _reported_state(response: Any, shutting_down: bool) -> str:
    """The broker's state in a heartbeat's answer."""
    if response.should_shut_down:
        return "SHUTDOWN_NOW"
    if response.is_fenced:
        return "FENCED"
    return "CONTROLLED_SHUTDOWN" if shutting_down else "UNFENCED"


EVENTS: dict[str, Callable[[ScenarioCluster, Any], None]] = {
    "fence": ScenarioCluster.fence,
    "unfence": ScenarioCluster.unfence,
    "controlled_shutdown": ScenarioCluster.controlled_shutdown,
    "register": ScenarioCluster.register,
    "unregister": ScenarioCluster.unregister,
    "alter_partition": ScenarioCluster.alter_partition,
    "set_config": ScenarioCluster.set_config,
    "elect": ScenarioCluster.elect,
    "balance": ScenarioCluster.balance,
    "unclean_sweep": ScenarioCluster.unclean_sweep,
    "reassign": ScenarioCluster.reassign,
    "delete_topic": ScenarioCluster.delete_topic,
    "feature": ScenarioCluster.feature,
    "heartbeat": ScenarioCluster.heartbeat,
    "offline_dirs": ScenarioCluster.offline_dirs,
    "expect": ScenarioCluster.expect,
}


# -- kinds ------------------------------------------------------------------------------------------------------------


def controller(item: Fields) -> Sequence[Difference]:
    """Events, one after the other."""
    cluster = ScenarioCluster(item.inner("cluster"), item.inner("topics"))
    for event in item.each("events"):
        cluster.play(event)
    return cluster.differences
