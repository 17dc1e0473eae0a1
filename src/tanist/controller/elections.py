"""Leader elections: those that a broker's coming or going causes, those an operator asks for, and the periodic ones.

Owns the partition changes of every broker event (facts 43-48, 78, 79), ElectLeaders (102, 103), the preferred-leader
task (98, 99) and the unclean sweep (100). Each broker event gives partition changes only, computed from the image as
it is; the record about the broker itself is written by `brokers`, before or after them (fact 78). Must never change a
partition by other means than `partition_change`.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.image import MetadataImage, TopicImage
from tanist.controller.partition_change import Election, Intent
from tanist.controller.partition_context import ChangeMaker
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import NO_LEADER
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from tanist.wire.metadata import PartitionChangeRecord
from tanist.wire.schema import MetadataRecord

PREFERRED = 0
UNCLEAN = 1
"""ElectLeaders' types (fact 103)."""

# -- broker events ----------------------------------------------------------------------------------------------------


def broker_fenced(image: MetadataImage, broker_id: int, settings: ControllerSettings) -> list[MetadataRecord]:
    """Rule 43: it leaves every ISR it is in, perhaps for the ELR. Where it is in the ELR it stays."""
    maker = ChangeMaker(image, settings)
    return _leave_isr(image, maker, broker_id, image.partitions_in_isr(broker_id))


def broker_controlled_shutdown(
    image: MetadataImage, broker_id: int, settings: ControllerSettings
) -> list[MetadataRecord]:
    """Rule 45: to its partitions the same as a fence."""
    return broker_fenced(image, broker_id, settings)


def broker_unfenced(image: MetadataImage, broker_id: int, settings: ControllerSettings) -> list[MetadataRecord]:
    """Rule 44: every partition without a leader is looked at again. Where somebody leads, nothing changes."""
    maker = ChangeMaker(image, settings, arriving=broker_id)
    records: list[MetadataRecord] = []
    for topic_id, partition in image.leaderless_partitions():
        state = image.topics[topic_id].partitions[partition]
        intent = Intent(topic_id=topic_id, partition=partition, election=maker.election(topic_id))
        _append(records, maker.change(state, intent))
    return records


def broker_new_incarnation(
    image: MetadataImage, broker_id: int, settings: ControllerSettings, clean: bool
) -> list[MetadataRecord]:
    """Rule 46: a broker restarted. After a clean shutdown that is a fence; else it also leaves the ELR, for good.

    KIP: "if the broker had an unclean shutdown, the controller will remove the broker from ISR and ELR before
    persisting the registration record". DEVIATION with ELR off: a leftover ELR (rule 38) loses it too.
    """
    return broker_fenced(image, broker_id, settings) if clean else _lost(image, broker_id, settings)


def broker_unregistered(image: MetadataImage, broker_id: int, settings: ControllerSettings) -> list[MetadataRecord]:
    """The broker leaves the cluster, hence every ISR and ELR.

    DEVIATION from rule 47: Apache leaves it in the ELR. It cannot return to that place, since a broker that registers
    without a known epoch counts as shut down uncleanly (rule 83), but there it would keep LastKnownElr (rule 34) and an
    unclean recovery from ever being tried.
    """
    return _lost(image, broker_id, settings)


def directories_offline(
    image: MetadataImage, broker_id: int, settings: ControllerSettings, directories: Iterable[UUID]
) -> list[MetadataRecord]:
    """Rule 48: the broker leaves the ISR of what it kept in directories that have failed now.

    Directories it did not have (or that were reported before) are none of its own any more and change nothing.
    """
    registration = image.brokers.get(broker_id)
    if registration is None:
        return []
    failed = set(directories) & set(registration.directories)
    if not failed:
        return []
    kept_there = (
        (topic_id, partition)
        for topic_id, partition in image.partitions_on(broker_id)
        if image.topics[topic_id].partitions[partition].directory_of(broker_id) in failed
    )
    return _leave_isr(image, ChangeMaker(image, settings), broker_id, kept_there)


def _leave_isr(
    image: MetadataImage, maker: ChangeMaker, broker_id: int, partitions: Iterable[tuple[UUID, int]]
) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    for topic_id, partition in partitions:
        state = image.topics[topic_id].partitions[partition]
        intent = Intent(
            topic_id=topic_id,
            partition=partition,
            target_isr=_without(state.isr, broker_id),
            election=maker.election(topic_id),
            removed_broker=broker_id,
        )
        _append(records, maker.change(state, intent))
    return records


def _lost(image: MetadataImage, broker_id: int, settings: ControllerSettings) -> list[MetadataRecord]:
    """The broker's log may lack records: out of ISR and ELR. No partition has it in both (rule 63)."""
    maker = ChangeMaker(image, settings)
    records: list[MetadataRecord] = []
    for partitions in (image.partitions_in_isr(broker_id), image.partitions_in_elr(broker_id)):
        for topic_id, partition in partitions:
            state = image.topics[topic_id].partitions[partition]
            intent = Intent(
                topic_id=topic_id,
                partition=partition,
                target_isr=_without(state.isr, broker_id),
                election=maker.election(topic_id),
                unclean_shutdown=frozenset((broker_id,)),
                removed_broker=broker_id,
            )
            _append(records, maker.change(state, intent))
    return records


