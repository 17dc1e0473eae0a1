"""A node from the environment of the container image `apache/kafka`: `tanist serve --from-environment`.

Owns the image's rules: which variables are properties of the node and under which names, which file they override, what
holds when nothing is given, and that the folders are formatted at the first start. So whatever starts that image
(Testcontainers, a compose file, a pod) can start tanist in its place. It must never guess at a setting that the image
does not guess at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from tanist.broker.config import ConfigError, NodeConfig, parse_properties
from tanist.controller.configs.definitions import split_list
from tanist.events.event import Event
from tanist.events.process import BrokerReady, ClusterIdIgnored, FolderFormatted, ServerStarted
from tanist.runtime.format import format_folders, formatted_cluster_id
from tanist.runtime.process.secure_environment import is_secure, secured, users_of

PREFIX = "KAFKA_"
CLUSTER_ID = "CLUSTER_ID"
DEFAULT_CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
"""The image's: nodes that are given none belong to one cluster."""

NO_PROPERTIES = frozenset(
    {
        "KAFKA_VERSION",
        "KAFKA_HEAP_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    }
)
"""Variables that concern the JVM and its log: the image keeps them out of the properties."""

DEFAULTS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/kraft-combined-logs",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""The properties of a node that is given none at all, neither by variables nor in a file."""


def property_name(variable: str) -> str:
    """`KAFKA_LOG_DIRS` is log.dirs; two underscores are one underscore, three are a dash."""
    name = variable.removeprefix(PREFIX).lower().replace("_", ".")
    return name.replace("...", "-").replace("..", "_")


def properties_of(environment: Mapping[str, str], mounted: Mapping[str, str]) -> dict[str, str]:
    """The node's properties: those of a mounted file, overridden by variables. `ConfigError`."""
    if environment.get("KAFKA_ZOOKEEPER_CONNECT"):
        raise ConfigError(
            "KAFKA_ZOOKEEPER_CONNECT: tanist has no ZooKeeper; set KAFKA_PROCESS_ROLES and the controllers' listener "
            "(Testcontainers: with_kraft(), withKraft())"
        )
    found = {
        property_name(variable): value
        for variable, value in sorted(environment.items())
        if variable.startswith(PREFIX) and variable not in NO_PROPERTIES
    }
    properties = {**mounted, **found} or dict(DEFAULTS)
    _listen_where_advertised(properties)
    _stand_alone(properties)
    return properties


def _listen_where_advertised(properties: dict[str, str]) -> None:
    """Without `listeners` the image binds the ports that are advertised, at every address."""
    advertised = properties.get("advertised.listeners", "")
    if advertised and not properties.get("listeners"):
        properties["listeners"] = re.sub(r"://(?:\[[^\]]*\]|[^:,]*):", "://0.0.0.0:", advertised)


def _stand_alone(properties: dict[str, str]) -> None:
    """A controller that is given no quorum is one by itself, as in the image (`kafka-storage format --standalone`)."""
    roles = split_list(properties.get("process.roles", ""))
    if "controller" not in roles or properties.get("controller.quorum.voters"):
        return
    servers = split_list(properties.get("controller.quorum.bootstrap.servers", ""))
    if len(servers) > 1:
        raise ConfigError(
            f"controller.quorum.bootstrap.servers names {len(servers)} controllers, and no first voters; "
            "set KAFKA_CONTROLLER_QUORUM_VOTERS=1@host:port,2@host:port"
        )
    node_id = properties.get("node.id") or properties.get("broker.id")
    names = [name.upper() for name in split_list(properties.get("controller.listener.names", ""))]
    for listener in split_list(properties.get("listeners", "")):
        name, _, address = listener.partition("://")
        host, _, port = address.rpartition(":")
        if name.upper() in names and node_id is not None:
            reachable = "localhost" if host in ("", "0.0.0.0", "[::]") else host
            properties["controller.quorum.voters"] = f"{node_id}@{servers[0] if servers else f'{reachable}:{port}'}"
            return


def properties_from(path: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """`properties_of`, with the file of this path if it is there. `ConfigError`, `PropertiesError`, `OSError`."""
    mounted: Mapping[str, str] = {}
    if path is not None and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            mounted = parse_properties(file.read())
    properties = properties_of(environment, mounted)
    return secured(properties, environment) if is_secure(environment) else properties


def format_new(config: NodeConfig, environment: Mapping[str, str], emit: Callable[[Event], None]) -> None:
    """Format what is not formatted. A folder keeps the cluster that it belongs to, whatever the environment names.

    `FormatError`, `OSError`.
    """
    present, wanted = formatted_cluster_id(config), environment.get(CLUSTER_ID, "")
    if present is not None and wanted not in ("", present):
        emit(ClusterIdIgnored(config.metadata_log_dir, present, CLUSTER_ID, wanted))
    cluster_id = present or wanted or DEFAULT_CLUSTER_ID
    files = users_of(environment, present, cluster_id) if is_secure(environment) else None
    users = () if files is None or present is not None else files.scram_arguments()
    acls = () if files is None else files.acls()
    for done in format_folders(config, cluster_id, ignore_formatted=True, scram=users, acls=acls):
        if done.fresh:
            emit(FolderFormatted(done.folder, config.node_id, cluster_id))


def tell_started(config: NodeConfig, emit: Callable[[Event], None]) -> None:
    """The lines that wait strategies look for in the log."""
    if config.is_broker:
        emit(BrokerReady(config.node_id))
    emit(ServerStarted(config.node_id))
