"""The change of a partition: the one place where KIP-966 is decided.

Owns `partition_change(before, intent, context) -> PartitionChangeRecord | None`, a pure function, which `merge`
applies. Every change of a partition goes through it: AlterPartition, fencing, unfencing, shutdowns, registrations,
elections, reassignments. It must never read an image, a request or a clock; `Context` has its inputs.

Rules of docs/rules.md: 30-38 (election), 39-53 and 62-64 (ELR), 65-69 (epochs), 105 (completion). The steps stand in
the order of rule 39. Deviations from Apache 4.3 are marked DEVIATION, with the fault that they avoid; each keeps a
sentence of the KIP that Apache's code does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from tanist.controller.image.partition_state import (
    DIRECTORIES_RECORD_VERSION,
    ELR_RECORD_VERSION,
    RECOVERED,
    RECOVERING,
    PartitionState,
    merge,
)
from tanist.controller.partitions.assignment import Reassignment, complete
from tanist.invariants import InvariantError
from tanist.wire.ids import NO_LEADER, UNASSIGNED_DIRECTORY
from tanist.wire.metadata import PartitionChangeRecord, record_version

__all__ = ["Context", "Elected", "Election", "Intent", "elected_leader", "merge", "partition_change"]

FIRST_WITHOUT_SHRINK_BUMP = 12
"""3.6-IV0: from here on brokers do not need a new leader epoch when the ISR shrinks (rule 68)."""


def _any_directory(_broker_id: int) -> UUID:
    """The broker chooses."""
    return UNASSIGNED_DIRECTORY


class Election(Enum):
    """The kind of election when a leader is needed."""

    ONLINE = "the present leader if it can stay, else anyone who cannot lose committed records"
    PREFERRED = "the first replica if it cannot lose committed records, else as ONLINE"
    UNCLEAN = "as ONLINE, and failing that any live replica"
    DESIGNATED = "`Intent.desired_leader` if it lives, else as ONLINE"


@dataclass(frozen=True, slots=True)
class Intent:
    """A requested change of a partition. None means "unchanged"."""

    topic_id: UUID
    partition: int
    target_isr: tuple[int, ...] | None = None
    target_replicas: tuple[int, ...] | None = None
    target_removing: tuple[int, ...] | None = None
    target_adding: tuple[int, ...] | None = None
    target_directories: Mapping[int, UUID] | None = None
    """Directories of some replicas, where they change."""
    election: Election = Election.ONLINE
    desired_leader: int | None = None
    """For DESIGNATED: the choice of an operator or of an unclean recovery."""
    unclean_shutdown: frozenset[int] = frozenset()
    """Brokers whose log may have lost records: never elected, out of the ELR at once (rule 41)."""
    removed_broker: int | None = None
    """A broker that is leaving, which the context may still show as alive: never elected (rule 30)."""
    target_recovering: bool | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs of a change besides the partition itself."""

    min_isr: int
    """min.insync.replicas of the topic. It is capped here by the replicas the partition will have."""
    elr_enabled: bool
    metadata_version: int
    acceptable: Callable[[int], bool]
    """Registered, unfenced, not shutting down, and its directory for this partition is online (rule 30)."""
    last_known_leader: bool = True
    """LastKnownElr names the last leader (Apache's first phase, rule 50); False: all lost ELR members (rule 51)."""
    default_directory: Callable[[int], UUID] = _any_directory


@dataclass(frozen=True, slots=True)
class Elected:
    """The leader (or -1), and whether its election may lose committed records."""

    leader: int
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A partition on its way to its next state."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    elr: tuple[int, ...]
    lost: tuple[int, ...]
    """Members of the ELR that had an unclean shutdown: the KIP's LastKnownELR."""
    min_isr: int


def partition_change(before: PartitionState, intent: Intent, context: Context) -> PartitionChangeRecord | None:
    """The record for the intent, as far as the rules allow it; None when nothing changes."""
    target = _plan(before, intent, context)
    elected = _elect(before, target, intent, context)
    after = _after(before, target, elected, intent, context)
    _check(before, after)
    return _record(before, after, intent, context, unclean=elected.unclean)


def elected_leader(before: PartitionState, intent: Intent, context: Context) -> Elected:
    """The leader after the change, without its record."""
    return _elect(before, _plan(before, intent, context), intent, context)


