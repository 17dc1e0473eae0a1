"""The safety properties as predicates: each gives the properties that do not hold, with the reason.

Owns the safety properties as far as the model covers them. T is the highest high watermark that a leader has had, H the
records below it as they were then (`History.committed`); only the checker knows them.

S1 a leader has H; S2 each electable replica has H; S3 a leader counts with all electable replicas; S4 the high
watermark moves only if the ISR meets min ISR, over records that all of the maximal ISR have; S5 H only grows; S6 logs
match; S7 committed records survive; S8 no replica is electable after an unclean restart; S9 epochs; S10 one leader per
epoch; S11 old epochs have no effect; S12 structure; S13 the last known candidates are enough; S14 joining the ISR; S15
entering the ELR; S18 consumers' reads; S19 a new leader's log end; S21 truncation; U1-U5 unclean elections; L4 (its
safe half) no replica that could lead is left waiting.

Must never remember anything: `properties` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.lab.model.partition import replicating
from tanist.lab.model.partition.components import (
    Broker,
    Controller,
    History,
    LeaderReplica,
    Log,
    Reply,
    Request,
    SentFetch,
    members,
    size,
)
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.replicating import Advance
from tanist.lab.model.steps import Violation


def common_prefix(log: Log, other: Log) -> int:
    shared = 0
    for one, two in zip(log, other):
        if one != two:
            break
        shared += 1
    return shared


# -- of a state -------------------------------------------------------------------------------------------------------


def structure(configuration: Configuration, at: Controller, history: History) -> Iterator[Violation]:
    """S8, S12, S13 and L4: the controller's state of the partition."""
    isr, elr, lost = at.isr, at.elr, at.last_known_elr
    if (isr | elr) & ~at.replicas:
        yield Violation("S12", "the ISR or the ELR has a broker that is no replica")
    if isr & elr:
        yield Violation("S12", f"{_first(isr & elr)} is in the ISR and in the ELR")
    if at.leader >= 0 and not isr >> at.leader & 1:
        yield Violation("S12", f"leader {at.leader + 1} is not in the ISR {set_text(isr)}")
    if configuration.elr:
        if size(isr) >= at.effective_min_isr and elr | lost:
            yield Violation("S12", "the ISR has min.insync.replicas members, and there is an ELR or a LastKnownElr")
        if at.leader < 0 and isr:
            yield Violation("S12", f"nobody leads, and there is an ISR: {set_text(isr)}")
        for broker in members(isr):
            if not at.registrations[broker].active:
                yield Violation("S12", f"{broker + 1} is in the ISR, and is fenced or shutting down")
    if configuration.recovery_manager and (elr | isr) & lost:
        yield Violation("S12", f"{_first((elr | isr) & lost)} is a candidate and in LastKnownElr")
    if at.leader < 0 and not isr:
        for broker in members(elr):
            if at.registrations[broker].active:
                yield Violation("L4", f"{broker + 1} is eligible and there, and nobody leads")
    if history.recovered:
        return
    electable = at.candidates | (1 << at.leader if at.leader >= 0 else 0)
    for broker in members(history.unclean & electable):
        yield Violation("S8", f"{broker + 1} was not shut down cleanly, has not caught up since, and could be elected")
    full = configuration.recovery_manager and configuration.elr
    steady = not at.adding | at.removing and not configuration.budget.min_isr_changes
    known = isr | elr | lost
    if full and steady and history.committed and size(isr) < at.effective_min_isr > size(known):
        yield Violation("S13", f"only {set_text(known)} are in the ISR, the ELR or LastKnownElr")


def possession(
    configuration: Configuration, at: Controller, history: History, common: Sequence[int]
) -> Iterator[Violation]:
    """S1, S2 and S7. `common[b]` is the number of records of H that broker b has."""
    whole = len(history.committed)
    if at.leader >= 0 and common[at.leader] < whole:
        lost = history.committed[common[at.leader]]
        yield Violation("S1", f"{at.leader + 1} leads and lacks {record_text(lost)}, which was committed")
    for broker in members(at.candidates):
        if common[broker] < whole:
            lost = history.committed[common[broker]]
            yield Violation("S2", f"{broker + 1} could be elected and lacks {record_text(lost)}, which was committed")
    holders = sum(1 for each in common if each == whole)
    committed_to = min(at.effective_min_isr, configuration.min_isr - configuration.budget.min_isr_changes)
    needed = committed_to - size(history.lossy)
    if holders < needed and not history.recovered:
        yield Violation("S7", f"{holders} brokers have all that was committed, {needed} or more must")


def sight(state: Broker, history: History) -> Iterator[Violation]:
    """S18: a replica gives its consumers the records below its high watermark."""
    seen, committed = state.log[: state.high_watermark], history.committed
    if state.high_watermark > len(committed) or seen != committed[: state.high_watermark]:
        yield Violation(
            "S18",
            f"consumers may read up to {state.high_watermark}, which is {log_text(seen)}, and {log_text(committed)} "
            "is committed",
        )


