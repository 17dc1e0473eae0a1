"""The follower of one partition: its next fetch, its truncations, its high watermark.

Owns the behaviour of a replica while another broker leads (rules 7, 113-116). It copies the leader's log, so its own
log is wrong wherever the two differ. The leader finds that place from the epoch that the follower last fetched
(KIP-101, KIP-279, KIP-595), and the follower truncates to it. Its high watermark is the leader's, one fetch late.

It must never append or truncate on an answer to anything but its present fetch, and never serve beyond its own end.

    phase       left by
    IDLE        metadata that names a leader
    FETCHING    an error out of range -> ASKING; an error "fenced" -> FENCED
    ASKING      the leader's offsets -> FETCHING
    FENCED      metadata with a newer leader epoch
    SALVAGING   `salvaged`: the records to be cut off are saved -> FETCHING
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from tanist.events.replication import (
    CutAnnounced,
    FetchAnswerDropped,
    FetchFailed,
    FollowerFenced,
    HighWatermarkLearned,
    LogTruncated,
    RecordsRefused,
    TruncationUnfinished,
)
from tanist.events.stream import NOBODY, Events
from tanist.replica.effects import AskOffsets, Effect, FetchAgain, HighWatermarkSet, SalvageFirst
from tanist.replica.metadata import NO_EPOCH, NO_LEADER, UNKNOWN_OFFSET, PartitionMetadata, ReplicaConfig
from tanist.replica.ports import ReplicaLog
from tanist.replica.salvage import Cut, reason_for
from tanist.wire.errors import ErrorCode

RETRY_MIN_MS = 10
"""The first pause after an error."""


class Phase(Enum):
    """The phase of a follower."""

    IDLE = "nobody leads"
    FETCHING = "fetching, or about to"
    ASKING = "asking the leader for its log start and end"
    FENCED = "behind the metadata: the leader epoch has passed, waiting to hear of the next"
    SALVAGING = "about to truncate, waiting until what goes is saved"


class FetchPosition(NamedTuple):
    """One partition's part of the next Fetch; the answer must come back with it."""

    offset: int
    last_fetched_epoch: int
    current_leader_epoch: int
    log_start_offset: int


