"""What voters of a metadata quorum do as steps of the model of KIP-996. (With TLC: tests/interop.)"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.lab.trace import quorum_runs
from tanist.lab.trace.quorum_mapping import QuorumTrace, quorum_trace_of
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
    RoleChanged,
    Seen,
    VoteHandled,
    Voter,
)
from tanist.quorum.state.node_state import Quorum

NEW = Voter("Unattached", 0, None, None, 0, 0)
PROSPECTIVE = Voter("Prospective", 0, None, None, 0, 0)
CANDIDATE = Voter("Candidate", 1, None, 11, 0, 0)
LEADER = Voter("Leader", 1, 11, 11, 1, 0)
VOTED = Voter("Unattached", 1, None, 11, 0, 0)
FOLLOWER = Voter("Follower", 1, 11, 11, 0, 0)
ASKED = Fetch(1, 0, 0)


def traced(*seen: tuple[int, Any, Voter]) -> QuorumTrace:
    """After all three have begun."""
    began = [Seen(0, node_id, Began(), NEW) for node_id in (11, 12, 13)]
    return quorum_trace_of([*began, *(Seen(at, *each) for at, each in enumerate(seen, start=1))], (11, 12, 13))


def actions(trace: QuorumTrace) -> list[str]:
    return [step.action for step in trace.steps]


def vote(*, pre_vote: bool, again: bool = False, missed: bool = False) -> VoteHandled:
    return VoteHandled(11, int(not pre_vote), pre_vote, 0, 0, True, again, missed)


ELECTED = (
    (11, RoleChanged("Unattached"), PROSPECTIVE),
    (12, vote(pre_vote=True), NEW),
    (11, Answered("vote", 12, None, False, (), False), PROSPECTIVE),
    (11, RoleChanged("Prospective"), CANDIDATE),
    (12, vote(pre_vote=False), VOTED),
    (11, Answered("vote", 12, None, False, (), False), CANDIDATE),
    (11, RoleChanged("Candidate"), LEADER),
    (11, Appended(((1, 1),)), LEADER),
)


def test_an_election() -> None:
    trace = traced(*ELECTED)
    assert trace.voters == {11: 1, 12: 2, 13: 3}
    assert actions(trace) == [
        *("VoterElectionTimeout", "HandleVoteRequest", "HandleVoteResponse", "ConcludePreVote"),
        *("HandleVoteRequest", "HandleVoteResponse", "BecomeLeader"),
    ]
    assert trace.steps[4].text() == (
        '[action |-> "HandleVoteRequest", b |-> 2, from |-> 1, of_epoch |-> 1, pre_vote |-> FALSE, offset |-> 1, '
        "last_epoch |-> 0, granted |-> TRUE, state |-> Unattached, epoch |-> 1, leader |-> Nil, voted |-> 1, "
        "end |-> 1, hwm |-> 1]"
    )
    assert trace.steps[-1].reported["entry_epochs"] == (1,)


def test_a_request_that_comes_twice_is_sent_twice() -> None:
    again = (12, vote(pre_vote=False, again=True), VOTED)
    assert actions(traced(*ELECTED, again))[7:] == ["VoteSentAgain", "GrantsAgain"]


def test_a_fetch_its_answer_and_what_becomes_of_it() -> None:
    """The answer has two batches, and is read after the fetch was taken. The next fetch is beyond them."""
    grown = Voter("Leader", 1, 11, 11, 3, 0)
    has_all = Voter("Follower", 1, 11, 11, 3, 0)
    trace = traced(
        *ELECTED,
        (11, Appended(((1, 3),)), grown),
        (12, LeaderHeard(11, 1), FOLLOWER),
        (12, FetchSent(11, ASKED), FOLLOWER),
        (11, FetchHandled(12, ASKED, "VALID"), grown),
        (11, FetchRead(12, ASKED, 3, -1), grown),
        (12, Answered("fetch", 11, ASKED, True, ((1, 1), (1, 3)), False), has_all),
        (12, FetchSent(11, Fetch(1, 3, 1)), has_all),
    )
    assert actions(trace)[7:] == [
        *("HandleClientRequest", "AcceptBeginQuorumRequest", "SendFetchRequest", "AcceptFetchRequest", "AnswerRead"),
        *("ManyEntries", "SendFetchRequest"),
    ]
    read, used, sent = trace.steps[-3:]
    assert (read.reported["offset"], read.reported["last"], read.reported["high_watermark"]) == (2, 3, 1)
    assert (used.reported["first"], used.reported["entry_epochs"], used.reported["end"]) == (2, (1, 1), 3)
    assert sent.reported["offset"] == 4


def test_a_log_that_diverges_ends_where_it_was_cut() -> None:
    longer = Voter("Follower", 1, 11, 11, 2, 0)
    trace = traced(
        *ELECTED,
        (12, LeaderHeard(11, 1), FOLLOWER),
        (12, FetchSent(11, ASKED), FOLLOWER),
        (12, Answered("fetch", 11, ASKED, True, ((1, 1), (1, 2)), False), longer),
        (12, FetchSent(11, Fetch(1, 2, 1)), longer),
        (11, FetchHandled(12, Fetch(1, 2, 1), "DIVERGING"), LEADER),
        (12, Answered("fetch", 11, Fetch(1, 2, 1), True, (), False), Voter("Follower", 1, 11, 11, 1, 0)),
    )
    assert actions(trace)[-2:] == ["DivergingFetchRequest", "HandleFetchResponse"]
    assert trace.steps[-1].reported["end"] == 2


def test_a_follower_that_misses_its_leader_says_so_before_it_grants_a_pre_vote() -> None:
    asks = (11, RoleChanged("Unattached"), PROSPECTIVE)
    missed = traced(asks, (12, vote(pre_vote=True, missed=True), FOLLOWER))
    assert actions(missed)[1:] == ["MissesLeader", "HandleVoteRequest"]
    assert actions(traced(asks, (12, vote(pre_vote=True), FOLLOWER)))[1:] == ["HandleVoteRequest"]


def test_what_was_heard_otherwise() -> None:
    """A refusal that the model has is its answer; another is something that the voter learns."""
    refused = (
        (12, FetchSent(13, ASKED), VOTED),
        (13, FetchHandled(12, ASKED, "REFUSED"), FOLLOWER),
        (12, Answered("fetch", 13, ASKED, False, (), True), FOLLOWER),
    )
    assert actions(traced(*ELECTED, *refused))[-2:] == ["RejectFetchRequest", "HandleFetchResponse"]
    assert actions(traced(*ELECTED, refused[0], refused[2]))[-1] == "Learns"
    assert actions(traced(*ELECTED, (11, Answered("other", 12, None, False, (), True), NEW)))[-1] == "Learns"


def test_lives() -> None:
    doubts = Voter("Prospective", 1, 11, 11, 0, 0)
    ends = ((12, Died(False), NEW), (12, Began(), FOLLOWER))
    assert actions(traced((12, LeaderHeard(11, 1), FOLLOWER), *ends))[-1] == "RestartWithState"
    restarted = traced((12, RoleChanged("Follower"), doubts), *ends)
    assert actions(restarted)[-2:] == ["RestartWithState", "ReadsLeader"]


def test_a_trace_ends_before_what_the_model_lacks() -> None:
    asked = ((12, FetchSent(11, ASKED), FOLLOWER), (11, FetchHandled(12, ASKED, "SNAPSHOT"), LEADER))
    assert traced(*ELECTED, *asked).end == "a snapshot, which the model does not have"
    died = traced((12, vote(pre_vote=False), VOTED), (12, Died(True), NEW), (12, Began(), NEW))
    assert died.end == "voter 2 died before it had written down what it decided"


def test_a_change_that_no_action_makes_is_a_step_that_is_refused() -> None:
    assert actions(traced((11, RoleChanged("Unattached"), CANDIDATE))) == ["NoAction"]


def test_a_seed_has_one_trace_and_leaves_the_quorum_as_it_was() -> None:
    before = Quorum._change
    one, other = quorum_runs.of_seed(8), quorum_runs.of_seed(8)
    assert [step.text() for step in one.trace.steps] == [step.text() for step in other.trace.steps]
    assert {"BecomeLeader", "AnswerRead", "RestartWithState", "DivergingFetchRequest"} <= set(actions(one.trace))
    assert not one.trace.end
    assert Quorum._change is before


def test_what_tlc_reads_is_written_without_it(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["lab", "trace", "--quorum", "--seeds", "8", "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.startswith("WRITTEN  quorum 8: ")
    modules = {"QuorumTrace.tla", "QuorumTraces.tla", "QuorumTrace.cfg", "SequencesExt.tla", "FiniteSetsExt.tla"}
    assert {path.name for path in tmp_path.iterdir()} == modules
    assert "    NewHighwaterMark <- CommittedAsReported\n" in (tmp_path / "QuorumTrace.cfg").read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--quorum", "--live"], "--quorum goes with --seeds and --mutate only"),
        (["--quorum", "--mutate", "A11"], "the rules of the quorum are E-A,"),
    ],
)
def test_what_does_not_go_with_it(options: list[str], says: str, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["lab", "trace", *options, "--out", str(tmp_path)])
    assert ran.exit_code == 2
    assert says in ran.stderr
