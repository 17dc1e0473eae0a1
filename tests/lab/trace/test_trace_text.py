"""The trace of a run: the same text each time, and the steps that events become.

`TRACES=rewrite pytest tests/lab/trace` writes the kept text anew. Read the difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tanist.events.event import Event
from tanist.events.metadata import (
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    ConfigChanged,
    PartitionChanged,
    PartitionCreated,
    UncleanElection,
)
from tanist.events.process import NodeStarted, ShutdownDone
from tanist.events.replication import (
    BecameFollower,
    BecameLeader,
    FollowerFetched,
    HighWatermarkLearned,
    HighWatermarkMoved,
    IsrChanged,
    IsrProposalEnded,
    IsrProposed,
)
from tanist.events.storage import RecordsAppended
from tanist.lab.trace import runs
from tanist.lab.trace.mapping import Trace, partitions, trace_of
from tanist.lab.trace.ordering import Grown, _Known, causal, in_order
from tanist.lab.trace.recording import ElectionRequested, LifeEnded, Observed, of_processes
from tanist.lab.trace.steps import module
from tanist.lab.trace.writing import Untranslatable

P = "events-0"
KEPT = Path(__file__).with_name("last_standing.tla")
CREATED = PartitionCreated(P, (2, 3, 1), (2, 3, 1), 2, 0)


def changed(partition_epoch: int, before: tuple[int, ...], isr: tuple[int, ...], **how: Any) -> PartitionChanged:
    plain: dict[str, Any] = {
        "leader_before": 2,
        "leader": 2,
        "leader_epoch_before": 0,
        "leader_epoch": 0,
        "elr_before": (),
        "elr": (),
        "last_known_elr_before": (),
        "last_known_elr": (),
        "replicas_before": (2, 3, 1),
        "replicas": (2, 3, 1),
        "recovering_before": False,
        "recovering": False,
        "reassigning_before": False,
        "reassigning": False,
        "min_isr": 2,
        "elr_enabled": True,
    }
    return PartitionChanged(P, partition_epoch, isr_before=before, isr=isr, **{**plain, **how})


def traced(*observed: tuple[int, int, Event | LifeEnded]) -> Trace:
    """At (microseconds, node)."""
    return trace_of([Observed(0, 11, CREATED), *(Observed(*each) for each in observed)], P)


def texts(trace: Trace) -> list[str]:
    return [step.text() for step in trace.steps]


def test_a_directed_run_has_the_kept_trace() -> None:
    text = module([runs.last_standing().trace.steps])
    if os.environ.get("TRACES") == "rewrite":
        KEPT.write_text(text)
    assert text == KEPT.read_text()


def test_a_seed_has_one_trace() -> None:
    once, again = runs.of_seed(3), runs.of_seed(3)
    assert texts(once.trace) == texts(again.trace)
    assert any(step.action == "NoDataLossShutdown" for step in once.trace.steps)


def test_brokers_offsets_and_epochs_are_the_model_s() -> None:
    trace = traced((7, 2, RecordsAppended(P, 0, 0, 1)))
    assert trace.brokers == {2: 1, 3: 2, 1: 3}
    assert texts(trace) == [
        '[action |-> "WriteRecordToLeader", b |-> 1, first |-> 1, leo |-> 2, record_epochs |-> <<1>>, hwm |-> 1]'
    ]
    assert (trace.steps[0].at_us, trace.steps[0].node_id) == (7, 2)


def test_an_answer_is_read_before_it_is_used_and_asked_for_before_that() -> None:
    trace = traced(
        (1, 2, RecordsAppended(P, 0, 0, 1)),
        (2, 2, FollowerFetched(P, 3, 9, 0, 0, -1)),
        (3, 3, RecordsAppended(P, 0, 0, 1)),
        (3, 3, HighWatermarkLearned(P, 0, 1)),
    )
    assert [step.action for step in trace.steps] == [
        "WriteRecordToLeader",
        "SendFetchRequest",
        "ReceiveFetchRequest",
        "AnswerRead",
        "ReceiveFetchResponse",
    ]
    assert trace.steps[-1].reported == {"from": 1, "first": 1, "leo": 2, "record_epochs": (1,), "hwm": 2}


def test_a_fetch_that_arrives_late_was_sent_before_the_follower_heard_of_the_election() -> None:
    trace = traced(
        (1, 11, changed(1, (2, 3, 1), (3, 1), leader=3, leader_epoch=1)),
        (1, 11, BrokerFenced(2, 9)),
        (2, 1, BecameFollower(P, 3, 1)),
        (3, 2, FollowerFetched(P, 1, 9, 0, 0, -1)),
    )
    assert [(step.action, step.broker) for step in trace.steps] == [
        ("FenceBroker", 1),
        ("SendFetchRequest", 3),
        ("ReceiveMetadataUpdate", 3),
        ("ReceiveFetchRequest", 1),
    ]


def test_a_broker_ends_in_the_model_when_it_starts_again() -> None:
    trace = traced(
        (1, 3, LifeEnded(False)),
        (2, 11, changed(1, (2, 3, 1), (2, 1))),
        (2, 11, BrokerFenced(3, 9)),
        (3, 11, BrokerRegistered(3, 20, "again", True)),
        (4, 3, BecameFollower(P, 2, 0)),
        (5, 11, BrokerUnfenced(3, 20)),
    )
    assert [step.action for step in trace.steps] == [
        "FenceBroker",
        "NoDataLossShutdown",
        "BrokerStart",
        "RegisterFenced",
        "ReceiveBrokerRegResponse",
        "ReceiveMetadataUpdate",
        "UnfenceBroker",
    ]
    assert trace.steps[1].reported["clean"] is False


def test_who_commits_before_it_says_so_has_changed_its_isr_before() -> None:
    """On a node that is a controller as well, what follows from a change of the metadata is emitted before it."""
    moved, isr = HighWatermarkMoved(P, 0, 1, (2, 3), ()), IsrChanged(P, (2, 3), (), (1,))
    change, fenced = changed(1, (2, 3, 1), (2, 3)), BrokerFenced(1, 9)
    found = in_order([Observed(1, 2, each) for each in (moved, isr, fenced, change)], P)
    assert [each.event for each in found] == [change, fenced, isr, moved]


def test_a_change_stays_behind_the_fencing_of_another_broker() -> None:
    fenced, change = BrokerFenced(3, 9), changed(2, (2, 1), (2,))
    found = in_order([Observed(1, 11, each) for each in (fenced, change, BrokerFenced(1, 9))], P)
    assert [each.event for each in found] == [fenced, change, BrokerFenced(1, 9)]


def test_an_election_stays_behind_the_fencing_that_came_before_it() -> None:
    """In one turn a broker is fenced, unfenced, and elected from the ELR."""
    gone = changed(1, (2,), (), leader=-1, leader_epoch=1, elr=(2,))
    back = changed(2, (), (2,), leader_before=-1, leader=2, leader_epoch=2, elr_before=(2,))
    fenced, unfenced = BrokerFenced(2, 9), BrokerUnfenced(2, 9)
    found = in_order([Observed(1, 11, each) for each in (gone, fenced, unfenced, back)], P)
    assert [each.event for each in found] == [gone, fenced, back, unfenced]


def test_batches_of_two_epochs_come_with_one_answer() -> None:
    one, other, learned = RecordsAppended(P, 0, 0, 2), RecordsAppended(P, 1, 2, 3), HighWatermarkLearned(P, 0, 1)
    found = in_order([Observed(1, 3, each) for each in (one, other, learned)], P)
    assert [each.event for each in found] == [Grown((one, other), learned)]


def test_a_proposal_says_with_which_isr_the_leader_counts() -> None:
    trace = traced((1, 2, IsrProposed(P, 0, 0, (2, 3, 1), (2, 3))))
    assert texts(trace) == [
        '[action |-> "SendAlterPartitionRequest", b |-> 1, request_epoch |-> 1, isr |-> {1, 2}, '
        "maximal_isr |-> {1, 2, 3}]"
    ]


def test_a_change_that_no_action_makes_is_a_step_that_is_refused() -> None:
    trace = traced((1, 11, changed(1, (2, 3, 1), (2,))))
    assert [step.action for step in trace.steps] == ["NoAction"]


GONE = changed(1, (2, 3, 1), (), leader=-1, leader_epoch=1, last_known_elr=(2, 3))
BACK = changed(
    *(2, (), (3,)),
    leader_before=-1,
    leader=3,
    leader_epoch_before=1,
    leader_epoch=2,
    last_known_elr_before=(2, 3),
    recovering=True,
)


def test_an_unclean_recovery_elects_by_the_logs_that_it_has_compared() -> None:
    observed = [Observed(0, 11, CREATED), Observed(1, 11, GONE), Observed(2, 11, BACK)]
    observed.append(Observed(2, 11, UncleanElection(P, 3, 2, "Balanced", ((2, -1, 0), (3, 0, 4)))))
    trace = trace_of(observed, P, strategy="Balanced")
    assert texts(trace)[1:] == [
        '[action |-> "AnswerLogInfo", b |-> 1, leo |-> 1, last_epoch |-> 0]',
        '[action |-> "AnswerLogInfo", b |-> 2, leo |-> 5, last_epoch |-> 1]',
        '[action |-> "Recover", b |-> 2, strategy |-> "Balanced", leader |-> 2, leader_epoch |-> 3, '
        "partition_epoch |-> 3, isr |-> {2}, elr |-> {}, last_known_elr |-> {}]",
    ]


@pytest.mark.parametrize(
    ("configured", "between", "by"),
    [
        ("None", None, "None"),  # which recovers nothing: the model refuses it
        ("None", ElectionRequested(), "Balanced"),
        ("None", ConfigChanged(2, "events", "unclean.recovery.strategy", False), "Balanced"),
        ("None", ConfigChanged(2, "events", "retention.ms", False), "None"),
        (None, None, "Balanced"),
    ],
)
def test_a_recovery_is_by_the_configured_strategy(
    configured: str | None, between: Event | ElectionRequested | None, by: str
) -> None:
    """If an operator has not asked for another, or changed it to what no event tells."""
    observed = [Observed(0, 11, CREATED), Observed(1, 11, GONE), Observed(3, 11, BACK)]
    observed.append(Observed(3, 11, UncleanElection(P, 3, 2, "Balanced", ((3, 0, 4),))))
    if between is not None:
        observed.insert(2, Observed(2, 11, between))
    trace = trace_of(observed, P, strategy=configured)
    assert trace.steps[-1].reported["strategy"] == by


def test_an_operator_designates_a_leader() -> None:
    """Where none is asked for, the strategy decides: the model has no such election."""
    assert traced((1, 11, GONE), (2, 11, BACK)).steps[-1].action == "Designate"
    observed = [Observed(0, 11, CREATED), Observed(1, 11, GONE), Observed(2, 11, BACK)]
    assert trace_of(observed, P, strategy="Balanced").steps[-1].action == "NoAction"


def test_the_last_known_leader_is_elected_when_it_is_unfenced() -> None:
    trace = traced((1, 11, BrokerFenced(3, 9)), (2, 11, GONE), (3, 11, BACK), (3, 11, BrokerUnfenced(3, 9)))
    assert [(step.action, step.broker) for step in trace.steps[-2:]] == [("UnfenceBroker", 2), ("Designate", 2)]


def test_a_change_that_two_leaders_of_the_quorum_emit_is_one() -> None:
    """The first has crashed before another one knew that it is committed."""
    fenced = changed(1, (2, 3, 1), (2, 3))
    assert texts(traced((1, 11, fenced), (2, 12, fenced))) == texts(traced((1, 11, fenced)))


def test_a_broker_that_is_back_before_it_is_missed_never_was_in_the_elr() -> None:
    fenced = changed(1, (2, 3, 1), (2, 3))
    gone = changed(2, (2, 3), (2,), last_known_elr=(3,))
    observed = [
        (1, 11, fenced),
        (2, 3, LifeEnded(False, lost_power=True)),
        (3, 11, BrokerRegistered(3, 20, "a", True)),
        (3, 11, gone),
    ]
    trace = trace_of([Observed(0, 11, CREATED), *(Observed(*each) for each in observed)], P, strategy="Balanced")
    assert [step.action for step in trace.steps] == ["FenceBroker", "CrashUnnoticed", "BrokerStart", "RegisterFenced"]
    assert trace.steps[-1].reported["last_known_elr"] == {2}


def test_a_loss_is_where_its_broker_first_tells_of_it() -> None:
    """Not where a recovery believes an answer from before: safety U3."""
    fetched = FollowerFetched(P, 2, 30, 2, 1, 0)
    events: list[tuple[int, int, Event | LifeEnded]] = [
        (1, 2, RecordsAppended(P, 0, 0, 4)),
        (2, 2, LifeEnded(False, lost_power=True)),
        (3, 11, GONE),
        (3, 11, BrokerRegistered(2, 20, "again", True)),
        (4, 11, BACK),
        (4, 11, UncleanElection(P, 3, 2, "Balanced", ((2, 0, 4), (3, 0, 4)))),
        (5, 3, fetched),
    ]
    trace = traced(*events)
    assert next(step for step in trace.steps if step.action == "SuffixLossShutdown").reported["leo"] == 2


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (changed(1, (2, 3, 1), (2, 3, 1), replicas=(2, 3)), "a reassignment, which the model does otherwise"),
        (changed(3, (2, 3), (2,)), "partition epoch 3 without the one before: no event tells of it"),
    ],
)
def test_a_trace_ends_before_what_nobody_knows(change: PartitionChanged, end: str) -> None:
    trace = traced((1, 2, RecordsAppended(P, 0, 0, 1)), (2, 11, change), (3, 2, RecordsAppended(P, 0, 1, 2)))
    assert (len(trace.steps), trace.end) == (1, end)


def test_a_broker_is_fenced_by_a_change_that_has_no_event() -> None:
    """Else it stays in the ISR though it is fenced (A21): the model refuses that."""
    fenced = BrokerFenced(3, 9)
    assert traced((1, 11, fenced), (2, 11, changed(2, (2, 1), (2,)))).end == (
        "broker 3 is fenced, and no event tells of the change that it makes"
    )
    assert [step.action for step in traced((1, 11, fenced), (2, 11, changed(1, (2, 3, 1), (2, 3)))).steps] == [
        *("FenceBroker", "FenceBroker"),
    ]


def test_the_model_begins_with_all_replicas_in_sync() -> None:
    with pytest.raises(Untranslatable, match="begins with the ISR"):
        trace_of([Observed(0, 11, PartitionCreated(P, (1, 2, 3), (1, 2), 1, 0))], P)
    with pytest.raises(Untranslatable, match="does not make events-0"):
        trace_of([], P)


def test_events_of_one_millisecond_come_with_their_causes_first() -> None:
    """Processes tell milliseconds: the leader's events may stand before those of the follower that they follow from."""
    appended, fetched = RecordsAppended(P, 0, 0, 1), FollowerFetched(P, 3, 9, 0, 1, 0)
    moved, learned = HighWatermarkMoved(P, 0, 1, (2, 3, 1), ()), HighWatermarkLearned(P, 0, 1)
    events = [(1, CREATED), (2, appended), (2, fetched), (2, moved), (3, appended), (3, learned)]
    found = causal([Observed(5_000, node_id, event) for node_id, event in events], P)
    assert [(each.node_id, each.event) for each in found] == [
        *((1, CREATED), (2, appended), (3, appended), (2, fetched), (2, moved), (3, learned)),
    ]


