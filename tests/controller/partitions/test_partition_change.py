"""The rules of KIP-966 in one partition change, by their numbers in the fact sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from tanist.controller.image.image import PartitionState
from tanist.controller.partitions.change import (
    Context,
    Elected,
    Election,
    Intent,
    elected_leader,
    merge,
    partition_change,
)
from tanist.wire.ids import UNASSIGNED_DIRECTORY
from tanist.wire.metadata import PartitionChangeRecord

TOPIC = UUID(int=77)
D1, D2, D3 = UUID(int=1001), UUID(int=1002), UUID(int=1003)
MV_4_3, MV_4_0, MV_3_7, MV_3_6, MV_3_5 = 30, 23, 17, 12, 11


def partition(
    isr: Iterable[int] = (1, 2, 3), leader: int = 1, replicas: Iterable[int] = (1, 2, 3), **more: object
) -> PartitionState:
    listed = tuple(replicas)
    state = PartitionState(
        replicas=listed,
        isr=tuple(isr),
        leader=leader,
        leader_epoch=4,
        partition_epoch=9,
        directories=(UNASSIGNED_DIRECTORY,) * len(listed),
    )
    return replace(state, **more)  # type: ignore[arg-type]


def context(
    alive: Iterable[int] = (1, 2, 3, 4, 5, 6), min_isr: int = 2, elr: bool = True, mv: int = MV_4_3, **more: object
) -> Context:
    live = frozenset(alive)
    made = Context(min_isr=min_isr, elr_enabled=elr, metadata_version=mv, acceptable=lambda broker: broker in live)
    return replace(made, **more)  # type: ignore[arg-type]


def intent(**fields: object) -> Intent:
    return replace(Intent(topic_id=TOPIC, partition=5), **fields)  # type: ignore[arg-type]


def record(before: PartitionState, ctx: Context, **fields: object) -> PartitionChangeRecord | None:
    return partition_change(before, intent(**fields), ctx)


def after(before: PartitionState, ctx: Context, **fields: object) -> PartitionState:
    made = record(before, ctx, **fields)
    return before if made is None else merge(before, made)


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=5, topic_id=TOPIC, **fields)  # type: ignore[arg-type]


# -- election: 30-38 --------------------------------------------------------------------------------------------------


def test_rule_30_a_leader_is_acceptable_and_not_on_its_way_out() -> None:
    assert elected_leader(partition(), intent(), context(alive=(2, 3))) == Elected(2)
    assert elected_leader(partition(), intent(removed_broker=1), context()) == Elected(2)
    assert elected_leader(partition(), intent(unclean_shutdown=frozenset((1, 2))), context()) == Elected(3)


def test_rule_30_counts_the_target_isr_not_the_present_one() -> None:
    assert elected_leader(partition(), intent(target_isr=(3,)), context()) == Elected(3)


def test_rule_31_the_elr_is_asked_when_the_isr_is_empty() -> None:
    before = partition(isr=(), leader=-1, elr=(2, 3))
    assert elected_leader(before, intent(), context()) == Elected(2)


def test_rule_31_one_dead_member_in_the_isr_shuts_the_way_to_the_elr() -> None:
    before = partition(isr=(1,), leader=-1, elr=(2, 3))
    assert record(before, context(alive=(2, 3))) is None


def test_rule_32_online_keeps_the_leader_else_takes_the_first_in_replica_order() -> None:
    assert elected_leader(partition(leader=3), intent(), context()) == Elected(3)
    before = partition(replicas=(3, 2, 1), isr=(1, 2, 3), leader=-1)
    assert elected_leader(before, intent(), context()) == Elected(3)
    assert elected_leader(before, intent(), context(alive=())) == Elected(-1)


def test_rule_32_unclean_is_the_last_resort_and_goes_by_replica_order() -> None:
    before = partition(isr=(), leader=-1)
    assert elected_leader(before, intent(), context(alive=(2, 3))) == Elected(-1)
    assert elected_leader(before, intent(election=Election.UNCLEAN), context(alive=(2, 3))) == Elected(2, unclean=True)
    with_elr = partition(isr=(), leader=-1, elr=(3,))
    assert elected_leader(with_elr, intent(election=Election.UNCLEAN), context()) == Elected(3)


def test_rule_33_preferred_takes_the_first_replica_over_the_present_leader() -> None:
    preferred = intent(election=Election.PREFERRED)
    assert elected_leader(partition(leader=3), preferred, context()) == Elected(1)
    assert elected_leader(partition(leader=3), preferred, context(alive=(2, 3))) == Elected(3)
    assert elected_leader(partition(leader=3), preferred, context(alive=(2,))) == Elected(2)
    last = partition(isr=(), leader=-1, last_known_elr=(3,))
    assert elected_leader(last, preferred, context()) == Elected(3, unclean=True)
    assert elected_leader(partition(isr=(), leader=-1), preferred, context()) == Elected(-1)


@pytest.mark.parametrize(
    ("before", "ctx", "expected"),
    [
        (partition(isr=(), leader=-1, last_known_elr=(3,)), context(), Elected(3, unclean=True)),
        (partition(isr=(), leader=-1, last_known_elr=(3,)), context(alive=(1, 2)), Elected(-1)),
        (partition(isr=(), leader=-1, last_known_elr=(3,)), context(elr=False), Elected(-1)),
        (partition(isr=(), leader=-1, last_known_elr=(2, 3)), context(), Elected(-1)),
        (partition(isr=(), leader=-1, last_known_elr=(3,), elr=(2,)), context(alive=(3,)), Elected(-1)),
        (partition(isr=(), leader=-1, last_known_elr=(3,)), context(last_known_leader=False), Elected(-1)),
        (partition(isr=(), leader=-1, last_known_elr=(9,)), context(alive=(9,)), Elected(-1)),
    ],
    ids=["alive", "dead", "feature off", "two entries", "an elr member is waited for", "full kip", "no replica"],
)
def test_rule_34_last_known_leader(before: PartitionState, ctx: Context, expected: Elected) -> None:
    assert elected_leader(before, intent(), ctx) == expected


def test_rule_35_a_member_elected_from_the_elr_is_the_isr_and_the_rest_stays_eligible() -> None:
    before = partition(isr=(), leader=-1, elr=(2, 3), last_known_elr=(1,))
    assert record(before, context(alive=(3,))) == change(
        isr=(3,), leader=3, eligible_leader_replicas=(2,), last_known_elr=()
    )


def test_rule_36_an_unclean_leader_is_the_isr_and_nobody_is_eligible() -> None:
    before = partition(isr=(1,), leader=-1, elr=(2,), last_known_elr=(1,))
    assert record(before, context(alive=(3,)), election=Election.UNCLEAN) == change(
        isr=(3,), leader=3, eligible_leader_replicas=(), last_known_elr=(), leader_recovery_state=1
    )


def test_deviation_36_recovering_is_written_for_each_unclean_election() -> None:
    """It is what tells a second one from an election that lost nothing: reports and counters hang on it."""
    before = partition(isr=(), leader=-1, recovering=True)
    made = record(before, context(alive=(3,)), election=Election.UNCLEAN)
    assert made == change(isr=(3,), leader=3, leader_recovery_state=1)
    eligible = partition(isr=(), leader=-1, elr=(3,), recovering=True)
    assert record(eligible, context(alive=(3,))) == change(isr=(3,), leader=3, eligible_leader_replicas=())


def test_rule_36_an_unclean_election_is_recovering_whatever_else_was_wanted() -> None:
    before = partition(isr=(), leader=-1, recovering=True)
    assert after(before, context(alive=(3,)), election=Election.UNCLEAN, target_recovering=False).recovering


def test_rule_37_the_same_leader_is_not_written() -> None:
    made = record(partition(), context(), target_isr=(1, 2))
    assert made == change(isr=(1, 2))
    nobody = record(partition(isr=(), leader=-1, elr=(1, 2)), context(alive=()), unclean_shutdown=frozenset((1,)))
    assert nobody == change(eligible_leader_replicas=(2,))


def test_rule_38_a_remaining_elr_elects_with_the_feature_off() -> None:
    before = partition(isr=(), leader=-1, elr=(2, 3))
    made = record(before, context(elr=False, alive=(3,)))
    assert made == change(isr=(3,), leader=3, eligible_leader_replicas=())


def test_deviation_38_a_remaining_elr_survives_a_change_that_finds_nobody_but_not_an_unclean_shutdown() -> None:
    before = partition(isr=(), leader=-1, elr=(2, 3))
    made = record(before, context(elr=False, alive=()), target_replicas=(1, 2, 3, 4), target_adding=(4,))
    assert made is not None
    assert made.eligible_leader_replicas is None
    lost = record(before, context(elr=False, alive=(2,)), unclean_shutdown=frozenset((2,)))
    assert lost == change(eligible_leader_replicas=(3,))


def test_a_designated_leader_is_clean_only_if_it_may_lead() -> None:
    before = partition(isr=(), leader=-1, elr=(2,))
    designated = intent(election=Election.DESIGNATED, desired_leader=2)
    assert elected_leader(before, designated, context()) == Elected(2)
    assert elected_leader(before, replace(designated, desired_leader=3), context()) == Elected(3, unclean=True)
    assert elected_leader(before, replace(designated, desired_leader=3), context(alive=(2,))) == Elected(2)
    assert elected_leader(before, replace(designated, desired_leader=9), context(alive=(9,))) == Elected(-1)


# -- ELR: 39-53, 62-64 ------------------------------------------------------------------------------------------------


def test_rule_39_the_reassignment_ends_before_the_elr_is_computed() -> None:
    moving = partition(isr=(1, 2), replicas=(3, 1, 2), removing=(1, 2), adding=(3,))
    assert after(moving, context(), target_isr=(1, 2, 3)).elr == ()


def test_rule_40_at_min_isr_nobody_else_is_eligible() -> None:
    before = partition(isr=(1,), elr=(2, 3))
    assert record(before, context(), target_isr=(1, 2)) == change(isr=(1, 2), eligible_leader_replicas=())


def test_rule_40_members_that_leave_an_isr_at_its_minimum_are_not_eligible() -> None:
    assert record(partition(), context(), target_isr=(1, 2)) == change(isr=(1, 2))


def test_rule_41_the_whole_previous_isr_becomes_eligible_below_the_minimum() -> None:
    assert record(partition(), context(), target_isr=(1,)) == change(isr=(1,), eligible_leader_replicas=(2, 3))


def test_rule_41_eligible_members_stay_and_unclean_ones_go() -> None:
    before = partition(isr=(1, 2), elr=(3,), replicas=(1, 2, 3, 4))
    ctx = context(min_isr=3)
    assert after(before, ctx, target_isr=(1,)).elr == (2, 3)
    assert after(before, ctx, target_isr=(1,), unclean_shutdown=frozenset((2,))).elr == (3,)
    assert after(before, ctx, unclean_shutdown=frozenset((3,))).elr == ()


def test_rule_41_who_joins_the_isr_leaves_the_elr() -> None:
    before = partition(isr=(1,), elr=(2, 3), replicas=(1, 2, 3, 4))
    assert after(before, context(min_isr=3), target_isr=(1, 2)).elr == (3,)


def test_rule_42_a_stranger_joining_a_small_isr_leaves_the_elr_alone() -> None:
    before = partition(isr=(1,), elr=(2,), replicas=(1, 2, 3, 4))
    assert record(before, context(min_isr=3), target_isr=(1, 4)) == change(isr=(1, 4))
    assert record(before, context(min_isr=3)) is None


def test_rule_49_the_isr_empties_with_the_feature_on_only() -> None:
    last = partition(isr=(1,), elr=(2,))
    on = record(last, context(alive=()), target_isr=())
    assert on == change(isr=(), leader=-1, eligible_leader_replicas=(1, 2), last_known_elr=(1,))
    off = record(partition(isr=(1,)), context(alive=(), elr=False), target_isr=())
    assert off == change(leader=-1)


def test_rule_50_the_last_leader_is_remembered_while_there_is_none() -> None:
    gone = after(partition(isr=(1,)), context(alive=()), target_isr=())
    assert gone.last_known_elr == (1,)
    assert after(gone, context(alive=()), unclean_shutdown=frozenset((1,))).last_known_elr == (1,)
    back = after(gone, context(alive=(1,)))
    assert (back.leader, back.isr, back.last_known_elr) == (1, (1,), ())


def test_deviation_50_a_last_leader_from_before_is_not_kept() -> None:
    stale = partition(isr=(2,), leader=2, last_known_elr=(1,))
    assert after(stale, context(alive=()), target_isr=()).last_known_elr == (2,)
    assert record(stale, context(min_isr=1)) == change(last_known_elr=())


def test_rule_51_the_full_kip_records_who_was_eligible_and_lost_it() -> None:
    full = context(last_known_leader=False, alive=(3,))
    down = after(partition(isr=(1, 2)), full, target_isr=(2,), removed_broker=1)
    assert (down.isr, down.elr, down.last_known_elr) == ((2,), (1,), ())
    lost = after(down, full, unclean_shutdown=frozenset((1,)))
    assert (lost.isr, lost.elr, lost.last_known_elr) == ((2,), (), (1,))
    both = after(lost, full, target_isr=(), unclean_shutdown=frozenset((2,)))
    assert (both.isr, both.elr, both.last_known_elr, both.leader) == ((), (), (1, 2), -1)
    # Not cleared by a leader, but by an ISR at its minimum (KIP "other behaviors" 6a).
    some = after(replace(lost, replicas=(1, 2, 3, 4), directories=()), context(last_known_leader=False, min_isr=3))
    assert some.last_known_elr == (1,)
    assert after(lost, context(last_known_leader=False), target_isr=(2, 3)).last_known_elr == ()


def test_rule_52_a_clean_election_forgets_the_last_leader() -> None:
    before = partition(isr=(), leader=-1, elr=(2,), last_known_elr=(1,))
    assert after(before, context()).last_known_elr == ()


def test_rule_53_with_the_feature_off_any_change_empties_the_elr_and_leaves_the_last_leader() -> None:
    before = partition(isr=(1,), elr=(2, 3), last_known_elr=(2,))
    made = record(before, context(elr=False), target_isr=(1, 2))
    assert made == change(isr=(1, 2), eligible_leader_replicas=())


def test_rule_53_records_too_old_for_an_elr_do_not_carry_it() -> None:
    before = partition(isr=(1,), elr=(2, 3))
    assert record(before, context(elr=False, mv=MV_3_7), target_isr=(1, 2)) == change(isr=(1, 2))


def test_deviation_62_who_is_removed_is_not_eligible() -> None:
    moving = partition(isr=(1, 2), replicas=(3, 1, 2), removing=(1, 2), adding=(3,))
    made = after(moving, context(min_isr=1), target_isr=(1, 2, 3))
    assert (made.replicas, made.isr, made.elr, made.leader) == ((3,), (3,), (), 3)


def test_deviation_62_a_stale_elr_cannot_come_back_through_a_reassignment() -> None:
    """What Apache allows: 1 leaves the replicas as an ELR member, records are committed, and 1 is added again."""
    gone = partition(isr=(3,), leader=3, replicas=(3,), elr=(1, 2))
    again = after(gone, context(), target_replicas=(3, 1), target_adding=(1,))
    assert again.elr == ()


def test_deviation_62_a_last_leader_that_is_removed_cannot_come_back_either() -> None:
    """1 leads alone, is being added, and the reassignment is cancelled: its log is deleted."""
    moving = partition(isr=(1,), leader=1, replicas=(1, 3), removing=(3,), adding=(1,))
    cancelled = after(
        moving, context(alive=()), target_isr=(), target_replicas=(3,), target_removing=(), target_adding=()
    )
    assert (cancelled.leader, cancelled.last_known_elr) == (-1, ())
    left_over = partition(isr=(), leader=-1, replicas=(3,), last_known_elr=(1,))
    again = after(left_over, context(alive=()), target_replicas=(3, 1), target_adding=(1,))
    assert again.last_known_elr == ()


def test_rule_63_nobody_is_in_both() -> None:
    before = partition(isr=(1, 2), elr=(3,))
    for isr in ((1,), (1, 3), (2, 3), ()):
        made = after(before, context(min_isr=3), target_isr=isr)
        assert not set(made.isr) & set(made.elr)


def test_rule_64_another_order_of_the_elr_is_no_change() -> None:
    assert record(partition(isr=(1,), elr=(3, 2)), context()) is None


def test_deviation_s12_electing_the_last_needed_member_empties_the_elr() -> None:
    before = partition(isr=(), leader=-1, elr=(1, 2))
    made = after(before, context(min_isr=1))
    assert (made.isr, made.elr) == ((1,), ())


def test_deviation_s12_a_leader_is_in_the_isr() -> None:
    made = after(partition(), context(), target_isr=())
    assert made.leader in made.isr


# -- effective min ISR (3, deviation) ---------------------------------------------------------------------------------


def test_the_minimum_is_capped_by_the_partitions_own_replicas() -> None:
    assert after(partition(replicas=(1, 2), isr=(1, 2)), context(min_isr=5), target_isr=(1,)).elr == (2,)
    assert after(partition(replicas=(1, 2), isr=(1,), elr=(2,)), context(min_isr=5), target_isr=(1, 2)).elr == ()


# -- epochs: 65-69 ----------------------------------------------------------------------------------------------------


def test_rule_65_every_change_counts_once() -> None:
    assert merge(partition(), change()).partition_epoch == 10
    assert after(partition(), context(), target_isr=(1, 2)).partition_epoch == 10


def test_rule_66_every_write_of_the_leader_counts_also_of_none_or_of_the_same() -> None:
    assert merge(partition(), change(leader=2)).leader_epoch == 5
    assert merge(partition(), change(leader=1)).leader_epoch == 5
    assert merge(partition(), change(leader=-1)).leader_epoch == 5
    assert merge(partition(), change(isr=(1,))).leader_epoch == 4


def test_rule_67_dropping_a_replica_is_a_new_leader_epoch() -> None:
    made = record(partition(isr=(1, 2)), context(), target_replicas=(1, 2))
    assert made is not None
    assert made.leader == 1


@pytest.mark.parametrize(("mv", "leader"), [(MV_3_5, 1), (MV_3_6, -2)])
def test_rule_68_a_shrinking_isr_is_a_new_leader_epoch_before_3_6(mv: int, leader: int) -> None:
    made = record(partition(), context(elr=False, mv=mv), target_isr=(1, 2))
    assert made is not None
    assert made.leader == leader
    grown = record(partition(isr=(1, 2)), context(elr=False, mv=mv), target_isr=(1, 2, 3))
    assert grown == change(isr=(1, 2, 3))


def test_rule_69_other_changes_are_not() -> None:
    ctx = context()
    assert after(partition(), ctx, target_replicas=(3, 2, 1)).leader_epoch == 4
    assert after(partition(), ctx, target_replicas=(1, 2, 3, 4), target_adding=(4,)).leader_epoch == 4
    assert after(partition(isr=(1,), elr=(2,)), ctx, unclean_shutdown=frozenset((2,))).leader_epoch == 4
    assert after(partition(), ctx, target_directories={2: D2}).leader_epoch == 4


# -- reassignment within a change: 105 and the KIP's condition --------------------------------------------------------


def test_rule_105_completes_when_the_added_are_in_sync() -> None:
    moving = partition(isr=(1, 2), replicas=(4, 5, 1, 2), removing=(1, 2), adding=(4, 5))
    assert record(moving, context(), target_isr=(1, 2, 4)) == change(isr=(1, 2, 4))
    made = after(moving, context(), target_isr=(1, 2, 4, 5))
    assert (made.replicas, made.isr, made.leader, made.leader_epoch) == ((4, 5), (4, 5), 4, 5)
    assert (made.removing, made.adding) == ((), ())


@pytest.mark.parametrize("elr", [True, False])
def test_deviation_155_no_completion_below_min_isr(elr: bool) -> None:
    moving = partition(isr=(1, 2), replicas=(3, 2, 4, 1), removing=(1,), adding=(4,))
    made = after(moving, context(elr=elr, alive=(1, 4)), target_isr=(1, 4))
    assert made.reassigning is elr
    if not elr:
        assert made.isr == (4,)
    done = after(made, context(elr=elr), target_isr=(1, 3, 4)) if elr else made
    assert not done.reassigning


def test_a_pure_reorder_is_done_at_once() -> None:
    assert record(partition(), context(), target_replicas=(3, 2, 1)) == change(replicas=(3, 2, 1))


# -- directories ------------------------------------------------------------------------------------------------------


def test_directories_follow_their_replicas_and_new_ones_get_their_brokers_default() -> None:
    before = partition(directories=(D1, D2, D3))
    ctx = context(default_directory=lambda broker: UUID(int=5000 + broker))
    made = after(before, ctx, target_replicas=(4, 3, 1, 2), target_adding=(4,))
    assert made.directories == (UUID(int=5004), D3, D1, D2)


def test_directories_are_not_written_before_3_7() -> None:
    made = record(
        partition(directories=(D1, D2, D3)),
        context(elr=False, mv=MV_3_6),
        target_replicas=(4, 1, 2, 3),
        target_adding=(4,),
    )
    assert made == change(replicas=(4, 1, 2, 3), adding_replicas=(4,))


# -- malformed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{"target_replicas": ()}, {"target_replicas": (1, 1)}, {"target_isr": (1, 1)}])
def test_illegal_intents_raise(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="illegal"):
        record(partition(), context(), **fields)


MERGE_ERRORS: list[Callable[[], PartitionChangeRecord]] = [
    lambda: change(replicas=()),
    lambda: change(replicas=(1, 1, 2)),
    lambda: change(leader=-3),
    lambda: change(leader_recovery_state=2),
    lambda: change(directories=(D1,)),
]


@pytest.mark.parametrize("make", MERGE_ERRORS)
def test_illegal_records_do_not_merge(make: Callable[[], PartitionChangeRecord]) -> None:
    with pytest.raises(ValueError):
        merge(partition(), make())


def test_merge_keeps_known_directories_when_a_record_has_none() -> None:
    made = merge(partition(directories=(D1, D2, D3)), change(replicas=(3, 4)))
    assert made.directories == (D3, UUID(int=0))  # 4's is "migrating": nobody has said


def test_rule_53_without_elr_lost_members_are_forgotten_and_a_last_leader_is_left_behind() -> None:
    before = partition(isr=(1, 2), leader=-1, last_known_elr=(3,))
    off = context(elr=False, alive=())
    assert after(before, off, target_isr=(1,)).last_known_elr == (3,)
    assert after(before, replace(off, last_known_leader=False), target_isr=(1,)).last_known_elr == ()


def test_deviation_53_an_election_without_elr_forgets_who_was_lost_before() -> None:
    before = partition(isr=(), leader=-1, last_known_elr=(1, 2))
    made = record(before, context(elr=False, alive=(2,)), election=Election.UNCLEAN)
    assert made == change(isr=(2,), leader=2, last_known_elr=(), leader_recovery_state=1)
    clean = record(partition(isr=(1, 2), leader=-1, last_known_elr=(3,)), context(elr=False, alive=(2,)))
    assert clean == change(leader=2, last_known_elr=())
    led = partition(isr=(2,), leader=2, last_known_elr=(3,))
    assert after(led, context(elr=False, alive=()), target_isr=()).last_known_elr == ()


def test_deviation_53_without_elr_only_replicas_are_left_behind() -> None:
    """Dropped now and added again later, it would be elected as the last leader, with a log that was deleted."""
    before = partition(isr=(1, 2), leader=-1, last_known_elr=(3,))
    assert after(before, context(elr=False, alive=()), target_replicas=(1, 2)).last_known_elr == ()
