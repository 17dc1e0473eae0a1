"""`Events`: the port through which the parts of a node emit events; and `Recent`, the last of them.

There are two classes of events. Most are rare: elections, changes of the ISR, failures. They are emitted always. *Fine*
events come with records and fetches, many times a second. The part that has one looks first whether anybody wants it:

    if events.fine:
        events.emit(HighWatermarkMoved(...))

So without a listener for fine events they cost the test of an attribute.

A listener must not change the node, and must not raise: an exception from it counts as one of the part that emitted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from tanist.events.event import Event

Listener = Callable[[Event], None]

RECENT_MAX: Final = 1_000


class Events:
    """The events of one node, in one life of its process."""

    __slots__ = ("_listeners", "_want_fine", "fine")

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._want_fine: tuple[Listener, ...] = ()
        self.fine = False
        """Whether anybody listens to fine events."""

    def subscribe(self, listener: Listener, *, fine: bool = False) -> Callable[[], None]:
        """Have the listener called with each event from now on, in order; call the result to end that.

        With `fine` it gets the fine events as well. Without it it may get them: when another listener wants them.
        """
        self._listeners = (*self._listeners, listener)
        if fine:
            self._want_fine = (*self._want_fine, listener)
            self.fine = True

        def unsubscribe() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)
            self._want_fine = tuple(each for each in self._want_fine if each is not listener)
            self.fine = bool(self._want_fine)

        return unsubscribe

    def emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)


class Recent:
    """The last events of a node, with their times: for the report of a crash. A listener."""

    __slots__ = ("_events", "_now_ms")

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._events: deque[tuple[int, Event]] = deque(maxlen=RECENT_MAX)
        self._now_ms = now_ms

    def __call__(self, event: Event) -> None:
        self._events.append((self._now_ms(), event))

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        """(milliseconds since 1970, event), the oldest first."""
        return iter(self._events)


NOBODY: Final = Events()
"""Where a part emits that no node has made: nobody listens."""
