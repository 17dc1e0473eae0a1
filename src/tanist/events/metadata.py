"""Events of the metadata: what the active controller decides and commits, and what a broker hears of itself.

A change of the metadata is committed once, and emitted by the node that leads the quorum, when it applies it: again by
the next one, if the first ends before another node knows that it is committed; by nobody, if all nodes of the quorum
start again before it is committed, as none of them knows then what was committed before. All other events are emitted
where they are decided, so a decision of a controller that loses its leadership may never be committed. Partitions are
named as in logs, `topic-index`; topics, directories and incarnations by their ids as text.
"""

from __future__ import annotations

from tanist.events.event import Event

# -- committed


class TopicCreated(Event):
    topic: str
    topic_id: str


class TopicDeleted(Event):
    topic: str
    topic_id: str


class PartitionCreated(Event):
    partition: str
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int


class PartitionChanged(Event):
    """A PartitionChangeRecord is committed: the partition before it, and with it."""

    partition: str
    partition_epoch: int
    leader_before: int
    leader: int
    """-1: none."""
    leader_epoch_before: int
    leader_epoch: int
    isr_before: tuple[int, ...]
    isr: tuple[int, ...]
    elr_before: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr_before: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    replicas_before: tuple[int, ...]
    replicas: tuple[int, ...]
    recovering_before: bool
    recovering: bool
    reassigning_before: bool
    reassigning: bool
    min_isr: int
    """min.insync.replicas, as it is in force for this partition."""
    elr_enabled: bool


class LeaderElected(Event):
    """A committed change of a partition has given it a leader, perhaps the same one, in a new epoch. It comes right
    after the `PartitionChanged`."""

    partition: str
    leader: int
    leader_epoch: int
    leader_before: int
    from_elr: bool
    """The leader was a member of the ELR (KIP-966)."""
    unclean: bool


class UncleanElection(Event):
    """An unclean election is committed: records may be lost. Once for each (partition, leader epoch) at most (U5)."""

    partition: str
    leader: int
    leader_epoch: int
    strategy: str = ""
    """The strategy of the unclean recovery that elected it; empty: none did."""
    logs: tuple[tuple[int, int, int], ...] = ()
    """The logs that the recovery compared: (broker, leader epoch of the last record, log end offset)."""
    asked_for: str = ""
    """The election that an operator asked for; empty: none did."""
    asked_by: str = ""
    """Who that was: the principal, the address, and what the client calls itself. This event records the decision."""


class BrokerRegistered(Event):
    """A new life of a broker, which is fenced until it has caught up; or the same one again, with the same epoch."""

    broker_id: int
    broker_epoch: int
    incarnation_id: str
    fenced: bool


class BrokerFenced(Event):
    broker_id: int
    broker_epoch: int


class BrokerUnfenced(Event):
    broker_id: int
    broker_epoch: int


class BrokerShuttingDown(Event):
    """A broker has begun its controlled shutdown. One that leads nothing is fenced at once, without it."""

    broker_id: int
    broker_epoch: int


class BrokerUnregistered(Event):
    broker_id: int
    broker_epoch: int


class FeatureLevelChanged(Event):
    feature: str
    level_before: int
    level: int


class ConfigChanged(Event):
    """A dynamic configuration was set or taken back. Its value is left out: it may be a password."""

    resource_type: int
    """Kafka's: 2 a topic, 4 a broker."""
    resource: str
    """The name of the topic, the id of the broker; empty: the default of all brokers."""
    config: str
    removed: bool


# -- the active controller


class ControllerActivated(Event):
    """This node's controller is the active one from now on (rule 149)."""

    node_id: int
    epoch: int


class ControllerResigned(Event):
    """This node's controller is active no more, and has forgotten what was not committed."""

    node_id: int
    epoch: int


class ControllerActivationWaits(Event):
    """This node was elected, and its controller is not active before all that is committed is applied (rule 149)."""

    epoch: int
    applied_end: int
    committed_end: int


class ControllerActivationAbandoned(Event):
    """This node was deposed before its controller could become active."""

    epoch: int


class AlterPartitionRefused(Event):
    """Rules 25 to 27. With NEW_LEADER_ELECTED the change is made, and ends the sender's leadership."""

    partition: str
    """The topic id and the index, of a topic that is not known."""
    broker_id: int
    error: str


