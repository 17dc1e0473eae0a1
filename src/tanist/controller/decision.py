"""The value of a controller's decision, and the static settings on which decisions depend.

Owns the values that every module of this package shares: `Decision` (the records and the answer), `ElectionWait` (the
answer to an ElectLeaders that waits for its last election; `elect_leaders` fills it in), `MutationQuota` (what the
request's client may change) and `ControllerSettings` (the operator's properties file). Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from tanist.controller.configs.settings import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from tanist.wire.schema import MetadataRecord

ElectionResult = tuple[ErrorCode, str | None]


class ElectionWait:
    """A request whose elections are not all decided yet, or were just now."""

    def __init__(self, everything: bool, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.pending: dict[TopicIdPartition, int] = {}
        """Undecided partition -> its index in the request."""
        self._everything = everything
        self._partitions: list[tuple[str, int]] = []
        """As the request lists them."""
        self._results: dict[int, ElectionResult] = {}
        """Index in the request -> its result."""

    def add(self, topic: str, partition: int, result: ElectionResult) -> None:
        """The next partition of the request."""
        self._results[len(self._partitions)] = result
        self._partitions.append((topic, partition))

    def add_pending(self, topic: str, partition: int, key: TopicIdPartition) -> None:
        """The next partition of the request; `resolve` will set its result."""
        self.pending[key] = len(self._partitions)
        self._partitions.append((topic, partition))

    def resolve(self, key: TopicIdPartition, result: ElectionResult) -> None:
        self._results[self.pending.pop(key)] = result

    @property
    def done(self) -> bool:
        return not self.pending

    def response(self) -> ElectLeadersResponse:
        """Partitions that need no election are left out when all were meant."""
        by_topic: dict[str, list[PartitionResult]] = {}
        for place, (topic, partition) in enumerate(self._partitions):
            error, message = self._results[place]
            if self._everything and error == ErrorCode.ELECTION_NOT_NEEDED:
                continue
            result = PartitionResult(partition_id=partition, error_code=error, error_message=message)
            by_topic.setdefault(topic, []).append(result)
        return ElectLeadersResponse(
            replica_election_results=tuple(
                ReplicaElectionResult(topic=topic, partition_result=tuple(results))
                for topic, results in by_topic.items()
            )
        )


class MutationQuota(Protocol):
    """How many partitions the client of a request may have created and deleted (KIP-599)."""

    def take(self, partitions: int) -> bool:
        """So many are to be created or deleted; False if that has to wait, and is refused."""


class _NoQuota:
    def take(self, partitions: int) -> bool:
        return True


NO_QUOTA: Final[MutationQuota] = _NoQuota()


BY_THE_LONGEST_LOG: Final = "an election by the longest log"
"""What an operator may ask for; the answer comes when the replicas have been asked."""


class UncleanReason(NamedTuple):
    """Why a partition has an unclean election, as `events.metadata.UncleanElection` tells it."""

    strategy: str = ""
    logs: tuple[tuple[int, int, int], ...] = ()
    asked_for: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Records to append to the metadata log, and the answer to send once they are committed.

    `atomic` says that the records are to take effect together (one batch); a decision about many independent things
    (fencing a broker of ten thousand partitions) may be cut into several batches.
    """

    records: tuple[MetadataRecord, ...] = ()
    response: object | None = None
    atomic: bool = True
    reasons: Mapping[TopicIdPartition, UncleanReason] = field(default_factory=dict)
    """The reasons of unclean elections, by partition: for their events, once the records are committed."""
    wait: ElectionWait | None = None
    """Instead of a response, which follows when this is complete."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The controller's static configuration: it holds where no dynamic configuration overrides it."""

    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    default_replication_factor: int = 1
    num_partitions: int = 1
    max_partitions_per_batch: int = 10_000
    """Most partitions one CreateTopics or CreatePartitions request may ask for (Kafka's limit on records a batch)."""

    delete_topic_enable: bool = True

    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    max_elections_per_imbalance_check: int = 1_000
    unclean_leader_election_interval_ms: int = 300_000

    broker_session_timeout_ms: int = 9_000

    unclean_recovery_manager_enabled: bool = True
    """KIP-966's roll-out switch. Off: its first phase, as Apache ships it; LastKnownElr names the last leader then."""

    unclean_recovery_timeout_ms: int = 300_000
    """How long an unclean recovery waits for answers that it does not need."""

    unclean_recovery_grace_ms: int = 5_000
    """How long an Aggressive recovery waits for absent replicas."""

    fenced_partitions_max: int = 1_000
    """Partitions that one decision takes from a broker that is to be fenced: some 50 ms."""

    authorizer: bool = False
    """Whether the node has an authorizer: without one nobody would act on access control lists, and none are taken."""

    node_id: int = -1
    """This controller's own id: its per-broker dynamic configuration comes before the cluster's (rule 100)."""

    static_configs: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Other properties as written, by Kafka's name: the last place where a configuration is looked up."""

    def topic_defaults(self) -> dict[str, str]:
        """The static values of the topic configurations that decisions read, for `MetadataImage`."""
        defaults = dict(self.static_configs)
        defaults.setdefault(MIN_INSYNC_REPLICAS, str(self.min_insync_replicas))
        defaults.setdefault(UNCLEAN_LEADER_ELECTION_ENABLE, str(self.unclean_leader_election_enable).lower())
        return defaults