def leadership(at: Controller, history: History, broker: int, state: Broker) -> Iterator[Violation]:
    """S3, S10 and S19, of a leader in the present epoch."""
    role = state.role
    if not isinstance(role, LeaderReplica) or role.leader_epoch != at.leader_epoch:
        return
    if at.leader != broker:
        yield Violation("S10", f"{broker + 1} leads in epoch {at.leader_epoch}, which is not its own")
    missing = at.candidates & ~role.maximal
    if missing and size(role.isr) >= min(role.min_isr, size(role.replicas)):
        yield Violation(
            "S3", f"leader {broker + 1} counts with {set_text(role.maximal)}, and {_first(missing)} is electable"
        )
    if role.pending is None and role.maximal != role.isr:
        yield Violation("S3", f"leader {broker + 1} has no proposal out, and counts with {set_text(role.maximal)}")
    behind = state.high_watermark < len(history.committed) and not history.recovered
    if behind and replicating.knows_what_is_committed(broker, state):
        yield Violation("S19", f"leader {broker + 1} says that {state.high_watermark} records are committed: more are")


def matching(one: Log, two: Log) -> Iterator[Violation]:
    """S6: the same epoch at the same offset means the same past."""
    for at in range(common_prefix(one, two), min(len(one), len(two))):
        if one[at][0] == two[at][0]:
            yield Violation("S6", f"logs {log_text(one)} and {log_text(two)} agree in an epoch and not in its past")
            return


# -- of a step of the controller --------------------------------------------------------------------------------------


def change(before: Controller, after: Controller) -> Iterator[Violation]:
    """S9 and S15."""
    if after.leader_epoch < before.leader_epoch or after.partition_epoch < before.partition_epoch:
        yield Violation("S9", "an epoch goes back")
    if after.leader not in (before.leader, -1) and after.leader_epoch <= before.leader_epoch:
        yield Violation("S9", f"{after.leader + 1} leads in the epoch of another")
    same = after._replace(registrations=before.registrations, recovery=before.recovery) == before
    if not same and after.partition_epoch <= before.partition_epoch and after.min_isr == before.min_isr:
        yield Violation("S9", "the partition changes without a new partition epoch")
    completed = before.adding and not after.adding and after.replicas & before.adding
    if completed and size(after.isr) < after.effective_min_isr:
        yield Violation("S12", f"a reassignment ends with {set_text(after.isr)} in sync, fewer than it takes")
    entered = after.elr & ~before.elr
    for broker in members(entered & ~before.isr):
        yield Violation("S15", f"{broker + 1} enters the ELR and was not in the ISR")
    if entered and size(after.isr) >= after.effective_min_isr:
        yield Violation("S15", f"{_first(entered)} enters the ELR beside an ISR that is large enough")


def joining(
    after: Controller, joined: int, brokers: Sequence[Broker], sender: Broker, history: History
) -> Iterator[Violation]:
    """S14, of brokers that a leader has had added to the ISR."""
    role = sender.role
    for broker in members(joined):
        if not after.registrations[broker].active:
            yield Violation("S14", f"{broker + 1} joins the ISR, and is fenced or shutting down")
        if common_prefix(brokers[broker].log, history.committed) < len(history.committed):
            yield Violation("S14", f"{broker + 1} joins the ISR without all that was committed")
        same_epoch = isinstance(role, LeaderReplica) and role.leader_epoch == after.leader_epoch
        if same_epoch and isinstance(role, LeaderReplica) and not role.heard >> broker & 1:
            yield Violation("S14", f"{broker + 1} joins the ISR, and has not fetched in epoch {after.leader_epoch}")


def unclean_election(
    configuration: Configuration, before: Controller, after: Controller, compared: tuple[Reply, ...]
) -> Iterator[Violation]:
    """U1 and U5: the elected replica was neither in sync nor eligible; `compared` are the replies that elected it."""
    strategy = configuration.strategy if configuration.recovery_manager else None
    chosen = after.leader + 1
    if strategy is None:
        # KIP-966's first phase: the last known leader, when no other is left.
        if before.candidates or before.last_known_elr != 1 << after.leader:
            yield Violation("U1", f"{chosen} is elected, and was not the last known leader")
    elif strategy is Strategy.NONE or not compared:
        yield Violation("U1", f"{chosen} is elected uncleanly, and nobody has asked for that")
    elif strategy is Strategy.BALANCED and before.candidates:
        yield Violation("U1", f"{chosen} is elected, and there are candidates: {set_text(before.candidates)}")
    elif any(before.registrations[broker].active for broker in members(before.elr)):
        yield Violation("U1", f"{chosen} is elected, and a member of the ELR is there")
    if (after.isr, after.elr, after.last_known_elr) != (1 << after.leader, 0, 0) or not after.recovering:
        yield Violation("U5", f"{chosen} is elected uncleanly, and not all that was known before is forgotten")


