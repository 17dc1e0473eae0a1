"""Rules of a replica, broken: a leader's counting and answers, a follower's checks and truncations.

Owns patches of `tanist.replica`, each a function of the mutation's number. The model checker and the simulator break
the same rules by the same patches.
"""

from __future__ import annotations

from typing import Any

from tanist.lab.mutations.patching import Patch, always, fixed
from tanist.log.directory_checkpoints import DirectoryCheckpoints
from tanist.replica.effects import HighWatermarkSet
from tanist.replica.follower import FollowerState
from tanist.replica.leader import FollowerFetch, LeaderState
from tanist.replica.partition import Partition
from tanist.replica.reads import divergence

_BEYOND_ALL_OFFSETS = 1 << 63

# -- the high watermark

a1_ignores_min_isr = fixed(LeaderState, "_may_advance", always(True))


def a17_commits_on_append() -> tuple[Patch, ...]:
    return (
        Patch(LeaderState, "_slowest_member", always(_BEYOND_ALL_OFFSETS)),
        Patch(LeaderState, "_high_watermark_candidate", lambda leader, _now_ms: leader.log.log_end_offset),
    )


a18_counts_what_is_sent = fixed(LeaderState, "_confirmed_offset", lambda leader, _fetch: leader.log.log_end_offset)


def a19_commits_by_count() -> tuple[Patch, ...]:
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


a33_min_isr_beyond_replicas = fixed(LeaderState, "_effective_min_isr", lambda leader: leader.config.min_insync_replicas)
a34_knows_the_end_at_once = fixed(LeaderState, "knows_what_is_committed", always(True))


def a35_trusts_the_checkpoint() -> tuple[Patch, ...]:
    """All defences: the log's directory lowers a checkpoint that is above the log's end, the replica bounds it, and no
    role begins with it."""
    return (
        Patch(Partition, "_inherited_high_watermark", lambda partition: partition.high_watermark),
        Patch(Partition, "_recovered_high_watermark", lambda _partition, checkpointed: checkpointed),
        Patch(DirectoryCheckpoints, "_lower_high_watermarks", lambda _checkpoints, _ends: None),
    )


# -- the ISR

a8_counts_with_the_current_isr = fixed(
    LeaderState, "_maximal_isr_to_expand", lambda leader, _joining: frozenset(leader.isr)
)
a9_shrinks_eagerly = fixed(LeaderState, "_maximal_isr_to_shrink", lambda _leader, remaining: frozenset(remaining))


def a10_unanswered_is_rejected() -> tuple[Patch, ...]:
    failed = LeaderState.alter_partition_failed

    def alter_partition_failed(leader: LeaderState, proposal: Any, now_ms: int) -> Any:
        again = failed(leader, proposal, now_ms)
        if leader._is_awaited(proposal):
            leader._on_rejected()
        return again

    return (Patch(LeaderState, "alter_partition_failed", alter_partition_failed),)


a11_joins_behind_the_high_watermark = fixed(LeaderState, "_has_all_committed", always(True))


def a12_joins_before_the_epoch_start() -> tuple[Patch, ...]:
    """Under min ISR, where the mutation shows, a replica must have come to the leader's end as well."""
    return (Patch(LeaderState, "_has_epoch_start", always(True)), Patch(LeaderState, "_keeps_up", always(True)))


a47_takes_any_answer = fixed(LeaderState, "_is_awaited", lambda leader, _proposal: leader.pending is not None)

# -- fetches

a13_remembers_followers = fixed(LeaderState, "_remembers_followers", always(True))
a22_believes_other_epochs = fixed(LeaderState, "_epoch_error", always(0))


def _compares_no_epochs(leader: LeaderState, fetch_offset: int, _last_fetched_epoch: int) -> Any:
    return divergence(leader.log, leader.leader_epoch, fetch_offset, -1)


a24_looks_for_no_divergence = fixed(LeaderState, "_divergence", _compares_no_epochs)
a25_cuts_at_the_high_watermark = fixed(
    FollowerState, "_truncate_at_start", lambda follower: follower._truncate_to(follower.high_watermark)
)
a26_looks_up_one_epoch = fixed(
    FollowerState,
    "truncation_target",
    lambda follower, _epoch, end_offset: (min(end_offset, follower.log.log_end_offset), True),
)


def _believes_any_high_watermark(follower: FollowerState, leader_high_watermark: int) -> list[Any]:
    follower.high_watermark = leader_high_watermark
    return [HighWatermarkSet(leader_high_watermark)]


a45_counts_beyond_its_own_end = fixed(FollowerState, "_adopt_high_watermark", _believes_any_high_watermark)
