"""Replicas with one rule of safety.md broken each, for showing what that rule was good for.

Each mutant replaces exactly one rule method of the real classes; nothing in the product knows of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tanist.replica.effects import Effect, HighWatermarkSet, ProposeIsr
from tanist.replica.follower import FetchPosition, FollowerState
from tanist.replica.leader import FetchDecision, FollowerFetch, LeaderState
from tanist.replica.partition import Partition
from tanist.replica.remote import RemoteReplica


class HighWatermarkIgnoresMinIsr(LeaderState):
    """A1"""

    def _may_advance(self) -> bool:
        return True


class ExpandCountsWithCurrentIsr(LeaderState):
    """A8"""

    def _maximal_isr_to_expand(self, joining: int) -> frozenset[int]:
        return frozenset(self.isr)


class ShrinkAppliedEagerly(LeaderState):
    """A9"""

    def _maximal_isr_to_shrink(self, remaining: tuple[int, ...]) -> frozenset[int]:
        return frozenset(remaining)


class UnansweredCountsAsRejected(LeaderState):
    """A10"""

    def alter_partition_failed(self, proposal: ProposeIsr, now_ms: int) -> list[Effect]:
        if self._is_awaited(proposal):
            self._on_rejected()
        return super().alter_partition_failed(proposal, now_ms)


class JoinsBehindHighWatermark(LeaderState):
    """A11"""

    def _has_all_committed(self, remote: RemoteReplica) -> bool:
        return True


class JoinsBeforeEpochStart(LeaderState):
    """A12. Under min ISR a replica must have come to the leader's end as well."""

    def _has_epoch_start(self, remote: RemoteReplica) -> bool:
        return True

    def _keeps_up(self, remote: RemoteReplica, now_ms: int) -> bool:
        return True


class RemembersFollowersAcrossElections(LeaderState):
    """A13"""

    def _remembers_followers(self, previous_epoch: int, leader_epoch: int) -> bool:
        return True


class CommitsOnAppend(LeaderState):
    """A17"""

    def _slowest_member(self) -> int:
        return 1 << 63

    def _high_watermark_candidate(self, now_ms: int) -> int:
        return self.log.log_end_offset


class CountsWhatIsSent(LeaderState):
    """A18"""

    def _confirmed_offset(self, fetch: FollowerFetch) -> int:
        return self.log.log_end_offset


class CommitsByCount(LeaderState):
    """A19"""

    def _slowest_member(self) -> int:
        ends = sorted((remote.log_end_offset for remote in self.remotes.values()), reverse=True)
        return ends[self.effective_min_isr - 2]

    def follower_fetch(self, fetch: FollowerFetch, now_ms: int) -> FetchDecision:
        decision = super().follower_fetch(fetch, now_ms)
        self._slowest_member_offset = self._slowest_member()
        decision.effects.extend(self._advance(now_ms))
        return decision

    def _high_watermark_candidate(self, now_ms: int) -> int:
        return min(self.log.log_end_offset, self._slowest_member())


class BelievesFetchesOfOtherEpochs(LeaderState):
    """A22"""

    def _epoch_error(self, current_leader_epoch: int) -> int:
        return 0


class TakesAnyAnswer(FollowerState):
    """A23"""

    def _answers_present_fetch(self, position: FetchPosition) -> bool:
        return True


class ComparesNoEpochs(LeaderState):
    """A24"""

    def _divergence(self, fetch_offset: int, last_fetched_epoch: int) -> tuple[int, tuple[int, int] | None]:
        return super()._divergence(fetch_offset, -1)


class TruncatesToHighWatermark(FollowerState):
    """A25, replication before KIP-101: a follower starts by cutting its log at its high watermark."""

    def _truncate_at_start(self) -> list[Effect]:
        return self._truncate_to(self.high_watermark)


class LooksUpOneEpochOnly(FollowerState):
    """A26, replication before KIP-279: the follower takes the leader's end offset, whatever epoch it belongs to."""

    def truncation_target(self, epoch: int, end_offset: int) -> tuple[int, bool]:
        return min(end_offset, self.log.log_end_offset), True


class MinIsrBeyondReplicas(LeaderState):
    """A33"""

    def _effective_min_isr(self) -> int:
        return self.config.min_insync_replicas


class KnowsTheEndAtOnce(LeaderState):
    """A34"""

    def knows_what_is_committed(self) -> bool:
        return True


class HighWatermarkBeyondOwnEnd(FollowerState):
    """A45"""

    def _adopt_high_watermark(self, leader_high_watermark: int) -> list[Effect]:
        self.high_watermark = leader_high_watermark
        return [HighWatermarkSet(leader_high_watermark)]


class TakesAnswersToAnyProposal(LeaderState):
    """A47"""

    def _is_awaited(self, proposal: ProposeIsr) -> bool:
        return self.pending is not None


class TrustsCheckpoint(Partition):
    """A35"""

    def _recovered_high_watermark(self, checkpointed: int) -> int:
        return checkpointed


def _with(leader: type[LeaderState] = LeaderState, follower: type[FollowerState] = FollowerState) -> type[Partition]:
    return type("MutantPartition", (Partition,), {"leader_class": leader, "follower_class": follower, "__slots__": ()})


MUTANTS: Mapping[str, type[Partition]] = {
    "A1": _with(HighWatermarkIgnoresMinIsr),
    "A8": _with(ExpandCountsWithCurrentIsr),
    "A9": _with(ShrinkAppliedEagerly),
    "A10": _with(UnansweredCountsAsRejected),
    "A11": _with(JoinsBehindHighWatermark),
    "A12": _with(JoinsBeforeEpochStart),
    "A13": _with(RemembersFollowersAcrossElections),
    "A17": _with(CommitsOnAppend),
    "A18": _with(CountsWhatIsSent),
    "A19": _with(CommitsByCount),
    "A22": _with(BelievesFetchesOfOtherEpochs),
    "A23": _with(follower=TakesAnyAnswer),
    "A24": _with(ComparesNoEpochs),
    "A25": _with(follower=TruncatesToHighWatermark),
    "A26": _with(follower=LooksUpOneEpochOnly),
    "A33": _with(MinIsrBeyondReplicas),
    "A34": _with(KnowsTheEndAtOnce),
    "A35": TrustsCheckpoint,
    "A45": _with(follower=HighWatermarkBeyondOwnEnd),
    "A47": _with(TakesAnswersToAnyProposal),
}
