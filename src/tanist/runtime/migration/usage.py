"""What a cluster has and its clients use, as far as a roll to the other software touches it.

Only questions and their answers: `losses` judges them. A question that the cluster does not have is a part that it
does not have, and one that it refuses to answer is kept in `unanswered`, for the operator to look into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tanist.client.acls import describe_request
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.admin import ConfigEntry, TopicDescription, describe_topics
from tanist.runtime.client.client import Client, KafkaError, Unsupported
from tanist.runtime.client.connection import API_VERSIONS
from tanist.runtime.client.features import Features, describe_features
from tanist.runtime.client.partition_context import topic_settings
from tanist.runtime.client.transactions import list_transactions
from tanist.runtime.migration.nodes import APACHE, ClusterDescription
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages import describe_producers_request
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.describe_acls_response import DescribeAclsResponse
from tanist.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from tanist.wire.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from tanist.wire.messages.describe_producers_response import DescribeProducersResponse
from tanist.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from tanist.wire.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse
from tanist.wire.messages.list_config_resources_request import ListConfigResourcesRequest
from tanist.wire.messages.list_config_resources_response import ListConfigResourcesResponse

T = TypeVar("T")

"""Of each filter of DescribeAcls."""
_CLIENT_METRICS = 16
_PARTITIONS_PER_REQUEST = 500
_NONE_OF_IT = (
    ErrorCode.SECURITY_DISABLED,
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,  # no client of a listener without authentication has one
    ErrorCode.UNSUPPORTED_VERSION,
)


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    state: str
    producer_id: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked for, and the questions that had no answer."""

    features: Features
    topics: Sequence[TopicDescription]
    topic_settings: Mapping[str, Mapping[str, ConfigEntry]]
    versions: Mapping[int, tuple[int, int]]
    """The requests that the brokers serve, each with its first and last version."""
    transactions: Sequence[TransactionListing] = ()
    open_transactions: Sequence[tuple[TopicPartition, int]] = ()
    """Partitions with the producer id of a transaction that has not ended."""
    acls: Sequence[str] = ()
    scram_users: Sequence[str] = ()
    tokens: int = 0
    client_metrics: Sequence[str] = ()
    unanswered: Sequence[str] = ()


def read_usage(client: Client, cluster: ClusterDescription) -> Usage:
    """Ask for all of it, a broker of Apache Kafka where there is one: ours do not have all of these questions."""
    at = next((node.node_id for node in cluster.of(APACHE) if node.is_broker and not node.fenced), None)
    unanswered: list[str] = []

    def asked(what: str, question: Callable[[], T], nothing: T) -> T:
        try:
            return client.persist(question)
        except Unsupported:
            return nothing
        except KafkaError as error:
            if error.code not in _NONE_OF_IT:
                unanswered.append(f"{what}: {error}")
            return nothing

    topics = describe_topics(client)
    # In this order: the coordinators know each transaction that a partition has seen begin.
    nothing: tuple[tuple[TopicPartition, int], ...] = ()
    open_transactions = asked("open transactions", lambda: _open_transactions(client, topics), nothing)
    return Usage(
        describe_features(client, node_id=at),
        topics,
        topic_settings(client, [topic.topic for topic in topics]),
        _versions(client, at),
        asked("transactions", lambda: _transactions(client), ()),
        open_transactions,
        asked("ACLs", lambda: _acls(client, at), ()),
        asked("SCRAM users", lambda: _scram_users(client, at), ()),
        asked("delegation tokens", lambda: _tokens(client, at), 0),
        asked("client metrics", lambda: _client_metrics(client, at), ()),
        tuple(unanswered),
    )


def _versions(client: Client, at: int | None) -> dict[int, tuple[int, int]]:
    answer = client.ask(API_VERSIONS, ApiVersionsResponse, node_id=at)
    _raise_for(answer.error_code)
    return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


def _transactions(client: Client) -> tuple[TransactionListing, ...]:
    return tuple(
        TransactionListing(each.transactional_id, each.state, each.producer_id) for each in list_transactions(client)
    )


def _open_transactions(client: Client, topics: Sequence[TopicDescription]) -> tuple[tuple[TopicPartition, int], ...]:
    """The leaders' producer states: these know a transaction whose coordinator has forgotten it, too."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for partition in topic.partitions:
            if partition.leader >= 0:
                by_leader.setdefault(partition.leader, []).append((topic.topic, partition.partition))
    found: list[tuple[TopicPartition, int]] = []
    for leader, places in sorted(by_leader.items()):
        for start in range(0, len(places), _PARTITIONS_PER_REQUEST):
            by_topic = indexes_by_topic(places[start : start + _PARTITIONS_PER_REQUEST])
            request = describe_producers_request.DescribeProducersRequest(
                topics=tuple(
                    describe_producers_request.TopicRequest(name=name, partition_indexes=tuple(indexes))
                    for name, indexes in by_topic.items()
                )
            )
            answer = client.ask(request, DescribeProducersResponse, node_id=leader)
            for answered in answer.topics:
                for each in answered.partitions:
                    _raise_for(each.error_code, each.error_message or f"{answered.name}-{each.partition_index}")
                    found += [
                        ((answered.name, each.partition_index), producer.producer_id)
                        for producer in each.active_producers
                        if producer.current_txn_start_offset >= 0
                    ]
    return tuple(found)


def _acls(client: Client, at: int | None) -> tuple[str, ...]:
    answer = client.ask(describe_request(), DescribeAclsResponse, node_id=at)
    _raise_for(answer.error_code, answer.error_message)
    return tuple(
        f"{acl.principal} on {resource.resource_name}" for resource in answer.resources for acl in resource.acls
    )


def _scram_users(client: Client, at: int | None) -> tuple[str, ...]:
    answer = client.ask(
        DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse, node_id=at
    )
    _raise_for(answer.error_code, answer.error_message)
    return tuple(sorted(result.user for result in answer.results))


def _tokens(client: Client, at: int | None) -> int:
    answer = client.ask(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse, node_id=at)
    _raise_for(answer.error_code)
    return len(answer.tokens)


def _client_metrics(client: Client, at: int | None) -> tuple[str, ...]:
    answer = client.ask(
        ListConfigResourcesRequest(resource_types=(_CLIENT_METRICS,)), ListConfigResourcesResponse, node_id=at
    )
    _raise_for(answer.error_code)
    return tuple(sorted(resource.resource_name for resource in answer.config_resources))


def _raise_for(code: int, message: str | None = None) -> None:
    if code:
        raise KafkaError(code, message)
