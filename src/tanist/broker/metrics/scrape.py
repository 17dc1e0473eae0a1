"""The metrics of a node at this moment.

Owns what is told: `scrape` for the node as a whole, `scrape_partitions` for its replicas one by one. All of it is
worked out from the state as it is when somebody asks; for ten thousand partitions that takes milliseconds. Reads only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.metrics.broker import broker_metrics, partition_metrics
from tanist.broker.metrics.controller import controller_metrics
from tanist.broker.metrics.node import node_metrics
from tanist.broker.metrics.text import Exposition

if TYPE_CHECKING:
    from tanist.broker.node import Node


def scrape(node: Node) -> Exposition:
    """Everything but the single partitions."""
    exposition = Exposition()
    if node.is_broker:
        broker_metrics(node, exposition)
    if node.is_controller:
        controller_metrics(node, exposition)
    node_metrics(node, exposition)
    return exposition


def scrape_partitions(node: Node) -> Exposition:
    """The replicas on this node, one by one: as many lines as there are, and more."""
    exposition = Exposition()
    if node.is_broker:
        partition_metrics(node, exposition)
    return exposition
