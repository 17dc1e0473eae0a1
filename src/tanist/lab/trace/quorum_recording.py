"""What the voters of a simulated metadata quorum do: what they handle, answer and send, and each change of role.

Owns how it is seen: functions of the quorum are watched while a block runs, as the events of a node do not tell of
votes and fetches. It judges and translates nothing. Static voters only; observers are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tanist.lab.mutations.patching import Patch, replaced
from tanist.quorum import messages
from tanist.quorum.elections import Elections
from tanist.quorum.follower import QuorumFollower
from tanist.quorum.leader import QuorumLeader
from tanist.quorum.raft import RaftNode
from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.roles import Candidate, Follower, Leader, Prospective
from tanist.quorum.storage.batches import read_headers
from tanist.quorum.storage.metadata_log import MetadataLog
from tanist.quorum.storage.raft_log import CorruptBatch
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchResponse


@dataclass(frozen=True, slots=True)
class Voter:
    """The state of a voter."""

    role: str
    epoch: int
    leader: int | None
    voted: int | None
    end_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """Where a fetch begins: as it is sent, and as it is received."""

    epoch: int
    offset: int
    last_epoch: int


@dataclass(frozen=True, slots=True)
class Began:
    """A life of a voter has begun."""


@dataclass(frozen=True, slots=True)
class Died:
    mid_turn: bool
    """What it has decided may not be written down."""


@dataclass(frozen=True, slots=True)
class RoleChanged:
    """By itself: a timeout, a majority, a resignation."""

    before: str


@dataclass(frozen=True, slots=True)
class Appended:
    """Batches were appended to a leader's log: (epoch, end offset) of each."""

    batches: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class OwnLogCounted:
    """A leader's high watermark has moved without a fetch."""


@dataclass(frozen=True, slots=True)
class VoteHandled:
    candidate: int
    epoch: int
    pre_vote: bool
    offset: int
    last_epoch: int
    granted: bool
    again: bool
    """It had this vote already."""
    missed: bool
    """It is a follower, and misses its leader."""


@dataclass(frozen=True, slots=True)
class LeaderHeard:
    """A leader has begun its epoch, or says that it ends it, and its role has changed by that."""

    leader: int
    epoch: int


@dataclass(frozen=True, slots=True)
class FetchSent:
    to: int
    fetch: Fetch


@dataclass(frozen=True, slots=True)
class FetchHandled:
    follower: int
    fetch: Fetch
    outcome: str
    """VALID, DIVERGING, SNAPSHOT, or REFUSED."""


@dataclass(frozen=True, slots=True)
class FetchRead:
    """The answer of a fetch is made."""

    follower: int
    fetch: Fetch
    end_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer has come, and changed something."""

    kind: str
    """vote, fetch or other."""
    sender: int
    fetch: Fetch | None
    used: bool
    """Of a fetch: its records, its high watermark or its divergence count."""
    batches: tuple[tuple[int, int], ...]
    changed: bool
    """The role."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Something of a voter, and its state after that."""

    at_us: int
    node_id: int
    what: Any
    after: Voter


