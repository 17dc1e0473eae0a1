"""The log of a replica as it tells the controller, and how two of them compare (KIP-966, "Unclean recovery")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogInfo:
    """A replica's answer about its log."""

    broker_epoch: int
    leader_epoch: int
    """The partition's, as the replica knows it."""
    last_epoch: int
    """The leader epoch of its last record; -1 in an empty log."""
    log_end_offset: int
    epochs: tuple[tuple[int, int], ...] = ()
    """All its leader epochs and their start offsets, ascending; empty where they are not known."""

    @property
    def position(self) -> tuple[int, int]:
        """By this the logs of candidates are compared: KIP-966, "Unclean recovery"."""
        return self.last_epoch, self.log_end_offset

    def contains(self, other: LogInfo) -> bool:
        """Whether the log is known to begin with all of the other one.

        Logs with the same last epoch come from the same leader, and the longer one has what the shorter has. A log
        with a later epoch has the other one if all its own records up to that end are of the same epochs, or deleted.
        """
        if self.last_epoch == other.last_epoch or not other.log_end_offset:
            return self.log_end_offset >= other.log_end_offset
        later = next((entry for entry in self.epochs if entry[0] > other.last_epoch), None)
        if later is None or later[1] < other.log_end_offset:
            return False
        return later is self.epochs[0] or any(epoch == other.last_epoch for epoch, _ in self.epochs)