def _without(replicas: tuple[int, ...], broker_id: int) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica != broker_id)


def _append(records: list[MetadataRecord], record: MetadataRecord | None) -> None:
    if record is not None:
        records.append(record)


# -- a change of min.insync.replicas ----------------------------------------------------------------------------------


def min_isr_changed(image: MetadataImage, topic_id: UUID, min_isr: int) -> list[MetadataRecord]:
    """Empty the ELR where the new min ISR lets the high watermark move: `min_isr` is the value about to be written.

    KIP "other behaviors" 2: "when updating the config min.insync.replicas, if the new min ISR <= current ISR, the ELR
    will be removed". A ClearElrRecord (rules 54, 55) removes it everywhere instead, and with it the only candidates of
    a partition without a leader.
    """
    topic = image.topics[topic_id]
    records: list[MetadataRecord] = []
    for partition, state in sorted(topic.partitions.items()):
        if (state.elr or state.last_known_elr) and len(state.isr) >= min(min_isr, len(state.replicas)):
            records.append(
                PartitionChangeRecord(
                    partition_id=partition,
                    topic_id=topic_id,
                    eligible_leader_replicas=() if state.elr else None,
                    last_known_elr=() if state.last_known_elr else None,
                )
            )
    return records


# -- periodic tasks ---------------------------------------------------------------------------------------------------


def preferred_elections(image: MetadataImage, settings: ControllerSettings) -> tuple[list[MetadataRecord], bool]:
    """Rule 98: give partitions back to their first replica where it can lead. True when there may be more to do.

    Leaderless partitions are among them, so that this also revives a last known leader (rule 99).
    """
    maker = ChangeMaker(image, settings)
    records: list[MetadataRecord] = []
    for topic in image.topics.values():
        for partition, state in sorted(topic.partitions.items()):
            if state.leader == state.preferred_leader:
                continue
            if len(records) >= settings.max_elections_per_imbalance_check:
                return records, True
            intent = Intent(topic_id=topic.topic_id, partition=partition, election=Election.PREFERRED)
            _append(records, maker.change(state, intent))
    return records, False


def unclean_elections(image: MetadataImage, settings: ControllerSettings) -> tuple[list[MetadataRecord], bool]:
    """Rule 100: elect for leaderless partitions whose topic allows it. True when there may be more to do."""
    maker = ChangeMaker(image, settings)
    records: list[MetadataRecord] = []
    for topic_id, partition in image.leaderless_partitions():
        if maker.election(topic_id) is not Election.UNCLEAN:
            continue
        if len(records) >= settings.max_elections_per_imbalance_check:
            return records, True
        state = image.topics[topic_id].partitions[partition]
        intent = Intent(topic_id=topic_id, partition=partition, election=Election.UNCLEAN)
        _append(records, maker.change(state, intent))
    return records, False


# -- ElectLeaders -----------------------------------------------------------------------------------------------------


def elect_leaders(image: MetadataImage, request: ElectLeadersRequest, settings: ControllerSettings) -> Decision:
    """Rules 102, 103. No topics means all partitions; those that need no election are left out of that answer."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        return Decision(response=ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST))
    everything = request.topic_partitions is None
    wanted = _all_partitions(image) if request.topic_partitions is None else request.topic_partitions
    maker = ChangeMaker(image, settings)
    records: list[MetadataRecord] = []
    elected: set[tuple[str, int]] = set()
    results: list[ReplicaElectionResult] = []
    for each in wanted:
        topic = image.topic(each.topic)
        outcomes: list[PartitionResult] = []
        for partition in each.partitions:
            message: str | None
            if (each.topic, partition) in elected:
                error, message = ErrorCode.INVALID_REQUEST, "The partition is listed more than once."
            else:
                elected.add((each.topic, partition))
                error, message = _elect(maker, topic, partition, request.election_type, records)
            if error == ErrorCode.ELECTION_NOT_NEEDED and everything:
                continue
            outcomes.append(PartitionResult(partition_id=partition, error_code=error, error_message=message))
        if outcomes or not everything:
            results.append(ReplicaElectionResult(topic=each.topic, partition_result=tuple(outcomes)))
    response = ElectLeadersResponse(replica_election_results=tuple(results))
    return Decision(records=tuple(records), response=response, atomic=False)


def _all_partitions(image: MetadataImage) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic=topic.name, partitions=tuple(sorted(topic.partitions))) for topic in image.topics.values()
    ]


def _elect(
    maker: ChangeMaker, topic: TopicImage | None, partition: int, election_type: int, records: list[MetadataRecord]
) -> tuple[ErrorCode, str | None]:
    state = None if topic is None else topic.partitions.get(partition)
    if topic is None or state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic or partition."
    if election_type == PREFERRED:
        election, needed = Election.PREFERRED, state.leader != state.preferred_leader
        unavailable = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    else:
        election, needed = Election.UNCLEAN, not state.has_leader
        unavailable = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No live replica could be elected."
    if not needed:
        return ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    record = maker.change(state, Intent(topic_id=topic.topic_id, partition=partition, election=election))
    # Success is any new leader, also another than the preferred one when that one is dead (rule 102). A change that
    # elects nobody is not what was asked for, and is left to the event that calls for it.
    if record is None or record.leader <= NO_LEADER:
        return unavailable
    records.append(record)
    return ErrorCode.NONE, None
