"""How many connections a broker's or a controller's listeners accept, and how fast (KIP-402, 612).

Owns the counts and the rates. The listener between brokers is protected, if there is another one: it may exceed the
limits of the broker, and a connection of another listener has to go for it. As Apache Kafka's `ConnectionQuotas`: a
connection that comes too early makes its listener rest, one that comes from an address too often is kept unheard until
it would have been right, and closed. Time is an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tanist.security.quotas import IDLE_MS, Rate, Windows

UNLIMITED: Final = 2**31 - 1
_ADDRESSES_MAX: Final = 10_000
"""Addresses whose rates are kept; of more, those that were not seen for longest are forgotten."""


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Of one listener."""

    connections: int = UNLIMITED
    creation_rate: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class Limits:
    """Of all listeners together, of each, and of addresses."""

    connections: int = UNLIMITED
    creation_rate: int = UNLIMITED
    listeners: Mapping[str, ListenerLimits] = field(default_factory=dict)
    per_host: int = UNLIMITED
    per_host_overrides: Mapping[str, int] = field(default_factory=dict)


class Outcome(Enum):
    """What is done with a connection that was accepted."""

    TAKEN = "taken"
    TOO_MANY = "too many"
    """From its address: it is closed at once. `closed` is not to be called for it."""
    TOO_FAST = "too fast"
    """From its address: it is closed after the time. Neither for it."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The verdict on one connection."""

    outcome: Outcome
    rest_ms: int = 0
    """So long its listener accepts no other, and nothing is read of this one."""
    close_after_ms: int = 0


class ConnectionLimits:
    """The listeners of one role of a node."""

    def __init__(self, listeners: Collection[str], protected: str | None, windows: Windows) -> None:
        """`protected`: the listener between brokers."""
        self._protected = protected if protected in listeners and len(listeners) > 1 else None
        self._windows = windows
        self.limits = Limits()
        """May be replaced at any time: what was counted goes on to count."""
        self.host_rates: Mapping[str | None, float] = {}
        """Connections a second from an address; None stands for all others."""
        self._counts = dict.fromkeys(listeners, 0)
        self._by_host: dict[str, int] = {}
        self._rate = Rate(windows)
        self._rates = {name: Rate(windows) for name in listeners}
        self._host_rates: dict[str, tuple[Rate, int]] = {}

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    @property
    def exceeded_by(self) -> int:
        """So many connections of listeners that are not protected have to go."""
        return max(0, self.count - self.limits.connections)

    def is_protected(self, listener: str) -> bool:
        return listener == self._protected

    def has_slot(self, listener: str) -> bool:
        """Whether the listener may accept another connection now, as far as their number goes."""
        if self._counts[listener] >= self._limits_of(listener).connections:
            return False
        return self.is_protected(listener) or self.count < self.limits.connections

    def accepted(self, listener: str, host: str, now_ms: int) -> Admission:
        """A connection from this address has come."""
        rest_ms = self._creation_rest_ms(listener, now_ms)
        close_after_ms = self._host_throttle_ms(host, now_ms)
        if close_after_ms:
            self._rates[listener].record(-1, now_ms)
            if not self.is_protected(listener):
                self._rate.record(-1, now_ms)
            return Admission(Outcome.TOO_FAST, rest_ms, close_after_ms)
        limits = self.limits
        present = self._by_host.get(host, 0)
        if present >= limits.per_host_overrides.get(host, limits.per_host):
            return Admission(Outcome.TOO_MANY, rest_ms)
        self._by_host[host] = present + 1
        self._counts[listener] += 1
        return Admission(Outcome.TAKEN, rest_ms)

    def closed(self, listener: str, host: str) -> None:
        """A connection that was taken has ended."""
        self._counts[listener] -= 1
        present = self._by_host[host] - 1
        if present:
            self._by_host[host] = present
        else:
            del self._by_host[host]

    def _limits_of(self, listener: str) -> ListenerLimits:
        return self.limits.listeners.get(listener, _NO_LIMITS)

    def _creation_rest_ms(self, listener: str, now_ms: int) -> int:
        rest_ms = self._recorded(self._rates[listener], self._limits_of(listener).creation_rate, now_ms)
        if not self.is_protected(listener):
            rest_ms = max(rest_ms, self._recorded(self._rate, self.limits.creation_rate, now_ms))
        return rest_ms

    def _host_throttle_ms(self, host: str, now_ms: int) -> int:
        bound = self.host_rates.get(host, self.host_rates.get(None, UNLIMITED))
        if bound >= UNLIMITED:
            return 0
        found = self._host_rates.pop(host, None)
        rate = Rate(self._windows) if found is None else found[0]
        self._host_rates[host] = rate, now_ms
        if found is None:
            self._forget_hosts(now_ms)
        throttle_ms = self._recorded(rate, bound, now_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def _forget_hosts(self, now_ms: int) -> None:
        rates = self._host_rates
        while rates:
            host, (_, used_ms) = next(iter(rates.items()))
            if now_ms - used_ms < IDLE_MS and len(rates) <= _ADDRESSES_MAX:
                return
            del rates[host]

    def _recorded(self, rate: Rate, bound: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        return min(rate.throttle_ms(bound, now_ms), self._windows.sample_ms)


_NO_LIMITS: Final = ListenerLimits()