def test_an_effect_without_a_cause_is_not_waited_for() -> None:
    fetched = FollowerFetched(P, 3, 9, 0, 1, 0)
    found = causal([Observed(0, 2, fetched), Observed(1_000_000, 3, RecordsAppended(P, 0, 0, 1))], P)
    assert [each.event for each in found] == [fetched, RecordsAppended(P, 0, 0, 1)]


def test_a_follower_knows_the_epoch_that_it_asks_in() -> None:
    """The new leader reports the fetch, and then the follower its role, in one millisecond; and once more in a new
    life, in which the follower knows no epoch yet."""
    change = changed(1, (2, 3, 1), (3, 1), leader=3, leader_epoch=1)
    leads, follows = BecameLeader(P, 1, 0), BecameFollower(P, 3, 1)
    asked = FollowerFetched(P, 1, 9, 1, 0, -1)
    before = [Observed(1_000, 11, CREATED), Observed(2_000, 1, BecameFollower(P, 2, 0)), Observed(3_000, 11, change)]
    observed = [*before, *(Observed(4_000, *each) for each in [(3, leads), (3, asked), (1, follows)])]
    assert [each.event for each in causal(observed, P)][3:] == [leads, follows, asked]
    again = [(90_000, 1, LifeEnded(True)), (95_000, 3, asked), (95_000, 1, follows)]
    found = [each.event for each in causal([*observed, *(Observed(*each) for each in again)], P)]
    assert found[6:] == [LifeEnded(True), follows, asked]


