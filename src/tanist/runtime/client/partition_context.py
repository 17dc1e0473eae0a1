"""The context of partitions: settings, elections and reassignments that their state depends on, through `Client`.

Owns the questions whose answers `tanist topics describe` puts beside a partition: the settings of many topics at once,
reassignments under way, who is registered, and whether a recovery manager decides. All but the settings are asked for
once and without patience: a cluster without a controller, which is when one looks, cannot answer some of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tanist.client.admin import BROKER_RESOURCE, TOPIC_RESOURCE
from tanist.runtime.client.admin import ConfigEntry, PartitionDescription, TopicDescription, config_entries
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.explain import Situation
from tanist.runtime.client.features import describe_features, served_version
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.describe_configs_response import DescribeConfigsResponse
from tanist.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from tanist.wire.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse

ELR_VERSION = "eligible.leader.replicas.version"
RECOVERY_MANAGER = "unclean.recovery.manager.enabled"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
MIN_INSYNC_REPLICAS = "min.insync.replicas"
EXPLAINED_BY = (MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION, "unclean.recovery.strategy")
"""The settings of a topic that say who may lead its partitions."""

_TOPICS_PER_REQUEST = 500
_FENCED_BROKERS_VERSION = 2
_NO_PATIENCE_S = 2.0
_MOST_SPECIFIC_FIRST = ("topic", "broker", "cluster", "static")


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment under way of one partition."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Elections:
    """How the cluster elects leaders."""

    elr_enabled: bool
    recovery_manager: bool


def topic_settings(
    client: Client, topics: Sequence[str], keys: Collection[str] | None = None
) -> dict[str, dict[str, ConfigEntry]]:
    """The settings of each topic, all or those named, by topic and name. A topic that is gone meanwhile has none."""
    found: dict[str, dict[str, ConfigEntry]] = {}
    for start in range(0, len(topics), _TOPICS_PER_REQUEST):
        request = DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=topic,
                    configuration_keys=None if keys is None else tuple(sorted(keys)),
                )
                for topic in topics[start : start + _TOPICS_PER_REQUEST]
            )
        )
        answer = client.ask(request, DescribeConfigsResponse)
        for result in answer.results:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise KafkaError(result.error_code, result.error_message)
            found[result.resource_name] = {entry.name: entry for entry in config_entries(result)}
    return found


def reassignments(client: Client) -> dict[tuple[str, int], Reassignment]:
    """Those under way, by topic and partition; none if nobody can tell."""
    try:
        answer = client.ask(
            ListPartitionReassignmentsRequest(timeout_ms=round(_NO_PATIENCE_S * 1000), topics=None),
            ListPartitionReassignmentsResponse,
            timeout_s=_NO_PATIENCE_S,
        )
    except (Unreachable, Unsupported):
        return {}
    return {
        (topic.name, partition.partition_index): Reassignment(partition.adding_replicas, partition.removing_replicas)
        for topic in answer.topics
        for partition in topic.partitions
    }


@dataclass(frozen=True, slots=True)
class OfflineBrokers:
    """What is known of the brokers that have an offline replica."""

    live: frozenset[int] = frozenset()
    """Not fenced: what is offline is a log directory."""
    unregistered: frozenset[int] = frozenset()
    """The cluster does not know them any more. Empty if it cannot tell gone from fenced."""


def offline_brokers(client: Client, topics: Iterable[TopicDescription]) -> OfflineBrokers:
    """Asks nobody if no replica is offline."""
    offline = frozenset(broker for topic in topics for each in topic.partitions for broker in each.offline)
    if not offline:
        return OfflineBrokers()
    if served_version(client, DescribeClusterRequest) >= _FENCED_BROKERS_VERSION:
        answer = client.ask(DescribeClusterRequest(include_fenced_brokers=True), DescribeClusterResponse)
        if not answer.error_code:
            live = {broker.broker_id for broker in answer.brokers if not broker.is_fenced}
            return OfflineBrokers(offline & live, offline - {broker.broker_id for broker in answer.brokers})
    return OfflineBrokers(offline & frozenset(client.metadata(()).brokers))


def situation_of(
    partition: PartitionDescription, settings: Mapping[str, ConfigEntry], elections: Elections, brokers: OfflineBrokers
) -> Situation:
    """What `explain` takes, of what a cluster answers. `settings` are the topic's."""
    min_isr = settings.get(MIN_INSYNC_REPLICAS)
    unclean = settings.get(UNCLEAN_LEADER_ELECTION)
    offline = frozenset(partition.offline)
    return Situation(
        leader=partition.leader,
        replicas=partition.replicas,
        isr=partition.isr,
        elr=partition.elr or (),
        last_known_elr=partition.last_known_elr or (),
        offline=offline,
        without_directory=offline & brokers.live,
        unregistered=offline & brokers.unregistered,
        min_isr=1 if min_isr is None or min_isr.value is None else int(min_isr.value),
        elr_enabled=elections.elr_enabled,
        recovery_manager=elections.recovery_manager,
        strategy=recovery_strategy(settings),
        unclean_election=unclean is not None and unclean.value == "true",
        last_unclean_epoch=partition.last_unclean_epoch,
    )


def elections(client: Client) -> Elections:
    """Whether ELR is on, and the recovery manager with it: what some broker has in its properties."""
    enabled = describe_features(client).level(ELR_VERSION) > 0
    if not enabled:
        return Elections(False, False)
    for node_id in sorted(client.metadata(()).brokers):
        resource = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=str(node_id), configuration_keys=(RECOVERY_MANAGER,)
        )
        try:
            answer = client.ask(
                DescribeConfigsRequest(resources=(resource,)),
                DescribeConfigsResponse,
                node_id=node_id,
                timeout_s=_NO_PATIENCE_S,
            )
        except Unreachable:
            continue
        entries = config_entries(answer.results[0])
        return Elections(True, any(entry.name == RECOVERY_MANAGER and entry.value == "true" for entry in entries))
    return Elections(True, False)


def recovery_strategy(settings: Mapping[str, ConfigEntry]) -> str:
    """Which strategy a topic's settings mean: the most specific one; on one level the strategy goes before the switch.

    KIP: "unclean.leader.election.enable.false -> unclean.recovery.strategy.Balanced", and true -> Aggressive.
    """
    strategy, switch = settings.get("unclean.recovery.strategy"), settings.get(UNCLEAN_LEADER_ELECTION)
    for source in _MOST_SPECIFIC_FIRST:
        if strategy is not None and strategy.source == source and strategy.value:
            return strategy.value
        if switch is not None and switch.source == source:
            return "Aggressive" if switch.value == "true" else "Balanced"
    return "Balanced"
