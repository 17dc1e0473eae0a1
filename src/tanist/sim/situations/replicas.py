"""Situations of replicas: leaders that count, followers that cut, proposals that are overtaken."""

from __future__ import annotations

from typing import Final

from tanist.events.replication import (
    CutAnnounced,
    DivergenceFound,
    FetchAnswerDropped,
    FetchFailed,
    FetchRefused,
    FollowerFenced,
    HighWatermarkLearned,
    HighWatermarkMoved,
    HighWatermarkWaits,
    IsrAnswerIgnored,
    IsrJoinDelayed,
    IsrProposalEnded,
    IsrProposalRepeated,
    IsrProposed,
    IsrUpdateFailed,
    LogTruncated,
    ProduceRefused,
    RecordsRefused,
    ReplicationThrottled,
    SucceededItself,
    TruncationUnfinished,
)
from tanist.events.storage import BatchRepeated, SalvageOvertaken
from tanist.sim.situations.counting import Situation
from tanist.wire.errors import ErrorCode

_YET_TO_HEAR = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH})

REPLICA_SITUATIONS: Final = (
    Situation(
        "leader: fetch of an older leader epoch fenced",
        "KIP-320: it says nothing of the log that this leader has",
        FetchRefused,
        lambda event: event.error == ErrorCode.FENCED_LEADER_EPOCH,
    ),
    Situation(
        "leader: fetch of a newer leader epoch",
        "the leader has yet to hear of its own next epoch, or of the next leader",
        FetchRefused,
        lambda event: event.current_leader_epoch > event.leader_epoch,
    ),
    Situation(
        "leader: fetch of one who is no replica",
        "of an assignment that one of both has not heard of",
        FetchRefused,
        lambda event: event.reason == "no replica",
    ),
    Situation(
        "leader: divergence found by a fetch",
        "the answer says where its log diverges from the leader's (KIP-595)",
        DivergenceFound,
    ),
    Situation(
        "leader: fetch of a broker's former life refused",
        "sent before it registered anew: its log may be another one",
        FetchRefused,
        lambda event: event.reason == "former life",
    ),
    Situation(
        "leader: replica behind the high watermark waits",
        "it may not join the ISR yet",
        IsrJoinDelayed,
        lambda event: event.reason == "high watermark",
    ),
    Situation(
        "leader: replica waits for the leader epoch's start",
        "it has the high watermark as known, which may be stale",
        IsrJoinDelayed,
        lambda event: event.reason == "leader epoch",
    ),
    Situation(
        "leader: replica that is fenced or born again waits",
        "it has all, and may not join as it is",
        IsrJoinDelayed,
        lambda event: event.reason == "eligible",
    ),
    Situation(
        "leader: join waits for a proposal under way",
        "one change of the ISR at a time",
        IsrJoinDelayed,
        lambda event: event.reason == "pending",
    ),
    Situation(
        "leader: expansion proposed",
        "AlterPartition with one more",
        IsrProposed,
        lambda event: len(event.proposed) > len(event.isr),
    ),
    Situation(
        "leader: shrink proposed",
        "AlterPartition with fewer",
        IsrProposed,
        lambda event: len(event.proposed) < len(event.isr),
    ),
    Situation(
        "leader: high watermark moves while a proposal is pending",
        "the maximal ISR counted",
        HighWatermarkMoved,
        lambda event: event.proposed,
    ),
    Situation(
        "leader: high watermark waits for one about to join",
        "so that it need not chase a moving one",
        HighWatermarkWaits,
    ),
    Situation(
        "leader: answer to an overtaken proposal dropped",
        "metadata, or another proposal, came first",
        IsrAnswerIgnored,
        lambda event: event.reason == "overtaken",
    ),
    Situation(
        "leader: proposal without an answer sent again",
        "it may have been applied, so nothing is taken back",
        IsrProposalRepeated,
    ),
    Situation(
        "leader: proposal refused and taken back",
        "the committed ISR counts again",
        IsrUpdateFailed,
        lambda event: event.rolled_back,
    ),
    Situation("leader: metadata ends a proposal", "the controller has moved on", IsrProposalEnded),
    Situation(
        "leader: followers remembered in a new epoch",
        "it succeeded itself: nobody can have cut meanwhile",
        SucceededItself,
        lambda event: event.remembers_followers,
    ),
    Situation(
        "leader: followers forgotten in a new epoch",
        "more than one election: others may have led in between",
        SucceededItself,
        lambda event: not event.remembers_followers,
    ),
    Situation(
        "leader: answer for a leader that was replaced dropped",
        "the role changed while AlterPartition was under way",
        IsrAnswerIgnored,
        lambda event: event.reason == "replaced",
    ),
    Situation(
        "leader: answer known before its metadata",
        "the leader stays with the larger ISR until the record has come",
        IsrAnswerIgnored,
        lambda event: event.reason == "ahead",
    ),
    Situation(
        "leader: produce refused, too few in sync",
        "NOT_ENOUGH_REPLICAS, before anything is appended",
        ProduceRefused,
    ),
    Situation(
        "leader: throttled, its rate is exceeded",
        "replicas that are not in sync get no records for a while (KIP-73)",
        ReplicationThrottled,
        lambda event: event.side == "leader",
    ),
    Situation(
        "follower: throttled, its rate is exceeded",
        "it leaves partitions out of its fetches for a while",
        ReplicationThrottled,
        lambda event: event.side == "follower",
    ),
    Situation(
        "follower: answer to an older fetch dropped",
        "of another leader epoch, or from before a truncation or an append",
        FetchAnswerDropped,
    ),
    Situation("follower: diverging log cut", "where the leader's log and its own part", LogTruncated),
    Situation(
        "follower: a further round of truncation",
        "the leader named an epoch that it never heard of (KIP-279)",
        TruncationUnfinished,
    ),
    Situation(
        "follower: cut below its high watermark",
        "only an unclean election explains that",
        LogTruncated,
        lambda event: event.offset < event.previous_high_watermark,
    ),
    Situation("follower: salvage before the cut", "what it is about to drop is copied first", CutAnnounced),
    Situation(
        "follower: salvage overtaken by a new role",
        "what was saved for the one epoch is not cut in the other",
        SalvageOvertaken,
    ),
    Situation(
        "follower: learns a lower high watermark",
        "a new leader knows less than its predecessor did",
        HighWatermarkLearned,
        lambda event: event.high_watermark < event.previous,
    ),
    Situation("follower: fenced until it hears of its epoch", "the leader knows a newer one", FollowerFenced),
    Situation(
        "follower: waits for a leader that has yet to hear",
        "NOT_LEADER_OR_FOLLOWER or UNKNOWN_LEADER_EPOCH",
        FetchFailed,
        lambda event: event.error in _YET_TO_HEAR,
    ),
    Situation(
        "follower: rotten batch refused",
        "its CRC does not match: it is asked for again",
        RecordsRefused,
        lambda event: event.error == ErrorCode.CORRUPT_MESSAGE,
    ),
    Situation(
        "log: batch that came before recognised",
        "an idempotent producer's retry is answered, not appended again",
        BatchRepeated,
    ),
)
