"""Faults by request, as a test writes them: `inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS").once()`.

The words and their meaning are those of Apache Kafka's own test proxy (KAFKA-21074).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.cluster.waiting import POLL_EVERY_S
from tanist.runtime.faults.request_rules import RequestFault
from tanist.testing.errors import NotInTime
from tanist.text import counted


class InjectedFault:
    """A fault by request that is in force, until `remove` or `heal`."""

    def __init__(self, orders: FaultRequests, rule: RequestFault, ended: Callable[[str], None]) -> None:
        """`ended` gets what it has done when it is removed."""
        self._orders = orders
        self._rule = rule
        self._ended = ended

    @property
    def calls(self) -> int:
        """How many requests it was about, on all nodes."""
        return self._orders.counts(self._rule.rule_id)[0]

    @property
    def hits(self) -> int:
        """To how many of them it has happened."""
        return self._orders.counts(self._rule.rule_id)[1]

    def wait_for_hits(self, number: int = 1, timeout: float = 30.0) -> None:
        """Wait until it has happened so often. `NotInTime`."""
        deadline = time.monotonic() + timeout
        while self.hits < number:
            if time.monotonic() >= deadline:
                raise NotInTime(
                    f"not within {timeout:g} s: {self} has {self._orders.hits_of(self._rule)}, "
                    f"not {counted(number, 'hit')}"
                )
            time.sleep(POLL_EVERY_S)

    def remove(self) -> None:
        """End it. The counts stay readable."""
        if self._orders.remove(self._rule.rule_id):
            self._ended(f"{self} ({self._orders.hits_of(self._rule)})")

    def __enter__(self) -> InjectedFault:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __str__(self) -> str:
        return str(self._rule)


class RequestFaultBuilder:
    """A fault by request without its trigger: one of these calls sets it."""

    def __init__(self, rule: RequestFault, inject: Callable[[RequestFault], InjectedFault]) -> None:
        self._rule = rule
        self._inject = inject

    def of_client(self, client_id: str) -> RequestFaultBuilder:
        """Only for clients whose id has this in it."""
        return RequestFaultBuilder(replace(self._rule, client_id=client_id), self._inject)

    def including_nodes(self) -> RequestFaultBuilder:
        """Also for requests between nodes, and of tanist's own tools."""
        return RequestFaultBuilder(replace(self._rule, nodes=True), self._inject)

    def once(self) -> InjectedFault:
        """At the next call, whichever broker it comes to."""
        return self._inject(self._rule.once())

    def on_call(self, number: int) -> InjectedFault:
        """At this call from now on, counted from 1."""
        return self._inject(self._rule.on_call(number))

    def times(self, number: int) -> InjectedFault:
        """At each of the next so many calls."""
        return self._inject(self._rule.times(number))

    def every_time(self) -> InjectedFault:
        """At each call."""
        return self._inject(self._rule.every_time())

    def with_probability(self, probability: float) -> InjectedFault:
        """At each call with this probability."""
        return self._inject(self._rule.with_probability(probability))
