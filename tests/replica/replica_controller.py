"""An abstract controller for the stage of replicas: it decides as rules 24-46 say, and its metadata log is a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from tanist.lab.scenarios.replica import Brokers
from tanist.replica.effects import (
    ProposeIsr,
)
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.metadata import NO_LEADER, BrokerStatus, PartitionMetadata
from tanist.wire.errors import ErrorCode

TOPIC_ID = UUID(int=7)


class Violation(AssertionError):
    """A property of safety does not hold."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Metadata:
    """One state of the metadata log: the partition and all registrations."""

    partition: PartitionMetadata
    brokers: Brokers


class AbstractController:
    """Decides as rules 24-46 say, ELR on; its metadata log is a list."""

    def __init__(self, brokers: Iterable[int], min_isr: int) -> None:
        ids = tuple(brokers)
        self.min_isr = min_isr
        self.elr: frozenset[int] = frozenset()
        self.brokers = Brokers({b: BrokerStatus(100 + b, fenced=False, shutting_down=False) for b in ids})
        self.next_broker_epoch = 1000
        partition = PartitionMetadata("foo", TOPIC_ID, 0, ids[0], 0, 0, ids, ids)
        self.log = [Metadata(partition, Brokers(self.brokers))]

    @property
    def partition(self) -> PartitionMetadata:
        return self.log[-1].partition

    def _write(self, partition: PartitionMetadata) -> None:
        self.log.append(Metadata(partition, Brokers(self.brokers)))

    def _acceptable(self, broker: int) -> bool:
        status = self.brokers[broker]
        return not status.fenced and not status.shutting_down

    def change(
        self, target_isr: tuple[int, ...], *, unclean: frozenset[int] = frozenset(), leader: int | None = None
    ) -> None:
        """One partition change (rules 30-41, 49): ELR, election, epochs."""
        before = self.partition
        effective = min(self.min_isr, len(before.replicas))
        elr: frozenset[int] = frozenset()
        if len(target_isr) < effective:
            elr = (self.elr | frozenset(before.isr)) - frozenset(target_isr) - unclean

        def valid(broker: int) -> bool:
            return self._acceptable(broker) and (broker in target_isr or (not target_isr and broker in elr))

        wanted = [before.leader, *before.replicas] if leader is None else [leader, before.leader, *before.replicas]
        elected = next((broker for broker in wanted if broker != NO_LEADER and valid(broker)), NO_LEADER)
        if elected != NO_LEADER and elected not in target_isr:
            target_isr = (elected,)
            elr -= {elected}
        bump = elected != before.leader
        changed = (target_isr, elected, elr) != (before.isr, before.leader, self.elr)
        self.elr = elr
        if changed:
            self._write(
                replace(
                    before,
                    leader=elected,
                    isr=target_isr,
                    leader_epoch=before.leader_epoch + bump,
                    partition_epoch=before.partition_epoch + 1,
                )
            )
        else:
            self._write(before)

    def _status(self, broker: int, **changes: bool) -> None:
        self.brokers[broker] = replace(self.brokers[broker], **changes)  # type: ignore[arg-type]

    def fence(self, broker: int) -> None:
        self._status(broker, fenced=True)
        self.change(tuple(b for b in self.partition.isr if b != broker))

    def unfence(self, broker: int) -> None:
        self._status(broker, fenced=False)
        self.change(self.partition.isr)

    def shut_down(self, broker: int) -> None:
        self._status(broker, shutting_down=True)
        self.change(tuple(b for b in self.partition.isr if b != broker))

    def register(self, broker: int, *, clean: bool = True) -> None:
        """A new incarnation: fenced until it has caught up with the metadata (rules 46, 84)."""
        unclean = frozenset() if clean else frozenset({broker})
        before = self.brokers[broker]
        self.brokers[broker] = replace(before, fenced=True)
        if not clean:
            self.elr -= unclean
        self.change(tuple(b for b in self.partition.isr if b != broker), unclean=unclean)
        self.next_broker_epoch += 1
        self.brokers[broker] = replace(before, epoch=self.next_broker_epoch, fenced=True, shutting_down=False)
        self._write(self.partition)

    def prefer(self, broker: int) -> None:
        """Move the leadership, if the rules allow it."""
        self.change(self.partition.isr, leader=broker)

    def elect_unclean(self, broker: int) -> None:
        """Somebody wants a leader more than the records: any live replica will do (rule 36)."""
        before = self.partition
        self.elr = frozenset()
        self._write(
            replace(
                before,
                leader=broker,
                isr=(broker,),
                leader_epoch=before.leader_epoch + 1,
                partition_epoch=before.partition_epoch + 1,
                recovering=True,
            )
        )

    def _is_overtaken(self, proposal: ProposeIsr, now: PartitionMetadata) -> bool:
        return proposal.partition_epoch < now.partition_epoch

    def alter_partition(self, sender: int, sender_epoch: int, proposal: ProposeIsr) -> AlterPartitionResult | None:
        """Rules 24-28; None for an error of the whole request."""
        now = self.partition
        if self.brokers[sender].epoch != sender_epoch:
            return None
        members = tuple(broker for broker, _ in proposal.isr)
        error = ErrorCode.NONE
        if proposal.leader_epoch > now.leader_epoch or proposal.partition_epoch > now.partition_epoch:
            error = ErrorCode.NOT_CONTROLLER
        elif proposal.leader_epoch < now.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif sender != now.leader:
            error = ErrorCode.INVALID_REQUEST
        elif self._is_overtaken(proposal, now):
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif len(set(members)) < len(members) or not set(members) <= set(now.replicas) or sender not in members:
            error = ErrorCode.INVALID_REQUEST
        elif any(
            not self._acceptable(broker) or epoch not in (-1, self.brokers[broker].epoch)
            for broker, epoch in proposal.isr
        ):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error:
            return AlterPartitionResult(error=int(error))
        if members != now.isr:
            self.change(members)
        after = self.partition
        if after.leader != sender:
            return AlterPartitionResult(error=int(ErrorCode.NEW_LEADER_ELECTED))
        return AlterPartitionResult(
            error=0,
            leader=after.leader,
            leader_epoch=after.leader_epoch,
            isr=after.isr,
            partition_epoch=after.partition_epoch,
        )
