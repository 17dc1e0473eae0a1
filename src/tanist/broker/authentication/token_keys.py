"""The key set of a listener with OAUTHBEARER: fetched off the loop, now and then, and when a token names another key.

Owns the set in use and when it is fetched again: `sasl.oauthbearer.jwks.endpoint.refresh.ms` after it was, after a
failure with growing pauses, and once a minute for each key that is missing. Until the first has come no token is
believed. A set that cannot be fetched or read leaves the one in use.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from tanist.broker.context import NodeContext
from tanist.broker.sasl_properties import KeySource
from tanist.events.process import TokenKeysFailed, TokenKeysFetched
from tanist.ports import Timer
from tanist.security.sasl.oauthbearer import Claims, InvalidToken, path_of

if TYPE_CHECKING:
    from tanist.security.jwks import KeyRing

_MISSING_MS: Final = 60_000
_MISSING_MAX: Final = 16


class TokenKeys:
    """Of one listener."""

    def __init__(self, context: NodeContext, source: KeySource) -> None:
        self._context = context
        self._source = source
        self._ring: KeyRing | None = None
        self._backoff_ms = source.retry_backoff_ms
        self._fetching = False
        self._again = False
        self._timer: Timer | None = None
        self._missing: OrderedDict[str, int] = OrderedDict()
        """Keys that were missing, and when they were last looked for."""
        self._fetch()

    def claims_of(self, token: str) -> Claims:
        """The claims of a genuine token. `InvalidToken`."""
        from tanist.security.jwks import UnknownKey  # its libraries are for those who have this mechanism

        if self._ring is None:
            raise InvalidToken("the key set has not been fetched yet")
        try:
            return self._ring.claims_of(token)
        except UnknownKey as error:
            self._look_for(error.key_id)
            raise

    def _look_for(self, key_id: str) -> None:
        now_ms = self._context.clock.now_ms()
        last_ms = self._missing.get(key_id)
        if last_ms is not None and now_ms - last_ms < _MISSING_MS:
            return
        if last_ms is None and len(self._missing) >= _MISSING_MAX:
            oldest, oldest_ms = next(iter(self._missing.items()))
            if now_ms - oldest_ms < _MISSING_MS:
                return  # names of keys cost nothing: who makes them up is not to make this node fetch
            del self._missing[oldest]
        self._missing[key_id] = now_ms
        self._missing.move_to_end(key_id)
        self._fetch()

    def _fetch(self) -> None:
        if self._fetching:
            self._again = True
            return
        self._fetching = True
        if self._timer is not None:
            self._timer.cancel()
        self._context.disk.run(self._read, self._fetched)

    def _read(self) -> KeyRing:
        from tanist.security.jwks import KeyRing

        path = path_of(self._source.url)
        return KeyRing(self._context.read_url(self._source.url) if path is None else self._context.disk.read_file(path))

    def _fetched(self, found: KeyRing | BaseException) -> None:
        self._fetching = False
        if self._context.stopping:
            return
        clock, source = self._context.clock, self._source
        if isinstance(found, BaseException):
            self._context.events.emit(TokenKeysFailed(source.url, str(found) or type(found).__name__))
            pause_ms = self._backoff_ms
            self._backoff_ms = min(self._backoff_ms * 2, source.retry_backoff_max_ms)
        else:
            if self._ring is None:
                self._context.events.emit(TokenKeysFetched(source.url, len(found)))
            self._ring = found
            self._backoff_ms = source.retry_backoff_ms
            pause_ms = source.refresh_ms
        if self._again:
            self._again = False
            pause_ms = min(pause_ms, source.retry_backoff_ms)
        self._timer = clock.call_at(clock.now_ms() + pause_ms, self._due)

    def _due(self) -> None:
        if not self._context.stopping:
            self._fetch()
