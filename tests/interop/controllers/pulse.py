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
"""On a machine that has other work, take more: `--session-ms`."""
_BEAT_AFTER, _TOO_LATE = 0.3, 0.7
"""In sessions."""
_EXPIRED = 1 + 1 / 8
"""A session, and Apache's interval between two looks for expired ones."""


class Disturbed(Exception):
    """A broker was not heard of for so long that it may have been fenced for it."""


class Pulse:
    def __init__(self, sides: Collection[Side], brokers: Collection[int], session_ms: int = SESSION_MS) -> None:
        self._sides = sides
        self._brokers = brokers
        self._session_s = session_ms / 1000
        self._alive: set[int] = set()
        """Those that were not fenced when that was looked at last: they must not have been silent since."""
        self._heard: dict[int, float] = {}
        """When a broker was last heard of, at the latest."""

    def heard(self, step: Step) -> None:
        """Before a step that is a heartbeat."""
        if isinstance(step, Heartbeat) and not step.stale:
            self._heard[step.broker_id] = time.monotonic()
            self._alive.add(step.broker_id)

    def check(self) -> None:
        self._check_all_but(None)

    def _check_all_but(self, silent: int | None) -> None:
        beating = self._beating()
        # Those too that are fenced by now: it may be for their silence, on one side and not on the other.
        for broker_id in self._alive.union(beating):
            if broker_id != silent and self._silent_s(broker_id) > _TOO_LATE * self._session_s:
                raise Disturbed(f"broker {broker_id} was silent for {self._silent_s(broker_id):.1f} s")
        self._alive.intersection_update(beating)

    def keep_alive(self) -> None:
        """Heartbeats of all who are due one."""
        self.check()
        if any(self._silent_s(broker_id) > _BEAT_AFTER * self._session_s for broker_id in self._beating()):
            self._beat()

    def silence(self, broker_id: int) -> None:
        """Nothing is heard of this broker until its session is over, on both sides."""

        def over() -> bool:
            self._check_all_but(broker_id)
            self._beat(without=broker_id)
            for side in self._sides:
                side.catch_up()
            fenced = all(self._is_fenced(side, broker_id) for side in self._sides)
            return fenced and self._silent_s(broker_id) > self._expired_s

        self._alive.discard(broker_id)
        wait_for(over, f"the session of broker {broker_id} is over", timeout_s=10 * self._session_s, poll_s=0.1)

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
        return time.monotonic() - heard if heard is not None else self._expired_s + 1

    @property
    def _expired_s(self) -> float:
        return _EXPIRED * self._session_s + 0.1

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