def test_a_log_grows_after_the_fetch_that_it_was_answered() -> None:
    """The follower has an answer at hand, and its clock is first to tell: the leader has heard the fetch before."""
    first, second = RecordsAppended(P, 0, 0, 1), RecordsAppended(P, 0, 1, 2)
    asked, again = FollowerFetched(P, 3, 9, 0, 0, -1), FollowerFetched(P, 3, 9, 0, 1, 0)
    leads = [(1, CREATED), (2, BecameLeader(P, 0, 0)), (2, asked)]
    events = [*leads, (2, first), (2, second), (3, first), (3, second)]
    observed = [*(Observed(5_000, *each) for each in events), Observed(6_000, 2, again)]
    found = causal(observed, P)
    assert [(each.node_id, each.event) for each in found][3:] == [
        *((2, first), (2, second), (3, first), (2, again), (3, second)),
    ]


def test_a_log_that_was_lost_grows_before_it_is_asked_beyond() -> None:
    """What its broker had before it lost power is no cause of a later fetch."""
    old, new = RecordsAppended(P, 0, 0, 5), RecordsAppended(P, 3, 0, 1)
    lost, asked, again = (FollowerFetched(P, 3, 9, 3, offset, -1) for offset in (0, 0, 1))
    events = [(1, CREATED), (2, BecameLeader(P, 0, 0)), (2, old), (3, old), (3, LifeEnded(False, lost_power=True))]
    now = changed(1, (2, 3, 1), (2, 1), leader_epoch=3)
    later = [(11, now), (3, BecameFollower(P, 2, 3)), (2, lost), (2, asked), (2, again), (3, new)]
    observed = [*(Observed(5_000, *each) for each in events), *(Observed(900_000, *each) for each in later)]
    assert [(each.node_id, each.event) for each in causal(observed, P)][-2:] == [(3, new), (2, again)]


