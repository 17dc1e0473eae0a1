"""Deliberate deviations of the controller from Apache Kafka 4.3: those of `docs/rules.md` as code.

Owns the recognition of deviations, by rule. A rule looks at one partition before and after one event (`Step`), and says
whether Apache's result would differ, and in which fields. The scenarios and the comparison with Apache's own controller
use it; a difference that no rule explains is a defect, of ours or of the rule.

Must never look at a scenario's id, nor at its expectations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tanist.controller.image.partition_state import PartitionState
from tanist.controller.partitions.assignment import Reassignment, complete


@dataclass(frozen=True, slots=True)
class Deviation:
    """A difference of docs/rules.md. `fact`: the numbers of its rows."""

    fact: str
    we: str

    def __str__(self) -> str:
        return f"rule {self.fact}: {self.we}" if self.fact else self.we


REPLICAS_ONLY = Deviation("62", "ELR and LastKnownElr hold replicas only")
UNREGISTERED = Deviation("47, 159", "an unregistered broker leaves the ELR")
LEFTOVER = Deviation("38, 46", "an ELR left over from before the feature was off is kept while it is all there is")
MIN_ISR_CHANGE = Deviation("54, 156", "the ELR is emptied only where the new min ISR <= ISR")
COMPLETION = Deviation("155", "a reassignment completes with ISR >= min ISR only, and no electable member is given up")
UNCLEAN_CANCEL = Deviation("106", "cancelling a reassignment uncleanly declares nobody in sync")
OWN_REPLICAS = Deviation("3", "min ISR is capped by the partition's own replicas")
ONE_RECORD = Deviation("79", "a replica assigned to a directory that has failed is one change")
NEW_WISH = Deviation("104", "a new reassignment replaces both lists of the old one")
MARKED_AGAIN = Deviation("36", "each unclean election writes RECOVERING")
LEADER_IN_SYNC = Deviation("37", "a leader that stays is in the ISR")
NO_LAST_LEADER = Deviation("50, 67", "a partition that had no leader gets no last known leader")
STALE_LAST_LEADER = Deviation("50", "a stale LastKnownElr does not outlive a leader")
ENOUGH_IN_SYNC = Deviation("35", "an election from the ELR that brings the ISR up to min ISR empties the ELR")

ALL = (
    REPLICAS_ONLY,
    UNREGISTERED,
    LEFTOVER,
    MIN_ISR_CHANGE,
    COMPLETION,
    UNCLEAN_CANCEL,
    OWN_REPLICAS,
    ONE_RECORD,
    NEW_WISH,
    MARKED_AGAIN,
    LEADER_IN_SYNC,
    NO_LAST_LEADER,
    STALE_LAST_LEADER,
    ENOUGH_IN_SYNC,
)

DEFECT = Deviation("", "the scenario says that it shows a defect, and we do not imitate those")

ELR_FIELDS = frozenset({"elr", "last_known_elr", "partition_epoch"})
ANY_FIELD = ELR_FIELDS | {"isr", "leader", "leader_epoch", "recovery", "replicas", "removing", "adding"}


@dataclass(frozen=True, slots=True)
class Step:
    """One event and its effect on one partition."""

    before: PartitionState
    after: PartitionState
    elr: bool
    """Whether the feature was on."""
    min_isr: int
    """min.insync.replicas of the topic at the event, uncapped."""
    first_replicas: int
    """Number of replicas of the topic's partition 0."""
    wanted_isr: tuple[int, ...] | None = None
    """The requested ISR, if it is known."""
    last_known_leader: bool = True
    """Whether LastKnownElr is to hold the last leader, as Apache has it, instead of lost members."""
    unregistered: int | None = None
    """The broker that this event unregistered."""
    min_isr_written: bool = False
    """Whether it wrote min.insync.replicas, of the topic or of the cluster."""
    reassigned: bool = False
    """Whether it requested other replicas."""
    cancelled: bool = False
    """Whether it requested the cancellation of the reassignment."""
    refused: bool = False
    """Whether that was refused because of its cost."""
    in_failed_directory: bool = False
    """Whether it reported that a broker's replica is in a failed directory."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A rule that applies, and the fields in which Apache's partition differs because of it, at first."""

    by: Deviation
    fields: frozenset[str]


