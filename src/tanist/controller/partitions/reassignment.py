"""Moving partitions to other brokers: AlterPartitionReassignments and ListPartitionReassignments (KIP-455).

Owns the validation of requested replica lists (rule 107) and starting and cancelling reassignments (104, 106). They
*end* by themselves: any change of the ISR may complete one (`partition_change`, rule 105). `assignment` has the
arithmetic of the lists.
"""

from __future__ import annotations

from collections.abc import Iterable

from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.image.image import MetadataImage, PartitionState, TopicImage
from tanist.controller.partitions.assignment import Reassignment, reassign, revert
from tanist.controller.partitions.change import Election, Intent, partition_change
from tanist.controller.partitions.context import PartitionContexts
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from tanist.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from tanist.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tanist.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tanist.wire.metadata import PartitionChangeRecord


class Refused(Exception):
    """A refusal of one partition's or topic's part of a request."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def alter_partition_reassignments(
    image: MetadataImage, request: AlterPartitionReassignmentsRequest, settings: ControllerSettings
) -> Decision:
    """Start, replace or (without replicas) cancel reassignments. Each partition succeeds or fails by itself."""
    contexts = PartitionContexts(image, settings)
    records: list[PartitionChangeRecord] = []
    responses: list[ReassignableTopicResponse] = []
    seen: set[tuple[str, int]] = set()
    for topic in request.topics:
        outcomes: list[ReassignablePartitionResponse] = []
        for requested in topic.partitions:
            error, message = ErrorCode.NONE, None
            try:
                if (topic.name, requested.partition_index) in seen:
                    raise Refused(ErrorCode.INVALID_REQUEST, "The partition is listed more than once.")
                seen.add((topic.name, requested.partition_index))
                record = _decide(image, contexts, topic.name, requested, request.allow_replication_factor_change)
                if record is not None:
                    records.append(record)
            except Refused as refused:
                error, message = refused.error, refused.message
            outcomes.append(
                ReassignablePartitionResponse(
                    partition_index=requested.partition_index, error_code=error, error_message=message
                )
            )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(outcomes)))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=tuple(responses),
    )
    return Decision(records=tuple(records), response=response)


def _decide(
    image: MetadataImage,
    contexts: PartitionContexts,
    topic_name: str,
    requested: ReassignablePartition,
    allow_replication_factor_change: bool,
) -> PartitionChangeRecord | None:
    topic = image.topic(topic_name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic_name}.")
    state = topic.partitions.get(requested.partition_index)
    if state is None:
        raise Refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {requested.partition_index} of topic {topic_name}.",
        )
    if requested.replicas is None:
        return _cancel(contexts, topic, requested.partition_index, state)
    check_assignment(image, requested.replicas)
    if not allow_replication_factor_change:
        _check_factor_unchanged(state, requested.replicas)
    # DEVIATION from rule 104: both lists are new, whatever an earlier reassignment was adding or removing; its added
    # replicas that are requested again are still being added.
    moving = reassign(state.replicas, requested.replicas, state.adding)
    intent = Intent(
        topic_id=topic.topic_id,
        partition=requested.partition_index,
        target_replicas=moving.replicas,
        target_removing=moving.removing,
        target_adding=moving.adding,
    )
    return partition_change(state, intent, contexts.of(topic.topic_id, state))


def _cancel(
    contexts: PartitionContexts, topic: TopicImage, partition: int, state: PartitionState
) -> PartitionChangeRecord | None:
    """Rule 106, and the KIP's condition on it."""
    if not state.reassigning:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    try:
        reversal = revert(Reassignment(state.replicas, state.removing, state.adding), state.isr)
    except ValueError as error:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(error)) from error
    election = contexts.election(topic.topic_id)
    if election is not Election.UNCLEAN:
        if reversal.unclean:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{partition} because it would require an "
                "unclean leader election.",
            )
        _check_min_isr(contexts, topic, state, reversal.replicas, reversal.isr)
    isr = reversal.isr
    if reversal.unclean and contexts.of(topic.topic_id, state).elr_enabled:
        # DEVIATION from rule 106: declared in sync, the first replica could be elected later as a clean leader,
        # whatever its log has lost. With ELR the ISR may be empty, and the election then counts as unclean.
        isr = ()
    intent = Intent(
        topic_id=topic.topic_id,
        partition=partition,
        target_isr=isr,
        target_replicas=reversal.replicas,
        target_removing=(),
        target_adding=(),
        election=election,
    )
    return partition_change(state, intent, contexts.of(topic.topic_id, state))


def _check_min_isr(
    contexts: PartitionContexts,
    topic: TopicImage,
    state: PartitionState,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
) -> None:
    """DEVIATION (with ELR on), KIP "other behaviors" 4b: "this min ISR requirement is also enforced when the
    reassignment is canceled". Read by its reason: a cancel that leaves fewer than min ISR in sync *and* takes a broker
    away that could have been elected is refused. One that takes no such broker away loses nothing, and ends a
    reassignment that cannot succeed.
    """
    context = contexts.of(topic.topic_id, state)
    if not context.elr_enabled or len(isr) >= min(context.min_isr, len(replicas)):
        return
    taken = (set(state.isr) | set(state.elr)) - set(replicas)
    if taken:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert the partition assignment: {len(isr)} of the remaining replicas are in sync, fewer than "
            f"min.insync.replicas, and it would give up the eligible replicas {sorted(taken)}.",
        )


def check_assignment(image: MetadataImage, replicas: Iterable[int], factor: int | None = None) -> None:
    """Rule 107, for reassignments and for manual assignments of new partitions. Fenced brokers will do."""
    listed = tuple(replicas)
    if not listed:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."
        )
    for position, broker_id in enumerate(listed):
        if broker_id not in image.brokers:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered.",
            )
        if broker_id in listed[:position]:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes the broker {broker_id} more than once.",
            )
    if factor is not None and len(listed) != factor:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes a partition with {len(listed)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s).",
        )


def _check_factor_unchanged(state: PartitionState, target: tuple[int, ...]) -> None:
    """Compared with the partition's replicas after the present reassignment, if there is one (rule 107)."""
    present = (set(state.replicas) | set(state.adding)) - set(state.removing)
    if len(present) != len(target):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(present)} to {len(target)}",
        )


def list_partition_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """The reassignments under way: of all partitions (no topics), or the requested ones. Unknown ones are left out."""
    requested: Iterable[ListPartitionReassignmentsTopics]
    if request.topics is None:
        requested = (
            ListPartitionReassignmentsTopics(name=topic.name, partition_indexes=tuple(sorted(topic.partitions)))
            for topic in image.topics.values()
        )
    else:
        requested = request.topics
    topics: list[OngoingTopicReassignment] = []
    for each in requested:
        topic = image.topic(each.name)
        if topic is None:
            continue
        ongoing = tuple(
            OngoingPartitionReassignment(
                partition_index=partition,
                replicas=state.replicas,
                adding_replicas=state.adding,
                removing_replicas=state.removing,
            )
            for partition in each.partition_indexes
            if (state := topic.partitions.get(partition)) is not None and state.reassigning
        )
        if ongoing:
            topics.append(OngoingTopicReassignment(name=each.name, partitions=ongoing))
    return ListPartitionReassignmentsResponse(error_message=None, topics=tuple(topics))
