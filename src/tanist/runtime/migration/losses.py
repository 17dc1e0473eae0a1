"""What a roll to tanist would lose, what tanist refuses, and what it keeps without effect: pure judgement.

Three severities. `refused`: a node of tanist does not start with it, or records could not be served: change it first.
`lost`: it is in use and would stop working, and the operator has to accept that by its kind. `note`: nothing in use
stops working.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tanist.broker.api.table import BROKER_TABLE
from tanist.broker.authorizer_properties import CLASS_NAME, STANDARD_AUTHORIZER, SUPER_USERS
from tanist.broker.config import ConfigError, NodeConfig
from tanist.controller.configs.catalogue import BROKER_SETTINGS, TOPIC_SETTINGS
from tanist.controller.configs.settings import base_name
from tanist.controller.features import SUPPORTED_FEATURES, TOLERATED_FEATURES
from tanist.runtime.migration.api_names import api_name
from tanist.runtime.migration.nodes import APACHE, TANIST, ClusterDescription, Node
from tanist.runtime.migration.usage import Usage
from tanist.text import counted
from tanist.wire.apis import BROKER_APIS, SERVED, ApiKey

REFUSED = "refused"
LOST = "lost"
NOTE = "note"
SEVERITIES = (REFUSED, LOST, NOTE)

_OF_SASL = frozenset({17, 36})
_OF_TELEMETRY = frozenset({71, 72})
_OF_SHARE_GROUPS = frozenset({76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92})
_JUDGED_APART = _OF_SASL | _OF_TELEMETRY | _OF_SHARE_GROUPS
_ROLLED_BY_ITSELF = frozenset({"node.id", "broker.id", "process.roles"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One of them. `details`: a line for each place that it stands in."""

    severity: str
    kind: str
    message: str
    details: tuple[str, ...] = ()


def losses(cluster: ClusterDescription, usage: Usage, target: str) -> list[Finding]:
    """All of them, the worst first."""
    found = list(_to_tanist(cluster, usage) if target == TANIST else _to_apache(cluster, usage))
    found += [Finding(LOST, "unknown", f"the cluster does not say: {each}") for each in usage.unanswered]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _to_tanist(cluster: ClusterDescription, usage: Usage) -> Iterator[Finding]:
    yield from _features(usage)
    for node in cluster.of(APACHE):
        yield from _of_file(node)
    yield from _transactions(usage)
    yield from _security(usage)
    yield from _tiered_storage(usage)
    if usage.client_metrics:
        yield Finding(
            NOTE,
            "telemetry",
            "subscriptions to client metrics are kept; clients push with tanist.client.metrics.enable=true",
            _at_most(usage.client_metrics),
        )
    yield from _requests(usage.versions)
    yield from _without_effect(cluster, usage)


def _to_apache(cluster: ClusterDescription, usage: Usage) -> Iterator[Finding]:
    """Apache Kafka takes all that tanist writes; what tanist has and it has not stops."""
    strategies = [
        f"{topic}: {entry.value}"
        for topic, settings in sorted(usage.topic_settings.items())
        if (entry := settings.get("unclean.recovery.strategy")) is not None and not entry.is_default
    ]
    if strategies:
        yield Finding(
            LOST,
            "unclean-recovery",
            "unclean.recovery.strategy is kept and ignored; partitions without an eligible leader wait for an operator",
            _at_most(strategies),
        )
    names = {
        name: [node.node_id for node in cluster.of(TANIST) if name in node.static]
        for node in cluster.of(TANIST)
        for name in node.static
        if name.startswith(("tanist.", "unclean.recovery."))
    }
    if names:
        yield Finding(
            NOTE,
            "configurations",
            f"{counted(len(names), 'property', 'properties')} of tanist's own in the nodes' files",
            tuple(f"{name} (nodes {_ids(ids)})" for name, ids in sorted(names.items())),
        )


def _features(usage: Usage) -> Iterator[Finding]:
    known = {**SUPPORTED_FEATURES, **TOLERATED_FEATURES}
    for feature in usage.features.features:
        if not feature.level:
            continue
        low, high = known.get(feature.name, (0, 0))
        if not low <= feature.level <= high:
            yield Finding(
                REFUSED,
                "features",
                f"{feature.name} has level {feature.level}; tanist supports {f'{low} to {high}' if high else 'none'}",
            )


def _of_file(node: Node) -> Iterator[Finding]:
    """What `tanist serve` would say of the node's properties file."""
    static = dict(node.static)
    stores = _java_key_stores(static)
    if stores:
        yield Finding(
            REFUSED,
            "listeners",
            f"node {node.node_id}: a Java key store (JKS) cannot be read; convert it to PKCS12 with "
            "keytool -importkeystore -deststoretype PKCS12",
            tuple(stores),
        )
    if static.get(CLASS_NAME) == STANDARD_AUTHORIZER and SUPER_USERS not in static:
        del static[CLASS_NAME]  # Apache Kafka does not describe super.users: who is one is seen when the file is read
    if stores:
        return
    try:
        NodeConfig.from_properties(static)
    except ConfigError as error:
        yield Finding(REFUSED, "configurations", f"node {node.node_id}: {error}")


