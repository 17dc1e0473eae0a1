"""Order of events, turns, and what dies or freezes with a process."""

from __future__ import annotations

import random

from tanist.ports import Timer
from tanist.sim.world.clock import SimClock, stream
from tanist.sim.world.scheduler import CrashPoint, Event, Process, Scheduler


def test_events_run_in_order_of_time_then_of_the_asking() -> None:
    scheduler = Scheduler()
    ran: list[tuple[int, int]] = []
    rng = random.Random(1)
    asked = [(rng.randrange(50), number) for number in range(500)]
    for when_us, number in asked:
        scheduler.at(when_us, lambda pair=(when_us, number): ran.append(pair))  # type: ignore[misc]
    scheduler.run_until(30)
    assert scheduler.now_us == 30
    scheduler.run_until(100)
    assert ran == sorted(asked)
    assert scheduler.events == 500


def test_an_instant_that_has_passed_means_now() -> None:
    scheduler = Scheduler()
    scheduler.run_until(100)
    ran: list[int] = []
    scheduler.at(5, lambda: ran.append(scheduler.now_us))
    scheduler.run_until(100)
    assert ran == [100]


def test_cancelled_events_do_not_pile_up() -> None:
    scheduler = Scheduler()
    ran: list[int] = []
    kept: list[Event] = []
    for number in range(20_000):
        event = scheduler.at(1_000_000 + number, lambda number=number: ran.append(number))  # type: ignore[misc]
        if number % 100:
            event.cancel()
            event.cancel()
        else:
            kept.append(event)
    assert len(scheduler._heap) < 4_000
    scheduler.run_until(2_000_000)
    assert ran == list(range(0, 20_000, 100))
    kept[0].cancel()
    assert scheduler.cancelled == 0, "it had run"


def test_a_turn_ends_when_all_that_it_wanted_soon_is_done() -> None:
    scheduler = Scheduler()
    process = Process("p")
    ran: list[str] = []
    scheduler.after_turn = lambda who: ran.append(f"after {who.name}")

    def turn() -> None:
        ran.append("turn")
        process.soon.append(lambda: process.soon.append(lambda: ran.append("sooner")))
        process.soon.append(lambda: ran.append("soon"))

    scheduler.after(0, turn, process)
    scheduler.run_until(1)
    assert ran == ["turn", "soon", "sooner", "after p"]


def test_nothing_happens_to_the_dead() -> None:
    scheduler = Scheduler()
    process = Process("p")
    ran: list[str] = []
    scheduler.after(5, lambda: ran.append("late"), process)
    scheduler.after(1, process.end, process)
    scheduler.after_turn = lambda who: ran.append("after")
    scheduler.run_until(10)
    assert ran == []


def test_a_timer_of_the_frozen_that_was_due_can_be_called_off_when_they_go_on() -> None:
    """As with a real clock: the first thing that it does may be to cancel the second."""
    scheduler, process = Scheduler(), Process("node")
    clock, happened = SimClock(scheduler, process), list[str]()
    second: list[Timer] = []

    def first() -> None:
        happened.append("first")
        second[0].cancel()

    clock.call_at(1, first)
    second.append(clock.call_at(2, lambda: happened.append("second")))
    process.frozen = True
    scheduler.run_until(5_000)
    scheduler.thaw(process)
    scheduler.run_until(6_000)
    assert happened == ["first"]


def test_what_comes_up_for_the_frozen_happens_when_they_go_on() -> None:
    scheduler = Scheduler()
    process = Process("p")
    ran: list[tuple[str, int]] = []
    process.frozen = True
    for name in ("a", "b"):
        scheduler.after(3, lambda name=name: ran.append((name, scheduler.now_us)), process)  # type: ignore[misc]
    scheduler.after(5, lambda: ran.append(("world", scheduler.now_us)))
    scheduler.run_until(10)
    assert ran == [("world", 5)]
    scheduler.thaw(process)
    scheduler.run_until(20)
    assert ran[1:] == [("a", 10), ("b", 10)]


def test_a_crash_point_ends_the_turn_and_the_process() -> None:
    scheduler = Scheduler()
    ran: list[str] = []
    process = Process("p", lambda: ran.append("crashed"))
    scheduler.after_turn = lambda who: ran.append("after")

    def turn() -> None:
        process.soon.append(lambda: ran.append("soon"))
        process.fuse = 1
        process.burn()
        try:
            process.burn()
        except Exception:  # what a node might catch
            ran.append("caught")
        ran.append("survived")

    scheduler.after(0, turn, process)
    scheduler.run_until(1)
    assert ran == ["crashed"]
    assert not process.alive
    assert not issubclass(CrashPoint, Exception)


def test_nobody_dies_of_being_looked_at() -> None:
    scheduler = Scheduler()
    process = Process("p")
    scheduler.after_turn = lambda seen: seen.burn()
    process.fuse = 1
    scheduler.after(0, process.burn, process)
    scheduler.run_until(1)
    assert process.alive
    assert process.fuse == 0


def test_streams_of_rng_are_apart_and_do_not_depend_on_hashes() -> None:
    assert stream(7, "faults").randrange(1 << 30) == stream(7, "faults").randrange(1 << 30) == 144887225
    assert stream(7, "faults").random() != stream(7, "network").random() != stream(8, "network").random()