class QuorumRecorder(Watcher):
    """Records the voters of a world that has not started yet, while the block of `watching` runs."""

    def __init__(self, world: World) -> None:
        self.all: list[Seen] = []
        self.voters: tuple[int, ...] = ()
        self._world = world
        world.watchers.insert(0, self)
        self._logs: dict[int, Quorum] = {}
        self._within: dict[int, list[Any]] = {}
        """What happens while a voter handles a message."""

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        if host.node_id in self.voters:
            self.all.append(Seen(self._world.now_us, host.node_id, Died(mid_turn), Voter("", 0, None, None, 0, 0)))

    @contextmanager
    def watching(self) -> Iterator[None]:
        wrappers = (
            (Quorum, "initialize", self._initialize),
            (Quorum, "_change", self._change),
            (Quorum, "advance_high_watermark", self._advance),
            (Quorum, "send", self._send),
            (MetadataLog, "append", self._append),
            (Elections, "vote", self._vote),
            (Elections, "begin_quorum_epoch", self._claim),
            (Elections, "end_quorum_epoch", self._claim),
            (QuorumLeader, "fetch", self._fetch),
            (QuorumLeader, "_fetched", self._fetched),
            (QuorumFollower, "_leader_lives", self._lives),
            (RaftNode, "_handle_response", self._response),
        )
        with replaced(Patch(owner, name, _wrapped(getattr(owner, name), wrap)) for owner, name, wrap in wrappers):
            yield

    def _see(self, quorum: Quorum, what: Any) -> None:
        within = self._within.get(quorum.me.node_id)
        if within is not None:
            within.append(what)
        elif quorum.is_voter:
            self.all.append(Seen(self._world.now_us, quorum.me.node_id, what, _voter(quorum)))

    @contextmanager
    def _handling(self, quorum: Quorum) -> Iterator[list[Any]]:
        found: list[Any] = []
        self._within[quorum.me.node_id] = found
        try:
            yield found
        finally:
            del self._within[quorum.me.node_id]

    # -- what a voter does by itself

    def _initialize(self, original: Any, quorum: Quorum, now_ms: int) -> None:
        original(quorum, now_ms)
        if quorum.is_voter:
            self.voters = tuple(sorted(quorum.voters.ids))
            self._logs[id(quorum.log)] = quorum
            self._see(quorum, Began())

    def _change(self, original: Any, quorum: Quorum, role: Any) -> None:
        before = quorum.role.NAME
        original(quorum, role)
        self._see(quorum, RoleChanged(before))

    def _advance(self, original: Any, quorum: Quorum, offset: int) -> bool:
        moved: bool = original(quorum, offset)
        if moved:
            self._see(quorum, OwnLogCounted())
        return moved

    def _send(self, original: Any, quorum: Quorum, to: int, request: Any, *rest: Any) -> None:
        original(quorum, to, request, *rest)
        if isinstance(request, FetchRequest):
            self._see(quorum, FetchSent(to, _fetch_of(request)))

    def _append(self, original: Any, log: MetadataLog, batches: memoryview, epoch: int) -> None:
        before = log.end_offset
        original(log, batches, epoch)
        quorum = self._logs.get(id(log))
        if quorum is not None:
            added = [header for _, header in _headers(batches) if before <= header.base_offset < log.end_offset]
            self._see(quorum, Appended(tuple((each.leader_epoch, each.next_offset) for each in added)))

    # -- what others ask

    def _vote(self, original: Any, elections: Any, source: object, request: Any, now_ms: int) -> None:
        quorum: Quorum = elections._quorum
        part = messages.only(request.topics)
        if part is None or not quorum.is_voter:
            original(elections, source, request, now_ms)
            return
        ask, before = messages.vote_ask(part), quorum.role
        missed = isinstance(before, Follower) and (before.leader_lost or not before.has_fetched)
        again = before.epoch == ask.epoch and before.voted is not None
        again = again and not ask.pre_vote and before.voted == ask.candidate
        with self._handling(quorum):
            original(elections, source, request, now_ms)
        granted = messages.only(quorum._effects[-1].response.topics).vote_granted  # type: ignore[union-attr]
        end = ask.log_end
        what = VoteHandled(
            ask.candidate.node_id, ask.epoch, ask.pre_vote, end.offset, end.epoch, granted, again and granted, missed
        )
        self._see(quorum, what)

    def _claim(self, original: Any, elections: Any, source: object, request: Any, now_ms: int) -> None:
        quorum: Quorum = elections._quorum
        with self._handling(quorum) as found:
            original(elections, source, request, now_ms)
        part = messages.only(request.topics)
        if found and part is not None:
            self._see(quorum, LeaderHeard(part.leader_id, part.leader_epoch))

    def _fetch(self, original: Any, leading: Any, source: object, request: Any, now_ms: int, version: int) -> None:
        quorum: Quorum = leading._quorum
        part = messages.fetch_part(request, version)
        follower = -1 if part is None else messages.fetching_replica(request, part).node_id
        if part is None or follower not in self.voters:
            original(leading, source, request, now_ms, version)
            return
        fetch = _fetch_of(request)
        outcome = "REFUSED"
        if isinstance(quorum.role, Leader) and leading._fetch_error(request, part) == ErrorCode.NONE:
            outcome = quorum.rules.fetch_position(quorum.log, fetch.offset, fetch.last_epoch).validity.name
        with self._handling(quorum) as found:
            original(leading, source, request, now_ms, version)
        self._see(quorum, FetchHandled(follower, fetch, outcome))
        for each in found:
            if isinstance(each, FetchRead):
                self._see(quorum, each)

    def _fetched(self, original: Any, leading: Any, fetch: Any) -> FetchResponse:
        answer: FetchResponse = original(leading, fetch)
        quorum: Quorum = leading._quorum
        part = messages.fetch_answer_part(answer)
        if fetch.replica.node_id in self.voters and part is not None and part.error_code == ErrorCode.NONE:
            end = fetch.part.fetch_offset
            for _, header in _headers(part.records):
                end = header.next_offset
            if part.diverging_epoch.epoch < 0:
                asked = fetch.part
                where = Fetch(asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch)
                self._see(quorum, FetchRead(fetch.replica.node_id, where, end, part.high_watermark))
        return answer

    # -- what others answer

    def _lives(self, original: Any, following: Any, role: Follower, now_ms: int) -> None:
        original(following, role, now_ms)
        self._see(following._quorum, "used")

    def _response(self, original: Any, node: Any, pending: Any, response: Any, now_ms: int) -> bool:
        quorum: Quorum = node._quorum
        granted = _granted(quorum)
        with self._handling(quorum) as found:
            done: bool = original(node, pending, response, now_ms)
        changed = any(isinstance(each, RoleChanged) for each in found)
        used = "used" in found
        if changed or used or _granted(quorum) != granted:
            kind = {"VoteResponse": "vote", "FetchResponse": "fetch"}.get(type(response).__name__, "other")
            fetch = _fetch_of(pending.request) if kind == "fetch" else None
            batches = tuple(batch for each in found if isinstance(each, Appended) for batch in each.batches)
            self._see(quorum, Answered(kind, pending.to, fetch, used, batches, changed))
        return done


def _wrapped(original: Any, wrap: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: wrap(original, *given, **named)


def _voter(quorum: Quorum) -> Voter:
    role = quorum.role
    voted = None if role.voted is None else role.voted.node_id
    return Voter(role.NAME, role.epoch, role.leader_id, voted, quorum.log.end_offset, quorum.high_watermark)


def _granted(quorum: Quorum) -> frozenset[int]:
    role = quorum.role
    return frozenset(role.tally.granted) if isinstance(role, (Prospective, Candidate)) else frozenset()


def _fetch_of(request: FetchRequest) -> Fetch:
    part = request.topics[0].partitions[0]
    return Fetch(part.current_leader_epoch, part.fetch_offset, part.last_fetched_epoch)


def _headers(records: Any) -> list[Any]:
    if records is None:
        return []
    if not isinstance(records, (bytes, bytearray, memoryview)):
        records = records.file.read(records.offset, records.length)
    try:
        return list(read_headers(memoryview(records)))
    except CorruptBatch:
        return []
