"""The requests of this node that have no answer yet: one at a time to each peer.

Owns request ids, the timeout of each request and the pause after a failure. Answers to requests that were forgotten (a
change of role forgets them all) find nothing here, so a vote of an earlier election does not count in this one, and an
old leader's records are not appended.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.wire.schema import Request

MAX_DOUBLINGS = 3
"""A peer that is down is tried every eighth retry backoff: often enough to find it when it is back."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request under way."""

    request_id: int
    to: int
    request: Request
    expires_ms: int


class Requests:
    __slots__ = ("_backoff_until_ms", "_next_id", "_pending", "_retry_backoff_ms", "_timeout_ms", "_unanswered")

    def __init__(self, timeout_ms: int, retry_backoff_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._next_id = 1
        self._pending: dict[int, PendingRequest] = {}
        self._backoff_until_ms: dict[int, int] = {}
        self._unanswered: dict[int, int] = {}
        """How many requests to a peer have had no answer since the last that had one."""

    @property
    def idle(self) -> bool:
        return not self._pending

    def is_free(self, peer: int, now_ms: int) -> bool:
        """Nothing is under way to `peer`, and it did not just fail."""
        return peer not in self._pending and now_ms >= self._backoff_until_ms.get(peer, now_ms)

    def is_failing(self, peer: int, now_ms: int) -> bool:
        return now_ms < self._backoff_until_ms.get(peer, now_ms)

    def ask(self, peer: int, request: Request, now_ms: int) -> PendingRequest:
        if peer in self._pending:
            raise ValueError(f"a request to {peer} is under way")
        pending = PendingRequest(self._next_id, peer, request, now_ms + self._timeout_ms)
        self._next_id += 1
        self._pending[peer] = pending
        self._backoff_until_ms.pop(peer, None)
        return pending

    def complete(self, request_id: int) -> PendingRequest | None:
        """The request, which is now done with; None if it is not waited for."""
        for peer, pending in self._pending.items():
            if pending.request_id == request_id:
                del self._pending[peer]
                return pending
        return None

    def helped(self, peer: int) -> None:
        """The answer was of use: ask on."""
        self._unanswered.pop(peer, None)

    def did_not_help(self, peer: int, now_ms: int) -> None:
        """An answer came and brought nothing; leave `peer` alone for a moment."""
        self._unanswered.pop(peer, None)
        self._backoff_until_ms[peer] = now_ms + self._retry_backoff_ms

    def failed(self, peer: int, now_ms: int) -> None:
        """No answer came; leave `peer` alone, the longer the more often that happens."""
        failures = self._unanswered.get(peer, 0)
        self._unanswered[peer] = failures + 1
        self._backoff_until_ms[peer] = now_ms + (self._retry_backoff_ms << min(failures, MAX_DOUBLINGS))

    def lost(self, peer: int, now_ms: int) -> None:
        """The connection to `peer` is gone, and with it the answer."""
        if self._pending.pop(peer, None) is not None:
            self.failed(peer, now_ms)

    def expire(self, now_ms: int) -> None:
        """Give up what took too long. It is sent again after the pause, if it still matters."""
        for pending in [pending for pending in self._pending.values() if now_ms >= pending.expires_ms]:
            del self._pending[pending.to]
            self.failed(pending.to, now_ms)

    def forget_all(self) -> None:
        self._pending.clear()
        self._backoff_until_ms.clear()

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """When a request expires or a pause ends, whichever is first."""
        times = [pending.expires_ms for pending in self._pending.values()]
        times += [until for until in self._backoff_until_ms.values() if until > now_ms]
        return min(times, default=None)
