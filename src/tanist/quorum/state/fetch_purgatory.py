"""Fetches that a leader holds until it has news for them (long polls).

Owns the waiting fetches and their deadlines. At most one fetch waits for each replica, and their number is bounded: a
fetch beyond the bound is answered at once, which costs the follower a round trip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tanist.quorum.voters import ReplicaKey
from tanist.wire.messages.fetch_request import FetchPartition

MAX_HELD = 4096


@dataclass(frozen=True, slots=True)
class DelayedFetch:
    source: object
    replica: ReplicaKey
    part: FetchPartition
    max_bytes: int
    expires_ms: int


class FetchPurgatory:
    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[object, DelayedFetch] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, fetch: DelayedFetch) -> list[DelayedFetch]:
        """Fetches to answer now: the same replica's earlier one, or `fetch` itself if the purgatory is full."""
        # A fetch without a replica id is identified by its connection.
        key: object = fetch.replica if fetch.replica.node_id >= 0 else fetch.source
        earlier = self._held.pop(key, None)
        if len(self._held) >= MAX_HELD:
            return [fetch] if earlier is None else [earlier, fetch]
        self._held[key] = fetch
        return [] if earlier is None else [earlier]

    def take_all(self) -> list[DelayedFetch]:
        held = list(self._held.values())
        self._held.clear()
        return held

    def take_news(self, log_end: int, high_watermark: int) -> list[DelayedFetch]:
        """Those with an offset below the log's end, or a high watermark below the leader's."""
        return self._take(lambda f: f.part.fetch_offset < log_end or f.part.high_watermark < high_watermark)

    def take_expired(self, now_ms: int) -> list[DelayedFetch]:
        return self._take(lambda fetch: now_ms >= fetch.expires_ms)

    def next_deadline_ms(self) -> int | None:
        return min((fetch.expires_ms for fetch in self._held.values()), default=None)

    def _take(self, is_due: Callable[[DelayedFetch], bool]) -> list[DelayedFetch]:
        due = [(key, fetch) for key, fetch in self._held.items() if is_due(fetch)]
        for key, _ in due:
            del self._held[key]
        return [fetch for _, fetch in due]
