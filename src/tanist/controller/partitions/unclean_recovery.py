"""Unclean Recovery: the election when no replica is left that surely has every committed record (KIP-966, second part).

Owns the partitions without a leader: which of them may be recovered, the replicas whose logs are compared, when the
answers are enough, and the elected replica. A state machine: changes of the image, answers of replicas and the time go
in; partition changes and questions (`AskReplica`) come out. Nothing of it is in the metadata log (KIP: "every
controller failover will result in a new unclean recovery").

The KIP's rules, as kept here (the sentences are those of its section "Unclean recovery"):
- Trigger. "If there are fenced ELR members": Aggressive recovers, Balanced and None wait. "If there are no ELR
  members": Aggressive recovers; Balanced "when all the LastKnownELR are unfenced"; None waits for an operator.
- Enough. Balanced: "all the LastKnownELR members have replied, plus the replicas replied within the timeout".
  Aggressive: "any replicas replied within a fixed amount of time OR the first response received after the timeout".
- Freshness. An answer counts only with the broker epoch of the replica's registration ("this can avoid electing a
  broker that has rebooted after it made the response") and the partition's leader epoch ("to fence stale responses").
- Choice. "The one with the highest leader epoch plus the longest log end offset": epochs first (safety U2, A39).
  Balanced prefers members of LastKnownELR to a log that lacks what they have: the KIP's choice loses committed records
  although nobody has lost any (`_best`).

Where the KIP leaves a choice: a replica that cannot answer is not waited for. A recovery is over as soon as every
replica has answered; one that is fenced is not waited for by Balanced (unless it is in LastKnownELR), and by Aggressive
for the `unclean_recovery_grace_ms` only, so that the first broker back after a loss of power does not win by a second.
These times begin when there is a replica to ask, or an outage longer than they are would make the first one back win.
A member of LastKnownELR that was unregistered will not return, and is not waited for. A fenced member of the ISR counts
as one of the ELR: it is there where ELR was switched on after the last member had gone.

Must never elect while a member of ISR or ELR could lead (U1): that is an election, and is tried first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush

from tanist.controller.decision import BY_THE_LONGEST_LOG, ControllerSettings, Decision, UncleanReason
from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.image import MetadataImage, PartitionState
from tanist.controller.partitions.change import Election, Intent, partition_change
from tanist.controller.partitions.context import PartitionContexts
from tanist.controller.partitions.log_info import LogInfo
from tanist.controller.partitions.recovery_strategy import Strategy, recovers_uncleanly, recovery_strategy
from tanist.events.metadata import LogInfoDropped, RecoveriesBegunAnew, RecoveryDecided, RecoveryPhaseEntered
from tanist.events.stream import NOBODY, Events
from tanist.wire.ids import TopicIdPartition
from tanist.wire.schema import MetadataRecord

MAX_PARTITIONS_A_QUESTION = 1_000
"""KIP: "If more than 1000 partitions are included, only the first 1000 will be served"."""

_MAX_ELECTIONS_A_STEP = 1_000
_BEHIND_MS = 50
"""The pause when a replica's metadata is older than ours: it will catch up shortly."""
_RETRY_MS = 500
_RETRY_MAX_MS = 10_000
"""The pause when a replica did not answer, or has an error for the partition; it doubles until then."""
_DOUBLINGS = 5


class Phase(Enum):
    """The state of a partition without a leader."""

    ELIGIBLE_AWAITED = "a member of the ISR or the ELR is waited for"
    OPERATOR_AWAITED = "nobody is eligible, and the strategy is to wait for an operator"
    LAST_KNOWN_AWAITED = "members of LastKnownElr are waited for"
    COMPARING = "the replicas are asked for their logs"


@dataclass(frozen=True, slots=True)
class AskReplica:
    """Effect: send the broker a GetReplicaLogInfo; `handle_replica_log_info` or `unanswered` is to follow."""

    broker_id: int
    partitions: tuple[TopicIdPartition, ...]


@dataclass(slots=True)
class _Recovery:
    """One partition without a leader."""

    phase: Phase = Phase.ELIGIBLE_AWAITED
    strategy: Strategy = Strategy.BALANCED
    deadline_ms: int = 0
    """The end of the wait for answers that are not needed."""
    grace_ms: int = 0
    """The end of Aggressive's wait for absent replicas."""
    somebody_live: bool = False
    """A replica could be asked when it was last looked at."""
    answers: dict[int, LogInfo] = field(default_factory=dict)


@dataclass(slots=True)
class _Inquiry:
    """The inquiries to one broker: one request at a time."""

    requested: dict[TopicIdPartition, int] = field(default_factory=dict)
    """Partition -> not before this time."""
    under_way: tuple[TopicIdPartition, ...] = ()


