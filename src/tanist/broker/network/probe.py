"""Whether a process still runs. One that was killed leaves an address at which nothing listens.

A connection that breaks says little (a restart of the network, a closed channel), so the node that relied on it
connects to the peer's own address. Refused means that the process is gone, or that its listener is not open yet: a node
of tanist opens it before it says a word, and one of Apache Kafka's a moment later, so there refusals count only when
they go on for a while. Open and staying open means that it lives.
Open and closed at once is a process that is dying just now: its sockets are closed one after the other, so the probe
connects again. Silence means nothing, and the session timeout decides as ever.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.ports import REFUSED, Clock, Connection, Network, Timer

_ANSWER_MS = 1_000
"""How long an attempt may take, and how long an open connection must stay open to count as life."""
_AGAIN_MS = 5
_REFUSED_AGAIN_MS = 50
_ATTEMPTS = 40


class Probe:
    """Knocks at `host:port`; calls `done(gone)` once."""

    def __init__(
        self,
        clock: Clock,
        network: Network,
        host: str,
        port: int,
        done: Callable[[bool], None],
        *,
        refused_for_ms: int = 0,
    ) -> None:
        """`refused_for_ms`: how long refusals must go on."""
        self._clock = clock
        self._network = network
        self._address = (host, port)
        self._done: Callable[[bool], None] | None = done
        self._attempts = 0
        self._refused_until_ms = clock.now_ms() + refused_for_ms
        self._connection: Connection | None = None
        self._timer: Timer | None = None
        self._knock()

    def end(self) -> None:
        """Nobody wants to know any more."""
        self._done = None
        self._let_go()

    def _knock(self) -> None:
        self._attempts += 1
        attempt = _Attempt(self)
        self._timer = self._clock.call_at(self._clock.now_ms() + _ANSWER_MS, lambda: self._finish(gone=False))
        self._connection = attempt.connection = self._network.connect(*self._address, attempt, max_frame_bytes=1024)

    def _closed(self, connection: Connection | None, reason: str) -> None:
        if connection is not self._connection or self._done is None:
            return
        if REFUSED in reason:
            now_ms = self._clock.now_ms()
            if now_ms >= self._refused_until_ms:
                self._finish(gone=True)
                return
            self._let_go()
            self._timer = self._clock.call_at(now_ms + _REFUSED_AGAIN_MS, self._knock)
            return
        if self._attempts >= _ATTEMPTS:
            self._finish(gone=False)
            return
        self._let_go()
        self._timer = self._clock.call_at(self._clock.now_ms() + _AGAIN_MS, self._knock)

    def _finish(self, *, gone: bool) -> None:
        done, self._done = self._done, None
        self._let_go()
        if done is not None:
            done(gone)

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Attempt:
    """The handler of one connection."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self.connection: Connection | None = None

    def on_open(self, connection: Connection) -> None:
        """Not yet a sign of life: it has to stay open."""

    def on_frame(self, frame: memoryview) -> None:
        """Nothing was asked; nothing is believed."""

    def on_close(self, reason: str) -> None:
        self._probe._closed(self.connection, reason)