def _java_key_stores(static: Mapping[str, str]) -> list[str]:
    """The stores of a node that are files of Java's own kind, as their names tell."""
    names = ("ssl.keystore.location", "ssl.truststore.location")
    return [f"{name}={path}" for name, path in static.items() if base_name(name) in names and path.endswith(".jks")]


def _transactions(usage: Usage) -> Iterator[Finding]:
    """Both kinds of nodes have them: the coordinators move with the partitions of their log."""
    if usage.transactions:
        yield Finding(
            NOTE,
            "transactions",
            f"{counted(len(usage.transactions), 'transactional id')}; producers go on with other coordinators",
            _at_most([f"{each.transactional_id}: {each.state}" for each in usage.transactions]),
        )
    known = {each.producer_id for each in usage.transactions}
    hanging = [
        f"{topic}-{index}: producer {producer}"
        for (topic, index), producer in usage.open_transactions
        if producer not in known
    ]
    if hanging:
        yield Finding(
            NOTE,
            "transactions",
            f"{counted(len(hanging), 'open transaction')} without a coordinator",
            _at_most(hanging),
        )


def _security(usage: Usage) -> Iterator[Finding]:
    if usage.acls:
        yield Finding(NOTE, "acls", f"{counted(len(usage.acls), 'ACL')} kept and enforced", _at_most(usage.acls))
    if usage.scram_users:
        yield Finding(
            NOTE,
            "scram",
            f"SCRAM credentials of {counted(len(usage.scram_users), 'user')} go on",
            _at_most(usage.scram_users),
        )
    if usage.tokens:
        yield Finding(
            NOTE,
            "tokens",
            f"{counted(usage.tokens, 'delegation token')} go on: keep delegation.token.secret.key as it is",
        )


def _tiered_storage(usage: Usage) -> Iterator[Finding]:
    topics = [
        topic
        for topic, settings in sorted(usage.topic_settings.items())
        if (entry := settings.get("remote.storage.enable")) is not None and entry.value == "true"
    ]
    if topics:
        yield Finding(
            REFUSED,
            "tiered-storage",
            f"{counted(len(topics), 'topic')} with remote.storage.enable; their remote records could not be read",
            _at_most(topics),
        )


def _requests(versions: Mapping[int, tuple[int, int]]) -> Iterator[Finding]:
    """Requests of clients that tanist does not serve, or not in such old versions."""
    missing = [api_name(key) for key in sorted(versions) if key not in BROKER_TABLE and key not in _JUDGED_APART]
    if missing:
        yield Finding(NOTE, "requests", f"{counted(len(missing), 'request')} not served", tuple(missing))
    older = []
    for key, (first, _) in sorted(versions.items()):
        if key not in BROKER_TABLE:
            continue
        api = ApiKey(key)
        served = SERVED.get(api, BROKER_APIS[api])[0]
        # Apache Kafka 4 advertises Produce from 0 for old librdkafka, and serves it from 3, as tanist does.
        if first < BROKER_APIS[api][0]:
            older.append(f"{api_name(key)} {first} to {served - 1}")
    if older:
        yield Finding(LOST, "old-clients", "old clients that use these versions are refused", tuple(older))


def _without_effect(cluster: ClusterDescription, usage: Usage) -> Iterator[Finding]:
    nodes: dict[str, list[int]] = {}
    for node in cluster.of(APACHE):
        for name, entry in node.settings.items():
            if entry.is_default or name in _ROLLED_BY_ITSELF:
                continue
            setting = BROKER_SETTINGS.get(base_name(name))
            if setting is None or not setting.has_effect or entry.sensitive:
                nodes.setdefault(name, []).append(node.node_id)
    if nodes:
        yield Finding(
            NOTE,
            "configurations",
            f"{counted(len(nodes), 'property', 'properties')} of nodes without effect",
            tuple(f"{name} (nodes {_ids(ids)})" for name, ids in sorted(nodes.items())),
        )
    topics: dict[str, list[str]] = {}
    for topic, settings in sorted(usage.topic_settings.items()):
        for name, entry in settings.items():
            setting = TOPIC_SETTINGS.get(name)
            if entry.source == "topic" and (setting is None or not setting.has_effect):
                topics.setdefault(name, []).append(topic)
    if topics:
        yield Finding(
            NOTE,
            "configurations",
            f"{counted(len(topics), 'property', 'properties')} of topics without effect",
            tuple(f"{name} ({', '.join(_at_most(of))})" for name, of in sorted(topics.items())),
        )


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, sorted(set(ids))))


def _at_most(names: Sequence[str], most: int = 5) -> tuple[str, ...]:
    shown = tuple(names[:most])
    return shown if len(names) <= most else (*shown, f"and {len(names) - most} more")
