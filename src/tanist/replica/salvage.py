"""What a follower is about to cut off, and why: decided before it is done, so that it can be saved first.

Owns `Cut`, and the rule that names its reason. A follower with `ReplicaConfig.salvage` announces a cut that would drop
records (`effects.SalvageFirst`), and neither fetches nor cuts until it is told that they are safe, or cannot be made
so. Whether and where they are kept is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.log.salvage.manifest import SalvageReason
from tanist.replica.ports import ReplicaLog


@dataclass(frozen=True, slots=True)
class Cut:
    """A truncation to `offset`, or (`fully`) of everything, to begin anew at `offset`."""

    offset: int
    fully: bool
    why: SalvageReason

    def drops_records(self, log: ReplicaLog) -> bool:
        """A cut at the end of the log concerns epochs without records only."""
        end = log.log_end_offset
        return log.log_start_offset < end and (self.fully or self.offset < end)


def reason_for(offset: int, high_watermark: int, *, fully: bool, leader_recovers: bool) -> SalvageReason:
    """What is cut below the high watermark was committed, and then only an unclean election explains it (rule 115).

    Above it the elections may have been clean: the records were never committed, though their producers may have been
    told that they were written (acks=1). A leader that recovers from an unclean election may have lost either kind,
    whatever high watermark this replica has heard of.
    """
    if fully:
        return SalvageReason.OUT_OF_RANGE
    return (
        SalvageReason.UNCLEAN_RECOVERY
        if leader_recovers or offset < high_watermark
        else SalvageReason.FOLLOWER_TRUNCATION
    )
