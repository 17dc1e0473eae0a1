"""Directed runs about the votes of the metadata quorum: two candidates in one epoch, and a voter that restarts.

Each function is a script (`directed`), named for its events. There are five controllers, so that the quorum elects a
leader although the last one is gone, and nobody reads what the script holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tanist.lab.mutations.directed import CONTROLLER, Directed, Script, Until, with_records
from tanist.quorum.raft import RaftNode
from tanist.quorum.state.roles import Candidate

VOTERS = (CONTROLLER, 12, 13, 14, 15)
ROLES: Mapping[int, str] = {**dict.fromkeys((1, 2, 3), "broker"), **dict.fromkeys(VOTERS, "controller")}
_RECORDS = 3


def _raft(run: Directed, node_id: int) -> RaftNode | None:
    node = run.host(node_id).node
    return None if node is None or not run.host(node_id).up else node.quorum.raft


def _candidate(run: Directed, among: Iterable[int]) -> int | None:
    rafts = {each: _raft(run, each) for each in among}
    return next((each for each, raft in rafts.items() if raft is not None and raft.role == Candidate.NAME), None)


def _has_voted(run: Directed, voter: int, candidate: int) -> bool:
    raft = _raft(run, voter)
    return raft is not None and raft.stored.voted is not None and raft.stored.voted.node_id == candidate


def _voter(run: Directed, among: Iterable[int], candidate: int) -> int | None:
    """The first that has voted for the candidate: which one that is depends on the seed."""
    return next((each for each in among if _has_voted(run, each, candidate)), None)


def _stands(run: Directed, among: Iterable[int]) -> Callable[[], bool]:
    return lambda: _candidate(run, among) is not None


def a_voter_restarts_between_two_candidates(run: Directed) -> Script:
    """The leader dies. One voter stands, and nobody reads that; another stands in the same epoch and gets a vote, whose
    voter restarts before it reads what the first has asked."""
    yield from with_records(run, _RECORDS)
    leader = run.controller()
    left = [each for each in VOTERS if each != leader]
    run.host(leader).kill()
    yield Until(_stands(run, left))
    first = _candidate(run, left)
    if first is None:
        return
    left.remove(first)
    unread = {each: run.hold(each, first) for each in left}
    yield Until(_stands(run, left))
    second = _candidate(run, left)
    if second is None:
        return
    left.remove(second)
    unheard = [run.hold(second, each) for each in left]
    yield Until(lambda: _voter(run, left, second) is not None or _candidate(run, [second]) is None)
    voter = _voter(run, left, second)
    if voter is not None:
        run.host(voter).kill()
        unread[voter].release()
        yield 5
        run.host(voter).start()
        yield 300
    for hold in (*unread.values(), *unheard):
        hold.release()
    run.host(leader).start()
