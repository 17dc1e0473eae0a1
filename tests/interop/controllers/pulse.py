"""The heartbeats between the steps: who is not to be fenced must be heard of, and silence must outlast a session.

Owns the time of a sequence, which is the only thing here that a seed does not decide: if the machine was so busy that a
session may have run out unasked, the sequence is `Disturbed` and says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from tests.interop.controllers.side import Side
from tests.interop.controllers.steps import Heartbeat, Step
from tests.interop.waiting import wait_for

SESSION_MS = 1_000
_BEAT_AFTER_S = 0.3
_TOO_LATE_S = 0.7
_EXPIRED_S = 1.0 + 1.0 / 8 + 0.1
"""A session, Apache's interval between two looks for expired ones, and something."""
_PATIENCE_S = 10.0


class Disturbed(Exception):
    """A broker was not heard of for so long that it may have been fenced for it."""


class Pulse:
    def __init__(self, sides: Collection[Side], brokers: Collection[int]) -> None:
        self._sides = sides
        self._brokers = brokers
        self._heard: dict[int, float] = {}
        """When a broker was last heard of, at the latest."""

    def heard(self, step: Step) -> None:
        """Before a step that is a heartbeat."""
        if isinstance(step, Heartbeat) and not step.stale:
            self._heard[step.broker_id] = time.monotonic()

    def check(self) -> None:
        self._check_all_but(None)

    def _check_all_but(self, silent: int | None) -> None:
        for broker_id in self._beating():
            if broker_id != silent and self._silent_s(broker_id) > _TOO_LATE_S:
                raise Disturbed(f"broker {broker_id} was silent for {self._silent_s(broker_id):.1f} s")

    def keep_alive(self) -> None:
        """Heartbeats of all who are due one."""
        self.check()
        if any(self._silent_s(broker_id) > _BEAT_AFTER_S for broker_id in self._beating()):
            self._beat()

    def silence(self, broker_id: int) -> None:
        """Nothing is heard of this broker until its session is over, on both sides."""

        def over() -> bool:
            self._check_all_but(broker_id)
            self._beat(without=broker_id)
            for side in self._sides:
                side.catch_up()
            fenced = all(self._is_fenced(side, broker_id) for side in self._sides)
            return fenced and self._silent_s(broker_id) > _EXPIRED_S

        wait_for(over, f"the session of broker {broker_id} is over", timeout_s=_PATIENCE_S, poll_s=0.1)

    def _beat(self, without: int | None = None) -> None:
        for broker_id in self._beating():
            if broker_id == without:
                continue
            step = Heartbeat(broker_id, want_shut_down=self._is_shutting_down(broker_id))
            self.heard(step)
            for side in self._sides:
                step.act(side)

    def _silent_s(self, broker_id: int) -> float:
        heard = self._heard.get(broker_id)
        return time.monotonic() - heard if heard is not None else _EXPIRED_S + 1

    def _beating(self) -> list[int]:
        return [
            broker_id
            for broker_id in self._brokers
            if broker_id in self._heard and not any(self._is_fenced(side, broker_id) for side in self._sides)
        ]

    @staticmethod
    def _is_fenced(side: Side, broker_id: int) -> bool:
        broker = side.image.brokers.get(broker_id)
        return broker is None or broker.fenced

    def _is_shutting_down(self, broker_id: int) -> bool:
        return any(
            broker.in_controlled_shutdown
            for side in self._sides
            if (broker := side.image.brokers.get(broker_id)) is not None
        )
