"""ElectLeaders: elections that an operator asks for.

Owns the request's five types: preferred and unclean as Kafka has them (rules 102, 103), and KIP-966's three, which are
for partitions without a leader only: the replica with the longest log (an unclean recovery by the requested strategy,
whatever is configured), and designation ("electing the given replica to be the leader"). The longest log needs
inquiries to the replicas, so its answer comes later: `ElectionWait`. Must change partitions only by `partition_change`.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tanist.controller.decision import (
    BY_THE_LONGEST_LOG,
    ControllerSettings,
    Decision,
    ElectionResult,
    ElectionWait,
    UncleanReason,
)
from tanist.controller.image.image import MetadataImage, PartitionState
from tanist.controller.partitions.change import Election, Intent, partition_change
from tanist.controller.partitions.context import PartitionContexts
from tanist.controller.partitions.recovery_strategy import Strategy, recovers_uncleanly
from tanist.controller.partitions.unclean_recovery import UncleanRecoveries
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import NO_LEADER, TopicIdPartition
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.messages.elect_leaders_response import ElectLeadersResponse
from tanist.wire.schema import MetadataRecord

PREFERRED = 0
UNCLEAN = 1
LONGEST_LOG_AGGRESSIVE = 2
LONGEST_LOG_BALANCED = 3
DESIGNATION = 4
"""Types on the wire. 0 and 1 are Kafka's; the KIP names the others and gives no numbers."""

_LONGEST_LOG = {LONGEST_LOG_AGGRESSIVE: Strategy.AGGRESSIVE, LONGEST_LOG_BALANCED: Strategy.BALANCED}
_NAMES = {
    UNCLEAN: "an unclean election",
    LONGEST_LOG_AGGRESSIVE: BY_THE_LONGEST_LOG,
    LONGEST_LOG_BALANCED: BY_THE_LONGEST_LOG,
    DESIGNATION: "a designation",
}

FIRST_WITH_DESIGNATION = 3
"""Version of the request from which on the KIP's types, and its limit, hold."""

MAX_PARTITIONS = 1_000
"""KIP: "Limit: 1000 partitions per request"."""


def elect_leaders(
    image: MetadataImage,
    request: ElectLeadersRequest,
    settings: ControllerSettings,
    recoveries: UncleanRecoveries,
    now_ms: int,
    api_version: int,
) -> Decision:
    """No topics means all partitions. Each partition is decided by itself."""
    known = (PREFERRED, UNCLEAN, *_LONGEST_LOG, DESIGNATION) if api_version >= FIRST_WITH_DESIGNATION else (0, 1)
    if request.election_type not in known or not _well_formed(request):
        return Decision(response=ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST))
    everything = request.topic_partitions is None
    wait = ElectionWait(everything, now_ms + max(0, request.timeout_ms))
    election = _Elections(image, settings, recoveries, request.election_type, wait)
    served = 0
    for each in _all_partitions(image) if request.topic_partitions is None else request.topic_partitions:
        for place, partition in enumerate(each.partitions):
            served += 1
            if served > MAX_PARTITIONS and api_version >= FIRST_WITH_DESIGNATION and not everything:
                message = f"Only {MAX_PARTITIONS} partitions are served a request."
                wait.add(each.topic, partition, (ErrorCode.REQUEST_LIMIT_REACHED, message))
                continue
            desired = each.desired_leaders[place] if each.desired_leaders else None
            election.decide(each.topic, partition, desired)
    records, reasons = tuple(election.records), election.reasons
    if wait.done:
        return Decision(records=records, response=wait.response(), atomic=False, reasons=reasons)
    return Decision(records=records, wait=wait, atomic=False, reasons=reasons)


