"""Situations of replicas: leaders that count, followers that cut, proposals that are overtaken."""

from __future__ import annotations

from typing import Any

from tanist.broker.replication.isr_changes import IsrChanges
from tanist.broker.replication.quotas import Quota
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.storage.salvage import Salvage
from tanist.log.appender import Appender
from tanist.log.producers import ProducerStates
from tanist.replica.effects import LogTruncated, ProposeIsr, SalvageFirst
from tanist.replica.follower import FollowerState, Phase
from tanist.replica.leader import LeaderState
from tanist.replica.membership import IsrMembership
from tanist.sim.marks.marks import Marks
from tanist.wire.errors import ErrorCode

REPLICA_SITUATIONS: dict[str, str] = {
    "leader: fetch of an older leader epoch fenced": "KIP-320: it says nothing of the log that this leader has",
    "leader: fetch of a newer leader epoch": "the leader has yet to hear of its own next epoch, or of the next leader",
    "leader: fetch of one who is no replica": "of an assignment that one of both has not heard of",
    "leader: divergence found by a fetch": "the answer says where its log diverges from the leader's (KIP-595)",
    "leader: fetch of a broker's former life refused": "sent before it registered anew: its log may be another one",
    "leader: replica behind the high watermark waits": "it may not join the ISR yet",
    "leader: replica waits for the leader epoch's start": "it has the high watermark as known, which may be stale",
    "leader: replica that is fenced or born again waits": "it has all, and may not join as it is",
    "leader: join waits for a proposal under way": "one change of the ISR at a time",
    "leader: expansion proposed": "AlterPartition with one more",
    "leader: shrink proposed": "AlterPartition with fewer",
    "leader: high watermark moves while a proposal is pending": "the maximal ISR counted",
    "leader: high watermark waits for one about to join": "so that it need not chase a moving one",
    "leader: answer to an overtaken proposal dropped": "metadata, or another proposal, came first",
    "leader: proposal without an answer sent again": "it may have been applied, so nothing is taken back",
    "leader: proposal refused and taken back": "the committed ISR counts again",
    "leader: metadata ends a proposal": "the controller has moved on",
    "leader: followers remembered in a new epoch": "it succeeded itself: nobody can have cut meanwhile",
    "leader: followers forgotten in a new epoch": "more than one election: others may have led in between",
    "leader: answer for a leader that was replaced dropped": "the role changed while AlterPartition was under way",
    "leader: answer known before its metadata": "the leader stays with the larger ISR until the record has come",
    "leader: produce refused, too few in sync": "NOT_ENOUGH_REPLICAS, before anything is appended",
    "leader: throttled, its rate is exceeded": "replicas that are not in sync get no records for a while (KIP-73)",
    "follower: throttled, its rate is exceeded": "it leaves partitions out of its fetches for a while",
    "follower: answer to an older fetch dropped": "of another leader epoch, or from before a truncation or an append",
    "follower: diverging log cut": "where the leader's log and its own part",
    "follower: a further round of truncation": "the leader named an epoch that it never heard of (KIP-279)",
    "follower: cut below its high watermark": "only an unclean election explains that",
    "follower: salvage before the cut": "what it is about to drop is copied first",
    "follower: salvage overtaken by a new role": "what was saved for the one epoch is not cut in the other",
    "follower: learns a lower high watermark": "a new leader knows less than its predecessor did",
    "follower: fenced until it hears of its epoch": "the leader knows a newer one",
    "follower: waits for a leader that has yet to hear": "NOT_LEADER_OR_FOLLOWER or UNKNOWN_LEADER_EPOCH",
    "follower: rotten batch refused": "its CRC does not match: it is asked for again",
    "log: batch that came before recognised": "an idempotent producer's retry is answered, not appended again",
}


def watch_replicas(marks: Marks) -> None:
    _watch_fetches(marks)
    _watch_proposals(marks)
    _watch_high_watermarks(marks)
    _watch_followers(marks)
    _watch_throttles(marks)


def _watch_throttles(marks: Marks) -> None:
    def recorded(result: None, quota: Quota, *_: Any) -> None:
        if quota.exceeded:
            marks.hit(f"{quota._side}: throttled, its rate is exceeded")

    marks.after(Quota, "record", recorded)


def _watch_fetches(marks: Marks) -> None:
    def checked(result: Any, leader: LeaderState, fetch: Any) -> None:
        error, diverging = result
        if diverging is not None:
            marks.hit("leader: divergence found by a fetch")
        if not error:
            return
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            marks.hit("leader: fetch of an older leader epoch fenced")
        elif error == ErrorCode.UNKNOWN_LEADER_EPOCH and fetch.current_leader_epoch > leader.leader_epoch:
            marks.hit("leader: fetch of a newer leader epoch")
        elif fetch.broker_id not in leader.remotes:
            marks.hit("leader: fetch of one who is no replica")

    def former_life(result: bool, *_: Any) -> None:
        if result:
            marks.hit("leader: fetch of a broker's former life refused")

    def may_join(result: bool, leader: IsrMembership, remote: Any) -> None:
        if result:
            return
        if not leader._has_all_committed(remote):
            marks.hit("leader: replica behind the high watermark waits")
        elif not leader._has_epoch_start(remote):
            marks.hit("leader: replica waits for the leader epoch's start")
        elif not leader._is_eligible(remote):
            marks.hit("leader: replica that is fenced or born again waits")
        elif leader.pending is not None:
            marks.hit("leader: join waits for a proposal under way")

    def may_append(result: int, *_: Any) -> None:
        if result == ErrorCode.NOT_ENOUGH_REPLICAS:
            marks.hit("leader: produce refused, too few in sync")

    def sequenced(result: Any, *_: Any) -> None:
        if result.duplicate is not None:
            marks.hit("log: batch that came before recognised")

    marks.after(LeaderState, "check_fetch", checked)
    marks.after(LeaderState, "_comes_from_former_life", former_life)
    marks.after(LeaderState, "check_before_append", may_append)
    marks.after(IsrMembership, "_may_join_isr", may_join)
    marks.after(ProducerStates, "check", sequenced)


