"""Situations of a node as a whole: how it starts, stops and fails, and what its operator reads of it."""

from __future__ import annotations

from typing import Final

from tanist.events.metadata import BrokerGone, FencingLearned, RegistrationLost, UncleanElection
from tanist.events.process import LeadershipsNotHandedOver, LogDirectoriesFailed, MetadataLogFailed
from tanist.events.quorum import MetadataLogTruncated, QuorumLeaderGone
from tanist.events.replication import ReplicaDeleted
from tanist.events.storage import LogDirectoryFailed, LogRecovered, RecordsSalvaged
from tanist.sim.events import CannotStart
from tanist.sim.situations.counting import Situation

NODE_SITUATIONS: Final = (
    Situation("node: quorum's leader found dead", "connection refused: no timeout is waited for", QuorumLeaderGone),
    Situation("node: broker found dead", "connection refused: fenced at once", BrokerGone),
    Situation("node: fenced while it runs", "its controller did not hear of it in time", FencingLearned),
    Situation("node: registers anew in the same life", "its registration is not known", RegistrationLost),
    Situation("node: shuts down without a controller", "leaderships are not handed over", LeadershipsNotHandedOver),
    Situation("node: recovery cuts a log", "torn, lost or rotten: the first batch not whole", LogRecovered),
    Situation("node: salvage saved", "what was cut is kept", RecordsSalvaged),
    Situation("node: log directory offline", "the others go on", LogDirectoryFailed),
    Situation("node: all log directories offline", "the process ends", LogDirectoriesFailed),
    Situation(
        "node: metadata log's disk failed",
        "the process ends",
        MetadataLogFailed,
        lambda event: not event.descriptor_shortage,
    ),
    Situation(
        "node: log of a former replica deleted",
        "reassigned while it was down",
        ReplicaDeleted,
        lambda event: event.at_start,
    ),
    Situation("node: metadata log truncated", "it had what was never committed", MetadataLogTruncated),
    Situation("node: cannot start", "its disk is full, or fails", CannotStart),
    Situation("node: unclean election reported", "for the operator to read, once", UncleanElection),
)
