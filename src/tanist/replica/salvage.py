"""A follower's cut and its reason: decided before the cut, so that the records can be saved first.

Owns `Cut`, and the rule that names its reason. A follower with `ReplicaConfig.salvage` announces a cut that would drop
records (`effects.SalvageFirst`), and neither fetches nor cuts until they are reported safe, or lost. This module does
not decide whether and where they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.log.salvage.manifest import SalvageReason
from tanist.replica.ports import ReplicaLog


@dataclass(frozen=True, slots=True)
class Cut:
    """A truncation to `offset`, or (`fully`) of everything, to restart at `offset`."""

    offset: int
    fully: bool
    why: SalvageReason

    def drops_records(self, log: ReplicaLog) -> bool:
        """A cut at the end of the log concerns epochs without records only."""
        end = log.log_end_offset
        return log.log_start_offset < end and (self.fully or self.offset < end)


def reason_for(offset: int, high_watermark: int, *, fully: bool, unclean: bool) -> SalvageReason:
    """Why a leader's log does not have the records from `offset` on. `unclean`: an unclean election stands between.

    The only place that decides it: manifests, logs and commands pass it on. An unclean election may have lost committed
    and other records alike, whatever high watermark this replica knows. Without one, records below the high watermark
    were committed, so the leader has lost them: what an election that is clean by the rules cannot know (rule 115).
    Those above it were not, though they may have been acknowledged (acks=1).
    """
    if fully:
        return SalvageReason.OUT_OF_RANGE
    if unclean:
        return SalvageReason.UNCLEAN_ELECTION
    return SalvageReason.CLEAN_ELECTION if offset < high_watermark else SalvageReason.FOLLOWER_TRUNCATION
