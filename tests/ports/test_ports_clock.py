"""What `Clock` promises, by any that implements it."""

from __future__ import annotations

from typing import Any

from tanist.ports import Timer


def test_now_does_not_go_back_and_timers_run_when_due(world: Any) -> None:
    clock = world.clock
    start_ms = clock.now_ms()
    ran_ms: list[int] = []
    clock.call_at(start_ms + 15, lambda: ran_ms.append(clock.now_ms()))
    world.run_until(lambda: bool(ran_ms), "the timer runs")
    assert ran_ms[0] >= start_ms + 15
    assert clock.now_ms() >= ran_ms[0]


def test_timers_run_in_order_of_time_then_of_the_call(world: Any) -> None:
    clock = world.clock
    now_ms = clock.now_ms()
    ran: list[str] = []
    for name, after_ms in [("c", 8), ("a", 3), ("d", 8), ("b", 3), ("past", -5), ("e", 20)]:
        clock.call_at(now_ms + after_ms, lambda name=name: ran.append(name))
    world.run_until(lambda: len(ran) == 6, "six timers")
    assert ran == ["past", "a", "b", "c", "d", "e"]


def test_a_cancelled_timer_never_runs_and_may_be_cancelled_again(world: Any) -> None:
    clock = world.clock
    ran: list[str] = []
    now_ms = clock.now_ms()
    cancelled = clock.call_at(now_ms + 2, lambda: ran.append("cancelled"))
    clock.call_at(now_ms + 5, lambda: ran.append("kept"))
    cancelled.cancel()
    cancelled.cancel()
    world.run_until(lambda: bool(ran), "the other timer")
    assert ran == ["kept"]
    cancelled.cancel()


def test_a_timer_can_cancel_another_that_is_due_with_it(world: Any) -> None:
    clock = world.clock
    ran: list[str] = []
    now_ms = clock.now_ms()
    second: Timer
    clock.call_at(now_ms, lambda: (ran.append("first"), second.cancel()))
    second = clock.call_at(now_ms, lambda: ran.append("second"))
    clock.call_at(now_ms + 3, lambda: ran.append("last"))
    world.run_until(lambda: "last" in ran, "the last timer")
    assert ran == ["first", "last"]


def test_many_cancelled_timers_do_not_hold_back_the_rest(world: Any) -> None:
    clock = world.clock
    now_ms = clock.now_ms()
    ran: list[int] = []
    timers = [clock.call_at(now_ms + 1 + index % 7, lambda index=index: ran.append(index)) for index in range(5000)]
    for index, timer in enumerate(timers):
        if index % 10:
            timer.cancel()
    world.run_until(lambda: len(ran) == 500, "what was not cancelled")
    assert ran == sorted(range(0, 5000, 10), key=lambda index: (index % 7, index))


def test_callbacks_run_after_the_call_that_asked_in_order(world: Any) -> None:
    clock = world.clock
    ran: list[str] = []

    def burst() -> None:
        clock.call_soon(lambda: ran.append("one"))
        clock.call_soon(lambda: (ran.append("two"), clock.call_soon(lambda: ran.append("asked by two"))))
        clock.call_soon(lambda: ran.append("three"))
        ran.append("burst")

    clock.call_at(clock.now_ms(), burst)
    world.run_until(lambda: len(ran) == 5, "all callbacks")
    assert ran == ["burst", "one", "two", "three", "asked by two"]


def test_random_is_uniform_enough_and_in_range(world: Any) -> None:
    random = world.random
    assert {random.below(1) for _ in range(5)} == {0}
    seen = [random.below(5) for _ in range(500)]
    assert set(seen) == {0, 1, 2, 3, 4}
    assert max(seen.count(value) for value in range(5)) < 200
    assert len(random.bytes(16)) == 16
    assert random.bytes(16) != random.bytes(16)
