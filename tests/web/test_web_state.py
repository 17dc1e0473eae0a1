"""The form of a sample, and what follows from the positions of replicas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.web.partition_positions import Succession, positions
from tanist.web.state import IfDies, Stretch, danger_of, difference, plain


def replica(
    broker: int, end: int, *, synced: int = 0, epochs: tuple[tuple[int, int], ...] = ((0, 0),), **more: object
) -> ReplicaPositions:
    fields = {"role": "follower", "alive": True, "start": 0, "high_watermark": None} | more
    return ReplicaPositions(broker, end=end, synced=synced, epochs=epochs, **fields)  # type: ignore[arg-type]


def test_a_value_that_is_none_is_left_out() -> None:
    assert plain(Stretch(0, 5, 3, 1, 3)) == {"start": 0, "end": 5, "copies": 3, "synced": 1, "live": 3}
    shown = plain(replica(1, 5))
    assert shown["epochs"] == [[0, 0]]
    assert "high_watermark" not in shown


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2)),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2)),
)
def test_a_difference_makes_the_one_look_of_the_other(before: dict[str, int], after: dict[str, int]) -> None:
    change = difference(before, after, 1)
    made = before | dict(change.set)
    for key in change.gone:
        del made[key]
    assert made == after
    assert bool(change) == (before != after)


@pytest.mark.parametrize(
    ("leader", "isr", "recovering", "unclean", "danger"),
    [
        (-1, 0, False, -1, "offline"),
        (1, 1, True, 5, "recovering"),
        (1, 1, False, 5, "under-min-isr"),
        (1, 2, False, -1, "at-min-isr"),
        (1, 3, False, 5, "unclean"),
        (1, 3, False, 4, "healthy"),
    ],
)
def test_the_worst_that_can_be_said(leader: int, isr: int, recovering: bool, unclean: int, danger: str) -> None:
    found = danger_of(
        leader=leader,
        leader_epoch=5,
        isr=isr,
        replicas=3,
        min_isr=2,
        recovering=recovering,
        last_unclean_epoch=unclean,
    )
    assert found == danger
    four = danger_of(leader=1, leader_epoch=5, isr=3, replicas=4, min_isr=2, recovering=False, last_unclean_epoch=-1)
    assert four == "under-replicated"


def test_copies_are_counted_where_logs_agree() -> None:
    leader = replica(1, 120, synced=100, high_watermark=110, epochs=((3, 0), (4, 90)))
    follower = replica(2, 110, synced=0, epochs=((3, 0), (4, 90)))
    diverged = replica(3, 105, synced=105, epochs=((3, 0),), alive=False)
    heir = Succession(2, (2,), (), "broker 2 leads")
    nobody = Succession(-1, (), (2,), "no leader: ISR is empty")
    found = positions("t", 0, 1, [leader, follower, diverged], {1: heir, 2: nobody})
    assert found.acknowledged == 110
    assert found.stretches == (
        Stretch(0, 90, 3, 2, 2),
        Stretch(90, 100, 2, 1, 2),
        Stretch(100, 110, 2, 0, 2),
    )
    assert found.if_dies == (
        IfDies(1, 2, (2,), (), 0, 0, 0, 0, "broker 2 leads; nothing is lost"),
        IfDies(2, -1, (), (2,), 0, 0, 0, 0, "no leader: ISR is empty; nothing is lost"),
    )


def test_what_only_one_disk_has() -> None:
    leader = replica(1, 50, synced=20, high_watermark=50)
    behind = replica(2, 30, synced=30)
    found = positions("t", 0, 1, [leader, behind], {1: Succession(2, (2,), (), "")})
    death = found.if_dies[0]
    assert (death.only_here, death.destroyed, death.missing) == (20, 20, 20)
    assert death.text == "broker 2 leads; it lacks 20 acknowledged records"
    assert found.stretches[-1] == Stretch(30, 50, 1, 0, 1)


def test_what_is_left_on_dead_brokers_when_the_last_live_replica_dies() -> None:
    """Another disk has the records, and no process: they are not lost, and nobody can read them."""
    last = replica(1, 50, synced=50, high_watermark=50)
    dead = replica(2, 30, synced=30, alive=False)
    found = positions("t", 0, 1, [last, dead], {1: Succession(-1, (), (1, 2), "no leader: ISR is empty")})
    (death,) = found.if_dies
    assert (death.only_here, death.only_dead) == (20, 30)
    assert death.text == (
        "no leader: ISR is empty; 20 acknowledged records are only on broker 1; 30 acknowledged records are then on "
        "dead brokers only"
    )
    live = positions("t", 0, 1, [last, replica(2, 50)], {1: Succession(2, (2,), (), "")})
    assert (live.if_dies[0].only_dead, live.if_dies[0].text) == (0, "broker 2 leads; nothing is lost")


def test_without_a_leader_the_furthest_log_is_the_measure() -> None:
    one = replica(1, 80, high_watermark=70, epochs=((0, 0),), alive=False)
    two = replica(2, 60, high_watermark=60, epochs=((0, 0), (1, 50)))
    found = positions("t", 0, -1, [one, two], {2: Succession(-1, (), (), "no leader")})
    assert found.acknowledged == 70
    assert found.stretches == (Stretch(0, 50, 2, 0, 1), Stretch(50, 60, 1, 0, 1), Stretch(60, 70, 0, 0, 0))


def test_positions_that_nobody_knows_say_nothing() -> None:
    unknown = ReplicaPositions(1, "dead", False)
    found = positions("t", 0, 1, [unknown], {})
    assert (found.acknowledged, found.stretches, found.if_dies) == (None, (), ())
