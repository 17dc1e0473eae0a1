"""What the model checker is examined with: rules of replication, each broken by a patch of the code that keeps it.

Owns `MUTATIONS` and `applied`. A patch replaces one or two functions of the real rooms while it is applied, and puts
them back after; the numbers are those of the list of mutations that the design is held to (A1: the high watermark
ignores min.insync.replicas, and so on). Each names the configuration in which the checker notices it soonest, and the
properties that it may break there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tanist.controller import elections, partition_change, partition_context, recovery_strategy, unclean_recovery
from tanist.controller.alter_partition import _IsrChange
from tanist.controller.brokers import Brokers
from tanist.controller.partition_change import Election
from tanist.controller.partition_context import ChangeMaker
from tanist.lab.model import events
from tanist.replica.follower import FollowerState
from tanist.replica.leader import FollowerFetch, LeaderState
from tanist.replica.partition import Partition
from tanist.replica.reads import divergence

BEYOND_ALL_OFFSETS = 1 << 63
_INHERITED = object()
"""In place of what an owner has from its base."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One attribute of a class or a module, and what stands in its place."""

    owner: Any
    name: str
    replacement: Any


@dataclass(frozen=True, slots=True)
class Mutation:
    """A broken rule."""

    number: str
    rule: str
    """What is the case instead of the rule."""
    configuration: str
    """Where it is found."""
    caught_by: frozenset[str]
    patches: Callable[[], tuple[Patch, ...]]
    """Made when it is applied, for a replacement may call what it replaces."""
    unwatched: frozenset[str] = frozenset()
    """Properties that say no more than that the rule is broken: what comes of it is wanted."""


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Break the rule while the block runs."""
    undo: list[Patch] = []
    try:
        for patch in mutation.patches():
            undo.append(Patch(patch.owner, patch.name, vars(patch.owner).get(patch.name, _INHERITED)))
            setattr(patch.owner, patch.name, patch.replacement)
        yield
    finally:
        for patch in reversed(undo):
            if patch.replacement is _INHERITED:
                delattr(patch.owner, patch.name)
            else:
                setattr(patch.owner, patch.name, patch.replacement)


def _fixed(owner: Any, name: str, replacement: Any) -> Callable[[], tuple[Patch, ...]]:
    return lambda: (Patch(owner, name, replacement),)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


# -- the leader's high watermark --------------------------------------------------------------------------------------


def _before_elr() -> tuple[Patch, ...]:
    """A2: replication as it was before KIP-966."""
    return (
        Patch(partition_context, "elr_in_force", _always(False)),
        Patch(recovery_strategy, "elr_in_force", _always(False)),
        Patch(LeaderState, "_may_advance", _always(True)),
    )


def _commits_on_append() -> tuple[Patch, ...]:
    return (
        Patch(LeaderState, "_slowest_member", _always(BEYOND_ALL_OFFSETS)),
        Patch(LeaderState, "_high_watermark_candidate", lambda leader, _now_ms: leader.log.log_end_offset),
    )


def _commits_by_count() -> tuple[Patch, ...]:
    fetch = LeaderState.follower_fetch

    def slowest(leader: LeaderState) -> int:
        ends = sorted((remote.log_end_offset for remote in leader.remotes.values()), reverse=True)
        return ends[max(0, leader.effective_min_isr - 2)]

    def follower_fetch(leader: LeaderState, asked: FollowerFetch, now_ms: int) -> Any:
        decision = fetch(leader, asked, now_ms)
        leader._slowest_member_offset = leader._slowest_member()
        decision.effects.extend(leader._advance(now_ms))
        return decision

    return (
        Patch(LeaderState, "_slowest_member", slowest),
        Patch(LeaderState, "follower_fetch", follower_fetch),
        Patch(
            LeaderState,
            "_high_watermark_candidate",
            lambda leader, _now_ms: min(leader.log.log_end_offset, leader._slowest_member()),
        ),
    )


def _unanswered_counts_as_rejected() -> tuple[Patch, ...]:
    failed = LeaderState.alter_partition_failed

    def alter_partition_failed(leader: LeaderState, proposal: Any, now_ms: int) -> Any:
        again = failed(leader, proposal, now_ms)
        if leader._is_awaited(proposal):
            leader._on_rejected()
        return again

    return (Patch(LeaderState, "alter_partition_failed", alter_partition_failed),)


def _compares_no_epochs(leader: LeaderState, fetch_offset: int, _last_fetched_epoch: int) -> Any:
    return divergence(leader.log, leader.leader_epoch, fetch_offset, -1)


# -- the follower -----------------------------------------------------------------------------------------------------


def _believes_any_high_watermark(follower: FollowerState, leader_high_watermark: int) -> list[Any]:
    follower.high_watermark = leader_high_watermark
    return []


# -- the controller ---------------------------------------------------------------------------------------------------


def _all_restarts_are_clean() -> tuple[Patch, ...]:
    new_incarnation = elections.broker_new_incarnation

    def believes_all(image: Any, broker_id: int, settings: Any, _clean: bool) -> Any:
        return new_incarnation(image, broker_id, settings, True)

    return (Patch(elections, "broker_new_incarnation", believes_all),)


def _any_life_may_join() -> tuple[Patch, ...]:
    eligible = _IsrChange._eligible
    return (Patch(_IsrChange, "_eligible", lambda change, member: eligible(change, replace(member, broker_epoch=-1))),)


def _fenced_may_join(change: Any, member: Any) -> bool:
    registration = change._image.brokers.get(member.broker_id)
    return registration is not None and member.broker_epoch in (-1, registration.epoch)


def _reuses_broker_epochs() -> tuple[Patch, ...]:
    register = Brokers.register

    def registers_as_before(self: Brokers, image: Any, request: Any, now_ms: int, **more: Any) -> Any:
        more["next_offset"] = image.brokers[request.broker_id].epoch
        return register(self, image, request, now_ms, **more)

    return (Patch(Brokers, "register", registers_as_before),)


def _old_partition_epochs_will_do() -> tuple[Patch, ...]:
    error = _IsrChange._error

    def judge(change: Any, before: Any, wanted: Any, members: Any) -> Any:
        return error(change, before, replace(wanted, partition_epoch=before.partition_epoch), members)

    return (Patch(_IsrChange, "_error", judge),)


def _elr_stays() -> tuple[Patch, ...]:
    populate = partition_change._populate_elr

    def keeps(before: Any, target: Any, intent: Any, context: Any) -> Any:
        found = populate(before, target, intent, context)
        if len(target.isr) < target.min_isr:
            return found
        return replace(found, elr=tuple(member for member in before.elr if member not in target.isr))

    return (Patch(partition_change, "_populate_elr", keeps),)


def _whoever_leaves_is_eligible() -> tuple[Patch, ...]:
    populate = partition_change._populate_elr

    def adds(before: Any, target: Any, intent: Any, context: Any) -> Any:
        found = populate(before, target, intent, context)
        left = set(before.isr) - set(target.isr) - intent.unclean_shutdown
        return replace(found, elr=tuple(sorted(set(found.elr) | left)))

    return (Patch(partition_change, "_populate_elr", adds),)


def _elected_from_the_elr_stays_there() -> tuple[Patch, ...]:
    settle = partition_change._after

    def after(before: Any, target: Any, elected: Any, intent: Any, context: Any) -> Any:
        found = settle(before, target, elected, intent, context)
        if elected.leader in target.elr and not elected.unclean:
            return replace(found, isr=target.isr, elr=target.elr)
        return found

    return (Patch(partition_change, "_after", after),)


def _last_member_stays() -> tuple[Patch, ...]:
    settle = partition_change._after

    def after(before: Any, target: Any, elected: Any, intent: Any, context: Any) -> Any:
        found = settle(before, target, elected, intent, context)
        return found if found.isr else replace(found, isr=before.isr)

    return (Patch(partition_change, "_after", after),)


def _unclean_election_forgets_nothing() -> tuple[Patch, ...]:
    settle = partition_change._after

    def after(before: Any, target: Any, elected: Any, intent: Any, context: Any) -> Any:
        found = settle(before, target, elected, intent, context)
        return replace(found, last_known_elr=target.lost) if elected.unclean else found

    return (Patch(partition_change, "_after", after),)


def _elr_is_not_elected_from() -> tuple[Patch, ...]:
    elect = partition_change._elect
    return (
        Patch(
            partition_change,
            "_elect",
            lambda before, target, intent, context: elect(before, replace(target, elr=()), intent, context),
        ),
    )


def _completes_too_early() -> tuple[Patch, ...]:
    complete = partition_change._complete_reassignment
    return (
        Patch(
            partition_change,
            "_complete_reassignment",
            lambda target, context: complete(target, replace(context, min_isr=1)),
        ),
    )


def _shutting_down_may_lead() -> tuple[Patch, ...]:
    def acceptable(maker: Any, _state: Any) -> Callable[[int], bool]:
        def test(broker_id: int) -> bool:
            registration = maker._image.brokers.get(broker_id)
            return registration is not None and (not registration.fenced or broker_id == maker._arriving)

        return test

    return (Patch(ChangeMaker, "acceptable", acceptable),)


# -- unclean recovery -------------------------------------------------------------------------------------------------


def _any_answer_is_enough(recovery: Any, *_: Any) -> bool:
    return bool(recovery.answers)


def _waits_for_nobody() -> tuple[Patch, ...]:
    phase = unclean_recovery._phase
    return (
        Patch(
            unclean_recovery,
            "_phase",
            lambda strategy, state, live, needed: phase(strategy, replace(state, elr=()), live, ()),
        ),
        Patch(unclean_recovery, "_enough", _any_answer_is_enough),
    )


def _longest_log(answers: Any, replicas: Any) -> int:
    order: list[int] = [replica for replica in replicas if replica in answers]
    return max(order, key=lambda replica: (answers[replica].log_end_offset, answers[replica].last_epoch))


def _answers_outlive_restarts(answer: Any, _broker_id: int, state: Any, _image: Any) -> bool:
    return bool(answer.leader_epoch == state.leader_epoch)


_UNWATCHED = {
    # As it was before KIP-966, a leader commits alone and nobody is eligible: what is wanted is where that leads.
    "A2": frozenset({"S2", "S4", "S7", "S8", "S12", "S13"}),
}

MUTATIONS: Mapping[str, Mutation] = {
    number: Mutation(
        number, rule, configuration, frozenset(caught_by.split()), patches, _UNWATCHED.get(number, frozenset())
    )
    for number, rule, configuration, caught_by, patches in (
        (
            "A1",
            "the high watermark ignores min.insync.replicas",
            "last-replica-standing",
            "S4",
            _fixed(LeaderState, "_may_advance", _always(True)),
        ),
        (
            "A2",
            "no ELR: the last member of the ISR stays listed, and commits alone",
            "last-replica-standing",
            "S1",
            _before_elr,
        ),
        (
            "A3",
            "an unclean restart leaves the broker in the ELR",
            "last-replica-standing",
            "S8 S2",
            _all_restarts_are_clean,
        ),
        (
            "A4",
            "the mark of a clean shutdown survives a crash",
            "last-replica-standing",
            "S8 S2",
            _fixed(events, "clean_shutdown_epoch", lambda before, *, clean: before.epoch),
        ),
        ("A5", "any life of a broker may join the ISR", "one-outside", "S14 S2", _any_life_may_join),
        (
            "A6",
            "a broker keeps its epoch when it registers anew",
            "one-outside",
            "S14 S2",
            _reuses_broker_epochs,
        ),
        (
            "A7",
            "the partition epoch of an AlterPartition is not looked at",
            "slow-followers",
            "S3 S14",
            _old_partition_epochs_will_do,
        ),
        (
            "A8",
            "an expansion is counted with the current ISR",
            "last-replica-standing",
            "S3",
            _fixed(LeaderState, "_maximal_isr_to_expand", lambda leader, _joining: frozenset(leader.isr)),
        ),
        (
            "A9",
            "a shrink is applied before the controller has said so",
            "slow-followers",
            "S3",
            _fixed(LeaderState, "_maximal_isr_to_shrink", lambda _leader, remaining: frozenset(remaining)),
        ),
        ("A10", "a proposal without an answer counts as refused", "unanswered", "S3", _unanswered_counts_as_rejected),
        (
            "A11",
            "a replica behind the high watermark joins the ISR",
            "one-outside",
            "S14 S2",
            _fixed(LeaderState, "_has_all_committed", _always(True)),
        ),
        (
            "A12",
            "a replica joins before it has the start of the epoch",
            "one-fencing",
            "S14 S2",
            _fixed(LeaderState, "_has_epoch_start", _always(True)),
        ),
        (
            "A13",
            "what followers had is believed across elections",
            "preferred-leaders",
            "S4 S2 S14",
            _fixed(LeaderState, "_remembers_followers", _always(True)),
        ),
        ("A14", "the ELR stays when the ISR is large enough", "last-replica-standing", "S12 S3", _elr_stays),
        (
            "A15",
            "who leaves an ISR that is large enough becomes eligible",
            "last-replica-standing",
            "S15 S12 S3",
            _whoever_leaves_is_eligible,
        ),
        (
            "A16",
            "an unclean election although the strategy is None",
            "last-replica-standing",
            "U1 S1",
            _fixed(ChangeMaker, "election", _always(Election.UNCLEAN)),
        ),
        ("A17", "the high watermark is the leader's end", "last-replica-standing", "S4 S17", _commits_on_append),
        (
            "A18",
            "a follower counts with what it was sent",
            "last-replica-standing",
            "S4",
            _fixed(LeaderState, "_confirmed_offset", lambda leader, _fetch: leader.log.log_end_offset),
        ),
        ("A19", "enough replicas commit, whoever they are", "last-replica-standing", "S2 S4", _commits_by_count),
        (
            "A20",
            "a fenced broker joins the ISR",
            "last-replica-standing",
            "S12 S14",
            _fixed(_IsrChange, "_eligible", _fenced_may_join),
        ),
        (
            "A21",
            "a fence leaves the broker in its ISRs",
            "last-replica-standing",
            "S12",
            _fixed(elections, "_leave_isr", _always([])),
        ),
        (
            "A22",
            "fetches of other epochs are believed",
            "old-fetches",
            "S11 S6",
            _fixed(LeaderState, "_epoch_error", _always(0)),
        ),
        (
            "A24",
            "no divergence is looked for",
            "two-records",
            "S6 S18 S4",
            _fixed(LeaderState, "_divergence", _compares_no_epochs),
        ),
        (
            "A25",
            "a follower cuts its log at its high watermark",
            "two-records",
            "S21 S2 S1 S7",
            _fixed(
                FollowerState, "_truncate_at_start", lambda follower: follower._truncate_to(follower.high_watermark)
            ),
        ),
        (
            "A27",
            "LastKnownElr is not recorded",
            "balanced-recovery",
            "S13",
            _fixed(partition_change, "_last_known_elr", _always(())),
        ),
        ("A29", "a broker that shuts down may be elected", "controlled-shutdown", "S12", _shutting_down_may_lead),
        (
            "A30",
            "who is elected from the ELR does not become the ISR",
            "last-replica-standing",
            "S12",
            _elected_from_the_elr_stays_there,
        ),
        ("A31", "the ISR may not become empty", "last-replica-standing", "S12", _last_member_stays),
        (
            "A32",
            "the ELR outlives a change of min.insync.replicas",
            "min-isr-changes",
            "S12 S3",
            _fixed(elections, "min_isr_changed", _always([])),
        ),
        (
            "A34",
            "a new leader knows at once what is committed",
            "last-replica-standing",
            "S19",
            _fixed(LeaderState, "knows_what_is_committed", _always(True)),
        ),
        (
            "A35",
            "a high watermark is believed above the end of the log",
            "checkpoints",
            "S18",
            _fixed(Partition, "_recovered_high_watermark", lambda _partition, checkpointed: checkpointed),
        ),
        ("A38", "Balanced recovery waits for nobody", "all-crashed", "U1 U2 U4", _waits_for_nobody),
        (
            "A39",
            "the longest log wins, whatever its epoch",
            "diverged-and-crashed",
            "U2 U4",
            _fixed(unclean_recovery, "_best", _longest_log),
        ),
        (
            "A40",
            "what a replica said before it restarted is believed",
            "all-crashed",
            "U3 U4",
            _fixed(unclean_recovery, "_fresh", _answers_outlive_restarts),
        ),
        (
            "A41",
            "an unclean recovery while a member of the ELR is there",
            "aggressive-recovery",
            "U1 L4",
            _elr_is_not_elected_from,
        ),
        (
            "A42",
            "an unclean election forgets nothing",
            "all-crashed",
            "U5 S12",
            _unclean_election_forgets_nothing,
        ),
        (
            "A45",
            "a follower counts beyond its own end",
            "two-records",
            "S18",
            _fixed(FollowerState, "_adopt_high_watermark", _believes_any_high_watermark),
        ),
        (
            "A46",
            "a reassignment ends with too few in the ISR",
            "reassignment-under-min-isr",
            "S13 S2 S12 S7",
            _completes_too_early,
        ),
        (
            "A47",
            "an answer to any proposal is taken for the answer to this one",
            "two-outside",
            "S3",
            _fixed(LeaderState, "_is_awaited", lambda leader, _proposal: leader.pending is not None),
        ),
    )
}
