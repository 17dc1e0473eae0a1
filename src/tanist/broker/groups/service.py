"""The group coordinator of a broker, made when there is a first group to serve.

Nothing of the coordinator is imported before: a broker without groups starts faster by what it does not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.leadership import Leadership
from tanist.broker.replication.purgatory import Purgatory
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.replication.replicas import Replicas
from tanist.broker.turn import Turn
from tanist.controller.delta import ImageDelta

if TYPE_CHECKING:
    from tanist.broker.groups.coordinator import Coordinator


class Groups:
    """The coordinator, if there is one yet; it hears of roles and topics."""

    __slots__ = ("_collaborators", "loaded")

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        replicas: Replicas,
        leadership: Leadership,
        effects: ReplicaEffects,
        purgatory: Purgatory,
        turn: Turn,
    ) -> None:
        self._collaborators = (context, metadata, replicas, leadership, effects, purgatory, turn)
        self.loaded: Coordinator | None = None
        """The coordinator, if there was a group to serve."""

    def coordinator(self) -> Coordinator:
        """The coordinator. A new one finds all groups of the partitions that are led here."""
        if self.loaded is None:
            self.loaded = self._make()
        return self.loaded

    def _make(self) -> Coordinator:
        from tanist.broker.groups.coordinator import Coordinator

        return Coordinator(*self._collaborators)

    def role_changed(self, hosted: HostedPartition) -> None:
        """A partition of `__consumer_offsets` has another role here."""
        if self.loaded is not None:
            self.loaded.role_changed(hosted)
        elif hosted.leader is not None and hosted.log.log_end_offset > hosted.log.log_start_offset:
            self.coordinator()

    def metadata_changed(self, delta: ImageDelta) -> None:
        """Topics may have come, gone or grown."""
        if self.loaded is not None:
            if delta.deleted_topics:
                self.loaded.topics_deleted(topic.name for topic in delta.deleted_topics.values())
            if delta.created_topics or delta.deleted_topics or delta.grows_topics:
                self.loaded.topics_changed()

    def close(self) -> None:
        """The broker is going down."""
        if self.loaded is not None:
            self.loaded.close()
