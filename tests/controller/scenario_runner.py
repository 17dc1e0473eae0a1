"""Runs behaviour scenarios (kinds builder, assignment, revert, controller) against the controller's decisions.

The scenarios state what Apache Kafka 4.3 does. `run` says of each whether we do the same, differ *on purpose* (by
the rule that says so, never by the scenario's id), or fail. Also a program: `python scenario_runner.py FILE...` runs
whole files.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from tanist.controller import configs, elections, features, topics
from tanist.controller.alter_partition import alter_partition
from tanist.controller.assignment import Reassignment, complete, reassign, revert
from tanist.controller.brokers import Brokers
from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.elect_leaders import elect_leaders
from tanist.controller.heartbeats import HeartbeatTable
from tanist.controller.image import ELR_VERSION, METADATA_VERSION, MetadataImage, PartitionState
from tanist.controller.partition_change import Context, Election, Intent, elected_leader, merge, partition_change
from tanist.controller.reassignment import alter_partition_reassignments
from tanist.controller.unclean_recovery import UncleanRecoveries
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tanist.wire.metadata import (
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    record_version,
)

KINDS = ("builder", "assignment", "revert", "controller")
EVENTS = {
    "fence",
    "unfence",
    "controlled_shutdown",
    "register",
    "unregister",
    "alter_partition",
    "set_config",
    "elect",
    "balance",
    "unclean_sweep",
    "reassign",
    "delete_topic",
    "feature",
    "heartbeat",
    "offline_dirs",
    "expect",
}
"""What may happen in a scenario of kind controller; each is a method of `World`."""
TOPIC_ID = UUID(int=0x1111)
LATEST = "4.3-IV0"


class Verdict(Enum):
    SAME = "same"
    DEVIATES = "deviates"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    id: str
    verdict: Verdict
    detail: str = ""


class Mismatch(Exception):
    """We did something else. `rule`: the fact we differ from on purpose, if that explains it."""

    def __init__(self, what: str, expected: object, actual: object, rule: str | None = None) -> None:
        super().__init__(f"{what}: expected {expected}, got {actual}" + (f" (rule {rule})" if rule else ""))
        self.rule = rule


def run(item: dict[str, Any]) -> Outcome:
    runners = {"builder": _builder, "assignment": _assignment, "revert": _revert, "controller": _controller}
    try:
        runners[item["kind"]](item)
    except Mismatch as mismatch:
        on_purpose = mismatch.rule is not None or item.get("apache_defect")
        return Outcome(item["id"], Verdict.DEVIATES if on_purpose else Verdict.FAILED, str(mismatch))
    except Exception as error:
        on_purpose = item.get("apache_defect")  # it may ask for the very state that Apache should not have got into
        return Outcome(item["id"], Verdict.DEVIATES if on_purpose else Verdict.FAILED, repr(error))
    return Outcome(item["id"], Verdict.SAME)


def load(path: Path) -> list[dict[str, Any]]:
    items = yaml.safe_load(path.read_text())["scenarios"]
    return [item for item in items if item["kind"] in KINDS]


def _listed(value: Any) -> tuple[int, ...]:
    return tuple(value or ())


def _level(name: str) -> int:
    return features.metadata_version_level(name) if name.count("-") else int(name)


def _old_level(name: str) -> int:
    """Metadata versions older than what we run at, which some pure computations are asked about."""
    older = {"3.0-IV1": 1, "3.1-IV0": 2, "3.2-IV0": 3, "3.3-IV0": 4, "3.3-IV1": 5, "3.3-IV2": 6}
    return older[name] if name in older else _level(name)


# -- builder ----------------------------------------------------------------------------------------------------------


def _state(fields: dict[str, Any]) -> PartitionState:
    replicas = _listed(fields.get("replicas"))
    return PartitionState(
        replicas=replicas,
        isr=_listed(fields.get("isr")),
        removing=_listed(fields.get("removing")),
        adding=_listed(fields.get("adding")),
        leader=fields.get("leader", -1),
        recovering=fields.get("recovery", "RECOVERED") == "RECOVERING",
        leader_epoch=fields.get("leader_epoch", 100),
        partition_epoch=fields.get("partition_epoch", 200),
        directories=(UUID(int=0),) * len(replicas),
        elr=_listed(fields.get("elr")),
        last_known_elr=_listed(fields.get("last_known_elr")),
    )


def _acceptable(allowed: object) -> Any:
    if allowed == "all":
        return lambda _: True
    if allowed == "none":
        return lambda _: False
    live = frozenset(_listed(allowed))
    return lambda broker_id: broker_id in live


def _builder(item: dict[str, Any]) -> None:
    before = _state(item["state"])
    ctx, change, expect = item["ctx"], item.get("change") or {}, item["expect"]
    context = Context(
        min_isr=ctx["min_isr"],
        elr_enabled=ctx["elr"],
        metadata_version=_old_level(ctx["mv"]),
        acceptable=_acceptable(ctx["acceptable"]),
        last_known_leader=ctx.get("last_known_leader", True),
    )

    def wanted(name: str) -> tuple[int, ...] | None:
        return None if change.get(name) is None else _listed(change[name])

    intent = Intent(
        topic_id=TOPIC_ID,
        partition=0,
        target_isr=wanted("target_isr"),
        target_replicas=wanted("target_replicas"),
        target_removing=wanted("target_removing"),
        target_adding=wanted("target_adding"),
        election=Election[change.get("election", "ONLINE")],
        unclean_shutdown=frozenset(change.get("unclean_shutdown") or ()),
        target_recovering=None if "target_recovery" not in change else change["target_recovery"] == "RECOVERING",
    )
    if "elected" in expect:
        elected = elected_leader(before, intent, context)
        actual = {"leader": elected.leader, "unclean": elected.unclean}
        if actual != expect["elected"]:
            raise Mismatch("elected", expect["elected"], actual)
    record = partition_change(before, intent, context)
    if "record" in expect:
        version = (expect["record"] or {}).get("version")
        written = record_version(PartitionChangeRecord, context.metadata_version)
        if version is not None and version != written:
            raise Mismatch("version", version, written)
        wanted_fields = {name: _plain(name, value) for name, value in (expect["record"] or {}).items()}
        wanted_fields.pop("version", None)
        fields = _fields_of(record)
        if fields != wanted_fields:
            rule = _builder_rule(before, context, wanted_fields, fields)
            raise Mismatch("record", wanted_fields, fields, rule)
    if "after" in expect:
        after = _described(before if record is None else merge(before, record))
        for name, value in expect["after"].items():
            if after[name] != _plain(name, value):
                raise Mismatch(f"after.{name}", value, after[name])


def _plain(name: str, value: Any) -> object:
    """A field as it is compared: ELR fields as sets, other lists in order."""
    if name in ("elr", "last_known_elr"):
        return frozenset(value or ())
    return tuple(value) if isinstance(value, list) else value


def _fields_of(record: PartitionChangeRecord | None) -> dict[str, object]:
    """What the record sets, directories aside (the scenarios do not speak of them)."""
    if record is None:
        return {}
    fields: dict[str, object] = {
        "isr": record.isr,
        "replicas": record.replicas,
        "removing": record.removing_replicas,
        "adding": record.adding_replicas,
        "elr": record.eligible_leader_replicas,
        "last_known_elr": record.last_known_elr,
    }
    fields = {name: value for name, value in fields.items() if value is not None}
    for name in ("elr", "last_known_elr"):
        if name in fields:
            fields[name] = frozenset(fields[name])  # type: ignore[call-overload]
    if record.leader != -2:
        fields["leader"] = record.leader
    if record.leader_recovery_state != -1:
        fields["recovery"] = ("RECOVERED", "RECOVERING")[record.leader_recovery_state]
    return fields


def _described(state: PartitionState) -> dict[str, object]:
    return {
        "replicas": state.replicas,
        "isr": state.isr,
        "removing": state.removing,
        "adding": state.adding,
        "elr": frozenset(state.elr),
        "last_known_elr": frozenset(state.last_known_elr),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "recovery": "RECOVERING" if state.recovering else "RECOVERED",
    }


def _builder_rule(
    before: PartitionState, context: Context, expected: dict[str, object], actual: dict[str, object]
) -> str | None:
    """The deviation that explains a difference: Apache's record breaks a sentence of the KIP that we keep."""
    if not context.elr_enabled:
        return None
    replicas: Any = expected.get("replicas", before.replicas)
    isr: Any = expected.get("isr", before.isr)
    elr: Any = expected.get("elr", frozenset(before.elr))
    min_isr = min(context.min_isr, len(replicas))
    differing = {name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name)}
    if differing <= {"elr", "last_known_elr"} and not elr <= set(replicas):
        return "62: the ELR is to hold replicas only"
    if "replicas" in differing and before.reassigning and len(isr) < min_isr:
        return "155: no completion under min ISR"
    if differing <= {"elr", "last_known_elr"} and elr and len(isr) >= min_isr:
        return "40: no ELR once the ISR is not under min ISR"
    leader: Any = expected.get("leader", before.leader)
    if leader != -1 and leader not in isr:
        return "S12: a leader is in the ISR"
    if differing == {"last_known_elr"} and before.has_leader and before.last_known_elr:
        return "50: a last known leader from before is stale"
    return None


