"""Looking at a source for all pages together, and what they have seen so far.

Owns the clock of the samples: none while no page is connected, and never so many that they take more than a twentieth
of one core. Each page gets the history, then every difference. The history is bounded: its oldest differences become
part of its beginning.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from tanist.web.source import Source, Watched
from tanist.web.state import ClusterState, Difference, Json, Sample, difference, plain

SAMPLE_EVERY_S: Final = 1.0
_AROUND_EVERY_S: Final = 2.0
_SHARE: Final = 20
"""A sample that took so long is followed by a pause of at least so many times that."""
_HISTORY_MAX: Final = 1_800
_HISTORY_BYTES_MAX: Final = 8 << 20
_QUEUE_MAX: Final = 256
_WATCHED_MAX: Final = 16
_BEAT_S: Final = 15.0
_PIECE: Final = 32 << 10
"""Characters of a message that are sent together."""


@dataclass(slots=True)
class _Page:
    """One connected page."""

    queue: asyncio.Queue[Difference | None]
    watched: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class History:
    """The samples so far: a beginning, and the differences since."""

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
    """All pages, and their one reader of the source."""

    def __init__(self, source: Source, *, every_s: float = SAMPLE_EVERY_S) -> None:
        self.source = source
        self._every_s = every_s
        self._pages: dict[str, _Page] = {}
        self._history = History()
        self._now: Sample = {}
        self._around: Mapping[str, Json] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._wanted = asyncio.Event()
        self._threads = ThreadPoolExecutor(2, "source")
        """One for each kind of sample: each thread that ever was keeps memory."""

    # -- pages

    async def connect(self) -> AsyncGenerator[bytes, None]:
        """A page's stream of events, from the history on; sampling goes on as long as any is read."""
        page_id, page = secrets.token_urlsafe(12), _Page(asyncio.Queue(_QUEUE_MAX))
        history = self._history
        begin = {"page": page_id, "at": history.base_ms}
        base, later = dict(history.base), [change for change, _ in history.later]
        self._pages[page_id] = page
        self._start()
        try:
            for piece in _event("begin", begin, base, later):
                yield piece
            del base, later
            while True:
                try:
                    change = await asyncio.wait_for(page.queue.get(), _BEAT_S)
                except TimeoutError:
                    yield b": the server is there\n\n"
                    continue
                if change is None:
                    return  # it reads too slowly: it begins again
                for piece in _event("change", {"at": change.at_ms, "gone": change.gone}, change.set):
                    yield piece
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

    def refresh_soon(self) -> None:
        """Something was done: do not wait for the next read."""
        self._wanted.set()

    def close(self) -> None:
        self._stop()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for page in self._pages.values():
            _drop(page)

    # -- reading the source

    @property
    def polling(self) -> bool:
        """Whether a page is there to read for."""
        return bool(self._tasks)

    def _start(self) -> None:
        if not self.polling:
            self._tasks = [
                asyncio.create_task(self._poll_state()),
                asyncio.create_task(self._poll_groups_and_salvage()),
            ]

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _poll_state(self) -> None:
        while True:
            self._wanted.clear()
            began = time.monotonic()
            watched = sorted({place for page in self._pages.values() for place in page.watched})
            sample, worked_s = await self._or_problem(watched)
            self._show({**sample, **self._around})
            pause_s = max(self._every_s - (time.monotonic() - began), worked_s * _SHARE, 0.0)
            try:
                await asyncio.wait_for(self._wanted.wait(), pause_s)
            except TimeoutError:
                continue

    async def _or_problem(self, watched: Watched) -> tuple[Sample, float]:
        try:
            return await self._worked(lambda: self.source.read_state(watched))
        except Exception as error:  # a cluster that is taken away under the page must not end the page
            last = {key: value for key, value in self._now.items() if key not in self._around}
            text = str(error) or type(error).__name__
            cluster: dict[str, Json] = last.get("cluster") or plain(ClusterState("cluster"))
            return {**last, "cluster": {**cluster, "problem": text}}, 0.0

    async def _poll_groups_and_salvage(self) -> None:
        reported = ""
        while True:
            began = time.monotonic()
            worked_s = 0.0
            try:
                self._around, worked_s = await self._worked(lambda: dict(self.source.read_groups_and_salvage()))
            except Exception as error:  # the last one stays; `read_state` says what is wrong with the cluster
                text = f"{type(error).__name__}: {error}"
                if text != reported:
                    print(f"tanist ui: groups and salvage are not up to date: {text}", file=sys.stderr, flush=True)
                reported = text
            took_s = time.monotonic() - began
            await asyncio.sleep(max(_AROUND_EVERY_S - took_s, worked_s * _SHARE, 0.0))

    async def _worked(self, sample: Callable[[], Sample]) -> tuple[Sample, float]:
        """A sample, and the CPU that it took: a wait for brokers that are down is no reason to sample less often."""

        def timed() -> tuple[Sample, float]:
            began_s = time.thread_time()
            return sample(), time.thread_time() - began_s

        return await asyncio.get_running_loop().run_in_executor(self._threads, timed)

    def _show(self, state: Sample) -> None:
        change = difference(self._now, state, round(time.time() * 1000))
        self._now = state
        if not change:
            return
        self._history.add(change, sum(map(_size, change.set.items())))
        for page in list(self._pages.values()):
            try:
                page.queue.put_nowait(change)
            except asyncio.QueueFull:
                _drop(page)


def _drop(page: _Page) -> None:
    while not page.queue.empty():
        page.queue.get_nowait()
    page.queue.put_nowait(None)


def _size(item: tuple[str, Json]) -> int:
    """The bytes of a key and its value in a message, about."""
    return len(item[0]) + len(_text(item[1]))


def _text(content: Json) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def _event(
    name: str, first: Mapping[str, Json], state: Mapping[str, Json], later: Sequence[Difference] = ()
) -> Iterator[bytes]:
    """A server-sent event in pieces: ten thousand partitions are never one text.

    A line of data is a line of the JSON; the page gets it whole. `first` has its first keys, `state` its state or set.
    """
    yield f"event: {name}\ndata: {_text(first)[:-1]},".encode()
    yield b'"state":' if name == "begin" else b'"set":'
    yield from _object(state)
    if name == "begin":
        yield b',"later":['
        for number, change in enumerate(later):
            head = _text({"at": change.at_ms, "gone": change.gone})
            yield f'{"," if number else ""}{head[:-1]},"set":'.encode()
            yield from _object(change.set)
            yield b"}"
        yield b"]"
    yield b"}\n\n"


def _object(values: Mapping[str, Json]) -> Iterator[bytes]:
    lines: list[str] = []
    length = 0
    before = "{"
    for key, value in values.items():
        lines.append(f"{_text(key)}:{_text(value)}")
        length += len(lines[-1])
        if length >= _PIECE:
            yield f"{before}{','.join(lines)}\ndata: ".encode()
            lines, length, before = [], 0, ","
    if lines or before == "{":
        yield f"{before}{','.join(lines)}".encode()
    yield b"}"
