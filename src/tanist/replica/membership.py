"""The ISR of a partition that this broker leads: its members, who may join or must leave, and the pending proposal.

Owns the committed and the maximal ISR and the one AlterPartition in flight (rules 2, 5, 9-12, 15, 17-21). The ISR is
the controller's: it changes here only when metadata or the answer to a proposal says so. It is the base of
`LeaderState`; its rules are about brokers, the rules of `LeaderState` about offsets.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tanist.events.replication import (
    IsrAnswerIgnored,
    IsrChanged,
    IsrProposalRepeated,
    IsrProposed,
    IsrUpdateFailed,
)
from tanist.events.stream import NOBODY, Events
from tanist.replica.effects import Effect, ProposeIsr
from tanist.replica.isr import RETRY_BACKOFF_MS, AlterPartitionResult, PendingIsr, Verdict, verdict
from tanist.replica.metadata import NO_EPOCH, UNKNOWN_OFFSET, BrokerView, PartitionMetadata, ReplicaConfig
from tanist.replica.ports import ReplicaLog
from tanist.replica.remote import RemoteReplica

_BEYOND_ALL_OFFSETS = 1 << 63


class IsrMembership:
    """The ISR as its leader knows it. It holds all of a leader's state; `LeaderState` moves the high watermark."""

    __slots__ = (
        "_min_isr",
        "_slowest_member_offset",
        "_under_min_isr",
        "broker_id",
        "brokers",
        "config",
        "events",
        "high_watermark",
        "leader_epoch",
        "leader_epoch_start_offset",
        "log",
        "maximal_isr",
        "members",
        "metadata",
        "others",
        "pending",
        "remotes",
    )

    def __init__(
        self,
        broker_id: int,
        log: ReplicaLog,
        config: ReplicaConfig,
        brokers: BrokerView,
        metadata: PartitionMetadata,
        high_watermark: int,
        events: Events = NOBODY,
    ) -> None:
        self.broker_id = broker_id
        self.events = events
        self.log = log
        self.config = config
        self.brokers = brokers
        self.metadata = metadata
        self.leader_epoch = metadata.leader_epoch
        self.high_watermark = high_watermark
        self.pending: PendingIsr | None = None
        """The one proposal in flight (rule 9)."""
        self.remotes: dict[int, RemoteReplica] = {}
        self.maximal_isr: frozenset[int] = frozenset()
        self.members: list[RemoteReplica] = []
        """Followers in the maximal ISR; `others` are those outside it."""
        self.others: list[RemoteReplica] = []
        self.leader_epoch_start_offset = UNKNOWN_OFFSET
        self._min_isr = 0
        self._under_min_isr = True
        self._slowest_member_offset = UNKNOWN_OFFSET

    # ---- queries

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed ISR: the controller's, as far as it is known (rule 5)."""
        return self.metadata.isr

    @property
    def partition_epoch(self) -> int:
        return self.metadata.partition_epoch

    @property
    def effective_min_isr(self) -> int:
        return self._min_isr

    @property
    def under_min_isr(self) -> bool:
        return self._under_min_isr

    @property
    def at_min_isr(self) -> bool:
        return len(self.metadata.isr) == self._min_isr

    @property
    def in_sync_count(self) -> int:
        return len(self.metadata.isr)

    @property
    def under_replicated(self) -> bool:
        return len(self.metadata.isr) < len(self.metadata.replicas)

    # ---- events

    def check_lag(self, now_ms: int) -> list[Effect]:
        """Propose to drop late members. Due every `replica.lag.time.max.ms` / 2 (rules 10, 12)."""
        if self.pending is not None:
            return []
        late = self._late_members(now_ms)
        if late:
            remaining = tuple(broker_id for broker_id in self.isr if broker_id not in late)
            return self._propose(remaining, self._maximal_isr_to_shrink(remaining))
        # Beyond rule 6: a replica that was about to join may have held the HW back (rule 4) and fallen behind since.
        return self._advance(now_ms)

    def alter_partition_done(self, proposal: ProposeIsr, result: AlterPartitionResult, now_ms: int) -> list[Effect]:
        """The controller has answered `proposal`."""
        if not self._is_awaited(proposal):
            self.events.emit(IsrAnswerIgnored(self.metadata.name, "overtaken"))
            return []
        if result.error:
            return self._on_error(proposal, result.error)
        # A success may still be older than the metadata that came by the other way (rule 19).
        if result.leader_epoch != self.leader_epoch or result.partition_epoch < self.partition_epoch:
            return []
        before = self.isr
        self.pending = None
        self.metadata = replace(
            self.metadata,
            isr=result.isr,
            partition_epoch=result.partition_epoch,
            recovering=result.recovering,
        )
        self._derive()
        return self._isr_difference(before) + self._advance(now_ms)

    def alter_partition_failed(self, proposal: ProposeIsr, now_ms: int) -> list[Effect]:
        """The request had no answer, or failed as a whole: it may have been applied, so send it again (rule 21)."""
        if not self._is_awaited(proposal):
            return []
        self.events.emit(IsrProposalRepeated(self.metadata.name, proposal.leader_epoch, proposal.partition_epoch))
        return [replace(proposal, delay_ms=RETRY_BACKOFF_MS)]

    def min_isr_changed(self, min_insync_replicas: int) -> list[Effect]:
        """`min.insync.replicas` has changed. That alone moves no HW (rule 6); the next fetch or append does."""
        return self.set_config(replace(self.config, min_insync_replicas=min_insync_replicas))

    def set_config(self, config: ReplicaConfig) -> list[Effect]:
        self.config = config
        self._derive()
        return []

    def brokers_changed(self, changed: Collection[int], now_ms: int) -> list[Effect]:
        """Registrations have changed. A replica that was about to join may no longer hold back the high watermark."""
        if not any(remote.broker_id in changed for remote in self.others):
            return []
        return self._advance(now_ms)

    def _advance(self, now_ms: int) -> list[Effect]:
        """Move the high watermark if it may move: one of its inputs has changed."""
        raise NotImplementedError

    # ---- rules of the ISR

    def _may_join_isr(self, remote: RemoteReplica, now_ms: int) -> bool:
        """Rule 11; checked at every fetch of a follower outside the maximal ISR."""
        return (
            self.pending is None
            and self._has_all_committed(remote)
            and self._has_epoch_start(remote)
            and self._has_log_start(remote)
            and self._is_eligible(remote)
            and self._keeps_up(remote, now_ms)
        )

    def _why_not_in_isr(self, remote: RemoteReplica) -> str | None:
        """What keeps a replica that may not join from joining (`IsrJoinDelayed`), if it is one of these."""
        if not self._has_all_committed(remote):
            return "high watermark"
        if not self._has_epoch_start(remote):
            return "leader epoch"
        if not self._is_eligible(remote):
            return "eligible"
        return None if self.pending is None else "pending"

    def _has_all_committed(self, remote: RemoteReplica) -> bool:
        return remote.log_end_offset >= self.high_watermark

    def _has_epoch_start(self, remote: RemoteReplica) -> bool:
        """A new leader's high watermark may be stale; all records committed before lie below its epoch's start."""
        return remote.log_end_offset >= self.leader_epoch_start_offset

    def _keeps_up(self, remote: RemoteReplica, now_ms: int) -> bool:
        """DEVIATION from rule 11: under min ISR the high watermark stands still, and who has come as far as that may
        lack any number of records behind it. It would be late in the ISR, leave, and join again (KAFKA-19996);
        meanwhile acks=all would be accepted, and wait for it.
        """
        lag_ms_max = self.config.replica_lag_time_max_ms
        return not self._under_min_isr or remote.is_caught_up(self.log.log_end_offset, now_ms, lag_ms_max)

    def _has_log_start(self, remote: RemoteReplica) -> bool:
        """Whether it ends above this log's start, or begins there (rule 163). No epoch shows whether one that ends at
        the start diverges; it learns of the start with the answer to this fetch, and its next one says so.
        """
        log_start_offset = self.log.log_start_offset
        return not log_start_offset or log_start_offset <= max(remote.log_end_offset - 1, remote.log_start_offset)

    def _is_eligible(self, remote: RemoteReplica) -> bool:
        """Unfenced, not shutting down, and registered in the broker epoch with which it fetched (rule 15, KIP-903).

        DEVIATION from rule 4: nor in a directory that has failed. Apache's leader waits for such a replica until it is
        late, and acks=all with it.
        """
        if remote.broker_epoch is None:
            return False
        status = self.brokers.registration(remote.broker_id)
        return (
            status is not None
            and not status.fenced
            and not status.shutting_down
            and remote.broker_epoch in (NO_EPOCH, status.epoch)
            and not status.has_failed(self.metadata.directory_of(remote.broker_id))
        )

    def _late_members(self, now_ms: int) -> frozenset[int]:
        """Members, other than the leader, that have not caught up within `replica.lag.time.max.ms` (rule 12)."""
        end = self.log.log_end_offset
        lag_ms_max = self.config.replica_lag_time_max_ms
        late = set()
        for broker_id in self.isr:
            if broker_id == self.broker_id:
                continue
            remote = self.remotes.get(broker_id)
            if remote is None or not remote.is_caught_up(end, now_ms, lag_ms_max):
                late.add(broker_id)
        return frozenset(late)

    def _maximal_isr_to_expand(self, joining: int) -> frozenset[int]:
        """The controller may have added it by now, and may elect it (rule 5)."""
        return frozenset((*self.isr, joining))

    def _maximal_isr_to_shrink(self, remaining: tuple[int, ...]) -> frozenset[int]:
        """The controller may not have removed any member yet, and may elect any of them (rule 5)."""
        return frozenset(self.isr)

    def _propose(self, proposed: tuple[int, ...], maximal: frozenset[int]) -> list[Effect]:
        proposal = ProposeIsr(
            topic_id=self.metadata.topic_id,
            partition=self.metadata.partition,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            isr=tuple((broker_id, self._known_broker_epoch(broker_id)) for broker_id in proposed),
            # Recovery ends with the election, so the first proposal says "recovered" (rule 23).
            recovering=False,
        )
        self.events.emit(IsrProposed(self.metadata.name, self.leader_epoch, self.partition_epoch, self.isr, proposed))
        self.pending = PendingIsr(proposal, maximal)
        self._derive()
        return [proposal]

    def _known_broker_epoch(self, broker_id: int) -> int:
        """The broker epoch of a member that the leader vouches for (rule 17)."""
        if broker_id == self.broker_id:
            status = self.brokers.registration(broker_id)
            return NO_EPOCH if status is None else status.epoch
        remote = self.remotes.get(broker_id)
        return NO_EPOCH if remote is None else remote.broker_epoch_or_unknown

    def _is_awaited(self, proposal: ProposeIsr) -> bool:
        """An answer to a proposal that metadata has overtaken is ignored (rule 20)."""
        return self.pending is not None and self.pending.proposal == proposal

    def _on_error(self, proposal: ProposeIsr, error: int) -> list[Effect]:
        """Rule 18."""
        what = verdict(error)
        failed = IsrUpdateFailed(self.metadata.name, error, rolled_back=what is Verdict.ROLLED_BACK)
        match what:
            case Verdict.ROLLED_BACK:
                self._on_rejected()
            case Verdict.UNCLEAR:
                return [failed, replace(proposal, delay_ms=RETRY_BACKOFF_MS)]
            case Verdict.OVERTAKEN:
                pass
        return [failed]

    def _on_rejected(self) -> None:
        """Nothing was changed: count with the committed ISR again."""
        self.pending = None
        self._derive()

    def _repeats(self, metadata: PartitionMetadata) -> bool:
        """Whether metadata says nothing new. Such metadata must not end a proposal: the controller may be about to
        accept it.
        """
        return metadata.partition_epoch == self.partition_epoch and set(metadata.isr) == set(self.isr)

    # ---- bookkeeping

    def _effective_min_isr(self) -> int:
        """A partition can't have more replicas in sync than it has replicas (rule 2)."""
        return min(self.config.min_insync_replicas, len(self.metadata.replicas))

    def _slowest_member(self) -> int:
        """The lowest end offset among followers in the maximal ISR."""
        slowest = _BEYOND_ALL_OFFSETS
        for remote in self.members:
            if remote.log_end_offset < slowest:
                slowest = remote.log_end_offset
        return slowest

    def _assign_replicas(self) -> None:
        wanted = [broker_id for broker_id in self.metadata.replicas if broker_id != self.broker_id]
        self.remotes = {broker_id: self.remotes.get(broker_id) or RemoteReplica(broker_id) for broker_id in wanted}

    def _derive(self) -> None:
        """Derive the cached values from the ISR, the replicas and the settings. Call it after every change of one of
        them.
        """
        self.maximal_isr = self.pending.maximal if self.pending is not None else frozenset(self.isr)
        self.members = [remote for remote in self.remotes.values() if remote.broker_id in self.maximal_isr]
        self.others = [remote for remote in self.remotes.values() if remote.broker_id not in self.maximal_isr]
        self._min_isr = self._effective_min_isr()
        self._under_min_isr = len(self.isr) < self._min_isr
        self._slowest_member_offset = self._slowest_member()

    def _isr_difference(self, before: tuple[int, ...]) -> list[Effect]:
        after = self.isr
        if set(before) == set(after):
            return []
        grew = tuple(broker_id for broker_id in after if broker_id not in before)
        shrank = tuple(broker_id for broker_id in before if broker_id not in after)
        return [IsrChanged(self.metadata.name, after, grew, shrank)]
