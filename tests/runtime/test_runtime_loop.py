"""The loop's own promises: turns, hooks, and errors that do not stop it."""

from __future__ import annotations

from typing import Any


def test_an_error_in_a_callback_is_reported_and_the_rest_still_runs(runner: Any) -> None:
    loop = runner.loop
    ran: list[str] = []

    def fails() -> None:
        raise ValueError("no")

    loop.call_soon(fails)
    loop.call_soon(lambda: ran.append("soon"))
    loop.call_at(loop.now_ms(), fails)
    loop.call_at(loop.now_ms(), lambda: ran.append("timer"))
    loop.post(fails)
    loop.post_from_thread(fails)
    runner.until(lambda: len(ran) == 2 and len(runner.failures) == 4)
    assert sorted(where for where, _ in runner.failures) == ["callback", "callback", "callback", "timer"]


def test_hooks_run_after_the_callbacks_of_their_turn(runner: Any) -> None:
    loop = runner.loop
    ran: list[str] = []
    loop.add_hook(lambda: ran.append("hook"))
    loop.call_soon(lambda: (ran.append("one"), loop.call_soon(lambda: ran.append("asked by one"))))
    runner.until(lambda: "hook" in ran)
    assert ran == ["one", "asked by one", "hook"]


def test_a_hook_can_be_woken_without_a_callback(runner: Any) -> None:
    ran: list[str] = []
    runner.loop.add_hook(lambda: ran.append("hook"))
    runner.loop.wake_hooks()
    runner.loop.wake_hooks()
    runner.until(lambda: bool(ran))
    assert ran == ["hook"]


def test_only_one_event_loop_timer_is_armed_however_many_timers_there_are(runner: Any) -> None:
    loop = runner.loop
    armed: list[float] = []
    call_later = loop.aio.call_later

    class Spy:
        def __getattr__(self, name: str) -> Any:
            return getattr(loop_aio, name)

        def call_later(self, delay: float, *rest: Any) -> Any:
            armed.append(delay)
            return call_later(delay, *rest)

    loop_aio = loop.aio
    loop.aio = Spy()
    now_ms = loop.now_ms()
    ran: list[int] = []
    for index in range(1000):
        loop.call_at(now_ms + 5 + index // 100, lambda index=index: ran.append(index))
    assert len(armed) == 1
    runner.until(lambda: len(ran) == 1000)
    assert ran == list(range(1000))
    assert len(armed) < 60


def test_cancelled_timers_do_not_pile_up(runner: Any) -> None:
    loop = runner.loop
    far_ms = loop.now_ms() + 3_600_000
    for _ in range(50_000):
        loop.call_at(far_ms, lambda: None).cancel()
    assert len(loop._timers) < 3_000