def test_a_fetch_that_comes_again_does_not_shorten_a_log() -> None:
    """It waited in vain, and was sent anew: the next one goes on from the answer."""
    new, asked, again = (
        RecordsAppended(P, 0, 0, 1),
        FollowerFetched(P, 3, 9, 0, 0, -1),
        FollowerFetched(P, 3, 9, 0, 1, 0),
    )
    events = [(1, CREATED), (2, BecameLeader(P, 0, 0)), (2, new), (2, asked), (3, new), (2, asked), (2, again)]
    known = _Known()
    for node_id, event in events[:-1]:
        known.add(Observed(5_000, node_id, event))
    assert known.follows(Observed(5_000, *events[-1]))


def test_a_log_grows_after_the_fetch_that_is_reported_in_the_same_millisecond() -> None:
    """The fetch of this offset before it was answered: with a high watermark, or with nothing."""
    first, second = RecordsAppended(P, 0, 0, 1), RecordsAppended(P, 0, 1, 2)
    start, asked = FollowerFetched(P, 3, 9, 0, 0, -1), FollowerFetched(P, 3, 9, 0, 1, 0)
    moved, learned = HighWatermarkMoved(P, 0, 1, (2, 3, 1), ()), HighWatermarkLearned(P, 0, 1)
    before = [(1, CREATED), (2, BecameLeader(P, 0, 0)), (2, start), (2, first), (3, first), (2, asked), (2, moved)]
    for answer in ([(3, learned)], []):
        all_of_it = [*before, *answer, (2, second)]
        observed = [Observed(1_000 * at, *each) for at, each in enumerate(all_of_it)]
        observed += [Observed(50_000, 3, second), Observed(50_000, 2, asked)]
        assert [each.event for each in causal(observed, P)][-2:] == [asked, second]


