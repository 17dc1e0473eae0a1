"""The metadata quorum as a space of states: votes, pre-votes, failover, and losses of a log's end.

Owns `QuorumModel`, a second, smaller model beside `partition`, over `quorum.RaftNode`. The possible steps are here; the
real nodes decide (`nodes`), once for each pair of a node and an event that occurs.

E1 an epoch has one leader; E2 epochs grow; E3 a leader has all committed records; E4 committed records never change; E5
logs match; E6 no committed record is truncated; E7 a leader serves only when all records before its epoch are
committed; E8 no node sees an impossible event; E9 committed records would survive on a majority; E10 no vote is given
twice; E11 a candidate has a majority's pre-votes for its epoch; E12 a voter that hears its leader grants no pre-vote.
(The partition's S10, S9, S1, S5, S6, S21, S16 and S7, for the metadata log; the last two are KIP-996's.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import NamedTuple, TypeAlias

from tanist.lab.model.quorum.nodes import Quorum
from tanist.lab.model.quorum.trace_format import QuorumTraceFormat
from tanist.lab.model.quorum.voter_state import (
    BUDGET,
    GHOSTS,
    MEMBERS,
    STALE,
    Ghosts,
    MetadataLog,
    SentVoteRequest,
    VoterResult,
    VoterState,
    voters_in,
)
from tanist.lab.model.steps import Label, Permutation, State, Step, Table, Violation, directed

_NO_TURN = -1
_NOBODY = (_NO_TURN, _NO_TURN)

Turns: TypeAlias = tuple[tuple[int, int], ...]
"""Voters and the numbers of their turns, in the order in which they happen."""


class QuorumBudget(NamedTuple):
    """How often each event may still happen."""

    timeouts: int = 0
    writes: int = 0
    crashes: int = 0
    """Restarts that find the whole log."""
    losses: int = 0
    """Restarts that find only the durable log. Without these, a log is durable at once."""
    stale_asks: int = 0
    """Vote requests that arrive after their sender has changed its role."""
    changes: int = 0
    """Voters added or removed (KIP-853)."""


@dataclass(frozen=True, slots=True)
class QuorumConfiguration:
    """A search over the metadata quorum. `start` is as in `configuration.Configuration`."""

    name: str
    about: str
    budget: QuorumBudget
    voters: int = 3
    outside: int | None = None
    """Controllers that are no voters at first, where voters can be added and removed; None: the voters are static."""
    batch_a_fetch: bool = False
    """Whether a fetch is answered with one batch, or with all batches."""
    start: tuple[str, ...] = ()


class QuorumModel:
    """The model that a `QuorumConfiguration` describes."""

    def __init__(self, configuration: QuorumConfiguration, unwatched: frozenset[str] = frozenset()) -> None:
        self.configuration = configuration
        self._unwatched = unwatched
        self._voters = configuration.voters + (configuration.outside or 0)
        self._first = (1 << configuration.voters) - 1
        self._writes = configuration.budget.writes
        self.members: Table[VoterState] = Table()
        self.ghosts: Table[Ghosts] = Table()
        self.stale: Table[tuple[SentVoteRequest, ...]] = Table()
        self.budgets: Table[QuorumBudget] = Table()
        self.trace_format = QuorumTraceFormat(self.members, self.ghosts, self._voters)
        self.turns: Table[VoterResult] = Table()
        self._quorum = Quorum(
            configuration.voters,
            syncs_at_once=not configuration.budget.losses,
            batch_a_fetch=configuration.batch_a_fetch,
            outside=configuration.outside,
        )
        self._remember_answers()
        self._traits: Table[tuple[object, ...]] = Table()

    def _remember_answers(self) -> None:
        """The real nodes and the properties are asked once for each combination of numbers."""
        quorum, at, turn_number = self._quorum, self.members.__getitem__, self.turns.number

        def one(result: VoterResult | None) -> int:
            return _NO_TURN if result is None else turn_number(result)

        def both(turns: tuple[VoterResult, VoterResult | None] | None) -> tuple[int, int]:
            return _NOBODY if turns is None else (one(turns[0]), one(turns[1]))

        self._timeout = cache(lambda voter, number: one(quorum.timeout(voter, at(number))))
        self._append = cache(lambda voter, number, payload: one(quorum.append(voter, at(number), payload)))
        self._change = cache(lambda voter, number, target: one(quorum.change(voter, at(number), target)))
        self._sync = cache(lambda voter, number: one(quorum.sync(voter, at(number))))
        self._restart = cache(lambda voter, number, keep: one(quorum.restart(voter, at(number), keep)))
        self._asks = cache(lambda voter, number: quorum.asks(voter, at(number)))
        self._ask = cache(lambda asker, voter, ask: both(quorum.ask(at(asker), at(voter), ask)))
        self._fetches = cache(lambda voter, number, peer: quorum.fetches(voter, at(number), peer))
        self._fetch = cache(lambda voter, here, peer, there: both(quorum.fetch(voter, at(here), peer, at(there))))
        self._claim = cache(lambda voter, here, peer, there: both(quorum.claim(voter, at(here), peer, at(there))))
        self._renamed_member = cache(lambda number, to: self.members.number(at(number).renamed(to)))
        self._renamed_ghosts = cache(lambda number, to: self.ghosts.number(self.ghosts[number].renamed(to)))
        self._renamed_stale = cache(self._rename_stale)
        self._judged_step = cache(self._judge_step)
        self._match = cache(lambda one, two: tuple(_matching(at(one).log, at(two).log)))
        self._holds = cache(lambda number, ghosts: _has_all(at(number), self.ghosts[ghosts].committed))
        self._paid = cache(self._pay)
        self._trait_of = cache(lambda number: self._traits.number(at(number).anonymous()))

    def initial(self) -> State:
        """No voter has run yet; then the directed start is taken."""
        budget, start = self.configuration.budget, self.configuration.start
        members = tuple(self.members.number(self._quorum.born(voter)) for voter in range(self._voters))
        more = len(start)
        plenty = budget
        if start:
            plenty = QuorumBudget(
                budget.timeouts + more, budget.writes + more, changes=budget.changes and budget.changes + more
            )
        self._writes = plenty.writes
        nobody = (self.stale.number(()), self.ghosts.number(Ghosts((), ())))
        state = directed(self, (*nobody, self.budgets.number(plenty), *members), start)
        self._writes = budget.writes + sum(1 for text in start if text.startswith("append "))
        return (*state[:BUDGET], self.budgets.number(budget), *state[MEMBERS:])

    # -- steps

    def expand(self, state: State) -> list[Step]:
        """All steps from `state`."""
        steps: list[Step] = []
        budget = self.budgets[state[BUDGET]]
        for voter in range(self._voters):
            number = state[MEMBERS + voter]
            member = self.members[number]
            whole = len(member.log)
            if budget.timeouts:
                result = self._timeout(voter, number)
                self._step(state, Label("timeout", voter), ((voter, result),), steps, price="timeouts")
            if budget.writes:
                written = self._append(voter, number, self._writes - budget.writes)
                if written != _NO_TURN:
                    self._step(state, Label("append", voter), ((voter, written),), steps, price="writes")
            if budget.changes and member.role == "Leader":
                for target in range(self._voters):
                    changed = self._change(voter, number, target)
                    if changed != _NO_TURN:
                        verb = "removes" if voters_in(member.log, self._first) >> target & 1 else "adds"
                        label = Label("change", voter, f"{verb} {target + 1}")
                        self._step(state, label, ((voter, changed),), steps, price="changes")
            if member.durable < whole:
                self._step(state, Label("sync", voter), ((voter, self._sync(voter, number)),), steps)
            if budget.crashes:
                result = self._restart(voter, number, whole)
                self._step(state, Label("crash", voter), ((voter, result),), steps, price="crashes")
            if budget.losses and member.on_disk < whole:
                result = self._restart(voter, number, member.on_disk)
                label = Label("lose", voter, f"keeps {member.on_disk}")
                self._step(state, label, ((voter, result),), steps, price="losses")
            for peer in range(self._voters):
                if peer != voter:
                    self._between(state, voter, peer, steps)
        for ask in self.stale[state[STALE]]:
            self._hear_stale(state, ask, steps)
        return steps

    def _between(self, state: State, voter: int, peer: int, steps: list[Step]) -> None:
        """Requests of one voter to another, with an answer or without."""
        here, there = state[MEMBERS + voter], state[MEMBERS + peer]
        for ask in self._asks(voter, here):
            if ask.voter == peer:
                heard, answered = self._ask(here, there, ask)
                said = f"the {'pre-vote' if ask.pre_vote else 'vote'} of {peer + 1}"
                self._exchange(state, Label("ask", voter, said), (peer, heard), (voter, answered), steps)
        heard, answered = self._fetch(voter, here, peer, there) if self._fetches(voter, here, peer) else _NOBODY
        if heard != _NO_TURN:
            self._exchange(state, Label("fetch", voter, f"from {peer + 1}"), (peer, heard), (voter, answered), steps)
        heard, answered = self._claim(voter, here, peer, there)
        if heard != _NO_TURN:
            self._exchange(state, Label("claim", voter, f"to {peer + 1}"), (peer, heard), (voter, answered), steps)

    def _exchange(
        self, state: State, label: Label, heard: tuple[int, int], response: tuple[int, int], steps: list[Step]
    ) -> None:
        """`heard` and `response`: a voter, and the number of its turn."""
        if response[1] != _NO_TURN:
            self._step(state, label, (heard, response), steps)
        self._step(state, label._replace(detail=f"{label.detail}, unanswered"), (heard,), steps)

    def _hear_stale(self, state: State, ask: SentVoteRequest, steps: list[Step]) -> None:
        left = tuple(each for each in self.stale[state[STALE]] if each != ask)
        heard, _ = self._ask(state[MEMBERS + ask.candidate], state[MEMBERS + ask.voter], ask)
        label = Label("stale_ask", ask.candidate, f"of {ask.voter + 1}")
        self._step((self.stale.number(left), *state[1:]), label, ((ask.voter, heard),), steps, before=state)

    def _step(
        self,
        state: State,
        label: Label,
        turns: Turns,
        steps: list[Step],
        *,
        price: str | None = None,
        before: State | None = None,
    ) -> None:
        """Put the turns into the state, in their order, and judge them."""
        changed = list(state)
        if price is not None:
            changed[BUDGET] = self._paid(state[BUDGET], price)
        violation = None
        for voter, result in turns:
            settled = self._judged_step(voter, state[MEMBERS + voter], result, changed[GHOSTS])
            changed[MEMBERS + voter], changed[GHOSTS], wrong = settled
            violation = violation or wrong
        after = tuple(changed)
        if after == (state if before is None else before) and violation is None:
            return
        steps.append((label, after, violation))
        if violation is None and self.budgets[state[BUDGET]].stale_asks:
            self._leave_asks(state, after, label, turns, steps)

    def _judge_step(self, voter: int, was: int, result: int, ghosts: int) -> tuple[int, int, Violation | None]:
        """A node's turn: its new state, the new ghosts, and the violation if there is one."""
        made, known = self.turns[result], self.ghosts[ghosts]
        wrong = self._watched(_judge(voter, self._first, self.members[was], made, known))
        return self.members.number(made.member), self.ghosts.number(_remember(voter, made.member, known)), wrong

    def _leave_asks(self, state: State, after: State, label: Label, turns: Turns, steps: list[Step]) -> None:
        """The same, with a request of a former candidate still under way."""
        for voter, _ in turns:
            now = self._asks(voter, after[MEMBERS + voter])
            for ask in self._asks(voter, state[MEMBERS + voter]):
                if ask not in now and ask not in self.stale[after[STALE]]:
                    changed = list(after)
                    changed[BUDGET] = self._paid(after[BUDGET], "stale_asks")
                    changed[STALE] = self.stale.number(tuple(sorted((*self.stale[after[STALE]], ask))))
                    said = f"{label.detail} leaving its ask of {ask.voter + 1}".strip()
                    steps.append((label._replace(detail=said), tuple(changed), None))

    def _pay(self, number: int, price: str) -> int:
        budget = self.budgets[number]
        return self.budgets.number(budget._replace(**{price: getattr(budget, price) - 1}))

    # -- properties

    def _watched(self, violations: Iterable[Violation]) -> Violation | None:
        return next((each for each in violations if each.name not in self._unwatched), None)

    def violation_of(self, state: State) -> Violation | None:
        return self._watched(self._wrong(state))

    def _wrong(self, state: State) -> Iterator[Violation]:
        members, ghosts = state[MEMBERS:], state[GHOSTS]
        holders = [self._holds(number, ghosts) for number in members]
        if not any(_is_majority(holders, mask) for mask in self._sets(members, ghosts)):
            whole = len(self.ghosts[ghosts].committed)
            yield Violation("E9", f"{whole} records were committed, and only {sum(holders)} would still have them all")
        for at, one in enumerate(members, 1):
            for two in members[at:]:
                yield from self._match(one, two)

    def _sets(self, members: State, ghosts: int) -> set[int]:
        """The last committed set of voters, and those that may come after it: a majority of one is one of the other."""
        committed = self.ghosts[ghosts].committed
        sets = {voters_in(committed, self._first)}
        if self.configuration.outside is not None:
            logs = (self.members[number].log for number in members)
            sets |= {voters_in(log, self._first) for log in logs if log[: len(committed)] == committed}
        return sets

    # -- names

    def representative(self, state: State) -> State:
        """Members in the order of their anonymous traits; equal ones in each order."""
        # Those that are voters at first keep the first names.
        traits = [(not self._first >> at & 1, self._trait_of(number)) for at, number in enumerate(state[MEMBERS:])]
        order = sorted(traits)
        if len(set(order)) == len(order):
            return state if order == traits else self.rename(state, tuple([order.index(each) for each in traits]))
        fits = []
        for to in permutations(range(self._voters)):
            if all(order[name] == trait for trait, name in zip(traits, to)):
                fits.append(self.rename(state, to))
        return min(fits)

    def rename(self, state: State, to: Permutation) -> State:
        members = [0] * self._voters
        for voter, number in enumerate(state[MEMBERS:]):
            members[to[voter]] = self._renamed_member(number, to)
        stale, ghosts = self._renamed_stale(state[STALE], to), self._renamed_ghosts(state[GHOSTS], to)
        return (stale, ghosts, state[BUDGET], *members)

    def _rename_stale(self, number: int, to: Permutation) -> int:
        return self.stale.number(tuple(sorted(ask.renamed(to) for ask in self.stale[number])))