# -- 1. the target ----------------------------------------------------------------------------------------------------


def _plan(before: PartitionState, intent: Intent, context: Context) -> Target:
    """Everything but the leader."""
    target = _complete_reassignment(_target(before, intent, context), context)
    return _populate_elr(before, target, intent, context)


def _target(before: PartitionState, intent: Intent, context: Context) -> Target:
    def wanted(value: tuple[int, ...] | None, present: tuple[int, ...]) -> tuple[int, ...]:
        return present if value is None else value

    replicas = wanted(intent.target_replicas, before.replicas)
    if not replicas or len(set(replicas)) != len(replicas):
        raise ValueError(f"illegal replicas {list(replicas)}")
    isr = wanted(intent.target_isr, before.isr)
    if len(set(isr)) != len(
        isr
    ):  # callers that take an ISR from a request check that its members are replicas (rule 25)
        raise ValueError(f"illegal ISR {list(isr)}")
    return Target(
        replicas=replicas,
        isr=isr,
        removing=wanted(intent.target_removing, before.removing),
        adding=wanted(intent.target_adding, before.adding),
        elr=before.elr,
        lost=before.last_known_elr,
        min_isr=_effective_min_isr(context, replicas),
    )


def _effective_min_isr(context: Context, replicas: tuple[int, ...]) -> int:
    """KIP: "the effective min.insync.replicas will be min(min.insync.replicas, replication factor)".

    DEVIATION from rule 3, where the replicas of partition 0 count for all partitions of the topic: after partition 0
    alone was given fewer replicas, the others would keep no ELR although their ISR is too small. The leader counts the
    same way as we do (rule 2), so the high watermark stands still exactly while an ELR is kept.
    """
    return min(context.min_isr, len(replicas))


def _complete_reassignment(target: Target, context: Context) -> Target:
    """Rule 105: end the reassignment if the target ISR allows it.

    DEVIATION (with ELR on), KIP "other behaviors" 4a: "the reassignment can only be completed if the ISR size is
    larger or equal to min ISR". Members of the ISR that leave cannot stay in the ELR, so completing earlier would
    throw away the copies that make up for the small ISR.
    """
    done = complete(Reassignment(target.replicas, target.removing, target.adding), target.isr)
    if done is None:
        return target
    min_isr = _effective_min_isr(context, done.replicas)
    if context.elr_enabled and len(done.isr) < min_isr:
        return target
    return replace(target, replicas=done.replicas, isr=done.isr, removing=(), adding=(), min_isr=min_isr)


# -- 2. the ELR -------------------------------------------------------------------------------------------------------


def _populate_elr(before: PartitionState, target: Target, intent: Intent, context: Context) -> Target:
    if not context.elr_enabled:
        return replace(target, elr=_remaining_elr(before, target, intent))
    if len(target.isr) >= target.min_isr:
        return replace(target, elr=(), lost=())  # rule 40: the high watermark moves on without them
    # Rule 41, KIP: "retain the current members of the ELR; add (the current ISR - the proposed ISR) to ELR; remove the
    # duplicate member in both ISR and ELR". More than min ISR - |ISR| members may be eligible.
    candidates = set(before.elr) | set(before.isr)
    elr = (candidates - set(target.isr) - intent.unclean_shutdown) & _staying(before, target)
    # Rule 51 (full KIP): replicas that were eligible since the ISR fell below min ISR, and no longer are.
    lost = ((candidates | set(before.last_known_elr)) - set(target.isr) - elr) & _staying(before, target)
    return replace(target, elr=tuple(sorted(elr)), lost=tuple(sorted(lost)))


def _staying(before: PartitionState, target: Target) -> set[int]:
    """DEVIATION from rule 62, KIP: "the controller will make sure that upon completion, the ELR only contains replicas
    in the final replica set". A broker that stayed in the ELR without being a replica would be eligible when it becomes
    one again, long after its log stopped following the high watermark.
    """
    return set(before.replicas) & set(target.replicas)


def _remaining_elr(before: PartitionState, target: Target, intent: Intent) -> tuple[int, ...]:
    """With ELR off, an ELR left from before is emptied by the next change (rule 53), but not while no replica leads.

    DEVIATION: Apache elects from it (rule 38) but forgets it on a change that finds no leader, and keeps members that
    restart uncleanly meanwhile (rule 46). It is sound as long as no replica leads: the high watermark has not moved.
    """
    if target.isr:
        return ()
    staying = _staying(before, target) - intent.unclean_shutdown
    return tuple(replica for replica in before.elr if replica in staying)


