"""Exceptions as a fault: where they are planted, and that a run goes on after them."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

from tanist.lab.simulation.running import Terms
from tanist.sim.faults.schedule import Fault
from tanist.sim.planted import PLACES, Plant, PlantedError, is_planted
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.drawing import Restriction, config_of, faults_of
from tanist.sim.world.scheduler import Process, Scheduler


@pytest.mark.parametrize("place", PLACES)
def test_the_functions_of_a_place_are_there(place: str) -> None:
    for module, names in PLACES[place].items():
        for name in names:
            *owner, last = name.split(".")
            found = importlib.import_module(module)
            function = vars(getattr(found, owner[0]) if owner else found)[last]
            code = getattr(function, "__func__", function).__code__
            assert code.co_qualname == name


def detail_of(place: str, calls: int, *, after: bool) -> float:
    """The detail of a fault that is planted in the n-th call; `after` it or before."""
    return (list(PLACES).index(place) + (calls - 1 + (0.3 if after else 0.7)) / 12) / len(PLACES)


@pytest.mark.parametrize("after", [False, True])
def test_it_is_raised_in_the_nth_call_and_no_more(after: bool) -> None:
    from tanist.log.epochs import LeaderEpochCache

    done: list[int] = []

    class Counted(LeaderEpochCache):
        def truncate_from_start(self, start_offset: int) -> bool:
            done.append(start_offset)
            return False

    def call() -> None:
        cache = Counted()
        for number in range(5):
            cache.truncate_from_start(number)
            cache.truncate_from_end(number)

    plant = Plant(detail_of("truncation", 3, after=after))
    with pytest.raises(PlantedError, match=f"planted {'after' if after else 'before'} LeaderEpochCache.truncate_from_"):
        plant.watch(call)
    assert plant.raised
    assert done == [0, 1, 2]
    assert sys.gettrace() is None or "planted" not in repr(sys.gettrace())
    plant.watch(call)
    assert done == [0, 1, 2, 0, 1, 2, 3, 4]


def test_what_is_raised_because_of_it_is_planted_too() -> None:
    torn = OSError("torn")
    torn.__cause__ = PlantedError()
    assert is_planted(torn)
    assert not is_planted(OSError("torn"))


def test_an_exception_that_comes_through_to_the_loop_is_the_processs_own_business() -> None:
    met: list[Exception] = []
    ended: list[Process] = []
    scheduler = Scheduler()
    scheduler.after_turn = ended.append
    process = Process("node", failed=met.append)

    def raises() -> None:
        process.soon.append(lambda: ended.clear())
        raise PlantedError

    scheduler.dispatch(process, raises)
    assert [type(error) for error in met] == [PlantedError]
    assert ended == []
    with pytest.raises(PlantedError):
        scheduler.dispatch(Process("client"), raises)


@pytest.mark.parametrize("place", PLACES)
def test_a_run_with_exceptions_in_one_place_ends_whole(place: str) -> None:
    """Three nodes in turn, before and after the first calls."""
    config = config_of(1)
    hosts = list(config.roles)
    faults = [
        Fault(
            300_000 + 900_000 * n,
            "raise",
            hosts[n % len(hosts)],
            hosts[(n + 1) % len(hosts)],
            400_000,
            detail_of(place, 1 + n % 2, after=n % 3 > 0),
        )
        for n in range(6)
    ]
    outcome = ChaosRun(1, config, faults=faults).run()
    assert outcome.violation is None
    assert outcome.counts["fault: raise"] > 0


def test_a_share_of_the_seeds_draws_them() -> None:
    drawn = [seed for seed in range(40) if any(f.kind == "raise" for f in faults_of(seed, config_of(seed)))]
    assert 2 <= len(drawn) <= 20


def test_the_terms_of_seeds_can_ask_for_them() -> None:
    terms = Terms.of(exceptions=True)
    for seed in range(8):
        config, drawn = terms.config(seed), config_of(seed)
        assert any(config.raise_pause_ms)
        assert replace(config, raise_pause_ms=drawn.raise_pause_ms) == drawn
        assert config == drawn or not any(drawn.raise_pause_ms)
    with pytest.raises(ValueError, match="of the kind raise"):
        Terms.of(exceptions=True, restriction=Restriction(frozenset(("crash",))))


@pytest.mark.parametrize("reported", [False, True])
def test_a_process_that_ends_of_another_reason_than_it_met_hides_it(reported: bool) -> None:
    from tanist.log.epochs import LeaderEpochCache

    plant = Plant(detail_of("truncation", 1, after=False))

    def turn() -> None:
        with suppress(PlantedError):
            LeaderEpochCache().truncate_from_end(1)
        plant.reported = reported
        plant.gave_up()

    plant.watch(turn)
    assert plant.hidden is not reported
    plant.hidden = False
    plant.watch(plant.gave_up)
    assert not plant.hidden  # raised in another turn: it may be reported yet