# -- lists ------------------------------------------------------------------------------------------------------------


def _assignment(item: dict[str, Any]) -> None:
    moving = reassign(tuple(item["from"]), tuple(item["to"]))
    expect = item["expect"]
    actual: dict[str, object] = {
        "replicas": moving.replicas,
        "removing": moving.removing,
        "adding": moving.adding,
        "in_progress": bool(moving.removing or moving.adding),
    }
    if "target_isr" in item:
        done = complete(moving, tuple(item["target_isr"]))
        actual["completes"] = done is not None
        if done is not None:
            actual["isr"] = done.isr
            actual["final_replicas"] = done.replicas
    for name, value in expect.items():
        if actual.get(name) != _plain(name, value):
            raise Mismatch(name, value, actual.get(name))


def _revert(item: dict[str, Any]) -> None:
    state = _state(item["state"])
    try:
        result = revert(Reassignment(state.replicas, state.removing, state.adding), state.isr)
        actual: dict[str, object] = {"replicas": result.replicas, "isr": result.isr, "unclean": result.unclean}
    except ValueError:
        actual = {"error": "InvalidReplicaAssignmentException"}
    for name, value in item["expect"].items():
        if actual.get(name) != _plain(name, value):
            raise Mismatch(name, value, actual.get(name))


# -- controller -------------------------------------------------------------------------------------------------------


