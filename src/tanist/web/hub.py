"""Looking at a source for all pages together, and what they have seen so far.

Owns the clock of the looks: none while no page is connected, and never so many that they take more than a twentieth of
one core. Each page gets the history, then every difference. The history is bounded: its oldest differences become part
of its beginning.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tanist.web.source import Source, Watched
from tanist.web.state import Difference, Json, Look, difference

LOOK_EVERY_S: Final = 1.0
_AROUND_EVERY_S: Final = 2.0
_SHARE: Final = 20
"""A look that took so long is followed by a pause of at least so many times that."""
_HISTORY_MAX: Final = 1_800
_HISTORY_BYTES_MAX: Final = 8 << 20
_QUEUE_MAX: Final = 256
_WATCHED_MAX: Final = 16
_BEAT_S: Final = 15.0


@dataclass(slots=True)
class _Page:
    """One connected page."""

    queue: asyncio.Queue[bytes | None]
    watched: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class History:
    """The looks so far: a beginning, and the differences since."""

    base: dict[str, Json] = field(default_factory=dict)
    base_ms: int = 0
    later: deque[tuple[Difference, int]] = field(default_factory=deque)
    size_bytes: int = 0

    def add(self, change: Difference, size_bytes: int) -> None:
        if not self.base_ms:
            self.base, self.base_ms = dict(change.set), change.at_ms
            return
        self.later.append((change, size_bytes))
        self.size_bytes += size_bytes
        while len(self.later) > _HISTORY_MAX or (self.size_bytes > _HISTORY_BYTES_MAX and len(self.later) > 1):
            oldest, its_size = self.later.popleft()
            self.size_bytes -= its_size
            self.base_ms = oldest.at_ms
            self.base.update(oldest.set)
            for key in oldest.gone:
                self.base.pop(key, None)


class Hub:
    """All pages, and the one who looks for them."""

    def __init__(self, source: Source, *, every_s: float = LOOK_EVERY_S) -> None:
        self.source = source
        self.looks = 0
        self._every_s = every_s
        self._pages: dict[str, _Page] = {}
        self._history = History()
        self._now: Look = {}
        self._around: Mapping[str, Json] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._wanted = asyncio.Event()

    # -- pages

    async def connect(self) -> AsyncIterator[bytes]:
        """A page's stream of events, from the history on; the looking goes on as long as any is read."""
        page_id, page = secrets.token_urlsafe(12), _Page(asyncio.Queue(_QUEUE_MAX))
        history = self._history
        begin = {
            "page": page_id,
            "at": history.base_ms,
            "state": history.base,
            "later": [_plain(change) for change, _ in history.later],
        }
        first = _event("begin", begin)
        self._pages[page_id] = page
        self._start()
        try:
            yield first
            while True:
                try:
                    message = await asyncio.wait_for(page.queue.get(), _BEAT_S)
                except TimeoutError:
                    message = b": the server is there\n\n"
                if message is None:
                    return  # it reads too slowly: it begins again
                yield message
        finally:
            self._pages.pop(page_id, None)
            if not self._pages:
                self._stop()

    def watch(self, page_id: str, watched: Watched) -> bool:
        """The partitions that a page shows the replicas of; False if there is no such page."""
        page = self._pages.get(page_id)
        if page is None:
            return False
        page.watched = tuple(watched)[:_WATCHED_MAX]
        self._wanted.set()
        return True

    def look_soon(self) -> None:
        """Something was done: do not wait for the next look."""
        self._wanted.set()

    def close(self) -> None:
        self._stop()
        for page in self._pages.values():
            _drop(page)

    # -- looking

    def _start(self) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._keep_looking()), asyncio.create_task(self._keep_looking_around())]

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _keep_looking(self) -> None:
        while True:
            self._wanted.clear()
            began = time.monotonic()
            watched = sorted({place for page in self._pages.values() for place in page.watched})
            look = await self._or_problem(watched)
            self.looks += 1
            self._show({**look, **self._around})
            took_s = time.monotonic() - began
            pause_s = max(self._every_s - took_s, took_s * _SHARE, 0.0)
            try:
                await asyncio.wait_for(self._wanted.wait(), pause_s)
            except TimeoutError:
                continue

    async def _or_problem(self, watched: Watched) -> Look:
        try:
            return await asyncio.to_thread(self.source.look, watched)
        except Exception as error:  # a cluster that is taken away under the page must not end the page
            last = {key: value for key, value in self._now.items() if key not in self._around}
            return {**last, "cluster": {**last.get("cluster", {"source": "cluster"}), "problem": str(error)}}

    async def _keep_looking_around(self) -> None:
        while True:
            began = time.monotonic()
            with suppress(Exception):  # the last one stays; `look` says what is wrong
                self._around = await asyncio.to_thread(self.source.look_around)
            took_s = time.monotonic() - began
            await asyncio.sleep(max(_AROUND_EVERY_S - took_s, took_s * _SHARE))

    def _show(self, look: Look) -> None:
        change = difference(self._now, look, round(time.time() * 1000))
        self._now = look
        if not change:
            return
        message = _event("change", _plain(change))
        self._history.add(change, len(message))
        for page in list(self._pages.values()):
            try:
                page.queue.put_nowait(message)
            except asyncio.QueueFull:
                _drop(page)


def _drop(page: _Page) -> None:
    while not page.queue.empty():
        page.queue.get_nowait()
    page.queue.put_nowait(None)


def _plain(change: Difference) -> dict[str, Any]:
    return {"at": change.at_ms, "set": change.set, "gone": list(change.gone)}


def _event(name: str, content: Json) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'), ensure_ascii=False)}\n\n".encode()