def test_what_was_learned_a_moment_after_its_records_uses_no_other_fetch() -> None:
    """Both came with one answer, and the clock ticked in between: the next fetch has been reported before."""
    first, second = RecordsAppended(P, 0, 0, 1), RecordsAppended(P, 0, 1, 2)
    asked, again = FollowerFetched(P, 3, 9, 0, 0, -1), FollowerFetched(P, 3, 9, 0, 1, 0)
    known = _Known()
    for node_id, event in [(1, CREATED), (2, BecameLeader(P, 0, 0)), (2, asked), (2, first), (2, second)]:
        known.add(Observed(5_000, node_id, event))
    for at_us, node_id, happened in [(5_000, 3, first), (6_000, 2, again), (6_000, 3, HighWatermarkLearned(P, -1, 0))]:
        known.add(Observed(at_us, node_id, happened))
    assert known.follows(Observed(7_000, 3, second))
    known.add(Observed(7_000, 3, HighWatermarkLearned(P, 0, 1)))
    assert not known.follows(Observed(7_000, 3, second)), "another answer"


def test_a_decision_that_is_reported_in_two_milliseconds_is_one() -> None:
    unfenced, change = BrokerUnfenced(3, 9), changed(1, (2, 3, 1), (3,), leader=3, leader_before=-1)
    observed = [Observed(0, 1, CREATED), Observed(5_000, 11, unfenced)]
    for later_us, together in ((1_000, True), (1_000_000, False)):
        found = list(causal([*observed, Observed(5_000 + later_us, 11, change)], P))
        assert (found[-1].at_us == found[-2].at_us) is together


