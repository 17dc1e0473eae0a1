"""Who may connect: the limits of connections, applied to the listeners of one role of a node (KIP-402, 612).

Owns the listeners' rests. A listener that may accept nobody for now is paused, and who connects waits in the system's
backlog. `security.connection_limits` decides; this closes, holds and pauses. Must not know what a connection is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from tanist.broker.context import NodeContext
from tanist.broker.throttled import Throttled
from tanist.controller.image.client_quotas import IP, ClientQuotas
from tanist.controller.security.client_quotas import CONNECTION_CREATION_RATE
from tanist.events.process import ConnectionRefused, ConnectionsExhausted
from tanist.ports import Connection, Listener
from tanist.security.connection_limits import ConnectionLimits, Limits, Outcome
from tanist.security.quotas import Windows
from tanist.security.session import Session, host_name

_EVENT_INTERVAL_MS: Final = 1_000
_WORDS: Final = {
    Outcome.TOO_MANY: "it has max.connections.per.ip",
    Outcome.TOO_FAST: "it exceeds its quota, connection_creation_rate",
}


class Admitted(Protocol):
    """A connection that was taken (`client_connection.ClientConnection`)."""

    active: bool
    idle_since_ms: int
    closed: bool
    session: Session

    def close(self) -> None: ...


class Refused:
    """The handler of a connection that was not taken: what it sends is not heard."""

    __slots__ = ("_on_close",)

    def __init__(self, on_close: Callable[[Refused], None]) -> None:
        self._on_close = on_close

    def on_open(self, connection: Connection) -> None:
        """Accepted connections are open from the start."""

    def on_frame(self, frame: memoryview) -> None:
        """It may have been under way."""

    def on_close(self, reason: str) -> None:
        self._on_close(self)


class Admission:
    """All listeners of one role: they share the limits."""

    def __init__(
        self,
        context: NodeContext,
        names: Sequence[str],
        protected: str | None,
        windows: Windows,
        opened: Iterable[Admitted],
    ) -> None:
        """`names`: of the listeners. `opened`: the connections of the node, in order of their coming."""
        self._context = context
        self.names = names
        self.limits = ConnectionLimits(names, protected, windows)
        self._opened = opened
        self._listeners: dict[str, Listener] = {}
        self._rests_until_ms: dict[str, int] = {}
        self._paused: set[str] = set()
        self._closing: set[Admitted] = set()
        """Connections that make way for the protected listener's, and have not ended."""
        self._refused: dict[Refused, Connection] = {}
        self._refusals = Throttled(context.clock, context.events, _EVENT_INTERVAL_MS)
        self._exhausted = Throttled(context.clock, context.events, _EVENT_INTERVAL_MS)
        self.refused_count = 0
        self.rested_ms = 0

    def add(self, name: str, listener: Listener) -> None:
        self._listeners[name] = listener
        self._update(name)

    def remove(self, name: str) -> None:
        """The listener is closed."""
        self._listeners.pop(name, None)

    # -- connections

    def admit(self, session: Session, connection: Connection) -> tuple[Refused | None, int]:
        """A connection has been accepted: its handler if it is refused, and else for how long it is not to be heard."""
        now_ms = self._context.clock.now_ms()
        listener, host = session.listener, session.host
        verdict = self.limits.accepted(listener, host, now_ms)
        if verdict.rest_ms:
            self.rested_ms += verdict.rest_ms
            self._rests_until_ms[listener] = now_ms + verdict.rest_ms
            self._context.clock.call_at(now_ms + verdict.rest_ms, self.update)
        self.update()
        if verdict.outcome is not Outcome.TAKEN:
            return self._refuse(host, connection, verdict.outcome, verdict.close_after_ms), 0
        if self.limits.exceeded_by > len(self._closing):
            self._context.clock.call_at(now_ms, self._close_one)
        return None, verdict.rest_ms

    def closed(self, connection: Admitted) -> None:
        """A connection that was taken has ended."""
        self._closing.discard(connection)
        self.limits.closed(connection.session.listener, connection.session.host)
        self.update()

    def _refuse(self, host: str, connection: Connection, outcome: Outcome, close_after_ms: int) -> Refused:
        clock = self._context.clock
        refused = Refused(self._refused_ended)
        self._refused[refused] = connection
        self.refused_count += 1
        connection.pause()
        # Not before it has its handler.
        clock.call_at(clock.now_ms() + close_after_ms, connection.close)
        self._refusals.emit(lambda left_out: ConnectionRefused(host, _WORDS[outcome], left_out))
        return refused

    def _refused_ended(self, refused: Refused) -> None:
        del self._refused[refused]

    def _close_one(self) -> None:
        """One a turn: of a listener that is not protected, the one that was not used for longest."""
        if self.limits.exceeded_by <= len(self._closing):
            return
        candidates = [each for each in self._opened if not each.closed and self._may_go(each.session.listener)]
        if not candidates:
            return
        oldest = min(candidates, key=lambda each: (each.active, each.idle_since_ms))
        self._closing.add(oldest)
        oldest.close()
        if self.limits.exceeded_by > len(self._closing):
            self._context.clock.call_at(self._context.clock.now_ms(), self._close_one)

    def _may_go(self, listener: str) -> bool:
        return listener in self._listeners and not self.limits.is_protected(listener)

    # -- listeners

    def change(self, limits: Limits, host_rates: Mapping[str | None, float]) -> None:
        """Other limits hold from now on."""
        self.limits.limits = limits
        self.limits.host_rates = host_rates
        self.update()
        self._close_one()

    def update(self) -> None:
        """Pause and resume the listeners, as the limits and the time are now."""
        for name in self._listeners:
            self._update(name)

    def _update(self, name: str) -> None:
        now_ms = self._context.clock.now_ms()
        has_slot = self.limits.has_slot(name)
        accepts = has_slot and now_ms >= self._rests_until_ms.get(name, 0)
        if accepts and name in self._paused:
            self._paused.remove(name)
            self._listeners[name].resume()
        elif not accepts and name not in self._paused:
            self._paused.add(name)
            self._listeners[name].pause()
            if not has_slot:
                problem = f"the limit of connections is reached on {name}"
                self._exhausted.emit(lambda _: ConnectionsExhausted(self.limits.count, problem))

    def close(self) -> None:
        """The node is going down."""
        for connection in list(self._refused.values()):
            connection.close()


def host_rates(quotas: ClientQuotas) -> dict[str | None, float]:
    """The quotas of addresses, by the address as sessions have it; None stands for the default."""
    rates: dict[str | None, float] = {}
    for entity, values in quotas.by_entity.items():
        if len(entity) == 1 and entity[0][0] == IP and CONNECTION_CREATION_RATE in values:
            name = entity[0][1]
            rates[None if name is None else host_name(name)] = values[CONNECTION_CREATION_RATE]
    return rates
