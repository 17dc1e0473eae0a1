"""The components of the broker that each coordinator needs. Light: it is made whether or not there is a coordinator."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.broker.replication.leadership import Leadership
from tanist.broker.replication.purgatory import Purgatory
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.replication.replicas import Replicas
from tanist.broker.turn import Turn


@dataclass(frozen=True, slots=True)
class CoordinatorComponents:
    """The components, of one node."""

    context: NodeContext
    metadata: MetadataView
    replicas: Replicas
    leadership: Leadership
    effects: ReplicaEffects
    purgatory: Purgatory
    turn: Turn