class FetchAnswer(Protocol):
    """The fields of one partition in a Fetch response that a follower reads: `wire.fetch.FetchedPartition` is one."""

    @property
    def error(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def records(self) -> Any:
        """Batches, to be appended as they are: a memoryview in a node. None or empty when there are none."""

    @property
    def diverging_epoch(self) -> tuple[int, int] | None:
        """(epoch, end offset) from the leader: the last point up to which the logs can agree."""


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """A `FetchAnswer` that holds just the fields."""

    error: int = 0
    high_watermark: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    records: Any = None
    diverging_epoch: tuple[int, int] | None = None


class FollowerState:
    """A replica that follows, in one leader epoch."""

    __slots__ = (
        "_cut_committed",
        "_delay_ms",
        "_saving",
        "broker_id",
        "config",
        "events",
        "high_watermark",
        "log",
        "metadata",
        "phase",
        "retry_at_ms",
    )

    def __init__(
        self,
        broker_id: int,
        log: ReplicaLog,
        config: ReplicaConfig,
        metadata: PartitionMetadata,
        high_watermark: int,
        events: Events = NOBODY,
    ) -> None:
        self.broker_id = broker_id
        self.events = events
        self.log = log
        self.config = config
        self.metadata = metadata
        self.high_watermark = high_watermark
        self.phase = Phase.IDLE if metadata.leader == NO_LEADER else Phase.FETCHING
        self.retry_at_ms = 0
        """After an error: no fetch before this time."""
        self._delay_ms = RETRY_MIN_MS
        self._saving: SalvageFirst | None = None
        self._cut_committed = False
        """It was cut below its high watermark: the leader has another history, and the rest may diverge as well."""

    # ---- what others read

    @property
    def leader(self) -> int:
        return self.metadata.leader

    @property
    def leader_epoch(self) -> int:
        return self.metadata.leader_epoch

    @property
    def isr(self) -> tuple[int, ...]:
        return self.metadata.isr

    @property
    def partition_epoch(self) -> int:
        return self.metadata.partition_epoch

    def may_fetch(self, now_ms: int) -> bool:
        """Whether a fetch that is sent now includes this partition."""
        return self.phase is Phase.FETCHING and now_ms >= self.retry_at_ms

    def fetch_position(self) -> FetchPosition:
        """The position of the next fetch. It confirms that the follower has everything below it."""
        log = self.log
        return FetchPosition(log.log_end_offset, log.latest_epoch, self.metadata.leader_epoch, log.log_start_offset)

    # ---- events

    def started(self) -> list[Effect]:
        """A leader epoch has begun in which this replica follows. Without a leader it keeps its whole log."""
        return [] if self.phase is Phase.IDLE else self._truncate_at_start()

    def apply_metadata(self, metadata: PartitionMetadata) -> list[Effect]:
        """Metadata of the same leader epoch. `Partition` makes a new follower for a new one."""
        self.metadata = metadata
        return []

    def fetched(self, answer: FetchAnswer, position: FetchPosition, now_ms: int) -> list[Effect]:
        """The leader has answered a fetch from `position`. It counts only if this log still ends there."""
        if not self.awaits(position):
            return []
        if answer.error:
            return self._on_error(answer.error, now_ms)
        if answer.diverging_epoch is not None:
            return self._on_divergence(*answer.diverging_epoch)
        if self._may_diverge_below(answer.log_start_offset, position):
            return self._then_fetch(self._cut(answer.log_start_offset, fully=True))
        if answer.records:
            appended = self.log.append_as_follower(answer.records, self.leader_epoch)
            if appended.error:
                refused = RecordsRefused(
                    self.metadata.name, self.leader, self.leader_epoch, appended.error, appended.message or ""
                )
                return [refused, *self._back_off(now_ms)]
        self._delay_ms = RETRY_MIN_MS
        effects = self._adopt_high_watermark(answer.high_watermark)
        self._adopt_log_start(answer.log_start_offset)
        return effects

    def handle_offsets_response(
        self, log_start_offset: int, log_end_offset: int, current_leader_epoch: int, now_ms: int
    ) -> list[Effect]:
        """The leader has answered with its log start and log end (rule 116). `current_leader_epoch` is that of the
        question.
        """
        if self.phase is not Phase.ASKING or current_leader_epoch != self.leader_epoch:
            return []
        self.phase = Phase.FETCHING
        end = self.log.log_end_offset
        if log_end_offset < end:
            # Only an unclean election makes a leader that has less than we fetched. Records that it lacks are lost.
            return self._then_fetch(self._truncate_to(log_end_offset))
        if log_start_offset > end:
            return self._then_fetch(self._cut(log_start_offset, fully=True))
        # In range after all. The position has another fault; do not ask again at once, again and again.
        return self._back_off(now_ms)

    def offsets_failed(self, current_leader_epoch: int, now_ms: int) -> list[Effect]:
        """ListOffsets got an error or no answer: fetch again later, and ask again if need be."""
        if self.phase is not Phase.ASKING or current_leader_epoch != self.leader_epoch:
            return []
        self.phase = Phase.FETCHING
        return self._back_off(now_ms)

    def salvaged(self, saving: SalvageFirst) -> list[Effect]:
        """The records that `saving` announced are safe, or cannot be saved: cut. An effect of an earlier role is
        ignored.
        """
        if self.phase is not Phase.SALVAGING or saving is not self._saving:
            return []
        self.phase, self._saving = Phase.FETCHING, None
        return self._then_fetch(self._carry_out(saving.cut))

    # ---- rules of a fetch

    def awaits(self, position: FetchPosition) -> bool:
        """Whether the answer to a fetch from there would count. If not, it is dropped."""
        if self._answers_present_fetch(position):
            return True
        if self.events.fine:
            self.events.emit(FetchAnswerDropped(self.metadata.name, position.current_leader_epoch, position.offset))
        return False

    def _answers_present_fetch(self, position: FetchPosition) -> bool:
        """Whether the fetch was sent to this leader, after the last truncation and append."""
        return (
            self.phase is Phase.FETCHING
            and position.offset == self.log.log_end_offset
            and position.current_leader_epoch == self.metadata.leader_epoch
            and position.last_fetched_epoch == self.log.latest_epoch
        )

    def _may_diverge_below(self, leader_log_start_offset: int, position: FetchPosition) -> bool:
        """Whether all of this log is below the leader's, where its epochs cannot tell any more (rule 163).

        Records that were never committed would stay below this log's start, and a crash before the next checkpoint
        forgets the start. Committed records agree, unless an unclean election has lost some; those of the leader's own
        epoch always do.
        """
        return (
            leader_log_start_offset >= position.offset
            and (position.offset > self.high_watermark or self._cut_committed)
            and position.last_fetched_epoch < self.leader_epoch
            and self.log.log_start_offset < position.offset
        )

    def _adopt_high_watermark(self, leader_high_watermark: int) -> list[Effect]:
        """The high watermark of the leader's answer, at most this log's end. It may go back (rule 7)."""
        log = self.log
        high_watermark = max(log.log_start_offset, min(leader_high_watermark, log.log_end_offset))
        if high_watermark == self.high_watermark:
            return []
        if self.events.fine:
            self.events.emit(HighWatermarkLearned(self.metadata.name, self.high_watermark, high_watermark))
        self.high_watermark = high_watermark
        return [HighWatermarkSet(high_watermark)]

    def _adopt_log_start(self, leader_log_start_offset: int) -> None:
        """The leader has deleted old records; only committed records are ever deleted."""
        log_start_offset = min(leader_log_start_offset, self.high_watermark)
        if log_start_offset > self.log.log_start_offset:
            self.log.advance_log_start_offset(log_start_offset)

    def _on_error(self, error: int, now_ms: int) -> list[Effect]:
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.phase = Phase.ASKING
            return [AskOffsets(self.leader, self.leader_epoch)]
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            # The leader knows a newer epoch than we do. Asking again would get the same answer until we know it too.
            self.phase = Phase.FENCED
            self.events.emit(FollowerFenced(self.metadata.name, self.leader, self.leader_epoch))
            return []
        # UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_ID...: the leader is behind us, or we will hear.
        effects = self._back_off(now_ms)
        if self.events.fine:
            delay_ms = self.retry_at_ms - now_ms
            self.events.emit(FetchFailed(self.metadata.name, self.leader, self.leader_epoch, error, delay_ms))
        return effects

    def _back_off(self, now_ms: int) -> list[Effect]:
        """Wait twice as long as last time, at most `replica.fetch.backoff.ms`.

        Apache waits that long (1 s) at once. But most errors come from a new leader that has not applied its metadata
        yet, and nothing is committed while its followers wait.
        """
        delay_ms = min(self._delay_ms, self.config.replica_fetch_backoff_ms)
        self._delay_ms = 2 * delay_ms
        self.retry_at_ms = now_ms + delay_ms
        return [FetchAgain(delay_ms)]

    # ---- rules of truncation

    def _truncate_at_start(self) -> list[Effect]:
        """A log without epochs can't be compared with the leader's, so only committed records are kept (rule 114).

        All others keep their whole log until the leader says where it diverges: truncating to the high watermark would
        drop records that are committed and merely not known to be (KIP-101).
        """
        if self.log.latest_epoch != NO_EPOCH or self.log.log_end_offset == self.high_watermark:
            return []
        return self._truncate_to(self.high_watermark)

    def _on_divergence(self, epoch: int, end_offset: int) -> list[Effect]:
        offset, final = self.truncation_target(epoch, end_offset)
        if not final:
            self.events.emit(TruncationUnfinished(self.metadata.name, epoch, offset))
        return self._then_fetch(self._truncate_to(offset))

    def truncation_target(self, epoch: int, end_offset: int) -> tuple[int, bool]:
        """The truncation offset when the leader's log has `epoch` up to `end_offset`; and whether it is final (rule
        114).

        It is not final when this log lacks `epoch`: then all of the later epochs go, and the next fetch gives the epoch
        before them for comparison (KIP-279).
        """
        log = self.log
        end = log.log_end_offset
        if end_offset == UNKNOWN_OFFSET:
            return end, True
        own_epoch, own_end_offset = log.epochs.end_offset_for(epoch, end)
        if own_end_offset == UNKNOWN_OFFSET:
            return min(end_offset, end), True
        if own_epoch != epoch:
            return min(own_end_offset, end), False
        return min(own_end_offset, end_offset, end), True

    def _truncate_to(self, offset: int) -> list[Effect]:
        """Cut the log, even at its very end: an epoch in which nothing was written may begin there."""
        return self._cut(offset, fully=False)

    def _cut(self, offset: int, *, fully: bool) -> list[Effect]:
        """Cut, or first announce the records that would be lost."""
        known = self.metadata
        unclean = known.recovering or known.last_unclean_epoch > self.log.latest_epoch
        why = reason_for(offset, self.high_watermark, fully=fully, unclean=unclean)
        cut = Cut(offset, fully, why)
        if not (self.config.salvage and cut.drops_records(self.log)):
            return self._carry_out(cut)
        end, high_watermark = self.log.log_end_offset, self.high_watermark
        self.events.emit(
            CutAnnounced(known.name, known.leader_epoch, offset, end, high_watermark, fully, cut.why.value)
        )
        self._saving = SalvageFirst(cut, end, high_watermark, self.leader_epoch)
        self.phase = Phase.SALVAGING
        return [self._saving]

    def _then_fetch(self, effects: list[Effect]) -> list[Effect]:
        return effects if self.phase is Phase.SALVAGING else [*effects, FetchAgain(0)]

    def _carry_out(self, cut: Cut) -> list[Effect]:
        """A log of batches may have to cut earlier, at the start of the batch that holds the offset."""
        end, high_watermark = self.log.log_end_offset, self.high_watermark
        if cut.fully:
            # The leader has none of this log's records left: restart at the leader's log start (rule 116).
            self.log.truncate_fully_and_start_at(cut.offset)
            self.high_watermark = cut.offset
            return [
                LogTruncated(self.metadata.name, cut.offset, end, high_watermark, fully=True),
                HighWatermarkSet(cut.offset),
            ]
        self.log.truncate_to(cut.offset)
        truncated = LogTruncated(self.metadata.name, self.log.log_end_offset, end, high_watermark)
        return self._after_truncation(truncated)

    def _after_truncation(self, truncated: LogTruncated) -> list[Effect]:
        """The high watermark never points beyond the log."""
        effects: list[Effect] = [truncated] if truncated.offset < truncated.previous_end_offset else []
        if self.high_watermark > self.log.log_end_offset:
            self._cut_committed = True
            self.high_watermark = self.log.log_end_offset
            effects.append(HighWatermarkSet(self.high_watermark))
        return effects