class StaleBrokerEpochRefused(Event):
    """A broker's request had the epoch of an earlier registration, or the broker is not registered."""

    request: str
    """AlterPartition or BrokerHeartbeat."""
    broker_id: int
    broker_epoch: int


class RegistrationRefused(Event):
    """Rule 81."""

    broker_id: int
    error: str


class RegistrationRepeated(Event):
    """The same life of a broker registers again, as its first answer was lost (rule 82)."""

    broker_id: int
    broker_epoch: int


class SessionExpired(Event):
    """No heartbeat came in time: the broker is fenced, or loses the first part of its partitions (rule 94)."""

    broker_id: int
    broker_epoch: int


class BrokerGone(Event):
    """Nobody listens where the broker was: it is fenced at once."""

    broker_id: int


class FencingBegun(Event):
    """A broker has more partitions than one decision takes from it: it is fenced with the last ones."""

    broker_id: int
    broker_epoch: int


class FencingInterrupted(Event):
    """A broker was heard of while its partitions were taken from it: it stays, with those that are left to it."""

    broker_id: int
    broker_epoch: int


class ShutdownAllowed(Event):
    """A broker that asked to shut down may end now (rule 91)."""

    broker_id: int
    broker_epoch: int
    fenced: bool
    """This decision fences it; false: it was fenced already."""


class DirectoriesLost(Event):
    """A broker says that log directories have failed (rule 48)."""

    broker_id: int
    directories: tuple[str, ...]


class ElrsEmptied(Event):
    """A lower min.insync.replicas makes ISRs large enough: the ELRs of these partitions are emptied (A32)."""

    partitions: int


# -- unclean recovery


class RecoveriesBegunAnew(Event):
    """A controller becomes active while partitions have no leader: it knows nothing of recoveries under way."""

    partitions: int


class RecoveryPhaseEntered(Event):
    """A partition without a leader waits for something else than before (KIP-966, leader election 3 and 4)."""

    partition: str
    phase: str
    """ELIGIBLE_AWAITED, OPERATOR_AWAITED, LAST_KNOWN_AWAITED or COMPARING."""
    strategy: str


class LogInfoDropped(Event):
    """A replica's answer about its log does not count (U3): it is asked again."""

    partition: str
    broker_id: int
    broker_epoch: int
    leader_epoch: int
    other_registration: bool
    """Its broker has registered anew since, or is gone; false: the leader epoch is another one."""


class RecoveryDecided(Event):
    """An unclean recovery has chosen a leader."""

    partition: str
    leader: int
    strategy: str
    unheard: tuple[int, ...]
    """Live replicas whose answers were not waited for."""


class LogInfoUnanswered(Event):
    """A broker did not say where its logs end. It is asked again, less and less often."""

    broker_id: int
    partitions: int
    again: bool
    """It was silent before, and has not answered since."""


class LogInfoUnsupported(Event):
    """A broker has no GetReplicaLogInfo: it is asked by ListOffsets and Fetch."""

    broker_id: int


class LogEndsAsked(Event):
    """A broker without GetReplicaLogInfo is asked for the ends of its logs."""

    broker_id: int
    partitions: int


# -- a broker, about itself


class RegistrationAccepted(Event):
    """This broker has its epoch."""

    broker_id: int
    broker_epoch: int


class RegistrationLost(Event):
    """The controller does not know this broker by its epoch: it registers anew, in the same life."""

    broker_id: int
    broker_epoch: int


class UnfencingLearned(Event):
    """A heartbeat's answer tells this broker that it is not fenced any more."""

    broker_id: int


class FencingLearned(Event):
    """A heartbeat's answer tells this broker that it is fenced."""

    broker_id: int


class ForwardingRefused(Event):
    """The controller refuses a request that this broker has forwarded."""

    error: str


class InternalTopicNotCreated(Event):
    topic: str
    error: str
    """Empty: no controller answers."""
    left_out: int
    """Such events that were not emitted since the last one."""


# -- how a node begins


class FeatureLeftOut(Event):
    """`bootstrap.checkpoint` names a feature that tanist does not have."""

    path: str
    feature: str
    level: int


class QuorumStateMissing(Event):
    """The metadata log is there, and the file with this node's vote is not."""

    path: str


class MetadataLogMissing(Event):
    """The metadata log is gone, and logs that exist because of it are not."""

    path: str
