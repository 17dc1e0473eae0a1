"""Situations of the metadata quorum: votes that are refused and split, leaders that resign, logs that are cut."""

from __future__ import annotations

from typing import Any

from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.quorum import effects
from tanist.quorum.elections import Elections
from tanist.quorum.leader import QuorumLeader
from tanist.quorum.roles import Candidate, Follower, Leader, Prospective
from tanist.quorum.rules import QuorumRules, Validity
from tanist.quorum.state import Quorum
from tanist.quorum.voter_changes import VoterChanges
from tanist.quorum.voter_history import VoterHistory
from tanist.sim.marks.marks import Marks
from tanist.wire.errors import ErrorCode

QUORUM_SITUATIONS: dict[str, str] = {
    "quorum: pre-vote refused": "by who hears a leader, or has more of the log",
    "quorum: vote refused": "by who has voted for another, or has more of the log",
    "quorum: pre-vote lost, its leader followed again": "no other voter missed the leader",
    "quorum: vote split or lost": "a candidate's time is over and it is not elected",
    "quorum: question of an older epoch answered with the newer": "a vote, or a leader's claim",
    "quorum: leader resigns, a majority is silent": "check quorum (KIP-996)",
    "quorum: leader hears of a newer epoch": "and leads no more",
    "quorum: leader leaves in good order": "EndQuorumEpoch, so that another voter stands at once",
    "quorum: successor learns that the leader leaves": "it need not wait for its timeout",
    "quorum: fetch refused by who does not lead": "the answer names the leader",
    "quorum: uncommitted records cut off": "a new leader's log has others there",
    "quorum: fetch answered with a snapshot": "what the fetcher lacks is not in the log any more",
    "quorum: snapshot downloaded": "and loaded in place of the log",
    "quorum: snapshot loaded by a controller": "from its own disk or from the leader",
    "quorum: snapshot loaded by a broker": "that is no voter",
    "quorum: snapshot written": "and the log cut below it",
    "quorum: elected before all that is committed was applied": "the controller is active when it is",
    "quorum: deposed before all that is committed was applied": "the controller was not active in that epoch",
    "quorum: deposed leader's records given up": "they were appended, and never committed",
    "quorum: change of the voters refused, another is under way": "one at a time",
    "quorum: change of the voters refused before the leader's first commit": "an older leader may have begun one",
    "quorum: new voter not added, it does not catch up": "in the time of the request",
    "quorum: change of the voters overtaken by another leader": "its asker does not learn whether it is committed",
    "quorum: change of the voters cut off": "it was appended, and never committed",
    "quorum: leader resigns, it is removed": "when its removal is committed",
    "quorum: removed voter stands, and does not count itself": "its removal is not known to be committed",
}


def watch_quorum(marks: Marks) -> None:
    _watch_elections(marks)
    _watch_logs(marks)
    _watch_voters(marks)


def _watch_voters(marks: Marks) -> None:
    def refused(result: Any, changes: VoterChanges, cluster_id: str | None) -> None:
        text = "" if result is None or cluster_id is None else result[1]
        if "under way" in text or "not committed yet" in text:
            marks.hit("quorum: change of the voters refused, another is under way")
        elif "of its epoch yet" in text:
            marks.hit("quorum: change of the voters refused before the leader's first commit")

    def ended(changes: VoterChanges, change: Any, refusal: Any) -> None:
        if refusal is not None and "not caught up" in refusal[1]:
            marks.hit("quorum: new voter not added, it does not catch up")
        elif refusal is not None and "any more" in refusal[1]:
            marks.hit("quorum: change of the voters overtaken by another leader")

    def cut(result: bool, *_: Any) -> None:
        if result:
            marks.hit("quorum: change of the voters cut off")

    def removed(quorum: Quorum, now_ms: int) -> None:
        if not quorum.is_voter and not quorum.stopping:
            marks.hit("quorum: leader resigns, it is removed")

    def stood(quorum: Quorum, now_ms: int) -> None:
        if not quorum.is_voter:
            marks.hit("quorum: removed voter stands, and does not count itself")

    marks.after(VoterChanges, "_refusal", refused)
    marks.before(VoterChanges, "_end", ended)
    marks.after(VoterHistory, "truncate_to", cut)
    marks.before(Quorum, "become_resigned", removed)
    marks.before(Quorum, "become_candidate", stood)