def comparison(
    configuration: Configuration,
    before: Controller,
    chosen: int,
    compared: tuple[Reply, ...],
    brokers: Sequence[Broker],
    history: History,
) -> Iterator[Violation]:
    """U2, U3 and U4, of an election by the replicas' replies about their logs."""
    if not compared:
        return
    for reply in compared:
        sent = brokers[reply.broker]
        fresh = reply.broker_epoch == sent.epoch and reply.leader_epoch == before.leader_epoch
        if not fresh or reply.end_offset != len(sent.log):
            yield Violation("U3", f"what {reply.broker + 1} said of its log is not so any more, and it counts")
    log = brokers[chosen].log
    last_known = [reply for reply in compared if before.last_known_elr >> reply.broker & 1]
    least: Log = ()
    if configuration.strategy is Strategy.BALANCED and last_known:
        least = brokers[max(last_known, key=_position).broker].log
        if common_prefix(log, least) < len(least):
            yield Violation("U2", f"{chosen + 1} is chosen, and lacks records of the best of LastKnownElr")
    best = max(
        _position(reply)
        for reply in compared
        if common_prefix(brokers[reply.broker].log, least) == len(least) or reply.broker == chosen
    )
    if best not in [_position(reply) for reply in compared if reply.broker == chosen]:
        yield Violation("U2", f"{chosen + 1} is chosen, and another has a later epoch or more records")
    if configuration.strategy is not Strategy.BALANCED:
        return
    needed = before.last_known_elr or before.replicas
    unheard = needed & ~sum(1 << reply.broker for reply in compared)
    if unheard:
        yield Violation("U2", f"{chosen + 1} is chosen, and {_first(unheard)} was not heard")
    if history.recovered:
        return  # the last one's leader was the only replica in sync, whatever min ISR is
    losses = size(needed & history.lossy)
    whole = common_prefix(brokers[chosen].log, history.committed) == len(history.committed)
    if losses < before.effective_min_isr and not whole:
        yield Violation("U4", f"{losses} of {set_text(needed)} lost records, and what was committed is gone")


def _position(reply: Reply) -> tuple[int, int]:
    return reply.last_epoch, reply.end_offset


# -- of a step of a replica -------------------------------------------------------------------------------------------


def advance(step: Advance, leader: int, brokers: Sequence[Broker], history: History) -> Iterator[Violation]:
    """S4 and S5, when the high watermark moves. `brokers` as they were when the leader counted."""
    if size(step.isr) < step.min_isr:
        yield Violation("S4", f"{leader + 1} commits up to {step.high_watermark} with the ISR {set_text(step.isr)}")
    fresh = brokers[leader].log[: step.high_watermark]
    for member in members(step.maximal):
        # A restarted member had it when it was counted; its losses since then are not the leader's fault.
        restarted = history.unclean >> member & 1 or history.recovered or brokers[member].role is None
        if brokers[member].log[: len(fresh)] != fresh and not restarted:
            yield Violation("S4", f"{leader + 1} commits up to {step.high_watermark}, which {member + 1} does not have")
    if common_prefix(fresh, history.committed) < min(len(fresh), len(history.committed)):
        yield Violation("S5", f"{leader + 1} commits another history than was committed before")


def truncation(follower: int, before: Log, after: Log, history: History) -> Iterator[Violation]:
    """S21."""
    if common_prefix(before, history.committed) > common_prefix(after, history.committed):
        yield Violation("S21", f"{follower + 1} cuts its log to {len(after)}, and what it drops was committed")


def old_fetch(sent: SentFetch, receiver: Broker, believed: bool) -> Iterator[Violation]:
    """S11: a message of another epoch changes nothing."""
    asked: Request = sent.request
    if believed and asked.leader_epoch != receiver.leader_epoch:
        yield Violation(
            "S11",
            f"{sent.receiver + 1} leads in epoch {receiver.leader_epoch} and believes a fetch of epoch "
            f"{asked.leader_epoch}",
        )


# -- as text ----------------------------------------------------------------------------------------------------------


def payload_text(payload: int) -> str:
    """A, B, C."""
    return chr(ord("A") + payload) if payload < 26 else f"r{payload}"


def record_text(record: tuple[int, int]) -> str:
    return f"{payload_text(record[1])} (epoch {record[0]})"


def log_text(log: Log) -> str:
    return "[" + " ".join(f"{payload_text(payload)}@{epoch}" for epoch, payload in log) + "]"


def set_text(mask: int) -> str:
    return "{" + ",".join(str(broker + 1) for broker in members(mask)) + "}"


def _first(mask: int) -> int:
    return members(mask)[0] + 1