def update_wait(wait: ElectionWait, image: MetadataImage, recoveries: UncleanRecoveries, now_ms: int) -> bool:
    """Check the awaited partitions; True when the answer is complete.

    At the deadline the operator's request ends with the wait: an unexpected election hours later is worse than none.
    """
    for key in list(wait.pending):
        state = image.partition(*key)
        if state is None:
            wait.resolve(key, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic was deleted."))
        elif state.has_leader:
            wait.resolve(key, (ErrorCode.NONE, None))
        elif now_ms >= wait.deadline_ms:
            phase = recoveries.phase_of(key)
            recoveries.withdraw(key)
            why = f": {phase.value}" if phase is not None else ""
            wait.resolve(key, (ErrorCode.REQUEST_TIMED_OUT, f"No leader was elected in time{why}."))
    return wait.done


def _well_formed(request: ElectLeadersRequest) -> bool:
    """A designation names a leader for every partition; other types name none."""
    if request.election_type != DESIGNATION:
        return not any(each.desired_leaders for each in request.topic_partitions or ())
    if request.topic_partitions is None:
        return False
    return all(len(each.desired_leaders or ()) == len(each.partitions) for each in request.topic_partitions)


def _all_partitions(image: MetadataImage) -> Iterable[TopicPartitions]:
    for topic in image.topics.values():
        yield TopicPartitions(topic=topic.name, partitions=tuple(sorted(topic.partitions)))


class _Elections:
    """One request."""

    def __init__(
        self,
        image: MetadataImage,
        settings: ControllerSettings,
        recoveries: UncleanRecoveries,
        election_type: int,
        wait: ElectionWait,
    ) -> None:
        self._image = image
        self._contexts = PartitionContexts(image, settings)
        self._recoveries = recoveries
        self._recovers = recovers_uncleanly(image, settings)
        self._type = election_type
        self._wait = wait
        self._seen: set[tuple[str, int]] = set()
        self.records: list[MetadataRecord] = []
        self.reasons: dict[TopicIdPartition, UncleanReason] = {}

    def decide(self, topic_name: str, partition: int, desired: int | None) -> None:
        topic = self._image.topic(topic_name)
        state = None if topic is None else topic.partitions.get(partition)
        key = None if topic is None or state is None else (topic.topic_id, partition)
        if (topic_name, partition) in self._seen:
            self._wait.add(
                topic_name, partition, (ErrorCode.INVALID_REQUEST, "The partition is listed more than once.")
            )
            return
        self._seen.add((topic_name, partition))
        if key is None or state is None:
            result = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic or partition."
            self._wait.add(topic_name, partition, result)
            return
        outcome_or_later = self._elect(key, state, desired)
        if outcome_or_later is None:
            self._wait.add_pending(topic_name, partition, key)
        else:
            self._wait.add(topic_name, partition, outcome_or_later)

    def _elect(self, key: TopicIdPartition, state: PartitionState, desired: int | None) -> ElectionResult | None:
        """The result; None means that it follows later."""
        needed = state.leader != state.preferred_leader if self._type == PREFERRED else not state.has_leader
        if not needed:
            return ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        if self._type in _LONGEST_LOG:
            if not self._recovers:
                return (
                    ErrorCode.INVALID_REQUEST,
                    "It takes unclean.recovery.manager.enabled=true and eligible.leader.replicas.version=1.",
                )
            self._recoveries.request(key, _LONGEST_LOG[self._type])
            return None
        if self._type == PREFERRED:
            unavailable = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
            return self._change(key, state, Election.PREFERRED, None, unavailable)
        if self._type == UNCLEAN:
            unavailable = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No live replica could be elected."
            return self._change(key, state, Election.UNCLEAN, None, unavailable)
        if desired is None or desired not in state.replicas:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Broker {desired} has no replica of the partition."
        if not self._contexts.acceptable(state)(desired):
            return (
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"Broker {desired} is fenced, or its log directory offline.",
            )
        unavailable = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"Broker {desired} could not be elected."
        return self._change(key, state, Election.DESIGNATED, desired, unavailable)

    def _change(
        self,
        key: TopicIdPartition,
        state: PartitionState,
        election: Election,
        desired: int | None,
        unavailable: ElectionResult,
    ) -> ElectionResult:
        topic_id: UUID = key[0]
        intent = Intent(topic_id=topic_id, partition=key[1], election=election, desired_leader=desired)
        record = partition_change(state, intent, self._contexts.of(topic_id, state))
        # Success is any new leader, also another than the preferred one when that one is dead (rule 102). A change that
        # elects no leader does not fulfil the request, and is left to the event that causes it.
        if record is None or record.leader <= NO_LEADER:
            return unavailable
        self.records.append(record)
        if self._type != PREFERRED:
            self.reasons[key] = UncleanReason(asked_for=_NAMES[self._type])
        return ErrorCode.NONE, None
