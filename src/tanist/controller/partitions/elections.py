"""Leader elections without a request: those that a broker event causes, and the periodic ones.

Owns the partition changes of broker events (rules 44-48; `fencing` has the fence), the preferred-leader task
(98, 99) and the unclean sweep (100). Each broker event returns partition changes only, computed from the present image;
the record about the broker itself is written by `brokers`, before or after them (rule 78). Must change partitions only
by `partition_change`.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tanist.controller.decision import ControllerSettings
from tanist.controller.image.image import MetadataImage
from tanist.controller.partitions import fencing
from tanist.controller.partitions.change import Election, Intent, partition_change
from tanist.controller.partitions.context import PartitionContexts
from tanist.wire.metadata import PartitionChangeRecord
from tanist.wire.schema import MetadataRecord

# -- broker events ----------------------------------------------------------------------------------------------------


def broker_controlled_shutdown(
    image: MetadataImage, broker_id: int, settings: ControllerSettings
) -> list[MetadataRecord]:
    """Rule 45: its partitions change as for a fence."""
    return fencing.broker_fenced(image, broker_id, settings)


def broker_unfenced(image: MetadataImage, broker_id: int, settings: ControllerSettings) -> list[MetadataRecord]:
    """Rule 44: every partition without a leader may elect. A partition with a leader does not change."""
    contexts = PartitionContexts(image, settings, arriving=broker_id)
    records: list[MetadataRecord] = []
    for topic_id, partition in image.leaderless_partitions():
        state = image.topics[topic_id].partitions[partition]
        intent = Intent(topic_id=topic_id, partition=partition, election=contexts.election(topic_id))
        _append(records, partition_change(state, intent, contexts.of(intent.topic_id, state)))
    return records


def broker_new_incarnation(
    image: MetadataImage, broker_id: int, settings: ControllerSettings, clean: bool
) -> list[MetadataRecord]:
    """Rule 46: a broker restarted. After a clean shutdown that is a fence; else it also leaves the ELR.

    KIP: "if the broker had an unclean shutdown, the controller will remove the broker from ISR and ELR before
    persisting the registration record". DEVIATION with ELR off: a leftover ELR (rule 38) loses it too.
    """
    return fencing.broker_fenced(image, broker_id, settings) if clean else _lost(image, broker_id, settings)


def broker_unregistered(image: MetadataImage, broker_id: int, settings: ControllerSettings) -> list[MetadataRecord]:
    """The broker leaves the cluster, hence every ISR and ELR.

    DEVIATION from rule 47: Apache leaves it in the ELR. It cannot return to the ELR, since a broker that registers
    without a known epoch counts as shut down uncleanly (rule 83); but its entry would block LastKnownElr (rule 34) and
    unclean recovery for ever.
    """
    return _lost(image, broker_id, settings)


def directories_offline(
    image: MetadataImage, broker_id: int, settings: ControllerSettings, directories: Iterable[UUID]
) -> list[MetadataRecord]:
    """Rule 48: the broker leaves the ISR of its replicas in directories that have failed now.

    Directories that it does not have (or has reported before) change nothing.
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
    return fencing.leave_isr(image, PartitionContexts(image, settings), broker_id, kept_there)


def _lost(image: MetadataImage, broker_id: int, settings: ControllerSettings) -> list[MetadataRecord]:
    """The broker's log may lack records: out of ISR and ELR. No partition has it in both (rule 63)."""
    contexts = PartitionContexts(image, settings)
    records: list[MetadataRecord] = []
    for partitions in (image.partitions_in_isr(broker_id), image.partitions_in_elr(broker_id)):
        for topic_id, partition in partitions:
            state = image.topics[topic_id].partitions[partition]
            intent = Intent(
                topic_id=topic_id,
                partition=partition,
                target_isr=fencing.without(state.isr, broker_id),
                election=contexts.election(topic_id),
                unclean_shutdown=frozenset((broker_id,)),
                removed_broker=broker_id,
            )
            _append(records, partition_change(state, intent, contexts.of(intent.topic_id, state)))
    return records


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
    contexts = PartitionContexts(image, settings)
    records: list[MetadataRecord] = []
    for topic in image.topics.values():
        for partition, state in sorted(topic.partitions.items()):
            if state.leader == state.preferred_leader:
                continue
            if len(records) >= settings.max_elections_per_imbalance_check:
                return records, True
            intent = Intent(topic_id=topic.topic_id, partition=partition, election=Election.PREFERRED)
            _append(records, partition_change(state, intent, contexts.of(intent.topic_id, state)))
    return records, False


def unclean_elections(image: MetadataImage, settings: ControllerSettings) -> tuple[list[MetadataRecord], bool]:
    """Rule 100: elect for leaderless partitions whose topic allows it. True when there may be more to do."""
    contexts = PartitionContexts(image, settings)
    records: list[MetadataRecord] = []
    for topic_id, partition in image.leaderless_partitions():
        if contexts.election(topic_id) is not Election.UNCLEAN:
            continue
        if len(records) >= settings.max_elections_per_imbalance_check:
            return records, True
        state = image.topics[topic_id].partitions[partition]
        intent = Intent(topic_id=topic_id, partition=partition, election=Election.UNCLEAN)
        _append(records, partition_change(state, intent, contexts.of(intent.topic_id, state)))
    return records, False
