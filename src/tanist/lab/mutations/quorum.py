"""The mutations of the quorum's model: rules of the metadata Raft, each broken by a patch.

Owns `QUORUM_MUTATIONS`. They are applied like the others (`model.applied`). The letter is E, as in the properties
(`lab.model.quorum`). They refine the few mutations of the quorum in the partition's list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tanist.lab.mutations.model import Mutation, Patch
from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.roles import Candidate, Follower, Unattached
from tanist.quorum.state.rules import FetchPosition, QuorumRules, Validity


def _rule(name: str, replacement: Any) -> Callable[[], tuple[Patch, ...]]:
    return lambda: (Patch(QuorumRules, name, replacement),)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _stores_no_votes(_: Any, stored: Any, wanted: Any) -> bool:
    return bool(stored.epoch != wanted.epoch or stored.leader_id != wanted.leader_id)


def _the_longest(_: Any, ends: Any, epoch_start_offset: int) -> int | None:
    return ends[0] if ends[0] > epoch_start_offset else None


def _of_any_epoch(_: Any, ends: Any, _epoch_start_offset: int) -> int:
    return int(ends[len(ends) // 2])


def _grants_every_vote(_: Any, role: Any, ask: Any, own: Any) -> bool:
    return bool(ask.log_end >= own)


def _pre_votes_against_a_leader(follower: Any, ask: Any, up_to_date: bool) -> bool:
    return bool(ask.pre_vote and up_to_date)


def _asks_nobody_first() -> tuple[Patch, ...]:
    become_prospective = Quorum.become_prospective

    def stands(quorum: Any, now_ms: int) -> None:
        become_prospective(quorum, now_ms)
        quorum.become_candidate(now_ms)

    return (Patch(Quorum, "become_prospective", stands),)


def _same_epoch_again(_: Any, epoch: int) -> int:
    return max(1, epoch)


def _forgets_that_it_led(_: Any, stored: Any, log_end: Any, own_id: int, known_leader: bool) -> Any:
    if stored.voted is not None and stored.voted.node_id == own_id:
        return Candidate
    return Follower if stored.leader_id not in (None, own_id) and known_leader else Unattached


def _never_diverges(_: Any, log: Any, offset: int, epoch: int) -> FetchPosition:
    return FetchPosition(Validity.VALID, epoch, min(offset, log.end_offset))


def changes_before_its_first_commit() -> tuple[Patch, ...]:
    """Where the log names the last set, its offset would hold a change off as well."""
    return (
        Patch(QuorumRules, "is_fenced", _always(True)),
        Patch(
            QuorumRules,
            "is_change_done",
            lambda _, voters_offset, committed: committed is None or voters_offset < committed,
        ),
    )


QUORUM_MUTATIONS: Mapping[str, Mutation] = {
    number: Mutation(number, rule, configuration, frozenset(caught_by.split()), patches)
    for number, rule, configuration, caught_by, patches in (
        ("E-A", "a vote is not stored", "quorum-crashes", "E10", _rule("must_store", _stores_no_votes)),
        ("E-B", "what the leader has is committed", "quorum", "E9", _rule("commit_offset", _the_longest)),
        (
            "E-C",
            "what a majority has is committed in whatever epoch it was written",
            "quorum-old-epoch",
            "E3",
            _rule("commit_offset", _of_any_epoch),
        ),
        (
            "E-D",
            "the leader counts itself with what is not on its disk",
            "quorum-losses",
            "E9",
            _rule("own_end", lambda _, log_end, _durable_end: log_end),
        ),
        (
            "E-E",
            "a voter fetches on before its disk has what it was sent",
            "quorum-losses",
            "E9",
            _rule("may_fetch", _always(True)),
        ),
        (
            "E-F",
            "a vote for a candidate with a shorter log",
            "quorum",
            "E3",
            _rule("is_up_to_date", _always(True)),
        ),
        (
            "E-G",
            "a vote for every candidate that asks, any number per epoch",
            "quorum",
            "E10",
            _rule("grants_vote", _grants_every_vote),
        ),
        ("E-H", "a candidate does not begin a new epoch", "quorum", "E10", _rule("next_epoch", _same_epoch_again)),
        ("E-I", "no pre-votes: a voter stands after its timeout", "quorum", "E11", _asks_nobody_first),
        (
            "E-J",
            "a pre-vote against a leader that answers",
            "quorum",
            "E12",
            lambda: (Patch(Follower, "grants", _pre_votes_against_a_leader),),
        ),
        ("E-K", "a leader serves at once", "quorum", "E7", _rule("may_announce", _always(True))),
        ("E-L", "no log diverges", "quorum-old-epoch", "E4", _rule("fetch_position", _never_diverges)),
        (
            "E-M",
            "a restarted leader forgets that it led",
            "quorum-crashes",
            "E8",
            _rule("initial_role", _forgets_that_it_led),
        ),
        (
            "E-N",
            "votes are asked for before the log is durable",
            "quorum-losses",
            "E3",
            _rule("may_ask_for_votes", _always(True)),
        ),
        (
            "E-O",
            "a leader counts with the set of voters from before a change",
            "quorum-two-changes",
            "E3 E9",
            _rule("counted_voters", lambda _, before, latest: before or latest),
        ),
        (
            "E-P",
            "a second change of the voters before the first is committed",
            "quorum-two-changes",
            "E1 E3 E4 E5 E8 E9",
            _rule("is_change_done", _always(True)),
        ),
        (
            "E-Q",
            "a change of the voters before the leader has committed a record of its epoch",
            "quorum-forked-changes",
            "E1 E3 E4 E9",
            _rule("is_fenced", _always(True)),
        ),
        (
            "E-R",
            "a leader that is no voter any more goes on counting itself",
            "quorum-two-changes",
            "E3 E9",
            _rule("counts_own_end", _always(True)),
        ),
    )
}
