"""The mutations of the simulator: every rule of the list, broken, and the runs that show it.

Owns `MUTANTS`. The numbers are those of docs/mutations.md; a rule that can be broken in two ways has a second row
(A30b), and a name without a number is a rule of our own. Nearly all show in random runs, some in a `situation` with
more of their kind of faults, and a few, whose moments random runs hardly ever meet, in a `directed` run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tanist.lab.mutations import directed_elections as elections
from tanist.lab.mutations import directed_isr as isr
from tanist.lab.mutations import directed_logs as logs
from tanist.lab.mutations import directed_votes as votes
from tanist.lab.mutations import rules_of_controllers as controllers
from tanist.lab.mutations import rules_of_log_starts as starts
from tanist.lab.mutations import rules_of_moves as moves
from tanist.lab.mutations import rules_of_nodes as nodes
from tanist.lab.mutations import rules_of_replicas as replicas
from tanist.lab.mutations import situations
from tanist.lab.mutations.directed import CONTROLLER, Directed, Script, config
from tanist.lab.mutations.patching import Breaks, replaced
from tanist.lab.mutations.quorum import QUORUM_MUTATIONS, changes_before_its_first_commit
from tanist.lab.mutations.situations import Situation
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.drawing import config_of
from tanist.sim.world.world import COMBINED

Play = Callable[[int], ChaosRun]
"""Makes the run of a seed, without starting it."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A broken rule."""

    rule: str
    """The behaviour instead of the rule."""
    patches: Breaks
    play: Play
    directed: str = ""
    """The script's name, of a directed run."""
    equivalent: str = ""
    """The reason why it is equivalent to the real rule, if it is."""


def applied(mutation: Mutation) -> AbstractContextManager[None]:
    """Break the rule while the block runs."""
    return replaced(mutation.patches())


def drawn(rule: str, patches: Breaks, situation: Situation = config_of, equivalent: str = "") -> Mutation:
    """Shows in random runs."""
    return Mutation(rule, patches, lambda seed: ChaosRun(seed, situation(seed)), equivalent=equivalent)


def _directed(rule: str, patches: Breaks, script: Callable[[Directed], Script], **settings: object) -> Mutation:
    """Shows in a directed run."""
    made = config(**settings)  # type: ignore[arg-type]
    return Mutation(rule, patches, lambda seed: Directed(seed, script, made), directed=script.__name__)


_SHORT: Mapping[str, object] = {"fault_time_ms": 3_000, "settle_time_ms": 4_000, "latency_us": (2_000, 4_000)}
"""For runs in which a client asks again and again until the end."""