def _watch_elections(marks: Marks) -> None:
    def granted(result: bool, rules: QuorumRules, role: Any, ask: Any, *_: Any) -> None:
        if not result:
            marks.hit("quorum: pre-vote refused" if ask.pre_vote else "quorum: vote refused")

    def gave_up(elections: Elections, role: Prospective, now_ms: int) -> None:
        if role.leader_id is not None and role.endpoint is not None:
            marks.hit("quorum: pre-vote lost, its leader followed again")

    def candidate(elections: Elections, role: Candidate, now_ms: int) -> None:
        if role.expired(now_ms) and not role.tally.is_won:
            marks.hit("quorum: vote split or lost")

    def claimed(result: ErrorCode, *_: Any) -> None:
        if result == ErrorCode.FENCED_LEADER_EPOCH:
            marks.hit("quorum: question of an older epoch answered with the newer")

    def resigned(quorum: Quorum, now_ms: int) -> None:
        silent = not quorum.stopping and quorum.role.expired(now_ms)
        marks.hit("quorum: leader resigns, a majority is silent" if silent else "quorum: leader leaves in good order")

    def deposed(quorum: Quorum, epoch: int, *_: Any) -> None:
        if isinstance(quorum.role, Leader) and epoch > quorum.epoch:
            marks.hit("quorum: leader hears of a newer epoch")

    def was_lost(elections: Elections, *_: Any) -> bool:
        role = elections._quorum.role
        return isinstance(role, Follower) and role.leader_lost

    def notified(before: bool, result: Any, elections: Elections, *_: Any) -> None:
        role = elections._quorum.role
        if not before and isinstance(role, Follower) and role.leader_lost:
            marks.hit("quorum: successor learns that the leader leaves")

    marks.after(QuorumRules, "grants_vote", granted)
    marks.before(Elections, "_give_up", gave_up)
    marks.before(Elections, "_act_candidate", candidate)
    marks.after(Elections, "_leader_claim_error", claimed)
    marks.around(Elections, "end_quorum_epoch", was_lost, notified)
    marks.before(Quorum, "become_resigned", resigned)
    marks.before(Quorum, "become_unattached", deposed)
    marks.before(Quorum, "become_follower", deposed)


def _watch_logs(marks: Marks) -> None:
    def fetch_refused(result: ErrorCode, *_: Any) -> None:
        if result == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            marks.hit("quorum: fetch refused by who does not lead")

    def position(result: Any, *_: Any) -> None:
        if result.validity is Validity.SNAPSHOT:
            marks.hit("quorum: fetch answered with a snapshot")

    def leads(result: None, quorum: MetadataQuorum) -> None:
        if quorum._elected_epoch is not None:
            marks.hit("quorum: elected before all that is committed was applied")

    def carried_out(quorum: MetadataQuorum, effect: Any) -> None:
        kind = type(effect)
        if kind is effects.SteppedDown and quorum._elected_epoch is not None:
            marks.hit("quorum: deposed before all that is committed was applied")
        if kind is effects.MetadataTruncated:
            marks.hit("quorum: uncommitted records cut off")
        elif kind is effects.SnapshotInstalled:
            marks.hit("quorum: snapshot downloaded")
        elif kind is effects.SteppedDown and quorum.raft.high_watermark < quorum.raft.log.end_offset:
            marks.hit("quorum: deposed leader's records given up")

    def applied(quorum: MetadataQuorum) -> int:
        return quorum._next_offset

    def loaded(before: int, result: Any, quorum: MetadataQuorum) -> None:
        if quorum._next_offset > before:
            who = "a controller" if quorum.controller_service is not None else "a broker"
            marks.hit(f"quorum: snapshot loaded by {who}")

    marks.after(QuorumLeader, "_fetch_error", fetch_refused)
    marks.after(QuorumRules, "fetch_position", position)
    marks.before(MetadataQuorum, "_carry_out", carried_out)
    marks.after(MetadataQuorum, "_lead_when_applied", leads)
    marks.around(MetadataQuorum, "_load_snapshot", applied, loaded)
    marks.before(MetadataQuorum, "_write_snapshot", lambda *_: marks.hit("quorum: snapshot written"))
