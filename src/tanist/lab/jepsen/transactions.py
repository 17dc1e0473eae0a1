"""The transactions of the load: how they are drawn, and how each gets into the history.

Owns what the clients share. A transaction has a few steps, sends to partitions and polls in any order, as in Jepsen's
Kafka workload. Some are aborted on purpose, and some clients stop in the middle and come back as new ones under the
same transactional id. The history says `fail` and `aborted` only if the commit was never asked for, or the abort is
acknowledged.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tanist.lab.jepsen.plan import Plan, SharedHistory

TIMEOUT_MS = 10_000
"""After so long the coordinator aborts a transaction that its client has left."""
POLL_S = 0.1
BATCH_MAX = 200
_STEPS = (1, 5)
_SEND_SHARE = 0.6
_ABORT_SHARE = 0.1
_CRASH_SHARE = 0.01
POLL = -1
"""A step that is a poll; other steps are partitions."""

Records = Mapping[str, Sequence[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One transaction, before it begins."""

    steps: tuple[int, ...]
    """A partition to send to, or `POLL`."""
    aborts: bool
    crashes: bool
    """Its client stops before the end, and begins anew."""


def draw(rng: random.Random, partitions: int) -> Drawn:
    steps = tuple(
        rng.randrange(partitions) if rng.random() < _SEND_SHARE else POLL for _ in range(rng.randint(*_STEPS))
    )
    return Drawn(steps, rng.random() < _ABORT_SHARE, rng.random() < _CRASH_SHARE)


class Noted:
    """One transaction on its way into the history. It begins when this is made."""

    def __init__(self, plan: Plan, history: SharedHistory, drawn: Drawn, number: int) -> None:
        """`number` is of its first record: values are unique."""
        self._plan = plan
        self._history = history
        self._done: list[dict[str, Any]] = []
        self._ending_ns: int | None = None
        self.values = [f"{plan.name}/{number + at}" for at in range(sum(step != POLL for step in drawn.steps))]
        values = iter(self.values)
        ops = [
            {"f": "poll"}
            if step == POLL
            else {"f": "send", "partition": plan.partition_name(step), "value": next(values)}
            for step in drawn.steps
        ]
        self._sends = iter([op for op in ops if op["f"] == "send"])
        with history as lines:
            lines.invoke(plan.name, "txn", time.monotonic_ns(), ops=ops)

    @property
    def commit_requested(self) -> bool:
        return self._ending_ns is not None

    def sends(self) -> dict[str, Any]:
        """The next record is sent; its offset may be set when it is known."""
        op = dict(next(self._sends))
        self._done.append(op)
        return op

    def polled(self, records: Records, began_ns: int, *, rebalanced: bool = False) -> None:
        """A poll has given records. One that gave none is not noted: a client's library may just not have any yet."""
        if records:
            op: dict[str, Any] = {"f": "poll", "records": records, "invoked_ns": began_ns}
            self._done.append(op | {"time_ns": time.monotonic_ns()} | ({"rebalanced": True} if rebalanced else {}))

    def commits(self) -> None:
        """Its client asks for the commit now."""
        self._ending_ns = self._ending_ns or time.monotonic_ns()

    def committed(self) -> None:
        self._complete("ok")

    def aborted(self, error: str | None = None) -> None:
        """The abort is acknowledged, or the commit was never asked for."""
        self._complete("fail", aborted=True, error=error)

    def given_up(self, error: str | None = None) -> None:
        """Its client will not ask any more."""
        if self.commit_requested:
            self._complete("info", error=error)
        else:
            self.aborted(error)

    def _complete(self, outcome: str, **fields: Any) -> None:
        with self._history as lines:
            lines.complete(
                self._plan.name,
                "txn",
                outcome,
                time.monotonic_ns(),
                ending_ns=self._ending_ns,
                isolation="read_committed",
                ops=self._done,
                **fields,
            )


def assigned(plan: Plan, history: SharedHistory, positions: Mapping[int, int]) -> None:
    """The client's consumer is assigned all partitions, and goes on at these offsets."""
    named = {plan.partition_name(each): position for each, position in positions.items()}
    with history as lines:
        lines.complete(plan.name, "assign", "ok", time.monotonic_ns(), partitions=list(named), positions=named)


def crashed(plan: Plan, history: SharedHistory) -> None:
    """The client is gone. The next one under its name begins anew."""
    with history as lines:
        lines.complete(plan.name, "crash", "info", time.monotonic_ns())


class Pace:
    """When the next transaction is due: so many records a second."""

    def __init__(self, rate: float) -> None:
        self._every_s = 1.0 / rate
        self._due_s = time.monotonic()

    def wait_s(self) -> float:
        return max(0.0, self._due_s - time.monotonic())

    def takes(self, records: int) -> None:
        """After a pause it continues at its rate, and does not catch up."""
        self._due_s = max(self._due_s, time.monotonic() - 1.0) + records * self._every_s
