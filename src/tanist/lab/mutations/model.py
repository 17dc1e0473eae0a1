"""The mutations of the model checker: rules that its model covers, each with the configuration that shows it soonest.

Owns `MUTATIONS` and `applied`. The numbers are those of the list of mutations in docs/mutations.md (A1: the high
watermark ignores min.insync.replicas, and so on). Each names the configuration in which the checker catches it, and the
properties that it may break there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tanist.lab.model.partition import controller_events
from tanist.lab.mutations import rules_of_controllers as controllers
from tanist.lab.mutations import rules_of_replicas as replicas
from tanist.lab.mutations.patching import Breaks, Patch, fixed, replaced

__all__ = ["MUTATIONS", "Mutation", "Patch", "applied"]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A broken rule."""

    number: str
    rule: str
    """The behaviour instead of the rule."""
    configuration: str
    """The configuration that shows it."""
    caught_by: frozenset[str]
    patches: Breaks
    unwatched: frozenset[str] = frozenset()
    """Properties that only restate the rule: the search looks for the consequences instead."""


def applied(mutation: Mutation) -> AbstractContextManager[None]:
    """Break the rule while the block runs."""
    return replaced(mutation.patches())


_UNWATCHED = {
    # As before KIP-966, a leader commits alone and no replica is eligible: the search looks for the consequences.
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
            replicas.a1_ignores_min_isr,
        ),
        (
            "A2",
            "no ELR: the last member of the ISR stays listed, and commits alone",
            "last-replica-standing",
            "S1",
            controllers.a2_without_elr_and_commits_alone,
        ),
        (
            "A3",
            "an unclean restart leaves the broker in the ELR",
            "last-replica-standing",
            "S8 S2",
            controllers.a3_all_restarts_are_clean,
        ),
        (
            "A4",
            "the mark of a clean shutdown survives a crash",
            "last-replica-standing",
            "S8 S2",
            fixed(controller_events, "clean_shutdown_epoch", lambda before, *, clean: before.epoch),
        ),
        ("A5", "any life of a broker may join the ISR", "one-outside", "S14 S2", controllers.a5_any_life_may_join),
        (
            "A6",
            "a broker keeps its epoch when it registers anew",
            "one-outside",
            "S14 S2",
            controllers.a6_reuses_broker_epochs,
        ),
        (
            "A7",
            "the partition epoch of an AlterPartition is not looked at",
            "slow-followers",
            "S3 S14",
            controllers.a7_any_partition_epoch,
        ),
        (
            "A8",
            "an expansion is counted with the current ISR",
            "last-replica-standing",
            "S3",
            replicas.a8_counts_with_the_current_isr,
        ),
        (
            "A9",
            "a shrink is applied before the controller has said so",
            "slow-followers",
            "S3",
            replicas.a9_shrinks_eagerly,
        ),
        (
            "A10",
            "a proposal without an answer counts as refused",
            "unanswered",
            "S3",
            replicas.a10_unanswered_is_rejected,
        ),
        (
            "A11",
            "a replica behind the high watermark joins the ISR",
            "one-outside",
            "S14 S2",
            replicas.a11_joins_behind_the_high_watermark,
        ),
        (
            "A12",
            "a replica joins before it has the start of the epoch",
            "one-fencing",
            "S14 S2",
            replicas.a12_joins_before_the_epoch_start,
        ),
        (
            "A13",
            "what followers had is believed across elections",
            "preferred-leaders",
            "S4 S2 S14",
            replicas.a13_remembers_followers,
        ),
        (
            "A14",
            "the ELR stays when the ISR is large enough",
            "last-replica-standing",
            "S12 S3",
            controllers.a14_elr_stays,
        ),
        (
            "A15",
            "who leaves an ISR that is large enough becomes eligible",
            "last-replica-standing",
            "S15 S12 S3",
            controllers.a15_leavers_are_eligible,
        ),
        (
            "A16",
            "an unclean election although the strategy is None",
            "last-replica-standing",
            "U1 S1",
            controllers.a16_unclean_elections,
        ),
        (
            "A17",
            "the high watermark is the leader's end",
            "last-replica-standing",
            "S4 S17",
            replicas.a17_commits_on_append,
        ),
        (
            "A18",
            "a follower counts with what it was sent",
            "last-replica-standing",
            "S4",
            replicas.a18_counts_what_is_sent,
        ),
        (
            "A19",
            "enough replicas commit, in the ISR or not",
            "last-replica-standing",
            "S2 S4",
            replicas.a19_commits_by_count,
        ),
        (
            "A20",
            "a fenced broker joins the ISR",
            "last-replica-standing",
            "S12 S14",
            controllers.a20_the_fenced_may_join,
        ),
        (
            "A21",
            "a fence leaves the broker in its ISRs",
            "last-replica-standing",
            "S12",
            controllers.a21_fenced_stay_in_isr,
        ),
        ("A22", "fetches of other epochs are believed", "old-fetches", "S11 S6", replicas.a22_believes_other_epochs),
        ("A24", "no divergence is looked for", "two-records", "S6 S18 S4", replicas.a24_looks_for_no_divergence),
        (
            "A25",
            "a follower cuts its log at its high watermark",
            "two-records",
            "S21 S2 S1 S7",
            replicas.a25_cuts_at_the_high_watermark,
        ),
        ("A27", "LastKnownElr is not recorded", "balanced-recovery", "S13", controllers.a27_forgets_the_lost),
        (
            "A29",
            "a broker that shuts down may be elected",
            "controlled-shutdown",
            "S12",
            controllers.a29_elects_who_leaves,
        ),
        (
            "A30",
            "who is elected from the ELR does not become the ISR",
            "last-replica-standing",
            "S12",
            controllers.a30_elected_stays_outside,
        ),
        ("A31", "the ISR may not become empty", "last-replica-standing", "S12", controllers.a31_last_member_stays),
        (
            "A32",
            "the ELR outlives a change of min.insync.replicas",
            "min-isr-changes",
            "S12 S3",
            controllers.a32_elr_outlives_min_isr,
        ),
        (
            "A34",
            "a new leader knows at once what is committed",
            "last-replica-standing",
            "S19",
            replicas.a34_knows_the_end_at_once,
        ),
        (
            "A35",
            "a high watermark is believed above the end of the log",
            "checkpoints",
            "S18",
            replicas.a35_trusts_the_checkpoint,
        ),
        ("A38", "Balanced recovery waits for nobody", "all-crashed", "U1 U2 U4", controllers.a38_waits_for_nobody),
        (
            "A39",
            "the longest log wins, whatever its epoch",
            "diverged-and-crashed",
            "U2 U4",
            controllers.a39_longest_log_wins,
        ),
        (
            "A40",
            "what a replica said before it restarted is believed",
            "all-crashed",
            "U3 U4",
            controllers.a40_answers_outlive_restarts,
        ),
        (
            "A41",
            "an unclean recovery while a member of the ELR is there",
            "aggressive-recovery",
            "U1 L4",
            controllers.a41_elr_is_not_elected_from,
        ),
        ("A42", "an unclean election forgets nothing", "all-crashed", "U5 S12", controllers.a42_forgets_nothing),
        ("A45", "a follower counts beyond its own end", "two-records", "S18", replicas.a45_counts_beyond_its_own_end),
        (
            "A46",
            "a reassignment ends with too few in the ISR",
            "reassignment-under-min-isr",
            "S13 S2 S12 S7",
            controllers.a46_completes_too_early,
        ),
        (
            "A47",
            "an answer to any proposal is taken for the answer to this one",
            "two-outside",
            "S3",
            replicas.a47_takes_any_answer,
        ),
    )
}
