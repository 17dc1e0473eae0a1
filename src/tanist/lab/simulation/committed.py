"""Committed changes of a partition as sentences: the change, and the rule behind it.

Pure: two states of a partition and the controller's knowledge go in, a sentence about the change and one about the rule
come out. The rules are those of docs/rules.md ("rule 41") and of KIP-966. It explains and does not judge: if a rule was
broken, the explanation contradicts the change, and a reader can see it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tanist.controller.image.partition_state import PartitionState
from tanist.sim.event_text import ids, state_text
from tanist.sim.promise import AGGRESSIVE, BALANCED, FIRST_PHASE


@dataclass(frozen=True, slots=True)
class Situation:
    """The controller's knowledge when it changes a partition."""

    min_isr: int
    """The effective min ISR of this partition."""
    strategy: str
    """unclean.recovery.strategy in force, or "first phase": without the recovery manager."""
    elr_enabled: bool = True
    asked_for: bool = False
    """An operator has asked for an unclean election."""
    compared: tuple[int, ...] = ()
    """Brokers whose logs the unclean recovery has compared."""


def changed(before: PartitionState | None, after: PartitionState) -> str:
    """The differences between the two states."""
    if before is None:
        return f"created on {ids(after.replicas)}: {state_text(after)}"
    parts: list[str] = []
    if before.leader != after.leader:
        parts.append(f"leader {_leader(before)} → {_leader(after)}")
    if before.leader_epoch != after.leader_epoch:
        parts.append(f"epoch {after.leader_epoch}")
    for name, one, other in (
        ("ISR", before.isr, after.isr),
        ("ELR", before.elr, after.elr),
        ("LastKnownElr", before.last_known_elr, after.last_known_elr),
        ("replicas", before.replicas, after.replicas),
        ("adding", before.adding, after.adding),
        ("removing", before.removing, after.removing),
    ):
        if one != other:
            parts.append(f"{name} {ids(one)} → {ids(other)}")
    if after.recovering and not before.recovering:
        parts.append("recovering")
    elif before.recovering and not after.recovering:
        parts.append("recovered")
    return ", ".join(parts) or "the same again"


def is_turning_point(before: PartitionState | None, after: PartitionState) -> bool:
    """An election, or the loss of a leader or of an eligible replica."""
    if before is None or before.leader != after.leader or before.leader_epoch != after.leader_epoch:
        return True
    return bool({*before.isr, *before.elr} - {*after.isr, *after.elr}) or before.elr != after.elr


def reason(before: PartitionState | None, after: PartitionState, situation: Situation) -> str | None:
    """The rules behind the change."""
    if before is None:
        return None
    reasons = [*_election(before, after, situation), *_eligible(before, after, situation), *_moves(before, after)]
    return "; ".join(reasons) or None


def _election(before: PartitionState, after: PartitionState, situation: Situation) -> Iterable[str]:
    if after.leader < 0:
        if before.leader >= 0:
            if after.elr:
                yield f"nobody of the ELR {ids(after.elr)} can lead now: it waits for one of them (KIP-966, rule 49)"
            else:
                yield "nobody is left who surely has everything"
        return
    if after.leader_epoch == before.leader_epoch:
        return
    if after.last_unclean_epoch == after.leader_epoch != before.last_unclean_epoch:
        yield _unclean(before, after, situation)
    elif after.leader == before.leader:
        yield "a new epoch of the same leader: replicas have gone (rule 67)"
    elif after.leader in before.isr:
        yield "a live member of the ISR, the first in the order of replicas (rules 30, 32)"
    elif after.leader in before.elr:
        yield f"the ISR is empty; {after.leader} is in the ELR, so has all that was committed (KIP-966, rules 31, 35)"
    elif before.reassigning and not after.reassigning:
        yield f"the reassignment ends, and {after.leader} is the first of those who are in sync then (rule 105)"
    else:
        yield f"{after.leader} was in neither ISR nor ELR"


def _unclean(before: PartitionState, after: PartitionState, situation: Situation) -> str:
    eligible = {*before.isr, *before.elr}
    waiting = f"{ids(sorted(eligible))} may lead but cannot" if eligible else "nobody is in ISR or ELR"
    if situation.asked_for:
        return f"{waiting}; an operator asked for an unclean election (rules 36, 102)"
    if situation.strategy == BALANCED:
        known = f"LastKnownElr {ids(before.last_known_elr)}" if before.last_known_elr else "the replicas"
        return (
            f"{waiting}; strategy Balanced: when all of {known} have answered ({ids(situation.compared)} had), the "
            "longest log by (last epoch, end) leads (KIP-966, Unclean Recovery; rule 36)"
        )
    if situation.strategy == AGGRESSIVE:
        return (
            f"{waiting}; strategy Aggressive: the longest log by (last epoch, end) of those who answered, "
            f"{ids(situation.compared)} (KIP-966, Unclean Recovery; rule 36)"
        )
    if situation.strategy == FIRST_PHASE:
        if after.leader in before.last_known_elr:
            return f"{waiting}; {after.leader} led last, and is taken back whatever it lost (rule 34)"
        return f"{waiting}; unclean.leader.election.enable: any live replica (rule 32)"
    return f"{waiting}; strategy {situation.strategy}: an operator's choice"


def _eligible(before: PartitionState, after: PartitionState, situation: Situation) -> Iterable[str]:
    if not situation.elr_enabled:
        return
    enough = len(after.isr) >= situation.min_isr
    size = f"ISR {ids(after.isr)} {'meets' if enough else 'is below'} min.insync.replicas {situation.min_isr}"
    entered = sorted(set(after.elr) - set(before.elr))
    if entered:
        stay = "stays" if len(entered) == 1 else "stay"
        yield f"{size}: {_who(entered)} left it and {stay} eligible, in the ELR (KIP-966, rule 41)"
    gone = sorted(set(before.elr) - set(after.elr) - set(after.isr))
    struck = sorted(set(before.isr) - set(after.isr) - set(after.elr))
    unclean = after.last_unclean_epoch != before.last_unclean_epoch
    if (gone or struck) and enough:
        yield f"{size}: nobody else is eligible (KIP-966, rule 40)"
    elif (gone or struck) and not unclean:
        yield f"{_who([*gone, *struck])} ended uncleanly, so may lack what was committed: not eligible (rule 46)"
    remembered = sorted(set(after.last_known_elr) - set(before.last_known_elr))
    if remembered:
        rule = (
            "the last leader is remembered (rule 50)"
            if situation.strategy == FIRST_PHASE
            else ("remembered for an unclean recovery (KIP-966, rule 51)")
        )
        yield f"LastKnownElr {ids(after.last_known_elr)}: {rule}"


def _moves(before: PartitionState, after: PartitionState) -> Iterable[str]:
    joined = sorted(set(after.isr) - set(before.isr))
    if joined and after.leader == before.leader:
        yield f"its leader asked for {_who(joined)}, who is alive (AlterPartition, rules 25, 26)"
    if after.reassigning and not before.reassigning:
        yield "a reassignment begins: the new replicas are added first (rule 104)"
    elif before.reassigning and not after.reassigning:
        yield "the reassignment is over (rules 105, 106)"


def _leader(state: PartitionState) -> str:
    return "none" if state.leader < 0 else str(state.leader)


def _who(brokers: Iterable[int]) -> str:
    return " and ".join(map(str, brokers))
