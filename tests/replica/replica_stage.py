"""A stage for replicas: real `Partition` objects, an abstract controller, and a network that delivers on demand.

The tests and the transcripts of this package share it. Every message can be held back, delivered out of order, or
lost; metadata reaches each broker when the test says so. After each step `check` compares the stage with the properties
of safety (S1-S6, S10, S14, S17, S18, S21) and raises `Violation` with the name of the broken one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID

from tanist.replica.effects import (
    AskOffsets,
    Effect,
    HighWatermarkAdvanced,
    LogTruncated,
    ProposeIsr,
)
from tanist.replica.follower import FetchedPartition, FetchPosition
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.leader import FollowerFetch, LeaderState
from tanist.replica.memory import Entry, MemoryLog
from tanist.replica.metadata import NO_LEADER, BrokerStatus, PartitionMetadata, ReplicaConfig
from tanist.replica.partition import Partition
from tanist.wire.errors import ErrorCode

TOPIC_ID = UUID(int=7)
LAG_MS = 30_000


class Violation(AssertionError):
    """A property of safety does not hold."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Metadata:
    """One state of the metadata log: the partition and all registrations."""

    partition: PartitionMetadata
    brokers: dict[int, BrokerStatus]


class View:
    """One broker's copy of the registrations, as old as the metadata it has applied."""

    def __init__(self, brokers: dict[int, BrokerStatus]) -> None:
        self.brokers = brokers

    def registration(self, broker_id: int) -> BrokerStatus | None:
        return self.brokers.get(broker_id)


class AbstractController:
    """Decides as rules 24-46 say, ELR on; its metadata log is a list."""

    def __init__(self, brokers: Iterable[int], min_isr: int) -> None:
        ids = tuple(brokers)
        self.min_isr = min_isr
        self.elr: frozenset[int] = frozenset()
        self.brokers = {b: BrokerStatus(epoch=100 + b, fenced=False, shutting_down=False) for b in ids}
        self.next_broker_epoch = 1000
        partition = PartitionMetadata("foo", TOPIC_ID, 0, ids[0], 0, 0, ids, ids)
        self.log = [Metadata(partition, dict(self.brokers))]

    @property
    def partition(self) -> PartitionMetadata:
        return self.log[-1].partition

    def _write(self, partition: PartitionMetadata) -> None:
        self.log.append(Metadata(partition, dict(self.brokers)))

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


@dataclass
class Broker:
    """A broker process: its replica, what it knows, and which life of it this is."""

    replica: Partition
    log: MemoryLog
    view: View
    applied: int
    epoch: int
    life: int = 0
    waiting_acks: list[int] = field(default_factory=list)


