"""A broker that is fenced: it leaves its ISRs, and its registration says so.

Owns both halves of a fence and their order (rules 43, 78, 97): the changes of its partitions first, the record about
the broker last, so that cutting them anywhere is safe. A fence comes of an expired session (rule 94), of a process that
is known to be gone, or of a heartbeat, which `brokers` decides. Must change partitions only by `partition_change`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.heartbeats import HeartbeatTable
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.registration import BrokerRegistration
from tanist.controller.partitions.change import Intent, partition_change
from tanist.controller.partitions.context import PartitionContexts
from tanist.events.metadata import FencingBegun, SessionExpired
from tanist.events.stream import NOBODY, Events
from tanist.wire.metadata import BrokerRegistrationChangeRecord
from tanist.wire.schema import MetadataRecord

FENCE = 1


@dataclass(frozen=True, slots=True)
class Fencing:
    """The fences of one active controller that nobody has asked for."""

    settings: ControllerSettings
    heartbeats: HeartbeatTable
    events: Events = NOBODY

    def fence(self, image: MetadataImage, broker_id: int, epoch: int) -> Decision | None:
        """Fence this incarnation if it is not fenced yet: its session expired, or its process is known to be gone.

        A broker with more than `fenced_partitions_max` loses them first, so many in a decision: with all at once the
        controller would not answer its quorum for seconds. It is fenced with the last ones. Until then it is `expire`d.
        """
        stored = image.brokers.get(broker_id)
        if stored is None or stored.epoch != epoch:
            return None
        self.heartbeats.end_session(broker_id)
        if stored.fenced:
            return None
        records, more = broker_fenced_in_part(image, broker_id, self.settings)
        if more:
            self.events.emit(FencingBegun(broker_id, epoch))
            self.heartbeats.expire(broker_id, epoch)
        else:
            records.append(_fence_record(stored))
        return Decision(tuple(records), atomic=False)

    def fence_expired(self, image: MetadataImage, now_ms: int) -> Decision | None:
        """Fence one broker whose session has expired (rule 94), if there is one."""
        while (expired := self.heartbeats.pop_expired(now_ms)) is not None:
            decision = self.fence(image, *expired)
            if decision is not None:
                self.events.emit(SessionExpired(*expired))
                return decision
        return None


def fence_records(
    image: MetadataImage, stored: BrokerRegistration, settings: ControllerSettings
) -> list[MetadataRecord]:
    """A whole fence; none of a broker that is fenced, and may shut down."""
    if stored.fenced:
        return []
    return [*broker_fenced(image, stored.id, settings), _fence_record(stored)]


def _fence_record(stored: BrokerRegistration) -> MetadataRecord:
    return BrokerRegistrationChangeRecord(broker_id=stored.id, broker_epoch=stored.epoch, fenced=FENCE)


def broker_fenced(image: MetadataImage, broker_id: int, settings: ControllerSettings) -> list[MetadataRecord]:
    """Rule 43: it leaves every ISR, perhaps for the ELR. It stays in every ELR."""
    contexts = PartitionContexts(image, settings)
    return leave_isr(image, contexts, broker_id, image.partitions_in_isr(broker_id))


def broker_fenced_in_part(
    image: MetadataImage, broker_id: int, settings: ControllerSettings
) -> tuple[list[MetadataRecord], bool]:
    """`broker_fenced` for `fenced_partitions_max`, and whether there may be more: those that it leads come first.

    Only the last part takes partitions that nobody else can lead. A broker that is heard of before would not become
    their leader again, for it was never fenced; and an unclean election would have been for nothing.
    """
    most = settings.fenced_partitions_max
    if image.isr_count(broker_id) <= most:
        return broker_fenced(image, broker_id, settings), False
    contexts = PartitionContexts(image, settings)
    for places in (image.partitions_led_by(broker_id), image.partitions_in_isr(broker_id)):
        others = islice((place for place in places if _can_go_on(image, place, broker_id)), most)
        records = leave_isr(image, contexts, broker_id, others)
        if records:
            return records, True
    return broker_fenced(image, broker_id, settings), False


def _can_go_on(image: MetadataImage, place: tuple[UUID, int], without: int) -> bool:
    """Whether a member of the ISR can lead the partition without this one."""
    for member in image.topics[place[0]].partitions[place[1]].isr:
        broker = image.brokers.get(member)
        if member != without and broker is not None and broker.active:
            return True
    return False


def leave_isr(
    image: MetadataImage, contexts: PartitionContexts, broker_id: int, partitions: Iterable[tuple[UUID, int]]
) -> list[MetadataRecord]:
    """The broker leaves the ISR of these partitions."""
    records: list[MetadataRecord] = []
    for topic_id, partition in partitions:
        state = image.topics[topic_id].partitions[partition]
        intent = Intent(
            topic_id=topic_id,
            partition=partition,
            target_isr=without(state.isr, broker_id),
            election=contexts.election(topic_id),
            removed_broker=broker_id,
        )
        record = partition_change(state, intent, contexts.of(topic_id, state))
        if record is not None:
            records.append(record)
    return records


def without(replicas: tuple[int, ...], broker_id: int) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica != broker_id)