def deviations(step: Step) -> Iterator[Explained]:
    """The rules by which Apache's partition differs after this event."""
    before, after = step.before, step.after
    effective = min(step.min_isr, len(after.replicas))
    theirs = min(step.min_isr, step.first_replicas)
    members = set(before.isr) | set(before.elr)
    dropped = set(before.replicas) - set(after.replicas)
    last_leaders = set(before.last_known_elr) | {before.leader}
    gone = dropped & members if len(after.isr) < theirs else set()
    forgotten = set() if after.has_leader else dropped & last_leaders
    if step.elr and gone | forgotten:
        yield Explained(REPLICAS_ONLY, ELR_FIELDS)
    if step.elr and step.unregistered in members:
        # Without it nobody is eligible, and the last known leader may be elected.
        last_leader_leads = members == {step.unregistered} and after.leader in before.last_known_elr
        yield Explained(UNREGISTERED, ANY_FIELD if last_leader_leads else ELR_FIELDS)
    if step.reassigned and (
        _is_left(before.adding, after.adding)
        or _is_left(before.removing, after.removing)
        or _is_kept_in_part(before.adding, after.adding)
    ):
        yield Explained(NEW_WISH, ANY_FIELD)
    if step.elr and step.cancelled and before.reassigning and not set(before.isr) - set(before.adding):
        yield Explained(UNCLEAN_CANCEL, ANY_FIELD)
    if step.in_failed_directory:
        # The first of Apache's two changes is about the directory only, and may complete a reassignment.
        yield Explained(ONE_RECORD, ANY_FIELD if before.reassigning else frozenset({"partition_epoch"}))
    if step.elr and ((step.cancelled and step.refused and before.reassigning) or _held_back(after, step.wanted_isr)):
        yield Explained(COMPLETION, ANY_FIELD)
    if step.min_isr_written and (after.elr or after.last_known_elr):
        yield Explained(MIN_ISR_CHANGE, ELR_FIELDS)
    if step.elr and after != before and theirs != effective:
        yield Explained(OWN_REPLICAS, ANY_FIELD)
    if before.recovering and after.recovering and before.leader != after.leader and after.isr == (after.leader,):
        yield Explained(MARKED_AGAIN, frozenset({"recovery"}))
    if step.wanted_isr is not None and after.leader == before.leader and _is_brought_back(after, step.wanted_isr):
        yield Explained(LEADER_IN_SYNC, ANY_FIELD)
    if step.elr and dropped and not (before.has_leader or after.has_leader or before.last_known_elr):
        yield Explained(NO_LAST_LEADER, ELR_FIELDS)
    if step.last_known_leader and before.last_known_elr and before.has_leader:
        yield Explained(STALE_LAST_LEADER, ELR_FIELDS)
    if step.elr and _is_from_elr(step) and len(after.isr) >= effective:
        yield Explained(ENOUGH_IN_SYNC, ELR_FIELDS)
    if not step.elr and before.elr:
        yield Explained(LEFTOVER, ANY_FIELD)


def _is_from_elr(step: Step) -> bool:
    """The leader was elected from the ELR. If the requested ISR is unknown: a leader that was not in the ISR."""
    if step.wanted_isr is not None:
        return step.after.has_leader and step.wanted_isr == ()
    return step.after.leader in set(step.before.elr) - set(step.before.isr)


def _is_brought_back(state: PartitionState, wanted_isr: tuple[int, ...]) -> bool:
    """Its leader was elected again, out of an ISR that it should have left."""
    return state.has_leader and state.leader not in wanted_isr and state.isr == (state.leader,)


def _is_left(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Apache's controller leaves a list unchanged if the new one is empty."""
    return bool(before) and not after


def _is_kept_in_part(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """What is on its way by the old reassignment and wanted by the new one is not among what Apache's has to add."""
    return bool(set(before) & set(after)) and set(before) != set(after)


def _held_back(state: PartitionState, wanted_isr: tuple[int, ...] | None) -> bool:
    """A reassignment that Apache would have completed at the latest change."""
    moving = Reassignment(state.replicas, state.removing, state.adding)
    in_sync = {state.isr, state.isr if wanted_isr is None else wanted_isr}
    return any(complete(moving, isr) is not None for isr in in_sync)