MUTANTS: Mapping[str, Mutation] = {
    "A1": drawn("the high watermark ignores min.insync.replicas", replicas.a1_ignores_min_isr),
    "A2": drawn("no ELR: the last member of the ISR stays in it, whatever it lost", controllers.a2_without_elr),
    "A3": drawn("an unclean restart leaves the broker in the ELR", controllers.a3_all_restarts_are_clean),
    "A4": drawn("the mark of a clean end is there while the broker runs", nodes.a4_marked_early),
    "A5": _directed(
        "any life of a broker may join the ISR", controllers.a5_any_life_may_join, isr.another_life_is_added
    ),
    "A6": drawn("a broker keeps its epoch when it registers again", controllers.a6_reuses_broker_epochs),
    "A7": _directed(
        "an AlterPartition of any age is accepted",
        controllers.a7_any_partition_epoch,
        isr.an_old_wish_comes_last,
        properties={"broker.session.timeout.ms": "3000", "replica.lag.time.max.ms": "1000"},
    ),
    "A8": drawn("an expansion is counted with the current ISR", replicas.a8_counts_with_the_current_isr),
    "A9": drawn("a shrink is applied before the controller has said so", replicas.a9_shrinks_eagerly),
    "A10": _directed(
        "an unanswered proposal counts as rejected", replicas.a10_unanswered_is_rejected, isr.an_answer_is_lost
    ),
    "A11": _directed(
        "a replica behind the high watermark joins the ISR",
        replicas.a11_joins_behind_the_high_watermark,
        isr.a_follower_catches_up_slowly,
    ),
    "A12": _directed(
        "a replica joins before it has the epoch's start",
        replicas.a12_joins_before_the_epoch_start,
        isr.a_leader_that_knows_too_little,
    ),
    "A13": _directed(
        "what followers had is believed across elections", replicas.a13_remembers_followers, logs.there_and_back
    ),
    "A14": drawn("the ELR is kept when the ISR is large enough", controllers.a14_elr_stays),
    "A15": drawn("who leaves a large enough ISR is eligible", controllers.a15_leavers_are_eligible),
    "A16": _directed(
        "unclean recoveries whatever the strategy",
        controllers.a16_unclean_recoveries,
        elections.everybody_has_crashed,
        topic=(("unclean.recovery.strategy", "None"),),
    ),
    "A17": drawn("the high watermark is the leader's end", replicas.a17_commits_on_append),
    "A18": drawn("a follower counts with what it was sent", replicas.a18_counts_what_is_sent),
    "A19": drawn("enough replicas commit, in the ISR or not", replicas.a19_commits_by_count),
    "A20": _directed(
        "a fenced broker may join the ISR", controllers.a20_the_fenced_may_join, isr.a_fenced_one_is_added
    ),
    "A21": drawn("a fence leaves the broker in its ISRs", controllers.a21_fenced_stay_in_isr),
    "A22": _directed(
        "fetches of other epochs are believed", replicas.a22_believes_other_epochs, logs.an_old_fetch_is_read
    ),
    "A23": _directed("any answer to a fetch is taken", nodes.a23_takes_any_answer, logs.an_old_answer_is_read),
    "A24": _directed(
        "no divergence is looked for", replicas.a24_looks_for_no_divergence, logs.another_record_at_the_end
    ),
    "A25": drawn("a follower cuts its log at its high watermark", replicas.a25_cuts_at_the_high_watermark),
    "A26": _directed(
        "one look-up of an epoch is enough", replicas.a26_looks_up_one_epoch, logs.a_middle_that_parts, **_SHORT
    ),
    "A27": drawn("LastKnownElr is not recorded", controllers.a27_forgets_the_lost),
    "A28": drawn("a new life is taken for the one before", controllers.a28_ignores_incarnations),
    "A29": _directed(
        "a broker that is shutting down can be elected",
        controllers.a29_elects_who_leaves,
        elections.the_last_one_is_leaving,
    ),
    "A30": drawn("who is elected from the ELR is not in the ISR", controllers.a30_elected_stays_outside),
    "A30b": drawn("an election from the ELR begins no leader epoch", controllers.a30b_same_leader_epoch),
    "A31": drawn("the ISR never becomes empty", controllers.a31_last_member_stays),
    "A32": drawn(
        "a lower min.insync.replicas keeps the ELR",
        controllers.a32_lower_min_isr_keeps_elr,
        situations.busy_configs,
    ),
    "A33": drawn(
        "min.insync.replicas counts beyond the replicas",
        replicas.a33_min_isr_beyond_replicas,
        situations.one_replica_too_few,
    ),
    "A34": _directed(
        "a new leader says at once where the log ends",
        replicas.a34_knows_the_end_at_once,
        isr.a_leader_that_knows_too_little,
        observers=1,
    ),
    "A35": _directed(
        "a high watermark is trusted above the log's end",
        replicas.a35_trusts_the_checkpoint,
        logs.a_tail_is_lost_behind_a_checkpoint,
        properties={"replica.high.watermark.checkpoint.interval.ms": "1000"},
    ),
    "A36": _directed(
        "disks lie about what is synced",
        nodes.a36_lying_disks,
        logs.a_tail_is_lost_behind_a_checkpoint,
        properties={"log.flush.interval.messages": "1"},
    ),
    "A37": _directed(
        "epochs outlive the records that were cut",
        nodes.a37_epochs_outlive_records,
        logs.a_middle_that_parts,
        **_SHORT,
    ),
    "A38": drawn(
        "Balanced asks those of LastKnownElr who are there",
        controllers.a38_some_will_do,
        situations.recovering("Balanced"),
    ),
    "A38b": drawn(
        "Balanced does not wait for the ELR",
        controllers.a38b_does_not_wait_for_the_elr,
        situations.recovering("Balanced"),
    ),
    "A39": _directed(
        "the longest log wins, whatever its epoch", controllers.a39_longest_log_wins, elections.the_longest_log_is_old
    ),
    "A39b": _directed(
        "the epoch in an answer to ListOffsets is that of the last record",
        controllers.a39b_the_partitions_epoch_is_the_logs,
        elections.the_longest_log_is_old,
        plain=(1, 2, 3),
    ),
    "A39c": _directed(
        "Balanced elects the latest epoch, though it lacks records of LastKnownElr",
        controllers.a39c_latest_epoch_wins,
        elections.a_later_epoch_in_vain,
    ),
    "A40": _directed(
        "an answer counts after a restart of who gave it",
        controllers.a40_answers_outlive_restarts,
        elections.an_answer_from_before_the_loss,
    ),
    "A40b": _directed(
        "an answer without a broker epoch counts for the present registration",
        controllers.a40b_inferred_answers_are_of_today,
        elections.an_answer_from_before_the_loss,
        plain=(1, 2, 3),
    ),
    "A41": drawn(
        "Aggressive passes over a member of the ELR that is there",
        controllers.a41_elr_is_not_elected_from,
        situations.recovering("Aggressive"),
    ),
    "A42": drawn("an unclean election keeps LastKnownElr", controllers.a42_forgets_nothing),
    "A43": _directed("producers are forgotten at a restart", nodes.a43_forgets_producers, logs.a_batch_comes_again),
    "A44": _directed(
        "a producer whose wait expires gets a refusal",
        nodes.a44_late_is_refused,
        logs.a_wait_that_is_too_long,
        properties={"replica.lag.time.max.ms": "10000"},
    ),
    "A45": _directed(
        "a follower counts beyond its own end",
        replicas.a45_counts_beyond_its_own_end,
        isr.a_follower_catches_up_slowly,
        properties={"replica.fetch.max.bytes": "300"},
    ),
    "A46": _directed(
        "a reassignment is completed with too small an ISR",
        controllers.a46_completes_at_once,
        isr.a_move_with_too_few,
        roles={**dict.fromkeys((1, 2, 3, 4), "broker"), CONTROLLER: "controller"},
    ),
    "A47": _directed(
        "an answer to any proposal is taken",
        replicas.a47_takes_any_answer,
        isr.an_answer_comes_after_the_next_wish,
        min_isr=1,
    ),
    "A48": drawn("roles are taken before the metadata has the registration", nodes.a48_roles_before_the_registration),
    "A49": drawn("a new controller begins before it has replayed all", nodes.a49_begins_before_all_is_replayed),
    "A49b": _directed(
        "the controller answers before the commit",
        nodes.a49b_answers_before_the_commit,
        elections.a_controller_alone,
        roles=dict.fromkeys((1, 2, 3), COMBINED),
    ),
    "A50": _directed(
        "a log is that of the topic which has its name now",
        nodes.a50_ignores_topic_ids,
        elections.a_topic_of_the_same_name,
    ),
    "acks": drawn("a produce is acknowledged with the next that is committed", nodes.acks_with_the_next),
    "deposed": drawn("a leader that is none any more acknowledges what waits", nodes.deposed_leaders_acknowledge),
    "unread": drawn(
        "a broker answers clients before it has read the metadata",
        nodes.clients_are_heard_at_once,
        situations.restarted_and_asked,
    ),
    "reads": drawn("consumers read to the end of the log", nodes.consumers_read_to_the_end),
    "duplicates": _directed(
        "a batch that comes twice is appended twice", nodes.duplicates_are_appended, logs.a_batch_comes_again
    ),
    "old-events": drawn(
        "a producer is forgotten when its last timestamp is old",
        nodes.producers_expire_by_their_timestamps,
        situations.old_events,
    ),
    "session-named": drawn(
        "a session looks at a partition that its follower names only when the log grows",
        nodes.sessions_forget_what_is_named,
    ),
    "session-appends": drawn("a session hears of no appends", nodes.sessions_hear_of_no_appends),
    "session-news": drawn(
        "a session says nothing of the high watermark alone", nodes.sessions_leave_the_high_watermark_out
    ),
    "late-acknowledged": drawn(
        "a follower acknowledges what is being written",
        nodes.acknowledges_what_is_not_written,
        situations.large_writes,
    ),
    "late-beside": drawn(
        "a follower's request beside a large write names that partition too",
        nodes.acknowledges_all_beside_what_is_written,
        situations.large_writes,
    ),
    "late-committed": drawn(
        "a leader counts what is being written", nodes.commits_what_is_not_written, situations.large_writes
    ),
    "late-memory": drawn(
        "memory is received into while it is written", nodes.receives_into_what_is_lent, situations.large_writes
    ),
    "torn-answers": _directed(
        "followers take any epoch, from a leader that writes over what it has given",
        nodes.torn_answers,
        logs.a_torn_answer_is_read,
    ),
    "torn-ranges": _directed(
        "what readers were given is written over",
        nodes.writes_over_what_readers_were_given,
        logs.a_torn_answer_is_read,
    ),
    "cut-hole": _directed(
        "a log that is cut in a hole begins its next segment at the cut",
        nodes.begins_at_the_cut,
        logs.a_log_is_cut_in_a_hole,
        min_isr=1,
        topic=(
            ("cleanup.policy", "compact"),
            ("segment.ms", "200"),
            ("min.cleanable.dirty.ratio", "0.01"),
            ("unclean.recovery.strategy", "Aggressive"),
        ),
        properties={"log.cleaner.backoff.ms": "100", "broker.session.timeout.ms": "3000"},
        fault_time_ms=30_000,
    ),
    "torn-drawn": drawn(
        "what readers were given is written over (small windows)",
        nodes.writes_over_what_readers_were_given,
        situations.torn_links,
    ),
    "trim-committed": drawn(
        "retention drops segments that are not committed",
        starts.drops_what_is_not_committed,
        situations.trimming,
    ),
    "trim-early": drawn("retention drops one segment more than it may", starts.drops_one_more, situations.trimming),
    "trim-beyond": drawn(
        "DeleteRecords is accepted beyond the high watermark", starts.deletes_beyond, situations.trimming
    ),
    "trim-checkpoint": drawn(
        "a restart forgets the log starts that were written down",
        starts.forgets_log_starts,
        situations.trimming,
    ),
    "trim-follower": drawn(
        "a follower does not take its leader's log start", starts.follows_no_start, situations.trimming
    ),
    "trim-ahead": drawn(
        "a leader says that its followers begin where it does",
        starts.believes_all_have_deleted,
        situations.trimming,
    ),
    "trim-reads": drawn(
        "deleted records are read until their segment goes",
        starts.reads_deleted_records,
        situations.trimming,
    ),
    "move-early": drawn(
        "a copy takes its log's place when it has some of it", moves.takes_its_place_early, situations.moving
    ),
    "move-uncut": drawn("a copy keeps what is cut off its log", moves.keeps_what_was_cut, situations.moving),
    "move-untold": drawn(
        "a replica moves, and the controller does not hear of it", moves.tells_nobody, situations.moving
    ),
    "lost-logs": drawn(
        "a log that a clean stop has left, and that is gone, is a new one", nodes.misses_no_log, situations.lost_logs
    ),
    "majority": drawn("metadata is committed when the leader has it", nodes.commits_without_a_majority),
    "votes": drawn("votes are not written down", nodes.votes_are_not_stored),
    "votes-forgotten": _directed(
        "a voter forgets its vote at a restart",
        nodes.votes_are_forgotten,
        votes.a_voter_restarts_between_two_candidates,
        roles=votes.ROLES,
        latency_us=(4_000, 6_000),
    ),
    "votes-twice": drawn("a voter votes again in an epoch", nodes.votes_again, situations.contested_votes),
    **{
        number: drawn(
            QUORUM_MUTATIONS[number].rule,
            changes_before_its_first_commit if number == "E-Q" else QUORUM_MUTATIONS[number].patches,
            situations.changing_voters,
        )
        for number in ("E-O", "E-P", "E-Q", "E-R")
    },
}
