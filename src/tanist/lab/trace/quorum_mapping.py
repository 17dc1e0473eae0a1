"""What voters of the metadata quorum do, as steps of the public model of KIP-996. Pure.

Owns which action of the model each is, and what the model's network has to have before it. It follows logs as batches,
which are the model's entries, and judges nothing: a step that is wrong is still a step, and TLC refuses it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tanist.lab.trace.quorum_recording import (
    Answered,
    Appended,
    Began,
    Died,
    Fetch,
    FetchHandled,
    FetchRead,
    FetchSent,
    LeaderHeard,
    OwnLogCounted,
    RoleChanged,
    Seen,
    VoteHandled,
    Voter,
)
from tanist.lab.trace.steps import ModelValue, Step
from tanist.lab.trace.writing import Untranslatable

_BY_ITSELF: Final = {
    ("Follower", "Prospective"): "VoterFetchTimeout",
    ("Unattached", "Prospective"): "VoterElectionTimeout",
    ("Candidate", "Prospective"): "VoterElectionTimeout",
    ("Prospective", "Candidate"): "ConcludePreVote",
    ("Prospective", "Follower"): "ConcludePreVote",
    ("Prospective", "Unattached"): "ConcludePreVote",
    ("Leader", "Resigned"): "CheckQuorumResign",
    ("Resigned", "Unattached"): "ResignedElectionTimeout",
}
"""The roles before and after -> the action."""

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class QuorumTrace:
    """The steps of a run."""

    steps: tuple[Step, ...]
    voters: dict[int, int]
    """Node -> its number in the model."""
    end: str = ""
    """Why it ends before the run does."""


@dataclass(slots=True)
class _Server:
    state: Voter
    epochs: list[int] = field(default_factory=list)
    """Of each batch."""
    ends: list[int] = field(default_factory=list)
    pending: Key | None = None
    died: Died | None = None

    def entries(self, offset: int) -> int:
        """How many of the model's entries are below an offset: one more than batches."""
        return 1 + bisect_right(self.ends, offset)

    def grow(self, batches: Sequence[tuple[int, int]]) -> None:
        self.epochs += [epoch for epoch, _ in batches]
        self.ends += [end for _, end in batches]

    def cut(self, offset: int) -> None:
        kept = bisect_right(self.ends, offset)
        del self.epochs[kept:], self.ends[kept:]


def quorum_trace_of(seen: Sequence[Seen], voters: Sequence[int]) -> QuorumTrace:
    """The trace of a run that begins with empty logs."""
    mapper = _Mapper(voters)
    return QuorumTrace(*mapper.run(seen))