# -- 3. the leader ----------------------------------------------------------------------------------------------------


def _elect(before: PartitionState, target: Target, intent: Intent, context: Context) -> Elected:
    """Rules 30-34, in the order of KIP-966's "delivery plan" for its first phase."""

    def acceptable(replica: int) -> bool:
        if replica == intent.removed_broker or replica in intent.unclean_shutdown:
            return False
        return replica in target.replicas and context.acceptable(replica)

    def valid(replica: int) -> bool:
        # Rule 31: one dead member left in the ISR rules out the ELR, because it may have newer records.
        eligible = replica in target.isr or (not target.isr and replica in target.elr)
        return eligible and acceptable(replica)

    def first(fits: Callable[[int], bool]) -> int | None:
        return next((replica for replica in target.replicas if fits(replica)), None)

    desired = intent.desired_leader
    if intent.election is Election.DESIGNATED and desired is not None and acceptable(desired):
        return Elected(desired, unclean=not valid(desired))
    if intent.election is Election.PREFERRED and valid(target.replicas[0]):
        return Elected(target.replicas[0])  # rule 33a
    if valid(before.leader):
        return Elected(before.leader)  # rules 32a, 33b: a leader is not replaced without need
    clean = first(valid)
    if clean is not None:
        return Elected(clean)  # rules 32b, 33c
    last = _last_known_leader(before, target, context)
    if last is not None and acceptable(last):
        return Elected(last, unclean=True)  # rules 32c, 33d
    if intent.election is Election.UNCLEAN:
        live = first(acceptable)
        if live is not None:
            return Elected(live, unclean=True)  # rule 32: regardless of ISR and ELR
    return Elected(NO_LEADER)


def _last_known_leader(before: PartitionState, target: Target, context: Context) -> int | None:
    """Rule 34: with no replica in sync or eligible, the last leader is the best choice, whatever is configured.

    Only the stored field counts, and only with one entry: with more it is a LastKnownELR written in the other mode.
    """
    if not context.elr_enabled or not context.last_known_leader or target.isr or target.elr:
        return None
    return before.last_known_elr[0] if len(before.last_known_elr) == 1 else None


# -- 4. the partition after it ----------------------------------------------------------------------------------------


def _after(
    before: PartitionState, target: Target, elected: Elected, intent: Intent, context: Context
) -> PartitionState:
    isr, elr, lost = target.isr, target.elr, target.lost
    recovering = before.recovering if intent.target_recovering is None else intent.target_recovering
    if elected.unclean:
        # Rule 36: the state of the other replicas no longer counts.
        isr, elr, lost, recovering = (elected.leader,), (), (), True
    elif elected.leader != NO_LEADER and elected.leader not in isr:
        # Rule 35: a clean election from the ELR; the rest of it stays eligible until records are committed again.
        # DEVIATION from rule 37: Apache leaves a leader that is elected once more out of the ISR.
        isr = (elected.leader,)
        elr = tuple(replica for replica in elr if replica != elected.leader)
        if len(isr) >= target.min_isr:
            # DEVIATION, KIP invariant "if ELR is not empty, the ISR is under min ISR": Apache keeps it in this corner
            # (min ISR lowered to 1 meanwhile), and the high watermark would move beyond its members.
            elr, lost = (), ()
    if not isr and not context.elr_enabled:
        isr = before.isr  # rule 49: without ELR the last members stay listed while there is no leader
    if not context.elr_enabled and elected.leader != NO_LEADER:
        elr = ()  # rule 53
    return PartitionState(
        replicas=target.replicas,
        isr=isr,
        removing=target.removing,
        adding=target.adding,
        leader=elected.leader,
        recovering=recovering,
        directories=_directories(before, target, intent, context),
        elr=elr,
        last_known_elr=_last_known_elr(before, target, elected, lost, context),
    )


