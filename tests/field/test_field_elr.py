"""Bugs of eligible leader replicas, and of the min.insync.replicas that they hang on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tanist.controller import alter_configs, features
from tanist.controller.features import Bootstrap
from tanist.controller.image import partition_state, snapshot
from tanist.controller.image.image import ELR_VERSION
from tanist.controller.image.snapshot import from_records, to_records
from tanist.controller.partitions import change, directories
from tanist.controller.partitions.change import Context, Target
from tanist.controller.partitions.context import PartitionContexts
from tanist.lab.mutations.patching import Patch, always, fixed
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tanist.wire.metadata import PartitionChangeRecord
from tests.controller.controller_double import Cluster, directory
from tests.controller.partitions.test_directories import assign
from tests.controller.partitions.test_elections import expect, leaderless
from tests.field.catalogue import BOTH_HAVE_IT, NEITHER_HAS_IT, bug

MIN_ISR = "min.insync.replicas"
FOO, CLUSTER = (2, "foo"), (4, "")


def _cluster(*, elr: bool = True) -> Cluster:
    """Brokers 1 to 3 with two directories each; topic foo needs two of its three replicas."""
    cluster = Cluster(bootstrap=None if elr else Bootstrap(features={}))
    for broker_id in (1, 2, 3):
        cluster.register(broker_id, log_dirs=(directory(broker_id), directory(broker_id, 1)))
        cluster.heartbeat(broker_id)
    cluster.create_topic("foo", (1, 2, 3), min_insync_replicas="2")
    return cluster


def _under_min_isr(cluster: Cluster) -> None:
    """ISR [1], ELR [2]."""
    for broker_id in (3, 2):
        cluster.heartbeat(broker_id, want_fence=True)
    assert (cluster.partition("foo").isr, cluster.partition("foo").elr) == ((1,), (2,))


# -- what forgets the ELR


class _WithoutElr(PartitionContexts):
    def of(self, *args: Any) -> Context:
        return replace(super().of(*args), elr_enabled=False)


@bug("apache/kafka#20716", planted=fixed(directories, "PartitionContexts", _WithoutElr), shown=NEITHER_HAS_IT)
def test_the_choice_of_a_directory_keeps_the_elr() -> None:
    """AssignReplicasToDirs ignored the ELR feature, so a broker that reported a directory cleared the ELR."""
    cluster = _cluster()
    _under_min_isr(cluster)
    assert assign(cluster, 1, directory(1, 1), "foo") == ["NONE"]
    state = cluster.partition("foo")
    assert (state.directory_of(1), state.elr) == (directory(1, 1), (2,))


def _clears_all(image: Any, records: Iterable[Any]) -> list[Any]:
    return [
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, eligible_leader_replicas=(), last_known_elr=())
        for topic_id in image.topics
        if any(record.name == MIN_ISR for record in records)
    ]


@bug(
    "apache/kafka#20237",
    planted=fixed(alter_configs, "_emptied_elrs", _clears_all),
    apache="has it: documented as it is",
    shown=BOTH_HAVE_IT,
)
def test_the_same_minimum_again_keeps_the_elr() -> None:
    """Setting the cluster's min.insync.replicas to the value that it had cleared all ELRs."""
    cluster = _cluster()
    cluster.create_topic("bar", (1, 2, 3))
    assert cluster.set_config(CLUSTER, MIN_ISR, "2").error_code == 0
    for broker_id in (3, 2):
        cluster.heartbeat(broker_id, want_fence=True)
    assert cluster.partition("bar").elr == (2,)
    assert cluster.set_config(CLUSTER, MIN_ISR, "2").error_code == 0
    assert cluster.partition("bar").elr == (2,)


def _by_the_isr(before: Any, target: Target, elected: Any, lost: tuple[int, ...], context: Context) -> tuple[int, ...]:
    """As it was: the leader when the ISR is empty, and if there is none -1."""
    return before.last_known_elr if target.isr else (before.leader,)


@bug("apache/kafka#20629", planted=fixed(change, "_last_known_elr", _by_the_isr), shown=NEITHER_HAS_IT)
def test_a_partition_without_leader_remembers_the_last_one() -> None:
    """The last leader was noted when the ISR became empty, not when the leader was lost."""
    there = leaderless()
    there.register({"broker": 2, "clean": False})
    expect(there, isr=[], elr=[1], leader=-1, last_known_elr=[1])
    there.register({"broker": 1, "clean": False})
    expect(there, isr=[], elr=[], leader=-1, last_known_elr=[1])


# -- where the feature is on


@bug("KAFKA-16540", planted=lambda: (Patch(features, "elr_safety_records", always(())),))
def test_with_elr_there_is_one_minimum_for_all() -> None:
    """Brokers could have their own min.insync.replicas while ELR was on, and disagreed with the controller."""
    cluster = _cluster(elr=False)
    assert cluster.set_config((4, "2"), MIN_ISR, "3").error_code == 0
    update = FeatureUpdateKey(feature=ELR_VERSION, max_version_level=1, upgrade_type=1)
    assert cluster.ask(UpdateFeaturesRequest(feature_updates=(update,))).error_code == 0
    assert cluster.image.elr_enabled
    assert MIN_ISR not in cluster.image.configs.get((4, "2"), {})
    assert cluster.image.configs[CLUSTER][MIN_ISR] == "1"


@bug("KAFKA-18634", planted=fixed(snapshot, "supports_elr", always(False)))
def test_a_snapshot_has_the_elr() -> None:
    """The metadata version, not the feature, decided about ELR, and snapshots could lack the fields."""
    cluster = _cluster()
    _under_min_isr(cluster)
    again = from_records(to_records(cluster.image), cluster.settings.topic_defaults())
    assert again.topics[again.topic_ids["foo"]].partitions[0].elr == (2,)
    without = _cluster(elr=False)
    for broker_id in (3, 2):
        without.heartbeat(broker_id, want_fence=True)
    assert partition_state.supports_elr(without.image.metadata_version)
    assert without.partition("foo").elr == ()


@bug(
    "strimzi #11685", planted=fixed(alter_configs, "_forbidden", always(None)), apache="as meant", shown=NEITHER_HAS_IT
)
def test_a_brokers_own_minimum_is_refused_and_the_clusters_is_not() -> None:
    """An operator set min.insync.replicas for each broker, was refused, and restarted the brokers for ever."""
    cluster = _cluster()
    since = len(cluster.log)
    refused = cluster.set_config((4, "1"), MIN_ISR, "2")
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert refused.error_message == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    assert cluster.written(since) == []
    assert cluster.set_config(CLUSTER, MIN_ISR, "2").error_code == 0


@bug(
    "strimzi #11854", planted=fixed(alter_configs, "_forbidden", always(None)), apache="as meant", shown=NEITHER_HAS_IT
)
def test_the_clusters_minimum_cannot_be_removed_but_set_to_its_default() -> None:
    """An operator tried to delete the min.insync.replicas that ELR sets, was refused, and restarted the brokers for
    ever.
    """
    cluster = _cluster()
    since = len(cluster.log)
    refused = cluster.set_config(CLUSTER, MIN_ISR, None)
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert refused.error_message == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert cluster.written(since) == []
    assert cluster.set_config(CLUSTER, MIN_ISR, "1").error_code == 0