class _Dice:
    def below(self, n: int) -> int:
        return n - 1

    def bytes(self, n: int) -> bytes:
        self.count = getattr(self, "count", 0) + 1
        return bytes(8) + self.count.to_bytes(n - 8, "big")


class World:
    """An image, and the decisions of an active controller about it, applied at once."""

    def __init__(self, item: dict[str, Any]) -> None:
        cluster = item["cluster"]
        self.elr = bool(cluster.get("elr", False))
        self.static = {name: str(value) for name, value in (cluster.get("static_config") or {}).items()}
        self.settings = ControllerSettings(
            node_id=0,
            static_configs=self.static,
            min_insync_replicas=int(self.static.get("min.insync.replicas", 1)),
            unclean_recovery_manager_enabled=False,
        )
        self.image = MetadataImage(self.settings.topic_defaults())
        self.brokers = Brokers(0, "cluster", self.settings, HeartbeatTable(9000))
        self.dice = _Dice()
        self.offset = 1000
        self.lives = Counter[int]()
        self.min_isr_written = False
        self.unregistered: set[int] = set()
        level = features.metadata_version_level(cluster.get("mv", LATEST))
        self.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))
        if self.elr:
            self.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
        for broker_id in cluster["brokers"]:
            self._register(broker_id, broker_id + 100, fenced=broker_id not in cluster.get("unfenced", ()))
        for name, topic in (item.get("topics") or {}).items():
            self._create(name, topic)

    def replay(self, *records: Any) -> list[str]:
        for record in records:
            self.image.replay(record)
            self.offset += 1
        return [type(record).__name__ for record in records]

    def apply(self, decision: Decision) -> list[str]:
        return self.replay(*decision.records)

    def _register(self, broker_id: int, epoch: int, *, fenced: bool) -> None:
        self.lives[broker_id] += 1
        self.replay(
            RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=UUID(int=(broker_id + 1) * 1000 + self.lives[broker_id]),
                broker_epoch=epoch,
                fenced=fenced,
                log_dirs=(self.directory(broker_id),),
            )
        )

    @staticmethod
    def directory(broker_id: int) -> UUID:
        return UUID(int=(1 << 64) + broker_id)

    def _create(self, name: str, topic: dict[str, Any]) -> None:
        request = CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=name,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=tuple(
                        CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(replicas))
                        for number, replicas in enumerate(topic["assignments"])
                    ),
                    configs=tuple(
                        CreatableTopicConfig(name=key, value=str(value))
                        for key, value in (topic.get("config") or {}).items()
                    ),
                ),
            )
        )
        decision = topics.create_topics(self.image, request, self.settings, self.dice)
        result: Any = decision.response
        if result.topics[0].error_code != ErrorCode.NONE:
            raise Mismatch(f"create {name}", "NONE", result.topics[0])
        self.apply(decision)

    def partition(self, topic: str, number: int) -> tuple[UUID, PartitionState]:
        topic_id = self.image.topic_ids[topic]
        return topic_id, self.image.topics[topic_id].partitions[number]

    # one method an event

    def fence(self, broker_id: int) -> None:
        records = elections.broker_fenced(self.image, broker_id, self.settings)
        self.replay(*records, self._registration_change(broker_id, fenced=1))

    def unfence(self, broker_id: int) -> None:
        change = self._registration_change(broker_id, fenced=-1)
        self.replay(change, *elections.broker_unfenced(self.image, broker_id, self.settings))

    def controlled_shutdown(self, broker_id: int) -> None:
        change = self._registration_change(broker_id, in_controlled_shutdown=1)
        self.replay(change, *elections.broker_controlled_shutdown(self.image, broker_id, self.settings))

    def _registration_change(self, broker_id: int, **change: Any) -> BrokerRegistrationChangeRecord:
        epoch = self.image.brokers[broker_id].epoch
        return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, **change)

    def register(self, event: dict[str, Any]) -> None:
        broker_id = event["broker"]
        self.replay(*elections.broker_new_incarnation(self.image, broker_id, self.settings, event["clean"]))
        self._register(broker_id, self.offset, fenced=True)
        self.unregistered.discard(broker_id)

    def unregister(self, broker_id: int) -> None:
        self.unregistered.add(broker_id)
        self.apply(self.brokers.unregister(self.image, UnregisterBrokerRequest(broker_id=broker_id)))

    def alter_partition(self, event: dict[str, Any]) -> None:
        topic_id, state = self.partition(event["topic"], event["p"])
        sender, epochs = event["from"], event.get("isr_epochs") or {}

        def epoch_of(broker_id: int) -> int:
            registration = self.image.brokers.get(broker_id)
            return int(epochs.get(broker_id, -1 if registration is None else registration.epoch))

        request = AlterPartitionRequest(
            broker_id=sender,
            broker_epoch=event.get("broker_epoch", self.image.brokers[sender].epoch),
            topics=(
                TopicData(
                    topic_id=topic_id,
                    partitions=(
                        PartitionData(
                            partition_index=event["p"],
                            leader_epoch=event.get("leader_epoch", state.leader_epoch),
                            partition_epoch=event.get("partition_epoch", state.partition_epoch),
                            new_isr_with_epochs=tuple(
                                BrokerState(broker_id=broker_id, broker_epoch=epoch_of(broker_id))
                                for broker_id in event["isr"]
                            ),
                            leader_recovery_state=int(event.get("recovery") == "RECOVERING"),
                        ),
                    ),
                ),
            ),
        )
        decision = alter_partition(self.image, request, self.settings)
        response: Any = decision.response
        error = response.error_code or response.topics[0].partitions[0].error_code
        self.apply(decision)
        self._check_error("alter_partition", event, error)

    def set_config(self, event: dict[str, Any]) -> None:
        resource = (2, event["topic"]) if "topic" in event else (4, "" if "cluster" in event else str(event["broker"]))
        value = event["value"]
        request = IncrementalAlterConfigsRequest(
            resources=(
                AlterConfigsResource(
                    resource_type=resource[0],
                    resource_name=resource[1],
                    configs=(
                        AlterableConfig(
                            name=event["key"],
                            config_operation=configs.DELETE if value is None else configs.SET,
                            value=None if value is None else str(value),
                        ),
                    ),
                ),
            )
        )
        decision = configs.incremental_alter_configs(self.image, request)
        response: Any = decision.response
        written = self.apply(decision)
        if event["key"] == "min.insync.replicas" and decision.records:
            self.min_isr_written = True
        self._check_error("set_config", event, response.responses[0].error_code)
        self._check_records("set_config", event, written)

    def elect(self, event: dict[str, Any]) -> None:
        request = ElectLeadersRequest(
            election_type={"PREFERRED": 0, "UNCLEAN": 1}.get(event["type"], 99),
            topic_partitions=(TopicPartitions(topic=event["topic"], partitions=(event["p"],)),),
        )
        decision = elect_leaders(self.image, request, self.settings, UncleanRecoveries(self.settings), 0, 2)
        response: Any = decision.response
        error = response.error_code or response.replica_election_results[0].partition_result[0].error_code
        self.apply(decision)
        self._check_error("elect", event, error)

    def balance(self, event: dict[str, Any]) -> None:
        records, _ = elections.preferred_elections(self.image, self.settings)
        self._check_count("balance", event, self.replay(*records))

    def unclean_sweep(self, event: dict[str, Any]) -> None:
        records, _ = elections.unclean_elections(self.image, self.settings)
        self._check_count("unclean_sweep", event, self.replay(*records))

    def reassign(self, event: dict[str, Any]) -> None:
        replicas = event["replicas"]
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=event.get("allow_rf_change", True),
            topics=(
                ReassignableTopic(
                    name=event["topic"],
                    partitions=(
                        ReassignablePartition(
                            partition_index=event["p"], replicas=None if replicas is None else tuple(replicas)
                        ),
                    ),
                ),
            ),
        )
        decision = alter_partition_reassignments(self.image, request, self.settings)
        response: Any = decision.response
        error = response.responses[0].partitions[0].error_code
        self.apply(decision)
        rule = None
        if self.elr and replicas is None and error == ErrorCode.INVALID_REPLICA_ASSIGNMENT:
            rule = "155: no cancel under min ISR at the price of eligible replicas"
        self._check_error("reassign", event, error, rule)

    def delete_topic(self, name: str) -> None:
        self.apply(topics.delete_topics(self.image, DeleteTopicsRequest(topic_names=(name,)), self.settings))

    def feature(self, event: dict[str, Any]) -> None:
        upgrade = {"UPGRADE": 1, "SAFE_DOWNGRADE": 2, "UNSAFE_DOWNGRADE": 3}[event.get("upgrade_type", "UPGRADE")]
        request = UpdateFeaturesRequest(
            feature_updates=(
                FeatureUpdateKey(feature=event["name"], max_version_level=event["level"], upgrade_type=upgrade),
            )
        )
        for broker_id, broker in list(self.image.brokers.items()):  # all can do what is asked for
            self.replay(
                RegisterBrokerRecord(
                    broker_id=broker_id,
                    incarnation_id=broker.incarnation_id,
                    broker_epoch=broker.epoch,
                    fenced=broker.fenced,
                    in_controlled_shutdown=broker.in_controlled_shutdown,
                    log_dirs=broker.directories,
                    features=tuple(
                        BrokerFeature(name=name, min_supported_version=0, max_supported_version=100)
                        for name in (METADATA_VERSION, ELR_VERSION)
                    ),
                )
            )
        decision = features.update_features(
            self.image,
            request,
            static_min_insync_replicas=self.settings.min_insync_replicas,
            node_id=0,
            api_version=2,
        )
        response: Any = decision.response
        error = response.error_code or next((each.error_code for each in response.results), 0)
        written = self.apply(decision)
        self.elr = self.image.elr_enabled
        self._check_error("feature", event, error)
        self._check_records("feature", event, written)

    def heartbeat(self, event: dict[str, Any]) -> None:
        broker_id = event["broker"]
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=event.get("broker_epoch", self.image.brokers[broker_id].epoch),
            current_metadata_offset=event.get("offset", 0),
            want_fence=event.get("want_fence", False),
            want_shut_down=event.get("want_shutdown", False),
        )
        decision = self.brokers.heartbeat(self.image, request, 0, next_offset=self.offset)
        self.apply(decision)
        response: Any = decision.response
        self._check_error("heartbeat", event, response.error_code)
        actual = {
            "caught_up": response.is_caught_up,
            "fenced": response.is_fenced,
            "should_shut_down": response.should_shut_down,
            "shut_down": response.should_shut_down,
        }
        for name, value in (event.get("expect") or {}).items():
            if actual[name] != value:
                raise Mismatch(f"heartbeat.{name}", value, actual[name])

    def offline_dirs(self, event: dict[str, Any]) -> None:
        broker_id = event["broker"]
        lost = [self.directory(broker_id)] if event.get("dirs", True) else []
        self.replay(*elections.directories_offline(self.image, broker_id, self.settings, lost))

    def expect(self, wanted: dict[str, dict[str, Any]]) -> None:
        for where, fields in wanted.items():
            topic, _, number = where.rpartition("-")
            _, state = self.partition(topic, int(number))
            actual = _described(state)
            for name, value in fields.items():
                if actual[name] != _plain(name, value):
                    raise Mismatch(f"{where}.{name}", value, actual[name], self._rule(state, name, _plain(name, value)))

    def _rule(self, state: PartitionState, name: str, expected: Any) -> str | None:
        """The deviation that explains a difference in one field of one partition."""
        if name == "elr":
            more = expected - set(state.elr)
            if more and more <= self.unregistered and set(state.elr) <= expected:
                return "47: an unregistered broker is not eligible"
            if more and not more & set(state.replicas):
                return "62: the ELR is to hold replicas only"
        if self.min_isr_written and name in ("elr", "last_known_elr", "partition_epoch"):
            return "54: the ELR is emptied only where the new min ISR allows records to be committed"
        if self.elr and state.reassigning and name in ("replicas", "removing", "adding"):
            return "155: no completion under min ISR"
        return None

    def _check_error(self, what: str, event: dict[str, Any], error: int, rule: str | None = None) -> None:
        expected = _error_name(event.get("expect_error") or "NONE")
        if ErrorCode(error).name != expected:
            raise Mismatch(what, expected, ErrorCode(error).name, rule)

    def _check_records(self, what: str, event: dict[str, Any], written: list[str]) -> None:
        expected = event.get("expect_records")
        if expected is not None and expected != written:
            raise Mismatch(what, expected, written, "54" if "ClearElrRecord" in expected else None)

    def _check_count(self, what: str, event: dict[str, Any], written: list[str]) -> None:
        expected = (event or {}).get("records")
        if expected is not None and expected != len(written):
            raise Mismatch(what, expected, len(written))


def _error_name(name: str) -> str:
    """StaleBrokerEpochException and STALE_BROKER_EPOCH are the same error."""
    if not name.endswith("Exception"):
        return name
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Exception")).upper()


def _controller(item: dict[str, Any]) -> None:
    world = World(item)
    for event in item["events"]:
        ((name, argument),) = event.items()
        if name not in EVENTS:
            raise ValueError(f"there is no event {name}")
        getattr(world, name)(argument)


def main(paths: list[str]) -> int:
    outcomes = [run(item) for path in paths for item in load(Path(path))]
    for outcome in outcomes:
        if outcome.verdict is not Verdict.SAME:
            print(f"{outcome.verdict.value:9} {outcome.id}  {outcome.detail}")
    print(", ".join(f"{count} {verdict.value}" for verdict, count in Counter(o.verdict for o in outcomes).items()))
    return int(any(outcome.verdict is Verdict.FAILED for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