def _last_known_elr(
    before: PartitionState, target: Target, elected: Elected, lost: tuple[int, ...], context: Context
) -> tuple[int, ...]:
    if not context.elr_enabled:
        # Rule 53: a last leader stays, because rule 34 does not read it then; lost members are forgotten. DEVIATION:
        # not once others lead, or have led, and only while it is a replica (rules 36, 50, 62). With ELR on again,
        # members lost before would be elected, or waited for, as if they had the records committed since.
        if not context.last_known_leader or elected.unclean or elected.leader != before.leader:
            return ()
        staying = _staying(before, target)
        return tuple(replica for replica in before.last_known_elr if replica in staying)
    if not context.last_known_leader:
        return lost
    if elected.leader != NO_LEADER:
        return ()  # rules 50, 52
    # Rule 50: remember the last leader (DEVIATION from rule 67: a leader, not -1). DEVIATION: also over an entry left
    # from before (rule 53): it is stale. And only while it is a replica (rule 62): added again later, it would be
    # elected though its log was deleted.
    known = (before.leader,) if before.has_leader else before.last_known_elr
    staying = _staying(before, target)
    return tuple(replica for replica in known if replica in staying)


def _directories(before: PartitionState, target: Target, intent: Intent, context: Context) -> tuple[UUID, ...]:
    """KIP-858: replicas keep their directories; new ones take their broker's default directory."""
    known = dict(zip(before.replicas, before.directories))
    known.update(intent.target_directories or {})
    return tuple(
        known[replica] if replica in known else context.default_directory(replica) for replica in target.replicas
    )


def _check(before: PartitionState, after: PartitionState) -> None:
    """What each rule above has to leave true. Where a record of another program was not sound, ours need not be."""
    if not _is_sound(after) and _is_sound(before):
        raise InvariantError(
            "ISR and ELR are apart and among the replicas, and the leader is in the ISR", before=before, after=after
        )


def _is_sound(state: PartitionState) -> bool:
    replicas, isr = set(state.replicas), set(state.isr)
    return (
        isr <= replicas
        and (not state.elr or (replicas.issuperset(state.elr) and isr.isdisjoint(state.elr)))
        and (state.leader == NO_LEADER or state.leader in isr)
    )


# -- 5. the record ----------------------------------------------------------------------------------------------------


def _record(
    before: PartitionState, after: PartitionState, intent: Intent, context: Context, *, unclean: bool
) -> PartitionChangeRecord | None:
    """The difference, in a record of the version that the metadata version prescribes (rule 72)."""
    version = record_version(PartitionChangeRecord, context.metadata_version)
    record = PartitionChangeRecord(partition_id=intent.partition, topic_id=intent.topic_id)
    changed = False
    if after.isr != before.isr:
        record.isr = after.isr
        changed = True
    if after.leader != before.leader or _needs_leader_epoch(before, after, context):
        record.leader = after.leader  # rule 37: otherwise the field is left out, for writing it counts (rule 66)
        changed = True
    if after.replicas != before.replicas:
        record.replicas = after.replicas
        changed = True
    if after.removing != before.removing:
        record.removing_replicas = after.removing
        changed = True
    if after.adding != before.adding:
        record.adding_replicas = after.adding
        changed = True
    if after.recovering != before.recovering or unclean:
        # DEVIATION from rule 36: Apache leaves it out when the partition is recovering already, and so the second of
        # two unclean elections in a row is not reported.
        record.leader_recovery_state = RECOVERING if after.recovering else RECOVERED
        changed = True
    if version >= ELR_RECORD_VERSION:
        # Order means nothing in these two (rule 64); Apache's is that of a hash set.
        if set(after.elr) != set(before.elr):
            record.eligible_leader_replicas = after.elr
            changed = True
        if set(after.last_known_elr) != set(before.last_known_elr):
            record.last_known_elr = after.last_known_elr
            changed = True
    if version >= DIRECTORIES_RECORD_VERSION and after.directories != before.directories:
        record.directories = after.directories
        changed = True
    return record if changed else None


def _needs_leader_epoch(before: PartitionState, after: PartitionState, context: Context) -> bool:
    """Whether the leader is written though it stays, so that its epoch grows."""
    if not set(before.replicas) <= set(after.replicas):
        return True  # rule 67: the fetches of a dropped replica must not count any longer
    if context.metadata_version < FIRST_WITHOUT_SHRINK_BUMP:
        return not set(before.isr) <= set(after.isr)  # rule 68
    return False  # rule 69
