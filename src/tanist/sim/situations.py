"""Situations: moments in which a rule of the protocol decides, counted by name.

A range of seeds without a situation proves nothing about its rule. A situation of a node is a kind of event and a
condition on its fields; one watcher of the world counts all of them, and changes nothing: the same seed gives the same
bytes with it. A situation of a client is an answer that it does not hope for, counted by the client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tanist.events import metadata, process, quorum, replication, storage
from tanist.events.event import Event
from tanist.events.metadata import PartitionChanged
from tanist.sim.events import CannotStart
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.errors import ErrorCode


class Situation(NamedTuple):
    """A situation of a node. `holds` looks at an event of its kind, of a node or of the world."""

    kind: type[Event]
    meaning: str
    holds: Callable[[Any], object]


def on(
    kind: type[Event], meaning: str, holds: Callable[[Any], object] = lambda event: True, **fields: object
) -> Situation:
    """At an event of this kind with these fields, if it `holds`."""
    if fields.keys() - set(kind.fields):
        raise ValueError(f"{kind.__name__} has the fields {', '.join(kind.fields)}, not {', '.join(fields)}")
    return Situation(
        kind, meaning, lambda event: holds(event) and all(getattr(event, name) == fields[name] for name in fields)
    )


def _elected(event: PartitionChanged) -> bool:
    return event.leader >= 0 and event.leader_epoch > event.leader_epoch_before


def _shared(some: tuple[int, ...], others: tuple[int, ...]) -> set[int]:
    return {*some} & {*others}


OF_NODES: Final[dict[str, Situation]] = {
    # replicas: leaders that count, followers that cut, proposals that are overtaken
    "leader: fetch of an older leader epoch fenced": on(
        replication.FetchRefused,
        "KIP-320: it says nothing of the log that this leader has",
        error=ErrorCode.FENCED_LEADER_EPOCH,
    ),
    "leader: fetch of a newer leader epoch": on(
        replication.FetchRefused,
        "the leader has yet to hear of its own next epoch, or of the next leader",
        lambda event: event.current_leader_epoch > event.leader_epoch,
    ),
    "leader: fetch of one who is no replica": on(
        replication.FetchRefused, "of an assignment that one of both has not heard of", reason="no replica"
    ),
    "leader: divergence found by a fetch": on(
        replication.DivergenceFound, "the answer says where its log diverges from the leader's (KIP-595)"
    ),
    "leader: fetch of a broker's former life refused": on(
        replication.FetchRefused, "sent before it registered anew: its log may be another one", reason="former life"
    ),
    "leader: replica behind the high watermark waits": on(
        replication.IsrJoinDelayed, "it may not join the ISR yet", reason="high watermark"
    ),
    "leader: replica waits for the leader epoch's start": on(
        replication.IsrJoinDelayed, "it has the high watermark as known, which may be stale", reason="leader epoch"
    ),
    "leader: replica that is fenced or born again waits": on(
        replication.IsrJoinDelayed, "it has all, and may not join as it is", reason="eligible"
    ),
    "leader: join waits for a proposal under way": on(
        replication.IsrJoinDelayed, "one change of the ISR at a time", reason="pending"
    ),
    "leader: expansion proposed": on(
        replication.IsrProposed, "AlterPartition with one more", lambda event: len(event.proposed) > len(event.isr)
    ),
    "leader: shrink proposed": on(
        replication.IsrProposed, "AlterPartition with fewer", lambda event: len(event.proposed) < len(event.isr)
    ),
    "leader: high watermark moves while a proposal is pending": on(
        replication.HighWatermarkMoved, "the maximal ISR counted", lambda event: event.proposed
    ),
    "leader: high watermark waits for one about to join": on(
        replication.HighWatermarkWaits, "so that it need not chase a moving one"
    ),
    "leader: answer to an overtaken proposal dropped": on(
        replication.IsrAnswerIgnored, "metadata, or another proposal, came first", reason="overtaken"
    ),
    "leader: proposal without an answer sent again": on(
        replication.IsrProposalRepeated, "it may have been applied, so nothing is taken back"
    ),
    "leader: proposal refused and taken back": on(
        replication.IsrUpdateFailed, "the committed ISR counts again", rolled_back=True
    ),
    "leader: metadata ends a proposal": on(replication.IsrProposalEnded, "the controller has moved on"),
    "leader: followers remembered in a new epoch": on(
        replication.SucceededItself, "it succeeded itself: nobody can have cut meanwhile", remembers_followers=True
    ),
    "leader: followers forgotten in a new epoch": on(
        replication.SucceededItself, "more than one election: others may have led in between", remembers_followers=False
    ),
    "leader: answer for a leader that was replaced dropped": on(
        replication.IsrAnswerIgnored, "the role changed while AlterPartition was under way", reason="replaced"
    ),
    "leader: answer known before its metadata": on(
        replication.IsrAnswerIgnored, "the leader stays with the larger ISR until the record has come", reason="ahead"
    ),
    "leader: produce refused, too few in sync": on(
        replication.ProduceRefused, "NOT_ENOUGH_REPLICAS, before anything is appended"
    ),
    "leader: throttled, its rate is exceeded": on(
        replication.ReplicationThrottled,
        "replicas that are not in sync get no records for a while (KIP-73)",
        side="leader",
    ),
    "follower: throttled, its rate is exceeded": on(
        replication.ReplicationThrottled, "it leaves partitions out of its fetches for a while", side="follower"
    ),
    "follower: answer to an older fetch dropped": on(
        replication.FetchAnswerDropped, "of another leader epoch, or from before a truncation or an append"
    ),
    "follower: diverging log cut": on(replication.LogTruncated, "where the leader's log and its own part"),
    "follower: a further round of truncation": on(
        replication.TruncationUnfinished, "the leader named an epoch that it never heard of (KIP-279)"
    ),
    "follower: cut below its high watermark": on(
        replication.LogTruncated,
        "only an unclean election explains that",
        lambda event: event.offset < event.previous_high_watermark,
    ),
    "follower: salvage before the cut": on(replication.CutAnnounced, "what it is about to drop is copied first"),
    "follower: salvage overtaken by a new role": on(
        storage.SalvageOvertaken, "what was saved for the one epoch is not cut in the other"
    ),
    "follower: learns a lower high watermark": on(
        replication.HighWatermarkLearned,
        "a new leader knows less than its predecessor did",
        lambda event: event.high_watermark < event.previous,
    ),
    "follower: fenced until it hears of its epoch": on(replication.FollowerFenced, "the leader knows a newer one"),
    "follower: waits for a leader that has yet to hear": on(
        replication.FetchFailed,
        "NOT_LEADER_OR_FOLLOWER or UNKNOWN_LEADER_EPOCH",
        lambda event: event.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ),
    "follower: rotten batch refused": on(
        replication.RecordsRefused, "its CRC does not match: it is asked for again", error=ErrorCode.CORRUPT_MESSAGE
    ),
    "log: batch that came before recognised": on(
        storage.BatchRepeated, "an idempotent producer's retry is answered, not appended again"
    ),
    # the controller, its recoveries, and partitions in the committed metadata (KIP-966)
    "controller: stale AlterPartition refused": on(
        metadata.AlterPartitionRefused, "of an older partition epoch", error="INVALID_UPDATE_VERSION"
    ),
    "controller: AlterPartition of an older leader epoch refused": on(
        metadata.AlterPartitionRefused, "its sender has been succeeded, perhaps by itself", error="FENCED_LEADER_EPOCH"
    ),
    "controller: AlterPartition with an ineligible member refused": on(
        metadata.AlterPartitionRefused, "fenced, shutting down, or of another life", error="INELIGIBLE_REPLICA"
    ),
    "controller: AlterPartition that takes its sender's leadership": on(
        metadata.AlterPartitionRefused, "it completes a reassignment away from the sender", error="NEW_LEADER_ELECTED"
    ),
    "controller: AlterPartition of an older broker epoch refused": on(
        metadata.StaleBrokerEpochRefused, "sent before its sender registered anew", request="AlterPartition"
    ),
    "controller: heartbeat of an older broker epoch refused": on(
        metadata.StaleBrokerEpochRefused, "the broker must register anew", request="BrokerHeartbeat"
    ),
    "controller: registration refused, a former life may be alive": on(
        metadata.RegistrationRefused, "its session has not expired", error="DUPLICATE_BROKER_REGISTRATION"
    ),
    "controller: registration of the same life again": on(
        metadata.RegistrationRepeated, "the answer to the first one was lost"
    ),
    "controller: broker fenced by the end of its session": on(metadata.SessionExpired, "no heartbeat in time"),
    "controller: broker fenced by an operator's restart": on(
        metadata.ShutdownAllowed, "in good order: the broker said that it goes", fenced=True
    ),
    "controller: broker fenced in parts": on(metadata.FencingBegun, "it has more partitions than one decision takes"),
    "controller: broker heard of while it is fenced in parts": on(
        metadata.FencingInterrupted, "it stays, and leads and follows what is left to it"
    ),
    "controller: ELR emptied by a lower min.insync.replicas": on(
        metadata.ElrsEmptied, "the configuration alone makes the ISR large enough"
    ),
    "controller: log directories lost": on(
        metadata.DirectoriesLost, "a broker says that some of its directories are offline"
    ),
    "recovery: members of the ELR are waited for": on(
        metadata.RecoveryPhaseEntered, "leader election 3b", phase="ELIGIBLE_AWAITED"
    ),
    "recovery: an operator is waited for": on(
        metadata.RecoveryPhaseEntered, "leader election 4c, strategy None", phase="OPERATOR_AWAITED"
    ),
    "recovery: members of LastKnownElr are waited for": on(
        metadata.RecoveryPhaseEntered, "leader election 4b, Balanced", phase="LAST_KNOWN_AWAITED"
    ),
    "recovery: logs are compared": on(
        metadata.RecoveryPhaseEntered, "leader election 3a, 4a, or 4b with all of them back", phase="COMPARING"
    ),
    "recovery: answer of an older broker epoch dropped": on(
        metadata.LogInfoDropped, "U3: who gave it has registered anew since", other_registration=True
    ),
    "recovery: answer of another leader epoch dropped": on(
        metadata.LogInfoDropped, "U3: it may still append; it is asked again", other_registration=False
    ),
    "recovery: asked without an answer": on(metadata.LogInfoUnanswered, "it is asked again"),
    "recovery: log end asked for by ListOffsets and Fetch": on(
        metadata.LogEndsAsked, "the broker has no GetReplicaLogInfo"
    ),
    "recovery: begun anew by another controller": on(
        metadata.RecoveriesBegunAnew, "what the one before knew of it is forgotten"
    ),
    "recovery: decided without all live replicas": on(
        metadata.RecoveryDecided, "the time for answers that are not needed is over", lambda event: event.unheard
    ),
    "partition: ISR empty with several eligible": on(
        metadata.PartitionChanged, "the first to return may lead", lambda event: not event.isr and len(event.elr) > 1
    ),
    "partition: ISR too small, made up for by the ELR": on(
        metadata.PartitionChanged,
        "together they are min.insync.replicas",
        lambda event: event.elr and len(event.isr) < event.min_isr <= len({*event.isr, *event.elr}),
    ),
    "partition: ELR emptied by an ISR that is large enough": on(
        metadata.PartitionChanged,
        "the high watermark moves on without them",
        lambda event: (
            event.elr_before
            and not event.elr
            and len(event.isr) >= event.min_isr
            and len(event.isr) > len(event.isr_before)
        ),
    ),
    "partition: rest of the ELR kept at an election from it": on(
        metadata.PartitionChanged,
        "they have everything until records are committed again",
        lambda event: _elected(event) and event.leader in event.elr_before and _shared(event.elr, event.elr_before),
    ),
    "partition: member of the ELR back in the ISR": on(
        metadata.PartitionChanged,
        "by fetching, or by being elected",
        lambda event: _shared(event.isr, event.elr_before),
    ),
    "partition: member of the ELR moved to LastKnownElr": on(
        metadata.PartitionChanged, "its end was unclean", lambda event: _shared(event.last_known_elr, event.elr_before)
    ),
    "partition: leader elected to succeed itself": on(
        metadata.PartitionChanged,
        "another epoch, the same leader",
        lambda event: _elected(event) and event.leader == event.leader_before,
    ),
    "partition: leader handed over to a member of the ISR": on(
        metadata.PartitionChanged,
        "a clean election with the old leader alive or not",
        lambda event: _elected(event) and event.leader != event.leader_before and event.leader in event.isr_before,
    ),
    "partition: recovery ended by its leader": on(
        metadata.PartitionChanged,
        "the first change of the ISR after an unclean election says so",
        lambda event: event.recovering_before and not event.recovering,
    ),
    "partition: member of ISR or ELR dropped by a reassignment": on(
        metadata.PartitionChanged,
        "it is no replica any more",
        lambda event: not {*event.isr_before, *event.elr_before} <= {*event.replicas},
    ),
    "partition: last member of the ISR kept without ELR": on(
        metadata.PartitionChanged,
        "eligible leader replicas are off: it alone may lead again",
        lambda event: not event.elr_enabled and event.leader < 0 and event.isr,
    ),
    # the metadata quorum: votes, resignations, logs that are cut, changes of the voters
    "quorum: pre-vote refused": on(quorum.VoteRefused, "by who hears a leader, or has more of the log", pre_vote=True),
    "quorum: vote refused": on(
        quorum.VoteRefused, "by who has voted for another, or has more of the log", pre_vote=False
    ),
    "quorum: pre-vote lost, its leader followed again": on(
        quorum.PreVoteLost, "no other voter missed the leader", lambda event: event.leader_id is not None
    ),
    "quorum: vote split or lost": on(quorum.ElectionLost, "a candidate's time is over and it is not elected"),
    "quorum: question of an older epoch answered with the newer": on(
        quorum.LeaderClaimRefused, "a vote, or a leader's claim"
    ),
    "quorum: leader resigns, a majority is silent": on(
        quorum.LeaderResigned, "check quorum (KIP-996)", cause="MAJORITY_SILENT"
    ),
    "quorum: leader hears of a newer epoch": on(quorum.LeaderDeposed, "and leads no more"),
    "quorum: leader leaves in good order": on(
        quorum.LeaderResigned, "EndQuorumEpoch, so that another voter stands at once", cause="SHUTDOWN"
    ),
    "quorum: successor learns that the leader leaves": on(quorum.LeaderLeaves, "it need not wait for its timeout"),
    "quorum: fetch refused by who does not lead": on(
        quorum.MetadataFetchRefused, "the answer names the leader", error="NOT_LEADER_OR_FOLLOWER"
    ),
    "quorum: uncommitted records cut off": on(quorum.MetadataLogTruncated, "a new leader's log has others there"),
    "quorum: fetch answered with a snapshot": on(
        quorum.SnapshotOffered, "what the fetcher lacks is not in the log any more"
    ),
    "quorum: snapshot downloaded": on(quorum.SnapshotDownloaded, "and loaded in place of the log"),
    "quorum: snapshot loaded by a controller": on(
        quorum.SnapshotLoaded, "from its own disk or from the leader", controller=True
    ),
    "quorum: snapshot loaded by a broker": on(quorum.SnapshotLoaded, "that is no voter", controller=False),
    "quorum: snapshot written": on(quorum.SnapshotWritten, "and the log cut below it"),
    "quorum: elected before all that is committed was applied": on(
        metadata.ControllerActivationWaits, "the controller is active when it is"
    ),
    "quorum: deposed before all that is committed was applied": on(
        metadata.ControllerActivationAbandoned, "the controller was not active in that epoch"
    ),
    "quorum: deposed leader's records given up": on(
        quorum.SteppedDown, "they were appended, and never committed", lambda event: event.uncommitted > 0
    ),
    "quorum: change of the voters refused, another is under way": on(
        quorum.VoterChangeRefused, "one at a time", cause="UNDER_WAY"
    ),
    "quorum: change of the voters refused before the leader's first commit": on(
        quorum.VoterChangeRefused, "an older leader may have begun one", cause="NOT_FENCED"
    ),
    "quorum: new voter not added, it does not catch up": on(
        quorum.VoterChangeEnded, "in the time of the request", cause="NOT_CAUGHT_UP"
    ),
    "quorum: change of the voters overtaken by another leader": on(
        quorum.VoterChangeEnded, "its asker does not learn whether it is committed", cause="NOT_LEADER"
    ),
    "quorum: change of the voters cut off": on(quorum.VoterChangeTruncated, "it was appended, and never committed"),
    "quorum: leader resigns, it is removed": on(
        quorum.LeaderResigned, "when its removal is committed", cause="REMOVED"
    ),
    "quorum: removed voter stands, and does not count itself": on(
        quorum.BecameCandidate, "its removal is not known to be committed", voter=False
    ),
    # a node as a whole: how it starts, stops and fails, and what its operator reads of it
    "node: quorum's leader found dead": on(quorum.QuorumLeaderGone, "connection refused: no timeout is waited for"),
    "node: broker found dead": on(metadata.BrokerGone, "connection refused: fenced at once"),
    "node: fenced while it runs": on(metadata.FencingLearned, "its controller did not hear of it in time"),
    "node: registers anew in the same life": on(metadata.RegistrationLost, "its registration is not known"),
    "node: shuts down without a controller": on(process.LeadershipsNotHandedOver, "leaderships are not handed over"),
    "node: recovery cuts a log": on(storage.LogRecovered, "torn, lost or rotten: the first batch not whole"),
    "node: salvage saved": on(storage.RecordsSalvaged, "what was cut is kept"),
    "node: log directory offline": on(storage.LogDirectoryFailed, "the others go on"),
    "node: replica moved to another log directory": on(
        replication.ReplicaMoved, "an operator wants it there (KIP-113)"
    ),
    "node: replica does not move": on(replication.ReplicaMoveEnded, "a disk fails, another wish, or it is gone"),
    "node: all log directories offline": on(process.LogDirectoriesFailed, "the process ends"),
    "node: metadata log's disk failed": on(process.MetadataLogFailed, "the process ends", descriptor_shortage=False),
    "node: log of a former replica deleted": on(
        replication.ReplicaDeleted, "reassigned while it was down", at_start=True
    ),
    "node: metadata log truncated": on(quorum.MetadataLogTruncated, "it had what was never committed"),
    "node: cannot start": on(CannotStart, "its disk is full, or fails"),
    "node: unclean election reported": on(metadata.UncleanElection, "for the operator to read, once"),
}
"""Name -> the situation."""

Answers = dict[int | None, tuple[str, str]]
"""Error of an answer, None without one -> name and meaning of the situation."""

PRODUCED: Final[Answers] = {
    None: ("producer: answer lost", "it sends the same again"),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ("producer: sent to who does not lead", "NOT_LEADER_OR_FOLLOWER"),
    ErrorCode.NOT_ENOUGH_REPLICAS: ("producer: too few in sync", "NOT_ENOUGH_REPLICAS"),
    ErrorCode.REQUEST_TIMED_OUT: (
        "producer: timed out at the leader",
        "REQUEST_TIMED_OUT: appended, and not committed in time",
    ),
}
FETCHED: Final[Answers] = {
    None: ("consumer: answer lost", "it asks again"),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ("consumer: asked who does not lead", "NOT_LEADER_OR_FOLLOWER"),
    ErrorCode.FENCED_LEADER_EPOCH: (
        "consumer: fenced by a newer leader epoch",
        "it must look for the leader (KIP-320)",
    ),
    ErrorCode.UNKNOWN_LEADER_EPOCH: ("consumer: ahead of the leader it asks", "UNKNOWN_LEADER_EPOCH"),
    ErrorCode.OFFSET_OUT_OF_RANGE: ("consumer: offset not there", "OFFSET_OUT_OF_RANGE"),
}
BEGUN_ANEW: Final = "producer: begins anew"

SITUATIONS: Final[dict[str, str]] = {
    **{name: each.meaning for name, each in OF_NODES.items()},
    **dict((*PRODUCED.values(), *FETCHED.values())),
    BEGUN_ANEW: "under another producer id, as the log has lost what came before",
}
"""Name -> meaning, of all."""


def count(counts: Counter[str], answers: Answers, error: int | None) -> None:
    """Also of an answer that has come too late."""
    if error in answers:
        counts[answers[error][0]] += 1


def watch_situations(world: World) -> None:
    """Count the situations of nodes from now on. Before the nodes start: most come with their fine events."""
    world.fine = True
    world.watchers.append(SituationCounter(world.counts, OF_NODES))


class SituationCounter(Watcher):
    """Counts the situations of a run. The world's nodes must start with `World.fine` set."""

    def __init__(self, counts: Counter[str], situations: Mapping[str, Situation]) -> None:
        self._counts = counts
        self._by_kind: dict[type[Event], list[tuple[str, Callable[[Any], object]]]] = {}
        for name, each in situations.items():
            self._by_kind.setdefault(each.kind, []).append((name, each.holds))

    def observed(self, host: Host, event: Event) -> None:
        self.happened(event)

    def happened(self, event: Event) -> None:
        for name, holds in self._by_kind.get(type(event), ()):
            if holds(event):
                self._counts[name] += 1