class UncleanRecoveries:
    """All partitions without a leader, while this controller is active."""

    def __init__(self, settings: ControllerSettings, events: Events = NOBODY) -> None:
        self._settings = settings
        self._events = events
        self._watched: dict[TopicIdPartition, _Recovery] = {}
        self._marked: dict[TopicIdPartition, None] = {}
        """To be looked at by the next step."""
        self._requested: dict[TopicIdPartition, Strategy] = {}
        """An operator's strategy, which overrides the configuration."""
        self._inquiries: dict[int, _Inquiry] = {}
        self._failures: dict[int, dict[TopicIdPartition, int]] = {}
        """By broker: the times that it was asked for a partition in vain, since it last registered."""
        self._timers: list[tuple[int, TopicIdPartition]] = []
        self.finished = 0
        """KIP metric unclean_recovery_finished_count: since the process started."""

    # -- what there is

    def count(self, phase: Phase) -> int:
        return sum(1 for recovery in self._watched.values() if recovery.phase is phase)

    @property
    def live_count(self) -> int:
        """KIP metric unclean_recovery_partitions_count: also those that wait for members of LastKnownElr."""
        return self.count(Phase.COMPARING) + self.count(Phase.LAST_KNOWN_AWAITED)

    def phase_of(self, key: TopicIdPartition) -> Phase | None:
        recovery = self._watched.get(key)
        return None if recovery is None else recovery.phase

    # -- events

    def activate(self, image: MetadataImage) -> None:
        """This controller has become active: it knows nothing of recoveries that another one has begun."""
        self.deactivate()
        self._marked.update(dict.fromkeys(image.leaderless_partitions()))
        if self._marked:
            self._events.emit(RecoveriesBegunAnew(len(self._marked)))

    def deactivate(self) -> None:
        self._watched.clear()
        self._marked.clear()
        self._requested.clear()
        self._inquiries.clear()
        self._failures.clear()
        self._timers.clear()

    def changed(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Records were replayed."""
        for topic_id, partitions in delta.partitions.items():
            for partition in partitions:
                state = image.partition(topic_id, partition)
                if state is not None and not state.has_leader:
                    self._marked[(topic_id, partition)] = None
                else:
                    self._forget((topic_id, partition))
        for topic_id, deleted in delta.deleted_topics.items():
            for partition in deleted.partitions:
                self._forget((topic_id, partition))
        if delta.configs or delta.features:
            self._marked.update(dict.fromkeys(image.leaderless_partitions()))
        elif delta.brokers:
            self._ask_soon(delta.brokers)
            for topic_id, partition in self._watched:
                state = image.partition(topic_id, partition)
                if state is not None and not delta.brokers.keys().isdisjoint(state.replicas):
                    self._marked[(topic_id, partition)] = None

    def request(self, key: TopicIdPartition, strategy: Strategy) -> None:
        """An operator's request: recover this partition by this strategy, whatever is configured."""
        self._requested[key] = strategy
        self._marked[key] = None

    def withdraw(self, key: TopicIdPartition) -> None:
        """The operator's request has ended: the configuration holds again."""
        if self._requested.pop(key, None) is not None:
            self._marked[key] = None

    def handle_replica_log_info(
        self, broker_id: int, answers: Mapping[TopicIdPartition, LogInfo], image: MetadataImage, now_ms: int
    ) -> None:
        """A broker has answered an inquiry. Partitions without a usable answer are asked for again."""
        inquiry = self._inquiries.get(broker_id)
        if inquiry is None:
            return  # sent in an earlier leadership
        asked, inquiry.under_way = inquiry.under_way, ()
        for key in asked:
            recovery = self._watched.get(key)
            if recovery is None:
                continue
            answer = answers.get(key)
            state = image.partition(*key)
            if answer is None or state is None:
                inquiry.requested[key] = now_ms + self._retry_ms(broker_id, key)
            elif self._is_fresh(answer, broker_id, key, image):
                recovery.answers[broker_id] = answer
                self._failures.get(broker_id, {}).pop(key, None)
                self._marked[key] = None
            else:
                inquiry.requested[key] = now_ms + _BEHIND_MS

    def unanswered(self, broker_id: int, now_ms: int) -> None:
        """No answer will come."""
        inquiry = self._inquiries.get(broker_id)
        if inquiry is not None:
            asked, inquiry.under_way = inquiry.under_way, ()
            for key in asked:
                if key in self._watched:
                    inquiry.requested[key] = now_ms + self._retry_ms(broker_id, key)

    # -- time

    @property
    def next_deadline_ms(self) -> int | None:
        """When there is something to do: `step`, then `questions`. 0 means at once."""
        if self._marked:
            return 0
        times = [self._timers[0][0]] if self._timers else []
        times += (min(i.requested.values()) for i in self._inquiries.values() if i.requested and not i.under_way)
        return min(times, default=None)

    def step(self, image: MetadataImage, now_ms: int) -> Decision:
        """Handle changed and due partitions, and elect where the rules allow it."""
        while self._timers and self._timers[0][0] <= now_ms:
            key = heappop(self._timers)[1]
            if key in self._watched:
                self._marked[key] = None
        contexts = PartitionContexts(image, self._settings)
        enabled = recovers_uncleanly(image, self._settings)
        records: list[MetadataRecord] = []
        reasons: dict[TopicIdPartition, UncleanReason] = {}
        while self._marked and len(records) < _MAX_ELECTIONS_A_STEP:
            key = self._marked.popitem()[0]
            state = image.partition(*key)
            if not enabled or state is None or state.has_leader:
                self._forget(key)
                continue
            change = partition_change(state, Intent(topic_id=key[0], partition=key[1]), contexts.of(key[0], state))
            if change is not None and change.leader >= 0:
                records.append(change)  # a member of the ELR is back, by an event that does not elect by itself
                continue
            chosen = self._update_partition(key, state, image, contexts, now_ms)
            if chosen is None:
                continue
            intent = Intent(topic_id=key[0], partition=key[1], election=Election.DESIGNATED, desired_leader=chosen)
            change = partition_change(state, intent, contexts.of(key[0], state))
            if change is not None:
                records.append(change)
                self.finished += 1
                reasons[key] = _reason(self._watched[key], asked=key in self._requested)
        return Decision(tuple(records), atomic=False, reasons=reasons)

    def questions(self, now_ms: int) -> list[AskReplica]:
        """The inquiries to send now. Each must be followed by `handle_replica_log_info` or `unanswered`."""
        asked: list[AskReplica] = []
        for broker_id, inquiry in list(self._inquiries.items()):
            if inquiry.under_way:
                continue
            due = [key for key, not_before_ms in inquiry.requested.items() if not_before_ms <= now_ms]
            for key in due:
                if key not in self._watched:
                    del inquiry.requested[key]
            chosen = [key for key in due if key in self._watched][:MAX_PARTITIONS_A_QUESTION]
            for key in chosen:
                del inquiry.requested[key]
            if chosen:
                # By topic, as in the request; partitions within a topic are in the order of their marking.
                inquiry.under_way = tuple(sorted(chosen))
                asked.append(AskReplica(broker_id, inquiry.under_way))
            elif not inquiry.requested:
                del self._inquiries[broker_id]
        return asked

    # -- one partition

    def _update_partition(
        self,
        key: TopicIdPartition,
        state: PartitionState,
        image: MetadataImage,
        contexts: PartitionContexts,
        now_ms: int,
    ) -> int | None:
        """Update the state of one partition; the replica to elect, if that is decided."""
        known = self._watched.get(key)
        recovery = known or self._watched.setdefault(key, _Recovery())
        topic = image.topics[key[0]].name
        strategy = self._requested.get(key) or recovery_strategy(image, topic, self._settings.node_id)
        acceptable = contexts.acceptable(state)
        live = [replica for replica in state.replicas if acceptable(replica)]
        needed = _needed(state, image)
        phase = _phase(strategy, state, live, needed)
        began = phase is Phase.COMPARING and (
            recovery.phase is not phase or recovery.strategy is not strategy or (live and not recovery.somebody_live)
        )
        if known is None or (phase, strategy) != (recovery.phase, recovery.strategy):
            self._events.emit(RecoveryPhaseEntered(f"{topic}-{key[1]}", phase.name, strategy.value))
        recovery.phase, recovery.strategy, recovery.somebody_live = phase, strategy, bool(live)
        if phase is not Phase.COMPARING:
            return None
        if began:
            recovery.deadline_ms = now_ms + self._settings.unclean_recovery_timeout_ms
            recovery.grace_ms = now_ms + min(
                self._settings.unclean_recovery_grace_ms, self._settings.unclean_recovery_timeout_ms
            )
            heappush(self._timers, (recovery.grace_ms, key))
            heappush(self._timers, (recovery.deadline_ms, key))
        valid = {
            broker_id: answer
            for broker_id, answer in recovery.answers.items()
            if broker_id in live and self._is_fresh(answer, broker_id, key, image)
        }
        recovery.answers = valid
        if _enough(recovery, live, needed, state, now_ms):
            best = _best(valid, state.replicas, needed if strategy is Strategy.BALANCED else ())
            unheard = tuple(broker_id for broker_id in live if broker_id not in valid)
            self._events.emit(RecoveryDecided(f"{topic}-{key[1]}", best, strategy.value, unheard))
            return best
        for broker_id in live:
            if broker_id not in valid:
                self._ask(broker_id, key, now_ms)
        return None

    def _is_fresh(self, answer: LogInfo, broker_id: int, key: TopicIdPartition, image: MetadataImage) -> bool:
        topic = image.topics[key[0]]
        if _fresh(answer, broker_id, topic.partitions[key[1]], image):
            return True
        registration = image.brokers.get(broker_id)
        other = registration is None or registration.epoch != answer.broker_epoch
        name = f"{topic.name}-{key[1]}"
        self._events.emit(LogInfoDropped(name, broker_id, answer.broker_epoch, answer.leader_epoch, other))
        return False

    def _ask(self, broker_id: int, key: TopicIdPartition, now_ms: int) -> None:
        inquiry = self._inquiries.setdefault(broker_id, _Inquiry())
        if key not in inquiry.under_way:
            inquiry.requested.setdefault(key, now_ms)

    def _retry_ms(self, broker_id: int, key: TopicIdPartition) -> int:
        """The pause after one more inquiry in vain."""
        failures = self._failures.setdefault(broker_id, {})
        times = failures[key] = failures.get(key, 0) + 1
        return _RETRY_MAX_MS if times > _DOUBLINGS else _RETRY_MS << (times - 1)

    def _ask_soon(self, broker_ids: Iterable[int]) -> None:
        """Something is new about these brokers: what they were asked in vain is asked again at once."""
        for broker_id in broker_ids:
            inquiry = self._inquiries.get(broker_id)
            if self._failures.pop(broker_id, None) and inquiry is not None:
                inquiry.requested = dict.fromkeys(inquiry.requested, 0)

    def _forget(self, key: TopicIdPartition) -> None:
        """It has a leader, or is gone."""
        for failures in self._failures.values():
            failures.pop(key, None)
        self._watched.pop(key, None)
        self._marked.pop(key, None)
        self._requested.pop(key, None)


def _needed(state: PartitionState, image: MetadataImage) -> tuple[int, ...]:
    """The replicas whose answers Balanced needs: LastKnownElr, or all when none of it can return."""
    registered = [replica for replica in state.replicas if replica in image.brokers]
    last_known = tuple(replica for replica in registered if replica in state.last_known_elr)
    return last_known or tuple(registered)


def _phase(strategy: Strategy, state: PartitionState, live: Iterable[int], needed: Iterable[int]) -> Phase:
    """KIP-966, "leader election", 3 and 4."""
    if strategy is Strategy.AGGRESSIVE:
        return Phase.COMPARING
    if state.elr or state.isr:
        return Phase.ELIGIBLE_AWAITED
    if strategy is Strategy.NONE:
        return Phase.OPERATOR_AWAITED
    return Phase.COMPARING if set(needed) <= set(live) else Phase.LAST_KNOWN_AWAITED


def _fresh(answer: LogInfo, broker_id: int, state: PartitionState, image: MetadataImage) -> bool:
    """Safety U3. A replica with an older leader epoch may still be appending records of its last leader."""
    registration = image.brokers.get(broker_id)
    if registration is None or registration.epoch != answer.broker_epoch:
        return False
    return answer.leader_epoch == state.leader_epoch


def _enough(recovery: _Recovery, live: list[int], needed: tuple[int, ...], state: PartitionState, now_ms: int) -> bool:
    answers = recovery.answers
    if not answers:
        return False
    all_live = all(broker_id in answers for broker_id in live)
    if recovery.strategy is Strategy.BALANCED:
        return all(broker_id in answers for broker_id in needed) and (all_live or now_ms >= recovery.deadline_ms)
    if all(broker_id in answers for broker_id in state.replicas) or now_ms >= recovery.deadline_ms:
        return True
    return all_live and now_ms >= recovery.grace_ms


def _best(answers: Mapping[int, LogInfo], replicas: Iterable[int], last_known: Collection[int]) -> int:
    """The most recent epoch, then the longest log, then the order of the replica list.

    Balanced elects another replica than one of LastKnownElr (`last_known`) only if nothing of theirs is lost by that.
    The others left the ISR before them, and a later epoch alone does not make up for it: a leader commits records of
    earlier epochs, too, and may write none of its own. Then a former leader that has written in between, in vain, has
    the later epoch. Among members of LastKnownElr the comparison is right: each had all that is committed, so the best
    has lost none of it unless all have lost some (safety U4).
    """
    order = [replica for replica in replicas if replica in answers]
    known = [answers[replica] for replica in order if replica in last_known]
    if known:
        least = max(known, key=lambda answer: answer.position)
        order = [replica for replica in order if answers[replica] is least or answers[replica].contains(least)]
    return max(order, key=lambda replica: answers[replica].position)


def _reason(recovery: _Recovery, *, asked: bool) -> UncleanReason:
    logs = tuple((broker_id, *answer.position) for broker_id, answer in sorted(recovery.answers.items()))
    return UncleanReason(recovery.strategy.value, logs, BY_THE_LONGEST_LOG if asked else "")
