"""The metrics of a node at this moment.

Owns what is reported: `scrape` for the node as a whole, `scrape_partitions` for its replicas one by one. All of it is
worked out from the state as it is at the request; for ten thousand partitions that takes milliseconds. Reads only.
"""

from __future__ import annotations

from tanist.broker.components import NodeComponents
from tanist.broker.metrics.broker import broker_metrics, partition_metrics
from tanist.broker.metrics.controller import controller_metrics
from tanist.broker.metrics.node import node_metrics
from tanist.broker.metrics.text import Exposition


def scrape(components: NodeComponents) -> Exposition:
    """Everything but the single partitions."""
    exposition = Exposition()
    if components.context.config.is_broker:
        broker_metrics(components, exposition)
    if components.context.config.is_controller:
        controller_metrics(components.context, components.metadata, components.quorum, exposition)
    node_metrics(components, exposition)
    return exposition


def scrape_partitions(components: NodeComponents) -> Exposition:
    """The replicas on this node, one by one: as many lines as there are, and more."""
    exposition = Exposition()
    if components.context.config.is_broker:
        partition_metrics(components.metadata, components.replicas, exposition)
    return exposition