def test_the_last_one_that_shuts_down_stays_in_the_isr() -> None:
    trace = traced(
        (1, 11, changed(1, (2, 3, 1), (2, 3))), (2, 11, BrokerShuttingDown(2, 9)), (3, 11, BrokerShuttingDown(1, 9))
    )
    assert [step.action for step in trace.steps] == ["FenceBroker"]


def test_a_leader_proposes_on_top_of_what_is_committed() -> None:
    """And hears of the end of a proposal after the commit."""
    change, ended = changed(1, (2, 3, 1), (2, 3)), IsrProposalEnded(P, 0, 1)
    proposed = IsrProposed(P, 0, 1, (2, 3), (2, 3, 1))
    found = causal(
        [Observed(5_000, node_id, event) for node_id, event in [(1, CREATED), (2, ended), (2, proposed), (11, change)]],
        P,
    )
    assert [each.event for each in found] == [CREATED, change, ended, proposed]


def test_what_was_learned_with_the_next_answer_is_no_part_of_this_one() -> None:
    appended, learned = RecordsAppended(P, 0, 0, 1), HighWatermarkLearned(P, 0, 1)
    between = FollowerFetched(P, 3, 9, 0, 1, 0)
    found = in_order([Observed(1, 3, appended), Observed(1, 2, between), Observed(1, 3, learned)], P)
    assert [each.event for each in found] == [Grown((appended,), None), between, Grown((), learned)]


def test_the_lives_of_processes() -> None:
    started = NodeStarted(1, ("broker",), 7, (), 5)
    events = [(1, 1, started), (2, 1, CREATED), (3, 1, started), (4, 1, ShutdownDone(1)), (5, 1, started)]
    events.insert(-1, (4, 1, BrokerFenced(1, 9)))  # it reads its logs before it listens
    ends = [(each.at_us, each.event) for each in of_processes(events) if isinstance(each.event, LifeEnded)]
    assert ends == [(3000, LifeEnded(False, lost_power=True)), (5000, LifeEnded(True))]
    assert partitions(of_processes(events)) == [P]