class Stage:
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
        self.committed: tuple[Entry, ...] = ()
        """Ghost: what lies below T, the highest high watermark any leader has had, as it was when T passed it."""
        self.fetched_in_epoch: set[tuple[int, int, int]] = set()
        """Ghost: (leader, leader epoch, follower) of each fetch that was let in."""
        self.lossy = lossy
        self.count = 0
        self.brokers: dict[int, Broker] = {}
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
        view = View({})
        replica = self.partition_class(broker, log, self.config, view)
        replica.restore_high_watermark(checkpoint)
        registered = self.controller.brokers[broker].epoch
        self.brokers[broker] = Broker(replica, log, view, -1, registered, life)

    def replica(self, broker: int) -> Partition:
        return self.brokers[broker].replica

    def log(self, broker: int) -> MemoryLog:
        return self.brokers[broker].log

    def leader_state(self, broker: int) -> LeaderState:
        leader = self.replica(broker).leader
        if leader is None:
            raise RuntimeError(f"broker {broker} does not lead")
        return leader

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
        effects = follower.offsets_answered(
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
        at.view.brokers = dict(metadata.brokers)
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
            before = None if known is None else known.snapshot(None, 0)
            decision = leader.follower_fetch(message.fetch, self.now_ms)
            stale = message.fetch.current_leader_epoch != leader.leader_epoch
            if stale and known is not None and known.snapshot(None, 0) != before:
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

    # ---- what must hold

    def _check_truncations(self, broker: int, before: tuple[Entry, ...], effects: list[Effect]) -> None:
        """S21: what is cut off may lie below T, where a leader of old wrote what nobody committed; never part of H."""
        for effect in effects:
            if isinstance(effect, LogTruncated) and not self.lossy:
                for entry in before[effect.offset :]:
                    if entry.offset < len(self.committed) and self.committed[entry.offset] == entry:
                        raise Violation("S21", f"{broker} truncates to {effect.offset}, and {entry} was committed")

    def _high_watermark_advanced(self, broker: int, high_watermark: int) -> None:
        if self.lossy:
            return  # a story of loss: what was committed is no yardstick
        leader = self.leader_state(broker)
        log = self.log(broker)
        needed = min(self.controller.min_isr, len(leader.metadata.replicas))
        if len(leader.isr) < needed:
            raise Violation("S4", f"{broker} advances to {high_watermark} with ISR {leader.isr}, min {needed}")
        fresh = log.entries[:high_watermark]
        for member in sorted(leader.maximal_isr):
            if self.log(member).entries[: len(fresh)] != fresh:
                raise Violation("S4", f"{broker} advances to {high_watermark}, which {member} of its ISR does not have")
        if fresh[: len(self.committed)] != self.committed[: len(fresh)]:
            raise Violation("S5", f"{broker} commits another history: {fresh} is not {self.committed}")
        if len(fresh) > len(self.committed):
            self.committed = fresh

    def _joined(self, leader: int, broker: int) -> None:
        if self.lossy:
            return
        status = self.controller.brokers[broker]
        log = self.log(broker)
        epoch = self.controller.partition.leader_epoch
        if status.fenced or status.shutting_down:
            raise Violation("S14", f"{broker} joins the ISR while {status}")
        if log.entries[: len(self.committed)] != self.committed:
            raise Violation("S14", f"{broker} joins the ISR without all that is committed")
        if (leader, epoch, broker) not in self.fetched_in_epoch:
            raise Violation("S14", f"{broker} joins the ISR and has not fetched in epoch {epoch}")

    def check(self) -> None:
        """All that must hold between two steps. Only for runs in which nobody loses data."""
        oracle = self.committed
        now = self.controller.partition
        candidates = set(now.isr) | set(self.controller.elr)
        for broker in sorted(candidates):
            if self.log(broker).entries[: len(oracle)] != oracle:
                raise Violation("S2", f"{broker} is electable and lacks what is committed")
        leaders: dict[int, int] = {}
        for broker in self.ids:
            at = self.brokers[broker]
            leader = at.replica.leader
            high_watermark = at.replica.high_watermark
            if high_watermark > len(oracle) or at.log.entries[:high_watermark] != oracle[:high_watermark]:
                raise Violation("S18", f"{broker} shows its consumers {at.log.entries[:high_watermark]}")
            if leader is None:
                continue
            if leader.leader_epoch in leaders:
                raise Violation("S10", f"{broker} and {leaders[leader.leader_epoch]} lead in {leader.leader_epoch}")
            leaders[leader.leader_epoch] = broker
            self._check_acks(broker)
            if leader.leader_epoch == now.leader_epoch:
                if len(leader.isr) >= min(self.controller.min_isr, len(now.replicas)) and not (
                    candidates <= leader.maximal_isr
                ):
                    raise Violation("S3", f"{broker} counts with {set(leader.maximal_isr)}, electable: {candidates}")
                if leader.pending is None and leader.maximal_isr != frozenset(leader.isr):
                    raise Violation("S3", f"{broker} has nothing pending and counts with {set(leader.maximal_isr)}")
                if at.log.entries[: len(oracle)] != oracle:
                    raise Violation("S1", f"leader {broker} lacks what is committed")
        self._check_logs()

    def _check_acks(self, broker: int) -> None:
        at = self.brokers[broker]
        leader = self.leader_state(broker)
        for required in list(at.waiting_acks):
            status = leader.acks_status(required)
            if status.done:
                at.waiting_acks.remove(required)
                if not status.error and required > len(self.committed):
                    raise Violation("S17", f"{broker} acknowledges {required}, committed is {len(self.committed)}")

    def _check_logs(self) -> None:
        """S6: what both know to be committed is equal; the same epoch at the same offset means the same past."""
        for first in self.ids:
            for second in self.ids:
                if second <= first:
                    continue
                one, other = self.log(first).entries, self.log(second).entries
                both = min(self.replica(first).high_watermark, self.replica(second).high_watermark)
                if one[:both] != other[:both]:
                    raise Violation("S6", f"{first} and {second} differ below {both}")
                for at in range(min(len(one), len(other)) - 1, -1, -1):
                    if one[at].leader_epoch == other[at].leader_epoch:
                        if one[: at + 1] != other[: at + 1]:
                            raise Violation("S6", f"{first} and {second} have different pasts of offset {at}")
                        break
