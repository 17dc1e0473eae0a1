"""Dead letters of share groups (KIP-1191), against what members have said and leaders have given (Q9).

    Q9  a record that was rejected, or given as often as it may be and accepted by nobody, is in the dead letter topic
        of its group at least once; nothing else is there

Judged after the faults, when each group is done with its records. Letters that a leader has reported to be left out are
excused, and records that were deleted from the log. A letter that is committed is judged at once: it must be of a
record that somebody has rejected, or that was given as often as it may be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set

from tanist.events.coordination import DeadLettersLeftOut
from tanist.sim.workload.share_members import Share
from tanist.sim.workload.share_settings import DEAD_LETTERS
from tanist.wire.batch import decode_batch


class Letters:
    """The committed dead letters of a run, by what they say of themselves."""

    def __init__(self) -> None:
        self.written: defaultdict[Share, set[int]] = defaultdict(set)
        self.left_out: defaultdict[Share, set[int]] = defaultdict(set)

    @staticmethod
    def is_topic(name: str) -> bool:
        """Whether it is a topic of dead letters."""
        return name.startswith(DEAD_LETTERS)

    def batch_committed(self, batch: memoryview) -> list[tuple[Share, int]]:
        """The records that a committed batch speaks of."""
        found = []
        for record in decode_batch(batch):
            said = {name.rpartition(".")[2]: (value or b"").decode() for name, value in record.headers}
            share = Share(said["group"], said["topic"], int(said["partition"]))
            self.written[share].add(int(said["offset"]))
            found.append((share, int(said["offset"])))
        return found

    def leaves_out(self, share: Share, event: DeadLettersLeftOut) -> None:
        """A leader archives these without a letter."""
        self.left_out[share].update(range(event.first_offset, event.last_offset + 1))

    def missing(self, share: Share, wanted: Set[int]) -> set[int]:
        """Those of the records without a letter."""
        return set(wanted) - self.written[share] - self.left_out[share]