def _is_majority(holders: Sequence[bool], mask: int) -> bool:
    return sum([holds for at, holds in enumerate(holders) if mask >> at & 1]) > mask.bit_count() // 2


def _judge(voter: int, first: int, before: VoterState, result: VoterResult, ghosts: Ghosts) -> Iterator[Violation]:
    """E1-E4, E6-E8 and E10-E12, of one node's turn."""
    after, name = result.member, voter + 1
    if result.fatal:
        yield Violation("E8", result.fatal)
        return
    if after.epoch < before.epoch:
        yield Violation("E2", f"{name} goes back from epoch {before.epoch} to {after.epoch}")
    if after.role == "Leader":
        others = [leader for epoch, leader in ghosts.leaders if epoch == after.epoch and leader != voter]
        if others:
            yield Violation("E1", f"{name} leads epoch {after.epoch}, which {others[0] + 1} has led")
        elected = before.role != "Leader" or before.epoch != after.epoch
        if elected and after.log[: len(ghosts.committed)] != ghosts.committed:
            yield Violation("E3", f"{name} leads epoch {after.epoch} and lacks what was committed")
    seen = after.log[: after.high_watermark]
    shared = min(len(seen), len(ghosts.committed))
    if after.high_watermark > len(after.log) or seen[:shared] != ghosts.committed[:shared]:
        yield Violation("E4", f"{name} takes for committed what is not")
    if 0 <= result.cut_at < before.high_watermark:
        yield Violation("E6", f"{name} cuts its log at {result.cut_at}, and {before.high_watermark} is committed")
    if result.elected_at >= max(len(ghosts.committed), after.high_watermark) and result.elected_at >= 0:
        yield Violation("E7", f"{name} serves from {result.elected_at} on, before what is older is committed")

    if before.epoch == after.epoch and before.cast >= 0 and after.cast != before.cast:
        yield Violation(
            "E10", f"{name} votes for {after.cast + 1} in epoch {after.epoch}, and has voted for {before.cast + 1}"
        )
    stands = after.role == "Candidate" and after.epoch > before.epoch
    # The pre-vote that makes the majority comes with this turn.
    if stands and (
        before.role != "Prospective" or before.granted.bit_count() + 1 <= voters_in(before.log, first).bit_count() // 2
    ):
        yield Violation("E11", f"{name} stands for epoch {after.epoch}, and no majority has said that it may")
    hears_leader = before.role == "Follower" and before.has_fetched and not before.leader_lost
    if result.pre_vote_granted and hears_leader and after.epoch == before.epoch:
        yield Violation("E12", f"{name}, whose leader answers, would vote for another")


def _has_all(member: VoterState, committed: MetadataLog) -> bool:
    return member.on_disk >= len(committed) and member.log[: len(committed)] == committed


def _remember(voter: int, member: VoterState, ghosts: Ghosts) -> Ghosts:
    leads = (member.epoch, voter)
    if member.role == "Leader" and leads not in ghosts.leaders:
        ghosts = ghosts._replace(leaders=tuple(sorted((*ghosts.leaders, leads))))
    if member.high_watermark > len(ghosts.committed):
        ghosts = ghosts._replace(committed=member.log[: member.high_watermark])
    return ghosts


def _matching(one: MetadataLog, two: MetadataLog) -> Iterator[Violation]:
    """E5: the same epoch at the same offset means the same past."""
    differ = False
    for at, (first, second) in enumerate(zip(one, two)):
        if differ and first[0] == second[0]:
            yield Violation("E5", f"two logs have epoch {first[0]} at {at}, and different pasts")
            return
        differ = differ or first != second
    return
