"""The metrics of a node at this moment.

Owns what is reported: `scrape` for the node as a whole, `scrape_partitions` for its replicas one by one. All of it is
worked out from the state as it is at the request; for ten thousand partitions that takes milliseconds. Reads only.
"""

from __future__ import annotations

from tanist.broker.metrics.broker import broker_metrics, partition_metrics
from tanist.broker.metrics.controller import controller_metrics
from tanist.broker.metrics.node import node_metrics
from tanist.broker.metrics.text import Exposition
from tanist.broker.parts import BrokerParts


def scrape(parts: BrokerParts) -> Exposition:
    """Everything but the single partitions."""
    exposition = Exposition()
    if parts.context.config.is_broker:
        broker_metrics(parts, exposition)
    if parts.context.config.is_controller:
        controller_metrics(parts.context, parts.metadata, parts.quorum, exposition)
    node_metrics(parts, exposition)
    return exposition


def scrape_partitions(parts: BrokerParts) -> Exposition:
    """The replicas on this node, one by one: as many lines as there are, and more."""
    exposition = Exposition()
    if parts.context.config.is_broker:
        partition_metrics(parts.metadata, parts.replicas, exposition)
    return exposition
