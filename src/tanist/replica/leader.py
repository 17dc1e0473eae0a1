"""The leader of one partition: the high watermark, the ISR, and the end of a produce's wait.

Owns the behaviour of a replica while it leads (rules 1-23, 108, 113, 118-120); its base `membership.IsrMembership` owns
the ISR. Two rules carry the rest:

* The high watermark never passes a replica of the *maximal* ISR, and never moves while the *committed* ISR has fewer
  than `min.insync.replicas` members (KIP-966). So every replica that the controller may elect, from the ISR or the ELR,
  has all records that were ever acknowledged or shown to a consumer.
* The ISR is the controller's. The leader proposes, one change at a time, and counts with the larger set until it knows
  which one holds.

It must never change the ISR by itself, lower the high watermark, or believe a fetch of another leader epoch. Each rule
is a method of its own, so that a test can replace exactly one and show its effect.
"""

from __future__ import annotations

from typing import NamedTuple

from tanist.events.replication import (
    DivergenceFound,
    FetchRefused,
    FollowerFetched,
    HighWatermarkMoved,
    HighWatermarkWaits,
    IsrJoinDelayed,
    IsrProposalEnded,
    ProduceRefused,
    SucceededItself,
)
from tanist.events.stream import NOBODY, Events
from tanist.invariants import InvariantError
from tanist.replica.effects import Effect, HighWatermarkAdvanced
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.membership import IsrMembership
from tanist.replica.metadata import NO_EPOCH, BrokerView, PartitionMetadata, ReplicaConfig
from tanist.replica.ports import ReplicaLog
from tanist.replica.read_replica import ReadReplica
from tanist.replica.reads import check_epoch, divergence
from tanist.replica.remote import RemoteReplica
from tanist.wire.errors import ErrorCode

_NONE = int(ErrorCode.NONE)
_NOT_LEADER_OR_FOLLOWER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN_LEADER_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)
_OFFSET_OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_NOT_ENOUGH_REPLICAS = int(ErrorCode.NOT_ENOUGH_REPLICAS)
_NOT_ENOUGH_REPLICAS_AFTER_APPEND = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
_INVALID_REQUIRED_ACKS = int(ErrorCode.INVALID_REQUIRED_ACKS)

__all__ = ["AckStatus", "AlterPartitionResult", "FetchDecision", "FollowerFetch", "LeaderState"]


class FollowerFetch(NamedTuple):
    """One partition's part of a follower's Fetch. One is made per fetch, and a tuple costs a quarter of a dataclass."""

    broker_id: int
    broker_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    current_leader_epoch: int
    log_start_offset: int


class FetchDecision(NamedTuple):
    """How to answer a follower's fetch. With an error or a `diverging` (epoch, end offset) no records are sent."""

    error: int
    diverging: tuple[int, int] | None
    high_watermark: int
    """As of before this fetch, so that a follower learns of its own progress one fetch later (rule 8)."""
    effects: list[Effect]


class AckStatus(NamedTuple):
    """Whether a produce with acks=all is done, and with which error."""

    done: bool
    error: int


_WAITING = AckStatus(False, _NONE)
_ACKED = AckStatus(True, _NONE)
_ACKED_TOO_FEW = AckStatus(True, _NOT_ENOUGH_REPLICAS_AFTER_APPEND)


