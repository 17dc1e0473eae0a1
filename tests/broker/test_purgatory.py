from __future__ import annotations

from tanist.broker.replication.purgatory import Purgatory
from tanist.sim.world.clock import SimClock
from tanist.sim.world.scheduler import Process, Scheduler


class Waiter:
    def __init__(self, log: list[str], name: str) -> None:
        self.done = False
        self._log = log
        self._name = name

    def expire(self) -> None:
        self.done = True
        self._log.append(self._name)


def world() -> tuple[Scheduler, Purgatory]:
    scheduler = Scheduler()
    return scheduler, Purgatory(SimClock(scheduler, Process("p")))


def test_waiters_expire_in_order_of_their_deadlines() -> None:
    scheduler, purgatory = world()
    log: list[str] = []
    purgatory.add(30, Waiter(log, "late"))
    purgatory.add(10, Waiter(log, "early"))
    scheduler.run_until(9_999)
    assert log == []
    scheduler.run_until(10_000)
    assert log == ["early"]
    scheduler.run_until(100_000)
    assert log == ["early", "late"]


def test_done_waiters_are_left_alone_and_swept() -> None:
    scheduler, purgatory = world()
    log: list[str] = []
    for number in range(10_000):
        waiter = Waiter(log, str(number))
        purgatory.add(1_000_000 + number, waiter)
        waiter.done = True
    assert len(purgatory._heap) <= Purgatory._SWEEP_SIZE + 1
    alive = Waiter(log, "alive")
    purgatory.add(5, alive)
    scheduler.run_until(10_000_000_000)
    assert log == ["alive"]


def test_a_waiter_may_add_another_while_it_expires() -> None:
    scheduler, purgatory = world()
    log: list[str] = []

    class Again(Waiter):
        def expire(self) -> None:
            super().expire()
            purgatory.add(20, Waiter(log, "second"))

    purgatory.add(10, Again(log, "first"))
    scheduler.run_until(1_000_000)
    assert log == ["first", "second"]
