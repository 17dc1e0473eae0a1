"""What each choice of a leader loses, from the positions of the replicas."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tanist.runtime.client.recovery_plan import Choice, Run, holder_of, plan, runs_of, united, without
from tanist.runtime.client.replica_positions import ReplicaPositions


def log(broker: int, end: int | None, *epochs: tuple[int, int], **more: int) -> ReplicaPositions:
    return ReplicaPositions(broker, "offline", True, end=end, epochs=epochs, **more)  # type: ignore[arg-type]


def choices(
    *replicas: ReplicaPositions, electable: tuple[int, ...] = (1, 2, 3), salvage: tuple[Run, ...] = ()
) -> dict[int, Choice]:
    return {each.broker: each for each in plan(replicas, electable, salvage).choices}


def test_the_last_replica_standing_that_lost_its_page_cache() -> None:
    """2 has 50 records that 3, who led last, has lost; 1 left before them and is not there."""
    found = plan(
        [
            log(1, 100, (0, 0), high_watermark=100),
            log(2, 150, (0, 0), (1, 100), high_watermark=140),
            log(3, 100, (0, 0)),
        ],
        electable=[2, 3],
    )
    assert [(each.broker, each.electable, each.lost, each.committed) for each in found.choices] == [
        (1, False, (Run(1, 100, 150),), 40),
        (2, True, (), 0),
        (3, True, (Run(1, 100, 150),), 40),
    ]
    assert found.best is not None
    assert (found.best.broker, found.unknown) == (2, ())


def test_equal_offsets_of_other_epochs_are_other_records() -> None:
    """1 led epoch 1 and wrote in vain; 2 led epoch 2 from the same offset on. Each loses what the other wrote."""
    found = choices(log(1, 15, (0, 0), (1, 10)), log(2, 12, (0, 0), (2, 10)))
    assert found[1].lost == (Run(2, 10, 12),)
    assert found[2].lost == (Run(1, 10, 15),)


def test_a_longer_log_of_an_earlier_epoch_is_no_better() -> None:
    best = plan([log(1, 15, (0, 0), (1, 10)), log(2, 12, (0, 0), (2, 10), high_watermark=12)], [1, 2]).best
    assert best is not None
    assert best.broker == 2  # what it has beyond 10 was committed; of 1's records nobody knows


def test_of_equal_losses_the_latest_epoch_then_the_longest_log_then_the_first() -> None:
    assert [
        each.broker for each in (plan([log(1, 11, (0, 0), (1, 10)), log(2, 11, (0, 0), (2, 10))], [1, 2]).best,) if each
    ] == [2]
    assert [each.broker for each in (plan([log(2, 11, (0, 0)), log(1, 11, (0, 0))], [1, 2]).best,) if each] == [2]


def test_who_cannot_lead_is_not_the_best() -> None:
    found = plan([log(1, 20, (0, 0)), log(2, 10, (0, 0))], [2])
    assert found.best is not None
    assert (found.best.broker, found.best.lost_count) == (2, 10)
    assert plan([log(1, 20, (0, 0))], []).best is None


def test_records_of_several_replicas_are_counted_once() -> None:
    found = choices(log(1, 30, (0, 0)), log(2, 25, (0, 0)), log(3, 10, (0, 0)))
    assert found[3].lost == (Run(0, 10, 30),)
    assert found[2].lost == (Run(0, 25, 30),)


def test_what_stands_before_the_log_start_is_counted_apart() -> None:
    found = choices(log(1, 30, (0, 0), start=0), log(2, 40, (0, 20), start=20))
    assert (found[2].lost, found[2].older) == ((), 20)
    assert (found[1].lost, found[1].older) == ((Run(0, 30, 40),), 0)


def test_an_empty_log_loses_everything() -> None:
    found = choices(log(1, 0), log(2, 5, (3, 0), high_watermark=2))
    assert (found[1].last_epoch, found[1].lost, found[1].committed) == (-1, (Run(3, 0, 5),), 2)


def test_a_replica_of_which_nothing_is_known_is_named_and_no_choice() -> None:
    found = plan([log(1, None), log(2, 5, (0, 0))], [1, 2])
    assert found.unknown == (1,)
    assert [each.broker for each in found.choices] == [2]


def test_the_salvage_counts_what_is_safe_and_what_only_it_has() -> None:
    found = choices(
        log(1, 20, (0, 0)), log(2, 10, (0, 0)), salvage=(Run(0, 15, 20), Run(0, 18, 25), Run(1, 9, 12), Run(0, 2, 4))
    )
    assert (found[2].lost_count, found[2].in_salvage) == (10, 5)
    assert found[2].salvage_only == (Run(0, 20, 25), Run(1, 9, 12))
    assert (found[1].lost_count, found[1].in_salvage, found[1].salvage_only) == (0, 0, found[2].salvage_only)


def test_records_from_before_there_were_epochs() -> None:
    assert runs_of(log(1, 10, (4, 6))) == (Run(-1, 0, 6), Run(4, 6, 10))
    assert runs_of(log(1, 10, (4, 6), start=8)) == (Run(4, 8, 10),)
    assert runs_of(log(1, 10, (4, 6), (5, 10))) == (Run(-1, 0, 6), Run(4, 6, 10))


def test_who_has_a_record() -> None:
    one, two = log(1, 15, (0, 0), (1, 10)), log(2, 12, (0, 0), (2, 10))
    assert holder_of([one, two], 1, 12) is one
    assert holder_of([one, two], 2, 11) is two
    assert holder_of([one, two], 2, 12) is None


runs = st.lists(
    st.builds(
        lambda epoch, start, length: Run(epoch, start, start + length),
        st.integers(0, 2),
        st.integers(0, 12),
        st.integers(0, 6),
    ),
    max_size=6,
)


def records(found: tuple[Run, ...] | list[Run]) -> set[tuple[int, int]]:
    return {(run.epoch, offset) for run in found for offset in range(run.start, run.end)}


@given(runs, runs)
def test_runs_are_sets_of_records(one: list[Run], two: list[Run]) -> None:
    assert records(united(one)) == records(one)
    assert records(without(one, two)) == records(one) - records(two)
    for found in (united(one), without(one, two)):
        assert sum(run.end - run.start for run in found) == len(records(found))