class LeaderState(IsrMembership):
    """A replica that leads, from the metadata that made it leader to the metadata that ends its leadership.

    It inherits the ISR's rules instead of having them: both parts share one state, and each needs the other's rules
    (docs/decisions/0004). Speed is not the reason: composition would add 45 ns (2.5 %) to an append with its fetch.
    """

    __slots__ = ()

    def __init__(
        self,
        broker_id: int,
        log: ReplicaLog,
        config: ReplicaConfig,
        brokers: BrokerView,
        metadata: PartitionMetadata,
        high_watermark: int,
        now_ms: int,
        events: Events = NOBODY,
    ) -> None:
        super().__init__(broker_id, log, config, brokers, metadata, high_watermark, events)
        self._begin_epoch()
        self._assign_replicas()
        for remote in self.remotes.values():
            remote.forget(now_ms, in_sync=remote.broker_id in metadata.isr)
        self._derive()

    # ---- queries

    @property
    def low_watermark(self) -> int:
        """The log start that all live replicas have reached: when a DeleteRecords is done."""
        lowest = self.log.log_start_offset
        for remote in self.remotes.values():
            if remote.log_start_offset < lowest:
                status = self.brokers.registration(remote.broker_id)
                if status is not None and not status.fenced:
                    lowest = remote.log_start_offset
        return lowest

    def knows_what_is_committed(self) -> bool:
        """Whether the high watermark covers its predecessors'. A new leader's is a fetch behind at first (S19)."""
        return self.high_watermark >= self.leader_epoch_start_offset

    def own_read_replica(self) -> ReadReplica:
        return ReadReplica(self.broker_id, self._rack(self.broker_id), self.log.log_end_offset, 0)

    def read_replicas(self, fetch_offset: int, now_ms: int) -> list[ReadReplica]:
        """Followers in the ISR that have `fetch_offset`, or would have it next (KIP-392)."""
        return [
            ReadReplica(
                remote.broker_id, self._rack(remote.broker_id), remote.log_end_offset, now_ms - remote.last_caught_up_ms
            )
            for remote in self.remotes.values()
            if remote.broker_id in self.isr and remote.log_start_offset <= fetch_offset <= remote.log_end_offset
        ]

    # ---- events

    def started(self, now_ms: int) -> list[Effect]:
        """Leadership has begun: an ISR of one may commit the records that the last leader left uncommitted (rule 6)."""
        return self._advance(now_ms)

    def apply_metadata(self, metadata: PartitionMetadata, now_ms: int) -> list[Effect]:
        """New metadata under which this broker still leads. `Partition` has checked that it is not older."""
        before = self.metadata
        new_epoch = metadata.leader_epoch > before.leader_epoch
        if new_epoch or not self._repeats(metadata):
            # The controller has made another change, so an earlier proposal is either in this metadata or will be
            # refused for its partition epoch (rule 25). Either way the committed ISR of this metadata is the largest
            # possible one.
            if self.pending is not None:
                self.events.emit(IsrProposalEnded(metadata.name, metadata.leader_epoch, metadata.partition_epoch))
            self.pending = None
        self.metadata = metadata
        self.leader_epoch = metadata.leader_epoch
        self._assign_replicas()
        if new_epoch:
            remembers = self._remembers_followers(before.leader_epoch, metadata.leader_epoch)
            self.events.emit(SucceededItself(metadata.name, metadata.leader_epoch, remembers))
            self._begin_epoch()
            for remote in self.remotes.values():
                in_sync = remote.broker_id in metadata.isr
                if remembers:
                    remote.restart_clock(self.leader_epoch_start_offset, now_ms, in_sync=in_sync)
                else:
                    remote.forget(now_ms, in_sync=in_sync)
        self._derive()
        return self._isr_difference(before.isr) + self._advance(now_ms)

    def appended(self, now_ms: int) -> list[Effect]:
        """Records were appended to the log. They can only be committed if no member of the ISR is still at the HW."""
        if self._slowest_member_offset <= self.high_watermark:
            return []
        return self._advance(now_ms)

    def follower_fetch(self, fetch: FollowerFetch, now_ms: int) -> FetchDecision:
        """A replica's fetch: decide, and take its fetch offset as the end of its log."""
        high_watermark = self.high_watermark
        broker_id, broker_epoch, _, _, _, log_start_offset = fetch
        error, diverging = self.check_fetch(fetch)
        if error or diverging is not None:
            self._tell_why(fetch, error, diverging)
            return FetchDecision(error, diverging, high_watermark, [])
        remote = self.remotes[broker_id]
        if self._comes_from_former_life(broker_epoch, remote):
            self._refused(fetch, _NOT_LEADER_OR_FOLLOWER, "former life")
            return FetchDecision(_NOT_LEADER_OR_FOLLOWER, None, high_watermark, [])
        confirmed = self._confirmed_offset(fetch)
        moved = confirmed != remote.log_end_offset
        remote.fetched(confirmed, log_start_offset, broker_epoch, self.log.log_end_offset, now_ms)
        if self.events.fine:
            name, last_fetched_epoch = self.metadata.name, fetch.last_fetched_epoch
            self.events.emit(
                FollowerFetched(
                    name, broker_id, broker_epoch, self.leader_epoch, fetch.fetch_offset, last_fetched_epoch
                )
            )
        effects: list[Effect] = []
        if broker_id not in self.maximal_isr:
            if self._may_join_isr(remote, now_ms):
                effects += self._propose((*self.isr, broker_id), self._maximal_isr_to_expand(broker_id))
            elif self.events.fine and (reason := self._why_not_in_isr(remote)) is not None:
                self.events.emit(IsrJoinDelayed(self.metadata.name, broker_id, reason))
        elif moved:
            self._slowest_member_offset = self._slowest_member()
        if moved and confirmed > high_watermark:
            effects += self._advance(now_ms)
        return FetchDecision(_NONE, None, high_watermark, effects)

    def follower_was_there(self, broker_id: int, at_ms: int) -> None:
        """A fetch at that time has repeated the follower's last position, which was the end of the log (rule 13).

        Sessions of followers report this before the log grows, instead of a fetch for each of their partitions.
        """
        remote = self.remotes.get(broker_id)
        if remote is not None:
            remote.was_there(at_ms)

    def check_fetch(self, fetch: FollowerFetch) -> tuple[int, tuple[int, int] | None]:
        """The error, or the divergence, with which to answer `fetch`; changes nothing.

        For `follower_fetch`, and for a fetch that has waited for records and is to be answered now.
        """
        broker_id, _, fetch_offset, last_fetched_epoch, current_leader_epoch, _ = fetch
        if current_leader_epoch != self.leader_epoch:
            error = self._epoch_error(current_leader_epoch)
            if error:
                return error, None
        if broker_id not in self.remotes:
            # Either its metadata or ours lacks the assignment as yet (rule 108).
            return (_NOT_LEADER_OR_FOLLOWER if current_leader_epoch == NO_EPOCH else _UNKNOWN_LEADER_EPOCH), None
        return self._divergence(fetch_offset, last_fetched_epoch)

    def _tell_why(self, fetch: FollowerFetch, error: int, diverging: tuple[int, int] | None) -> None:
        """A fetch gets no records."""
        if diverging is not None:
            name, at = self.metadata.name, fetch.fetch_offset
            self.events.emit(DivergenceFound(name, fetch.broker_id, at, fetch.last_fetched_epoch, *diverging))
        elif error == _OFFSET_OUT_OF_RANGE:
            self._refused(fetch, error, "offset")
        elif fetch.current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            self._refused(fetch, error, "no replica")
        else:
            self._refused(fetch, error, "leader epoch")

    def _refused(self, fetch: FollowerFetch, error: int, reason: str) -> None:
        if self.events.fine:
            asked = fetch.current_leader_epoch
            self.events.emit(FetchRefused(self.metadata.name, fetch.broker_id, asked, self.leader_epoch, error, reason))

    # ---- produce

    def check_before_append(self, acks: int) -> int:
        """The error with which to refuse a produce before anything is appended, or 0 (rules 118, 120)."""
        if acks == -1:
            if not self._under_min_isr:
                return _NONE
            if self.events.fine:
                self.events.emit(ProduceRefused(self.metadata.name, self.isr, self._min_isr))
            return _NOT_ENOUGH_REPLICAS
        return _NONE if acks in (0, 1) else _INVALID_REQUIRED_ACKS

    def acks_status(self, required_offset: int) -> AckStatus:
        """Whether the records below `required_offset` are committed (rule 119)."""
        if self.high_watermark < required_offset:
            return _WAITING
        return _ACKED if len(self.maximal_isr) >= self._min_isr else _ACKED_TOO_FEW

    # ---- rules of the high watermark

    def _may_advance(self) -> bool:
        """KIP-966: only with min.insync.replicas members in the *committed* ISR, whatever the acks (rule 1)."""
        return not self._under_min_isr

    def _high_watermark_candidate(self, now_ms: int) -> int:
        """The lowest end offset among the leader, its maximal ISR, and those about to join (rule 4)."""
        candidate = self.log.log_end_offset
        if self._slowest_member_offset < candidate:
            candidate = self._slowest_member_offset
        for remote in self.others:
            if remote.log_end_offset < candidate and self._is_about_to_join(remote, now_ms):
                candidate = remote.log_end_offset
                if self.events.fine:
                    self.events.emit(HighWatermarkWaits(self.metadata.name, remote.broker_id, candidate))
        return candidate

    def _is_about_to_join(self, remote: RemoteReplica, now_ms: int) -> bool:
        """Whether a replica outside the ISR keeps up: the HW waits for it, so that it can join (rule 4)."""
        lag_ms_max = self.config.replica_lag_time_max_ms
        return remote.is_caught_up(self.log.log_end_offset, now_ms, lag_ms_max) and self._is_eligible(remote)

    def _confirmed_offset(self, fetch: FollowerFetch) -> int:
        """A follower has the records below its fetch offset, and not yet those that it is about to be sent."""
        return fetch.fetch_offset

    def _advance(self, now_ms: int) -> list[Effect]:
        if not self._may_advance():
            return []
        candidate = self._high_watermark_candidate(now_ms)
        if candidate <= self.high_watermark:
            return []
        if candidate > self.log.log_end_offset:
            raise InvariantError(
                "the high watermark is at most the log's end",
                high_watermark=candidate,
                log_end_offset=self.log.log_end_offset,
            )
        if self.events.fine:
            proposed = () if self.pending is None else self.pending.proposed
            self.events.emit(HighWatermarkMoved(self.metadata.name, self.high_watermark, candidate, self.isr, proposed))
        self.high_watermark = candidate
        return [HighWatermarkAdvanced(candidate)]

    # ---- rules of a fetch

    def _epoch_error(self, current_leader_epoch: int) -> int:
        """KIP-320: a fetch sent under another leader says nothing about the log this leader has."""
        return check_epoch(current_leader_epoch, self.leader_epoch)

    def _comes_from_former_life(self, broker_epoch: int, remote: RemoteReplica) -> bool:
        """Whether the broker has registered anew since it sent this: its log may be another one by now (rule 16).

        Stricter than Apache, which compares with unfenced registrations only, and not with fetches it has seen.
        """
        if broker_epoch == NO_EPOCH:
            return False
        if remote.broker_epoch is not None and broker_epoch < remote.broker_epoch:
            return True
        status = self.brokers.registration(remote.broker_id)
        return status is not None and broker_epoch < status.epoch

    def _divergence(self, fetch_offset: int, last_fetched_epoch: int) -> tuple[int, tuple[int, int] | None]:
        """The point beyond which the follower's log is no prefix of this one, if there is one (rule 113, KIP-595)."""
        return divergence(self.log, self.leader_epoch, fetch_offset, last_fetched_epoch)

    # ---- rules of an epoch

    def _begin_epoch(self) -> None:
        """Record where this leader epoch begins, even if nothing is ever written in it (rule 22)."""
        if self.log.latest_epoch > self.leader_epoch:
            raise InvariantError(
                "a leader's log has no epoch above its own",
                latest_epoch=self.log.latest_epoch,
                leader_epoch=self.leader_epoch,
            )
        self.leader_epoch_start_offset = self.log.log_end_offset
        self.log.epochs.assign(self.leader_epoch, self.leader_epoch_start_offset)

    def _remembers_followers(self, previous_epoch: int, leader_epoch: int) -> bool:
        """Whether the followers' offsets of the previous epoch hold in this one (rule 14).

        Each election takes one epoch. If exactly one has passed, this broker was elected to succeed itself, and no
        follower can have truncated for another leader in between. If more have, there may have been one: Apache relies
        on the old offsets even then, when it learns of both elections at once. We forget them.
        """
        return leader_epoch == previous_epoch + 1

    # ---- bookkeeping

    def _rack(self, broker_id: int) -> str | None:
        status = self.brokers.registration(broker_id)
        return None if status is None else status.rack
