"""The nodes of a Kafka cluster: their roles, their addresses, the software of each, and the metadata quorum.

Read through any broker's listener, of either kind of node. The state of a roll is nothing but this: no file is kept.
A node is one of tanist if it describes a property of tanist's own. A node that does not answer has no software.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tanist.client.admin import BROKER_RESOURCE
from tanist.client.security import ClientSecurity
from tanist.runtime.client.admin import ConfigEntry, config_entries
from tanist.runtime.client.client import (
    Address,
    AuthenticationFailed,
    Client,
    KafkaError,
    Unreachable,
    Unsupported,
)
from tanist.runtime.client.quorum import ask_controller
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import METADATA_TOPIC
from tanist.wire.messages import describe_quorum_request
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.describe_configs_response import DescribeConfigsResponse
from tanist.wire.messages.describe_quorum_response import DescribeQuorumResponse

TANIST = "tanist"
APACHE = "Apache Kafka"

_OWN_PROPERTY = "tanist.unclean.recovery.grace.ms"
_CONTROLLERS = 2
_NODE_ANSWERS_S = 5.0
_QUESTION = describe_quorum_request.DescribeQuorumRequest(
    topics=(
        describe_quorum_request.TopicData(
            topic_name=METADATA_TOPIC, partitions=(describe_quorum_request.PartitionData(partition_index=0),)
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `software` None: it does not answer."""

    node_id: int
    address: Address | None
    is_broker: bool = False
    is_controller: bool = False
    is_voter: bool = False
    fenced: bool = False
    software: str | None = None
    settings: Mapping[str, ConfigEntry] = field(default_factory=dict)

    @property
    def roles(self) -> str:
        """As an operator says them."""
        return " and ".join(
            name for name, held in (("broker", self.is_broker), ("controller", self.is_controller)) if held
        )

    @property
    def static(self) -> dict[str, str]:
        """What its properties file says, but for what no broker describes: passwords."""
        return {
            name: entry.value
            for name, entry in self.settings.items()
            if entry.source == "static" and entry.value is not None
        }

    @property
    def log_dirs(self) -> str:
        entry = self.settings.get("log.dirs") or self.settings.get("log.dir")
        return (entry.value if entry is not None else None) or ""


@dataclass(frozen=True, slots=True)
class Quorum:
    """The metadata quorum: each replica's log end offset, and the voters' addresses."""

    leader_id: int
    high_watermark: int
    voters: Mapping[int, int]
    observers: Mapping[int, int]
    addresses: Mapping[int, Address]

    def behind(self, offset: int) -> list[int]:
        """The replicas that lack what is committed below the offset."""
        return sorted(node_id for node_id, end in {**self.observers, **self.voters}.items() if end < offset)


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """One look at a cluster."""

    cluster_id: str
    nodes: Mapping[int, Node]
    quorum: Quorum

    def of(self, software: str | None) -> list[Node]:
        """The nodes of this software, by id; None: those that do not answer."""
        return [node for _, node in sorted(self.nodes.items()) if node.software == software]


class ControllerRefuses(ClusterError):
    """A controller's listener does not take who asks."""


def read_cluster(client: Client, to_controllers: ClientSecurity) -> ClusterDescription:
    """Ask the cluster for its nodes, and each node for its software and settings: brokers as the client does, nodes
    that are only controllers as `to_controllers` says. `ControllerRefuses`.
    """
    described = client.persist(lambda: describe_cluster(client))
    quorum = read_quorum(client)
    nodes = {
        each.broker_id: Node(
            each.broker_id,
            (each.host, each.port),
            is_broker=True,
            is_controller=each.broker_id in quorum.voters,
            is_voter=each.broker_id in quorum.voters,
            fenced=each.is_fenced,
        )
        for each in described.brokers
    }
    for node_id in quorum.voters:
        if node_id not in nodes:
            address = quorum.addresses.get(node_id)
            nodes[node_id] = Node(node_id, address, is_controller=True, is_voter=True)
    for node_id, address in _registered_controllers(quorum, to_controllers).items():
        known = nodes.get(node_id)
        nodes[node_id] = Node(node_id, address, is_controller=True) if known is None else known
    found = {}
    for node_id, node in sorted(nodes.items()):
        settings = node_settings(node, client.security if node.is_broker else to_controllers)
        if settings is None:
            found[node_id] = node
            continue
        roles = settings.get("process.roles")
        found[node_id] = replace(
            node,
            software=software_of(settings),
            settings=settings,
            is_controller=node.is_controller or (roles is not None and "controller" in (roles.value or "")),
        )
    return ClusterDescription(described.cluster_id, found, quorum)