def _watch_proposals(marks: Marks) -> None:
    def proposed(result: Any, leader: IsrMembership, wanted: tuple[int, ...], *_: Any) -> None:
        grows = len(wanted) > len(leader.isr)
        marks.hit("leader: expansion proposed" if grows else "leader: shrink proposed")

    def answered(leader: IsrMembership, proposal: ProposeIsr, result: Any, *_: Any) -> None:
        if not leader._is_awaited(proposal):
            marks.hit("leader: answer to an overtaken proposal dropped")

    def failed(result: list[Any], *_: Any) -> None:
        if result:
            marks.hit("leader: proposal without an answer sent again")

    def had_pending(leader: LeaderState, *_: Any) -> bool:
        return leader.pending is not None

    def applied(pending: bool, result: Any, leader: LeaderState, *_: Any) -> None:
        if pending and leader.pending is None:
            marks.hit("leader: metadata ends a proposal")

    def remembers(result: bool, *_: Any) -> None:
        marks.hit(f"leader: followers {'remembered' if result else 'forgotten'} in a new epoch")

    def came_back(changes: IsrChanges, response: Any) -> None:
        for hosted, leader, _ in changes._in_flight.values():
            if hosted.leader is not leader:
                marks.hit("leader: answer for a leader that was replaced dropped")

    def known(result: bool, *_: Any) -> None:
        if not result:
            marks.hit("leader: answer known before its metadata")

    marks.after(IsrMembership, "_propose", proposed)
    marks.before(IsrMembership, "alter_partition_done", answered)
    marks.after(IsrMembership, "alter_partition_failed", failed)
    marks.before(IsrMembership, "_on_rejected", lambda *_: marks.hit("leader: proposal refused and taken back"))
    marks.around(LeaderState, "apply_metadata", had_pending, applied)
    marks.after(LeaderState, "_remembers_followers", remembers)
    marks.before(IsrChanges, "_answered", came_back)
    marks.after(IsrChanges, "_is_known", known)


def _watch_high_watermarks(marks: Marks) -> None:
    def advanced(result: list[Any], leader: LeaderState, *_: Any) -> None:
        if result and leader.pending is not None:
            marks.hit("leader: high watermark moves while a proposal is pending")

    def about_to_join(result: bool, *_: Any) -> None:
        if result:
            marks.hit("leader: high watermark waits for one about to join")

    marks.after(LeaderState, "_advance", advanced)
    marks.after(LeaderState, "_is_about_to_join", about_to_join)


def _watch_followers(marks: Marks) -> None:
    def answers_present(result: bool, *_: Any) -> None:
        if not result:
            marks.hit("follower: answer to an older fetch dropped")

    def erred(result: list[Any], follower: FollowerState, error: int, *_: Any) -> None:
        if follower.phase is Phase.FENCED:
            marks.hit("follower: fenced until it hears of its epoch")
        elif error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH):
            marks.hit("follower: waits for a leader that has yet to hear")

    def target(result: tuple[int, bool], *_: Any) -> None:
        if not result[1]:
            marks.hit("follower: a further round of truncation")

    def watermark(follower: FollowerState, *_: Any) -> int:
        return follower.high_watermark

    def adopted(before: int, result: Any, follower: FollowerState, *_: Any) -> None:
        if follower.high_watermark < before:
            marks.hit("follower: learns a lower high watermark")

    def saved(salvage: Salvage, request: Any, *_: Any) -> None:
        if not request.current:
            marks.hit("follower: salvage overtaken by a new role")

    def appended(result: Any, *_: Any) -> None:
        if result.error == ErrorCode.CORRUPT_MESSAGE:
            marks.hit("follower: rotten batch refused")

    def effects(_interpreter: ReplicaEffects, hosted: Any, wanted: Any) -> None:
        for effect in wanted:
            kind = type(effect)
            if kind is LogTruncated:
                marks.hit("follower: diverging log cut")
                if effect.offset < effect.previous_high_watermark:
                    marks.hit("follower: cut below its high watermark")
            elif kind is SalvageFirst:
                marks.hit("follower: salvage before the cut")

    marks.after(FollowerState, "_answers_present_fetch", answers_present)
    marks.after(FollowerState, "_on_error", erred)
    marks.after(FollowerState, "truncation_target", target)
    marks.around(FollowerState, "_adopt_high_watermark", watermark, adopted)
    marks.before(Salvage, "_saved", saved)
    marks.after(Appender, "append_as_follower", appended)
    marks.before(ReplicaEffects, "apply", effects)
