"""A stage for replicas: real `Partition` objects, an abstract controller, and a network that delivers on demand.

The tests and the transcripts of this package share it. Every message can be held back, delivered out of order, or
lost; metadata reaches each broker when the test says so. After each step `check` compares the stage with the properties
of safety (`replica_checks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tanist.lab.scenarios.replica import LAG_MS, Brokers
from tanist.replica.effects import (
    AskOffsets,
    Effect,
    HighWatermarkAdvanced,
    ProposeIsr,
)
from tanist.replica.follower import FetchedPartition, FetchPosition
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.leader import FollowerFetch
from tanist.replica.memory import MemoryLog
from tanist.replica.metadata import ReplicaConfig
from tanist.replica.partition import Partition
from tanist.wire.errors import ErrorCode
from tests.replica.replica_checks import Broker, StageChecks
from tests.replica.replica_controller import AbstractController, Violation


@dataclass(frozen=True, slots=True)
class FetchInFlight:
    sender: int
    life: int
    to: int
    fetch: FollowerFetch
    position: FetchPosition


@dataclass(frozen=True, slots=True)
class AnswerInFlight:
    sender: int
    to: int
    life: int
    answer: FetchedPartition
    position: FetchPosition


@dataclass(frozen=True, slots=True)
class ProposalInFlight:
    sender: int
    life: int
    epoch: int
    proposal: ProposeIsr


@dataclass(frozen=True, slots=True)
class ResultInFlight:
    to: int
    life: int
    proposal: ProposeIsr
    result: AlterPartitionResult | None


Message = FetchInFlight | AnswerInFlight | ProposalInFlight | ResultInFlight


class Stage(StageChecks):
    """Brokers 1..n with one replica each of partition foo-0."""

    controller_class: type[AbstractController] = AbstractController

    def __init__(
        self,
        brokers: int = 3,
        min_isr: int = 2,
        partition_class: type[Partition] = Partition,
        *,
        lossy: bool = False,
        fetch_max_entries: int | None = None,
    ) -> None:
        self.fetch_max_entries = fetch_max_entries
        self.ids = tuple(range(1, brokers + 1))
        self.partition_class = partition_class
        self.config = ReplicaConfig(min_insync_replicas=min_isr, replica_lag_time_max_ms=LAG_MS)
        self.controller = self.controller_class(self.ids, min_isr)
        self.now_ms = 1_000
        self.messages: list[Message] = []
        self.effects: list[tuple[int, Effect]] = []
        """All effects so far, with the broker that had them."""
        self.committed = ()
        self.fetched_in_epoch = set()
        self.lossy = lossy
        self.count = 0
        self.brokers = {}
        for broker in self.ids:
            self._start(broker, self.new_log(), 0, life=0)
        for broker in self.ids:
            self.learn(broker)

    # ---- brokers

    def new_log(self) -> MemoryLog:
        return MemoryLog()

    def reopened(self, log: MemoryLog) -> MemoryLog:
        """The log as a new process finds it."""
        return log

    def _start(self, broker: int, log: MemoryLog, checkpoint: int, life: int) -> None:
        view = Brokers()
        replica = self.partition_class(broker, log, self.config, view)
        replica.restore_high_watermark(checkpoint)
        registered = self.controller.brokers[broker].epoch
        self.brokers[broker] = Broker(replica, log, view, -1, registered, life)

    def _take(self, broker: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.effects.append((broker, effect))
            if isinstance(effect, HighWatermarkAdvanced):
                self._high_watermark_advanced(broker, effect.high_watermark)
            elif isinstance(effect, ProposeIsr):
                at = self.brokers[broker]
                self.messages.append(ProposalInFlight(broker, at.life, at.epoch, effect))
            elif isinstance(effect, AskOffsets):
                self._answer_offsets(broker, effect)

    def _answer_offsets(self, broker: int, ask: AskOffsets) -> None:
        """ListOffsets as a replica, at once: only its order with the fetches matters, and it replaces a fetch."""
        follower = self.replica(broker).follower
        leader = self.replica(ask.leader)
        if follower is None:
            return
        if leader.leader is None or leader.leader_epoch != ask.current_leader_epoch:
            self._take(broker, follower.offsets_failed(ask.current_leader_epoch, self.now_ms))
            return
        log, before = leader.log, self.log(broker).entries
        effects = follower.handle_offsets_response(
            log.log_start_offset, log.log_end_offset, ask.current_leader_epoch, self.now_ms
        )
        self._check_truncations(broker, before, effects)
        self._take(broker, effects)

    # ---- what may happen

    def learn(self, broker: int, up_to: int | None = None) -> None:
        """The broker applies the metadata log: all of it seen as one batch, or up to an index."""
        at = self.brokers[broker]
        last = len(self.controller.log) - 1 if up_to is None else up_to
        if last <= at.applied:
            return
        metadata = self.controller.log[last]
        at.view.clear()
        at.view.update(metadata.brokers)
        at.applied = last
        if metadata.brokers[broker].epoch != at.epoch:
            return  # from a former life: what it says about our role is not about this log
        self._take(broker, at.replica.apply_metadata(metadata.partition, self.now_ms))
        if at.replica.leader is None:
            at.waiting_acks.clear()

    def learn_next(self, broker: int) -> None:
        self.learn(broker, min(self.brokers[broker].applied + 1, len(self.controller.log) - 1))

    def learn_all(self) -> None:
        for broker in self.ids:
            self.learn(broker)

    def append(self, broker: int, values: Iterable[str] | int = 1, acks: int = 1) -> int:
        """A producer writes at `broker`, if that believes it leads. The error code."""
        at = self.brokers[broker]
        leader = at.replica.leader
        if leader is None:
            return int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        error = leader.check_before_append(acks)
        if error:
            return error
        if isinstance(values, int):
            values = [f"v{self.count + n}" for n in range(values)]
            self.count += len(values)
        at.log.append_as_leader(values, leader.leader_epoch)
        if acks == -1:
            at.waiting_acks.append(at.log.log_end_offset)
        self._take(broker, leader.appended(self.now_ms))
        return 0

    def send_fetch(self, broker: int, to: int | None = None) -> FetchInFlight | None:
        """A follower asks its leader (or its former leader)."""
        at = self.brokers[broker]
        follower = at.replica.follower
        if follower is None or not follower.may_fetch(self.now_ms):
            return None
        position = follower.fetch_position()
        fetch = FollowerFetch(
            broker,
            at.epoch,
            position.offset,
            position.last_fetched_epoch,
            position.current_leader_epoch,
            position.log_start_offset,
        )
        message = FetchInFlight(broker, at.life, follower.leader if to is None else to, fetch, position)
        self.messages.append(message)
        return message

    def deliver(self, message: Message) -> Message | None:
        """A message arrives; the answer, if there is one, is in flight then."""
        self.messages.remove(message)
        already = len(self.messages)
        match message:
            case FetchInFlight():
                self._deliver_fetch(message)
            case AnswerInFlight():
                self._deliver_answer(message)
            case ProposalInFlight():
                result = self.controller_takes(message)
                self.messages.append(ResultInFlight(message.sender, message.life, message.proposal, result))
            case ResultInFlight():
                self._deliver_result(message)
        return self.messages[-1] if len(self.messages) > already else None

    def drop(self, message: Message) -> None:
        """A message is lost. One that expected an answer gets none, and its sender will know."""
        self.messages.remove(message)
        if isinstance(message, ProposalInFlight | ResultInFlight):
            to = message.sender if isinstance(message, ProposalInFlight) else message.to
            at = self.brokers[to]
            if at.life == message.life:
                self._take(to, at.replica.alter_partition_failed(message.proposal, self.now_ms))

    def _deliver_fetch(self, message: FetchInFlight) -> None:
        at = self.brokers[message.to]
        leader = at.replica.leader
        if leader is None:
            error = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            answer = FetchedPartition(error=error)
        else:
            known = leader.remotes.get(message.sender)
            before = None if known is None else known.snapshot()
            decision = leader.follower_fetch(message.fetch, self.now_ms)
            stale = message.fetch.current_leader_epoch != leader.leader_epoch
            if stale and known is not None and known.snapshot() != before:
                raise Violation("S11", f"{message.to} believed a fetch of epoch {message.fetch.current_leader_epoch}")
            if not decision.error and decision.diverging is None:
                self.fetched_in_epoch.add((message.to, leader.leader_epoch, message.sender))
            records = None
            if not decision.error and decision.diverging is None:
                records = at.log.read(message.fetch.fetch_offset, at.log.log_end_offset, self.fetch_max_entries)
            answer = FetchedPartition(
                error=decision.error,
                high_watermark=decision.high_watermark,
                log_start_offset=at.log.log_start_offset,
                records=records,
                diverging_epoch=decision.diverging,
            )
            self._take(message.to, decision.effects)
        self.messages.append(AnswerInFlight(message.to, message.sender, message.life, answer, message.position))

    def _deliver_answer(self, message: AnswerInFlight) -> None:
        at = self.brokers[message.to]
        follower = at.replica.follower
        if at.life == message.life and follower is not None:
            before = at.log.entries
            effects = follower.fetched(message.answer, message.position, self.now_ms)
            self._check_truncations(message.to, before, effects)
            self._take(message.to, effects)

    def controller_takes(self, message: ProposalInFlight) -> AlterPartitionResult | None:
        before = frozenset(self.controller.partition.isr)
        result = self.controller.alter_partition(message.sender, message.epoch, message.proposal)
        if result is not None and not result.error:
            for broker in sorted(frozenset(result.isr) - before):
                self._joined(message.sender, broker)
        return result

    def _deliver_result(self, message: ResultInFlight) -> None:
        at = self.brokers[message.to]
        if at.life != message.life:
            return
        if message.result is None:
            self._take(message.to, at.replica.alter_partition_failed(message.proposal, self.now_ms))
        else:
            self._take(message.to, at.replica.alter_partition_done(message.proposal, message.result, self.now_ms))

    def check_lag(self, broker: int) -> None:
        leader = self.replica(broker).leader
        if leader is not None:
            self._take(broker, leader.check_lag(self.now_ms))

    def restart(self, broker: int, *, checkpoint: int | None = None, keep: int | None = None) -> None:
        """The process dies and a new one starts, on its whole log or (a loss of power) on the first `keep` records."""
        at = self.brokers[broker]
        if keep is not None and keep < at.log.log_end_offset:
            at.log.truncate_to(keep)
        saved = at.replica.high_watermark if checkpoint is None else min(checkpoint, at.replica.high_watermark)
        self.controller.register(broker, clean=keep is None)
        self._start(broker, self.reopened(at.log), saved, at.life + 1)

    # ---- shorthand for steps that belong together

    def fetch(self, broker: int) -> None:
        """A whole round: ask, be answered, take it in."""
        sent = self.send_fetch(broker)
        if sent is not None:
            answer = self.deliver(sent)
            if answer is not None:
                self.settle_answer(sent)

    def ask(self, broker: int) -> None:
        """Half a round: the leader hears the fetch, its answer is lost."""
        sent = self.send_fetch(broker)
        if sent is not None:
            answer = self.deliver(sent)
            if answer is not None:
                self.messages.remove(answer)

    def settle_answer(self, sent: FetchInFlight) -> None:
        for message in list(self.messages):
            if isinstance(message, AnswerInFlight) and message.to == sent.sender and message.position == sent.position:
                self.deliver(message)

    def settle_proposals(self) -> None:
        """The controller answers all there is to answer, and the answers arrive."""
        while True:
            waiting = [m for m in self.messages if isinstance(m, ProposalInFlight | ResultInFlight)]
            if not waiting:
                return
            self.deliver(waiting[0])