def describe_cluster(client: Client) -> DescribeClusterResponse:
    """The brokers, those included that are fenced where the cluster can say so. One question, without patience."""
    answer = client.ask(DescribeClusterRequest(include_fenced_brokers=True), DescribeClusterResponse)
    if answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
        raise KafkaError(answer.error_code, "this is a controller's listener; give --bootstrap a broker's")
    if answer.error_code:
        raise KafkaError(answer.error_code, answer.error_message)
    return answer


def read_quorum(client: Client) -> Quorum:
    """The metadata quorum, as its leader answers. `Unsupported` by a cluster with ZooKeeper."""

    def attempt() -> Quorum:
        answer = ask_controller(client, _QUESTION, DescribeQuorumResponse)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
        partition = answer.topics[0].partitions[0]
        if partition.error_code:
            raise KafkaError(partition.error_code, partition.error_message)
        addresses = {
            node.node_id: (node.listeners[0].host, node.listeners[0].port) for node in answer.nodes if node.listeners
        }
        return Quorum(
            partition.leader_id,
            partition.high_watermark,
            {voter.replica_id: voter.log_end_offset for voter in partition.current_voters},
            {observer.replica_id: observer.log_end_offset for observer in partition.observers},
            addresses,
        )

    return client.persist(attempt)


def node_settings(node: Node, security: ClientSecurity, *, only_own: bool = False) -> Mapping[str, ConfigEntry] | None:
    """What a node describes of itself on the listener that is known of it; None if it does not answer.

    `only_own`: the property by which a node of tanist is known, and no others.
    """
    node_id = node.node_id
    if node.address is None:
        return None
    resource = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=str(node_id),
        configuration_keys=(_OWN_PROPERTY,) if only_own else None,
    )
    try:
        with _asking(node.address, security, is_broker=node.is_broker) as asked:
            answer = asked.ask(DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse).results[0]
    except Unreachable:
        return None
    except Unsupported:
        return {}  # a controller of an older Apache Kafka
    if answer.error_code:
        raise KafkaError(answer.error_code, answer.error_message or f"the properties of node {node_id}")
    return {entry.name: entry for entry in config_entries(answer)}


def software_of(settings: Mapping[str, ConfigEntry] | None) -> str | None:
    """The software that describes these properties; None if none answers."""
    if settings is None:
        return None
    return TANIST if _OWN_PROPERTY in settings else APACHE


@contextmanager
def _asking(address: Address, security: ClientSecurity, *, is_broker: bool) -> Iterator[Client]:
    try:
        with Client([address], timeout_s=_NODE_ANSWERS_S, security=security) as client:
            yield client
    except AuthenticationFailed as error:
        if is_broker:
            raise
        raise ControllerRefuses(f"{error}; --controller-config says who you are to controllers") from None


def _registered_controllers(quorum: Quorum, security: ClientSecurity) -> dict[int, Address]:
    """Controllers that need not be voters, as the listener of the first voter that answers tells them."""
    for _, address in sorted(quorum.addresses.items()):
        try:
            with _asking(address, security, is_broker=False) as controller:
                request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
                answer = controller.ask(request, DescribeClusterResponse)
        except (Unreachable, Unsupported):
            continue
        if not answer.error_code:
            return {each.broker_id: (each.host, each.port) for each in answer.brokers}
    return {}