class _Mapper:
    def __init__(self, voters: Sequence[int]) -> None:
        self.ids = {node_id: n for n, node_id in enumerate(voters, start=1)}
        self.steps: list[Step] = []
        self._servers: dict[int, _Server] = {}
        self._under_way: set[Key] = set()
        """Requests that the model's network has."""
        self._offsets: dict[Key, int] = {}
        """Of what was sent: the model's offset, as the sender's log was."""
        self._refused: set[Key] = set()
        self._now: Seen | None = None
        self._handlers: dict[type[Any], Callable[[int, _Server, Any], None]] = {
            Began: self._began,
            Died: self._died,
            RoleChanged: self._role_changed,
            Appended: self._appended,
            OwnLogCounted: self._own_log_counted,
            VoteHandled: self._vote_handled,
            LeaderHeard: self._leader_heard,
            FetchSent: self._fetch_sent,
            FetchHandled: self._fetch_handled,
            FetchRead: self._fetch_read,
            Answered: self._answered,
        }

    def run(self, seen: Sequence[Seen]) -> tuple[tuple[Step, ...], dict[int, int], str]:
        end = ""
        try:
            for each in seen:
                self._now = each
                s = self.ids[each.node_id]
                server = self._servers.setdefault(s, _Server(Voter("Unattached", 0, None, None, 0, 0)))
                self._handlers[type(each.what)](s, server, each.what)
                if not isinstance(each.what, Died):
                    server.state = each.after
        except Untranslatable as reason:
            end = str(reason)
        return tuple(self.steps), self.ids, end

    def _step(self, action: str, s: int, **reported: Any) -> Step:
        now = self._now
        if now is None:
            raise ValueError("nothing was seen")
        step = Step(action, s, reported, now.at_us, now.node_id, repr(now.what))
        self.steps.append(step)
        return step

    def _state(self, server: _Server) -> dict[str, Any]:
        """What is reported of a voter after a step."""
        now = self._now
        after = server.state if now is None else now.after
        reported = {"state": ModelValue(after.role), "epoch": after.epoch, "leader": self._id(after.leader)}
        if after.role not in ("Leader", "Resigned"):  # the model forgets the vote there
            reported["voted"] = self._id(after.voted)
        return {**reported, "end": 1 + len(server.ends), "hwm": server.entries(after.high_watermark)}

    def _id(self, node_id: int | None) -> int | ModelValue:
        return ModelValue("Nil") if node_id is None else self.ids[node_id]

    # -- lives

    def _died(self, s: int, server: _Server, what: Died) -> None:
        server.died = what

    def _began(self, s: int, server: _Server, what: Began) -> None:
        died, server.died, server.pending = server.died, None, None
        if died is None:
            return
        before, after = server.state, self._now.after if self._now is not None else server.state
        if died.mid_turn and ((before.epoch, before.end_offset) != (after.epoch, after.end_offset)):
            raise Untranslatable(f"voter {s} died before it had written down what it decided")
        if before.role == "Prospective" and after.role == "Follower":
            self._step("RestartWithState", s)
            self._step("ReadsLeader", s, **self._state(server))
        else:
            self._step("RestartWithState", s, **self._state(server))

    # -- roles

    def _role_changed(self, s: int, server: _Server, what: RoleChanged) -> None:
        if self._now is None:
            return
        after = self._now.after
        if after.role == "Leader":
            return  # with its first batch
        self._step(_BY_ITSELF.get((what.before, after.role), "NoAction"), s, **self._state(server))
        if after.role in ("Prospective", "Candidate"):
            last_epoch = server.epochs[-1] if server.epochs else 0
            pre_vote = after.role == "Prospective"
            asked = (s, after.epoch, pre_vote, after.end_offset, last_epoch)
            self._offsets[asked] = 1 + len(server.ends)
            self._under_way |= {("vote", to, *asked) for to in self.ids.values() if to != s}

    def _appended(self, s: int, server: _Server, what: Appended) -> None:
        for epoch, end in what.batches:
            first = 2 + len(server.ends)
            server.grow([(epoch, end)])
            grown = {"first": first, "entry_epochs": (epoch,)}
            if epoch not in server.epochs[:-1]:
                self._step("BecomeLeader", s, **grown, **self._state(server))
                self._under_way |= {("begin", to, s, epoch) for to in self.ids.values() if to != s}
            else:
                self._step("HandleClientRequest", s, **grown, **self._state(server))

    def _own_log_counted(self, s: int, server: _Server, what: OwnLogCounted) -> None:
        self._step("OwnLogCounts", s, **self._state(server))

    # -- elections

    def _arrives(self, key: Key, again: str, **message: Any) -> None:
        """A request comes. If it has come before, it comes again."""
        if key not in self._under_way:
            self._step(again, key[1], **message)
        self._under_way.discard(key)

    def _vote_handled(self, s: int, server: _Server, what: VoteHandled) -> None:
        candidate = self.ids[what.candidate]
        asked = (candidate, what.epoch, what.pre_vote, what.offset, what.last_epoch)
        offset = self._offsets.get(asked, 0)
        message = {
            "from": candidate,
            "of_epoch": what.epoch,
            "pre_vote": what.pre_vote,
            "offset": offset,
            "last_epoch": what.last_epoch,
        }
        if what.missed and what.pre_vote and what.granted:
            self._step("MissesLeader", s)
        self._arrives(("vote", s, *asked), "VoteSentAgain", **message)
        action = "GrantsAgain" if what.again else "HandleVoteRequest"
        self._step(action, s, **message, granted=what.granted, **self._state(server))

    def _leader_heard(self, s: int, server: _Server, what: LeaderHeard) -> None:
        message = {"from": self.ids[what.leader], "of_epoch": what.epoch}
        self._arrives(("begin", s, message["from"], what.epoch), "BeginSentAgain", **message)
        self._step("AcceptBeginQuorumRequest", s, **message, **self._state(server))

    # -- fetches

    def _fetch_sent(self, s: int, server: _Server, what: FetchSent) -> None:
        if server.pending is not None:
            self._step("FetchLost", s)
        to, offset = self.ids[what.to], 2 + len(server.ends)
        key = ("fetch", to, s, what.fetch)
        self._step("SendFetchRequest", s, to=to, **_where(what.fetch, offset))
        self._offsets[key] = offset
        self._under_way.add(key)
        server.pending = key

    def _fetch_handled(self, s: int, server: _Server, what: FetchHandled) -> None:
        follower = self.ids[what.follower]
        key = ("fetch", s, follower, what.fetch)
        if key not in self._offsets:
            raise Untranslatable(f"voter {s} is sent a fetch that nobody was seen to send")
        message = {"from": follower, **_where(what.fetch, self._offsets[key])}
        self._arrives(key, "FetchSentAgain", **message)
        if what.outcome == "SNAPSHOT":
            raise Untranslatable("a snapshot, which the model does not have")
        action = {"VALID": "AcceptFetchRequest", "DIVERGING": "DivergingFetchRequest"}
        self._step(action.get(what.outcome, "RejectFetchRequest"), s, **message, **self._state(server))
        if what.outcome == "REFUSED":
            self._refused.add(key)

    def _fetch_read(self, s: int, server: _Server, what: FetchRead) -> None:
        follower = self.ids[what.follower]
        key = ("fetch", s, follower, what.fetch)
        known = self._servers[follower].state.high_watermark
        learned = max(known, min(what.high_watermark, what.end_offset))
        self._step(
            "AnswerRead",
            s,
            to=follower,
            offset=self._offsets[key],
            last=server.entries(what.end_offset),
            high_watermark=server.entries(learned),
        )

    def _answered(self, s: int, server: _Server, what: Answered) -> None:
        sender = self.ids[what.sender]
        if what.kind == "vote":
            self._step("HandleVoteResponse", s, **{"from": sender}, **self._state(server))
            return
        key = ("fetch", sender, s, what.fetch)
        if what.used:
            first = 2 + len(server.ends)
            if self._now is not None and not what.batches:
                server.cut(self._now.after.end_offset)
            server.grow(what.batches)
            grown = {"first": first, "entry_epochs": tuple(epoch for epoch, _ in what.batches)} if what.batches else {}
            action = "ManyEntries" if len(what.batches) > 1 else "HandleFetchResponse"
            self._step(action, s, **{"from": sender}, **grown, **self._state(server))
            server.pending = None
        elif what.kind == "fetch" and key in self._refused and server.pending == key:
            self._refused.discard(key)
            self._step("HandleFetchResponse", s, **{"from": sender}, **self._state(server))
            server.pending = None
        else:
            self._step("Learns", s, **self._state(server))
            server.pending = None


def _where(fetch: Fetch, offset: int) -> dict[str, int]:
    return {"of_epoch": fetch.epoch, "offset": offset, "last_epoch": fetch.last_epoch}
