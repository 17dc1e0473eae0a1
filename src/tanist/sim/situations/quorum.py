"""Situations of the metadata quorum: votes that are refused and split, leaders that resign, logs that are cut."""

from __future__ import annotations

from typing import Final

from tanist.events.metadata import ControllerActivationAbandoned, ControllerActivationWaits
from tanist.events.quorum import (
    BecameCandidate,
    ElectionLost,
    LeaderClaimRefused,
    LeaderDeposed,
    LeaderLeaves,
    LeaderResigned,
    MetadataFetchRefused,
    MetadataLogTruncated,
    PreVoteLost,
    SnapshotDownloaded,
    SnapshotLoaded,
    SnapshotOffered,
    SnapshotWritten,
    SteppedDown,
    VoterChangeEnded,
    VoterChangeRefused,
    VoterChangeTruncated,
    VoteRefused,
)
from tanist.sim.situations.counting import Situation

QUORUM_SITUATIONS: Final = (
    Situation(
        "quorum: pre-vote refused",
        "by who hears a leader, or has more of the log",
        VoteRefused,
        lambda event: event.pre_vote,
    ),
    Situation(
        "quorum: vote refused",
        "by who has voted for another, or has more of the log",
        VoteRefused,
        lambda event: not event.pre_vote,
    ),
    Situation(
        "quorum: pre-vote lost, its leader followed again",
        "no other voter missed the leader",
        PreVoteLost,
        lambda event: event.leader_id is not None,
    ),
    Situation("quorum: vote split or lost", "a candidate's time is over and it is not elected", ElectionLost),
    Situation(
        "quorum: question of an older epoch answered with the newer", "a vote, or a leader's claim", LeaderClaimRefused
    ),
    Situation(
        "quorum: leader resigns, a majority is silent",
        "check quorum (KIP-996)",
        LeaderResigned,
        lambda event: event.cause == "MAJORITY_SILENT",
    ),
    Situation("quorum: leader hears of a newer epoch", "and leads no more", LeaderDeposed),
    Situation(
        "quorum: leader leaves in good order",
        "EndQuorumEpoch, so that another voter stands at once",
        LeaderResigned,
        lambda event: event.cause == "SHUTDOWN",
    ),
    Situation(
        "quorum: successor learns that the leader leaves",
        "it need not wait for its timeout",
        LeaderLeaves,
    ),
    Situation(
        "quorum: fetch refused by who does not lead",
        "the answer names the leader",
        MetadataFetchRefused,
        lambda event: event.error == "NOT_LEADER_OR_FOLLOWER",
    ),
    Situation(
        "quorum: uncommitted records cut off",
        "a new leader's log has others there",
        MetadataLogTruncated,
    ),
    Situation(
        "quorum: fetch answered with a snapshot",
        "what the fetcher lacks is not in the log any more",
        SnapshotOffered,
    ),
    Situation("quorum: snapshot downloaded", "and loaded in place of the log", SnapshotDownloaded),
    Situation(
        "quorum: snapshot loaded by a controller",
        "from its own disk or from the leader",
        SnapshotLoaded,
        lambda event: event.controller,
    ),
    Situation(
        "quorum: snapshot loaded by a broker",
        "that is no voter",
        SnapshotLoaded,
        lambda event: not event.controller,
    ),
    Situation("quorum: snapshot written", "and the log cut below it", SnapshotWritten),
    Situation(
        "quorum: elected before all that is committed was applied",
        "the controller is active when it is",
        ControllerActivationWaits,
    ),
    Situation(
        "quorum: deposed before all that is committed was applied",
        "the controller was not active in that epoch",
        ControllerActivationAbandoned,
    ),
    Situation(
        "quorum: deposed leader's records given up",
        "they were appended, and never committed",
        SteppedDown,
        lambda event: event.uncommitted > 0,
    ),
    Situation(
        "quorum: change of the voters refused, another is under way",
        "one at a time",
        VoterChangeRefused,
        lambda event: event.cause == "UNDER_WAY",
    ),
    Situation(
        "quorum: change of the voters refused before the leader's first commit",
        "an older leader may have begun one",
        VoterChangeRefused,
        lambda event: event.cause == "NOT_FENCED",
    ),
    Situation(
        "quorum: new voter not added, it does not catch up",
        "in the time of the request",
        VoterChangeEnded,
        lambda event: event.cause == "NOT_CAUGHT_UP",
    ),
    Situation(
        "quorum: change of the voters overtaken by another leader",
        "its asker does not learn whether it is committed",
        VoterChangeEnded,
        lambda event: event.cause == "NOT_LEADER",
    ),
    Situation(
        "quorum: change of the voters cut off",
        "it was appended, and never committed",
        VoterChangeTruncated,
    ),
    Situation(
        "quorum: leader resigns, it is removed",
        "when its removal is committed",
        LeaderResigned,
        lambda event: event.cause == "REMOVED",
    ),
    Situation(
        "quorum: removed voter stands, and does not count itself",
        "its removal is not known to be committed",
        BecameCandidate,
        lambda event: not event.voter,
    ),
)
