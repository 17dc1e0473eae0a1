"""IncrementalAlterConfigs and AlterConfigs, and what a new min.insync.replicas does to the ELR (rules 54-57)."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.controller.alter_configs import APPEND, DELETE, SET, SUBTRACT
from tanist.controller.features import Bootstrap
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import alter_configs_request, incremental_alter_configs_request
from tanist.wire.messages.alter_configs_request import AlterConfigsRequest
from tanist.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from tanist.wire.metadata import ClearElrRecord, ConfigRecord, FeatureLevelRecord
from tests.controller.controller_double import Cluster

MIN_ISR = "min.insync.replicas"
FOO, CLUSTER, GROUP, SUBSCRIPTION = (2, "foo"), (4, ""), (32, "g"), (16, "s")
SESSION = "consumer.session.timeout.ms"
WITHOUT_ELR = Bootstrap(features={})


def _cluster(*, elr: bool = True) -> Cluster:
    """Three brokers and a topic foo that needs two of them."""
    cluster = Cluster(bootstrap=None if elr else WITHOUT_ELR)
    cluster.start(1, 2, 3)
    cluster.create_topic("foo", (1, 2, 3), min_insync_replicas="2")
    return cluster


def _change(cluster: Cluster, resource: tuple[int, str], *changes: tuple[str, int, str | None]) -> Any:
    request = IncrementalAlterConfigsRequest(
        resources=(
            incremental_alter_configs_request.AlterConfigsResource(
                resource_type=resource[0],
                resource_name=resource[1],
                configs=tuple(
                    incremental_alter_configs_request.AlterableConfig(name=name, config_operation=kind, value=value)
                    for name, kind, value in changes
                ),
            ),
        )
    )
    return cluster.ask(request).responses[0]


def _replace(cluster: Cluster, resource: tuple[int, str], **values: str | None) -> Any:
    request = AlterConfigsRequest(
        resources=(
            alter_configs_request.AlterConfigsResource(
                resource_type=resource[0],
                resource_name=resource[1],
                configs=tuple(
                    alter_configs_request.AlterableConfig(name=name.replace("_", "."), value=value)
                    for name, value in values.items()
                ),
            ),
        )
    )
    return cluster.ask(request).responses[0]


def _under_min_isr(cluster: Cluster) -> None:
    """foo-0 with ISR [1] and ELR [2]."""
    cluster.heartbeat(3, want_fence=True)
    cluster.heartbeat(2, want_fence=True)
    state = cluster.partition("foo")
    assert (state.isr, state.elr, state.leader) == ((1,), (2,), 1)


# -- rule 54, and 156: the KIP's condition


def test_rule_54_the_elr_is_emptied_before_a_lower_minimum_holds() -> None:
    cluster = _cluster()
    _under_min_isr(cluster)
    since = len(cluster.log)
    before = cluster.partition("foo")
    assert cluster.set_config(FOO, MIN_ISR, "1").error_code == ErrorCode.NONE
    assert cluster.written(since) == ["PartitionChangeRecord", "ConfigRecord"]
    after = cluster.partition("foo")
    assert (after.isr, after.elr, after.leader_epoch) == ((1,), (), before.leader_epoch)
    assert after.partition_epoch == before.partition_epoch + 1


def test_rule_54_a_minimum_that_holds_nothing_up_keeps_the_elr() -> None:
    """DEVIATION: Apache clears it. The KIP: only "if the new min ISR <= current ISR"."""
    cluster = _cluster()
    _under_min_isr(cluster)
    since = len(cluster.log)
    assert cluster.set_config(FOO, MIN_ISR, "3").error_code == ErrorCode.NONE
    assert cluster.written(since) == ["ConfigRecord"]
    assert cluster.partition("foo").elr == (2,)


def test_rule_54_for_the_cluster_it_concerns_topics_without_a_value_of_their_own() -> None:
    cluster = Cluster()
    cluster.start(1, 2, 3)
    cluster.set_config(CLUSTER, MIN_ISR, "2")
    cluster.create_topic("foo", (1, 2, 3))
    cluster.create_topic("own", (1, 2, 3), min_insync_replicas="2")
    _under_min_isr(cluster)
    assert cluster.partition("own").elr == (2,)
    cluster.set_config(CLUSTER, MIN_ISR, "1")
    assert cluster.partition("foo").elr == ()
    assert cluster.partition("own").elr == (2,)


def test_rule_54_taking_a_topics_value_away_counts_as_the_value_below() -> None:
    cluster = _cluster()
    _under_min_isr(cluster)
    assert cluster.set_config(FOO, MIN_ISR, None).error_code == ErrorCode.NONE  # the cluster has 1
    assert cluster.partition("foo").elr == ()


def test_rule_54_both_levels_in_one_request() -> None:
    cluster = _cluster()
    _under_min_isr(cluster)

    def resource(kind: int, name: str, value: str | None) -> Any:
        return incremental_alter_configs_request.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=(
                incremental_alter_configs_request.AlterableConfig(
                    name=MIN_ISR, config_operation=DELETE if value is None else SET, value=value
                ),
            ),
        )

    request = IncrementalAlterConfigsRequest(resources=(resource(2, "foo", None), resource(4, "", "2")))
    assert [response.error_code for response in cluster.ask(request).responses] == [0, 0]
    assert cluster.partition("foo").elr == (2,)  # still needs two
    assert cluster.image.min_insync_replicas("foo") == 2


def test_rule_54_nothing_happens_without_elr() -> None:
    cluster = _cluster(elr=False)
    cluster.heartbeat(3, want_fence=True)
    cluster.heartbeat(2, want_fence=True)
    since = len(cluster.log)
    cluster.set_config(FOO, MIN_ISR, "1")
    assert cluster.written(since) == ["ConfigRecord"]


def test_rule_54_an_elr_left_over_from_before_elr_was_turned_off_goes_too() -> None:
    cluster = _cluster()
    _under_min_isr(cluster)
    cluster.image.replay(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    cluster.standby.replay(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    assert cluster.partition("foo").elr == (2,)  # rule 60
    cluster.set_config(FOO, MIN_ISR, "1")
    assert cluster.partition("foo").elr == ()


def test_rule_54_a_partition_waiting_for_its_elr_keeps_it() -> None:
    """Apache would leave nobody to elect here (rule 55)."""
    cluster = _cluster()
    _under_min_isr(cluster)
    cluster.heartbeat(1, want_fence=True)
    assert (cluster.partition("foo").leader, cluster.partition("foo").elr) == (-1, (1, 2))
    cluster.set_config(FOO, MIN_ISR, "1")
    cluster.set_config(CLUSTER, MIN_ISR, "1")
    assert cluster.partition("foo").elr == (1, 2)
    cluster.heartbeat(2)
    assert cluster.partition("foo").leader == 2


# -- rule 55: what Apache writes is understood


def test_rule_55_apaches_record_is_replayed() -> None:
    cluster = _cluster()
    _under_min_isr(cluster)
    before = cluster.partition("foo")
    cluster.image.replay(ClearElrRecord(topic_name=""))
    after = cluster.partition("foo")
    assert (after.elr, after.partition_epoch) == ((), before.partition_epoch + 1)
    cluster.image.replay(ClearElrRecord(topic_name="foo"))
    assert cluster.partition("foo").partition_epoch == after.partition_epoch


# -- rule 56: creation


def test_rule_56_a_new_topics_own_minimum_comes_before_its_partitions() -> None:
    cluster = Cluster()
    cluster.start(1)
    since = len(cluster.log)
    cluster.create_topic("foo", (1,), min_insync_replicas="2")
    assert cluster.written(since) == ["TopicRecord", "ConfigRecord", "PartitionRecord"]


# -- rule 57: what cannot be changed while ELR is on


def test_rule_57_no_minimum_for_a_single_broker() -> None:
    cluster = _cluster()
    for value in ("2", None):
        answer = cluster.set_config((4, "1"), MIN_ISR, value)
        assert answer.error_code == ErrorCode.INVALID_CONFIG
        assert answer.error_message == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."


def test_rule_57_the_clusters_minimum_cannot_be_removed() -> None:
    cluster = _cluster()
    answer = cluster.set_config(CLUSTER, MIN_ISR, None)
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert answer.error_message == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert _replace(cluster, CLUSTER, log_retention_ms="5").error_code == ErrorCode.INVALID_CONFIG
    assert cluster.set_config(CLUSTER, MIN_ISR, "2").error_code == ErrorCode.NONE


def test_rule_57_all_of_it_is_allowed_without_elr() -> None:
    cluster = _cluster(elr=False)
    assert cluster.set_config((4, "1"), MIN_ISR, "2").error_code == ErrorCode.NONE
    assert cluster.set_config((4, "1"), MIN_ISR, None).error_code == ErrorCode.NONE
    assert cluster.set_config(CLUSTER, MIN_ISR, None).error_code == ErrorCode.NONE


# -- IncrementalAlterConfigs


def test_set_and_delete() -> None:
    cluster = _cluster()
    assert _change(cluster, FOO, ("retention.ms", SET, "5"), (MIN_ISR, DELETE, None)).error_code == ErrorCode.NONE
    assert cluster.image.configs[FOO] == {"retention.ms": "5"}
    assert _change(cluster, FOO, ("retention.ms", DELETE, None)).error_code == ErrorCode.NONE
    assert FOO not in cluster.image.configs


def test_a_topics_present_value_writes_nothing_and_a_brokers_does() -> None:
    cluster = _cluster()
    since = len(cluster.log)
    _change(cluster, FOO, (MIN_ISR, SET, "2"))
    assert cluster.written(since) == []
    _change(cluster, CLUSTER, (MIN_ISR, SET, "1"))
    assert cluster.written(since) == ["ConfigRecord"]


def test_append_and_subtract_work_on_lists() -> None:
    cluster = _cluster()
    assert _change(cluster, FOO, ("cleanup.policy", APPEND, "compact")).error_code == ErrorCode.NONE
    assert cluster.image.configs[FOO]["cleanup.policy"] == "delete,compact"  # the default was there first
    _change(cluster, FOO, ("cleanup.policy", APPEND, "compact"))
    assert cluster.image.configs[FOO]["cleanup.policy"] == "delete,compact"
    _change(cluster, FOO, ("cleanup.policy", SUBTRACT, "delete"))
    assert cluster.image.configs[FOO]["cleanup.policy"] == "compact"
    answer = _change(cluster, FOO, ("retention.ms", APPEND, "5"))
    assert answer.error_message == "Can't APPEND to key retention.ms because its type is not LIST."
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert _change(cluster, FOO, ("cleanup.policy", APPEND, "shred")).error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("resource", "change", "error", "words"),
    [
        (FOO, ("no.such", SET, "1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (FOO, ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG, "Not a number of type LONG"),
        (FOO, ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        (FOO, ("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        (FOO, ("leader.replication.throttled.replicas", SET, "1:2," * 9000), ErrorCode.INVALID_CONFIG, "32767 bytes"),
        ((2, "bar"), ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "'bar' does not exist"),
        ((2, ""), ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        ((4, "9"), ("log.retention.ms", SET, "1"), ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 9 found."),
        ((4, "x"), ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "Unable to parse broker name"),
        ((4, "01"), ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "Unable to parse broker name"),
        ((4, "-1"), ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "Invalid negative broker ID."),
        (CLUSTER, ("num.partitions", SET, "1"), ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically"),
        (CLUSTER, ("no.such", APPEND, "1"), ErrorCode.INVALID_CONFIG, "Unknown config name: no.such"),
        (CLUSTER, ("min.insync.replicas", APPEND, "1"), ErrorCode.INVALID_CONFIG, "Config value append is not allowed"),
        (GROUP, ("no.such", SET, "1"), ErrorCode.INVALID_CONFIG, "Unknown group config name: no.such"),
        (GROUP, (SESSION, SET, "44999"), ErrorCode.INVALID_CONFIG, "in the range 45000 to 60000 inclusive."),
        (GROUP, (SESSION, SET, "60001"), ErrorCode.INVALID_CONFIG, "in the range 45000 to 60000 inclusive."),
        ((32, ""), (SESSION, SET, "50000"), ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        (SUBSCRIPTION, ("no.such", SET, "1"), ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration"),
        (SUBSCRIPTION, ("interval.ms", SET, "99"), ErrorCode.INVALID_REQUEST, "between 100 and 3600000"),
        (SUBSCRIPTION, ("match", SET, "client_id=["), ErrorCode.INVALID_CONFIG, "Illegal client matching pattern"),
        ((16, ""), ("interval.ms", SET, "100"), ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        ((8, "1"), ("x", SET, "1"), ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
    ],
)
def test_refusals_change_nothing(
    resource: tuple[int, str], change: tuple[str, int, str | None], error: ErrorCode, words: str
) -> None:
    cluster = _cluster()
    since = len(cluster.log)
    answer = _change(cluster, resource, change)
    assert (answer.error_code, answer.resource_type, answer.resource_name) == (error, *resource)
    assert words in answer.error_message
    assert cluster.written(since) == []


def test_one_bad_name_spoils_its_resource_but_no_other() -> None:
    cluster = _cluster()
    cluster.create_topic("bar", (1,))

    def resource(name: str, *configs: tuple[str, str]) -> Any:
        return incremental_alter_configs_request.AlterConfigsResource(
            resource_type=2,
            resource_name=name,
            configs=tuple(
                incremental_alter_configs_request.AlterableConfig(name=key, config_operation=SET, value=value)
                for key, value in configs
            ),
        )

    request = IncrementalAlterConfigsRequest(
        resources=(
            resource("foo", ("retention.ms", "5"), ("segment.bytes", "1")),
            resource("bar", ("retention.ms", "6")),
        )
    )
    answer = cluster.ask(request)
    assert [response.error_code for response in answer.responses] == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert "retention.ms" not in cluster.image.configs[FOO]
    assert cluster.image.configs[(2, "bar")] == {"retention.ms": "6"}
    twice = IncrementalAlterConfigsRequest(resources=(resource("bar"), resource("bar")))
    assert {response.error_code for response in cluster.ask(twice).responses} == {ErrorCode.INVALID_REQUEST}
    repeated = IncrementalAlterConfigsRequest(
        resources=(resource("bar", ("retention.ms", "1"), ("retention.ms", "2")),)
    )
    assert cluster.ask(repeated).responses[0].error_message == "Error due to duplicate config keys"


def test_the_whole_resource_is_validated_with_what_it_has() -> None:
    cluster = _cluster()
    _change(cluster, FOO, ("min.compaction.lag.ms", SET, "10"))
    answer = _change(cluster, FOO, ("max.compaction.lag.ms", SET, "5"))
    assert "conflict topic config setting" in answer.error_message


def test_validate_only_writes_nothing() -> None:
    cluster = _cluster()
    _under_min_isr(cluster)
    since = len(cluster.log)
    assert cluster.set_config(FOO, "retention.ms", "5").error_code == ErrorCode.NONE
    request = IncrementalAlterConfigsRequest(
        validate_only=True,
        resources=(
            incremental_alter_configs_request.AlterConfigsResource(
                resource_type=2,
                resource_name="foo",
                configs=(
                    incremental_alter_configs_request.AlterableConfig(name=MIN_ISR, config_operation=SET, value="1"),
                ),
            ),
        ),
    )
    assert cluster.ask(request).responses[0].error_code == ErrorCode.NONE
    assert cluster.written(since) == ["ConfigRecord"]


# -- AlterConfigs


def test_alter_configs_replaces_everything() -> None:
    cluster = _cluster()
    _change(cluster, FOO, ("retention.ms", SET, "5"), ("segment.ms", SET, "6"))
    assert _replace(cluster, FOO, retention_ms="5", cleanup_policy="compact").error_code == ErrorCode.NONE
    assert cluster.image.configs[FOO] == {"retention.ms": "5", "cleanup.policy": "compact"}
    deleted = [record for record in cluster.log if isinstance(record, ConfigRecord) and record.value is None]
    assert sorted(record.name for record in deleted) == [MIN_ISR, "segment.ms"]


def test_alter_configs_that_drops_the_minimum_empties_the_elr() -> None:
    cluster = _cluster()
    _under_min_isr(cluster)
    assert _replace(cluster, FOO).error_code == ErrorCode.NONE
    assert cluster.partition("foo").elr == ()


def test_alter_configs_refuses_nulls_and_repetitions() -> None:
    cluster = _cluster()
    assert _replace(cluster, FOO, retention_ms=None).error_code == ErrorCode.INVALID_REQUEST
    resource = alter_configs_request.AlterConfigsResource(
        resource_type=2,
        resource_name="foo",
        configs=tuple(alter_configs_request.AlterableConfig(name="retention.ms", value=value) for value in "12"),
    )
    assert cluster.ask(AlterConfigsRequest(resources=(resource,))).responses[0].error_code == ErrorCode.INVALID_REQUEST
    assert {r.error_code for r in cluster.ask(AlterConfigsRequest(resources=(resource, resource))).responses} == {
        ErrorCode.INVALID_REQUEST
    }
    assert _replace(cluster, (2, "bar")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    since = len(cluster.log)
    request = AlterConfigsRequest(
        validate_only=True,
        resources=(alter_configs_request.AlterConfigsResource(resource_type=2, resource_name="foo"),),
    )
    assert cluster.ask(request).responses[0].error_code == ErrorCode.NONE
    assert cluster.written(since) == []
