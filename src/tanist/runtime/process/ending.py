"""How the process of a node comes to its end, and what then says why.

Owns the signals, the exit code and the exit record. The first SIGTERM or SIGINT asks for a controlled shutdown, a
second one ends the process at once; so does an unexpected exception, which leaves a crash report.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from tanist.broker.config import NodeConfig
from tanist.events.event import Event
from tanist.events.process import Crashed, SignalReceived, StartFailed
from tanist.events.stream import Events
from tanist.events.text import describe
from tanist.runtime.crash_report import write_crash_report
from tanist.runtime.exit_record import ExitRecord
from tanist.runtime.ports.loop import Loop

EXIT_FAILED = 1
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_REASON_CHARS_MAX = 500


class ServedNode(Protocol):
    """What `serve` needs of `broker.Node`."""

    def start(self) -> None: ...

    def stop(self, done: Callable[[], None]) -> None: ...

    def crash(self, place: str, error: Exception) -> None: ...

    def status(self) -> Mapping[str, Any]: ...


class ProcessEnd:
    """Of one process, from its start on."""

    loop: Loop

    def __init__(self, config: NodeConfig, events: Events) -> None:
        self._node_id = config.node_id
        self._folder = config.log_dirs[0]
        self._events = events
        self._exit_record = _exit_record(self._folder)
        self._node: ServedNode | None = None
        self._stopping = False
        self.exit_code = 0

    def stop_by_signals(self, node: ServedNode) -> None:
        """The node to stop. Signals wait from here on, until `hear_signals`."""
        self._node = node
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

    def hear_signals(self) -> None:
        """Obey signals in the first turn of the loop that is run for good.

        uvloop loses a signal that comes while it does not run, though its handler was added; and it has run for a
        moment before this, to open the port for the metrics.
        """
        self.loop.post(self._hear)

    def cannot_start(self, problem: str) -> int:
        """There is no node yet; gives the exit code."""
        self._say_why(StartFailed(self._node_id, problem))
        return EXIT_FAILED

    def fatal(self, reason: str) -> None:
        """The node cannot go on and has said why; nothing is closed in an orderly way, so recovery will run."""
        self._record(reason)
        self.exit_code = EXIT_FAILED
        self.loop.stop()

    def failed(self, where: str, error: BaseException) -> NoReturn:
        """An exception has come through to the loop. Nobody has given up what it may have torn: the process ends."""
        try:
            if self._node is not None and isinstance(error, Exception):
                self._node.crash(where, error)
        finally:
            import traceback

            # Without a node to tell of it, or if that has failed, too.
            self.crash(f"unexpected error in {where}: {error!r}", "".join(traceback.format_exception(error)))

    def crash(self, reason: str, crash_report: str) -> NoReturn:
        """End as by SIGKILL: nothing is closed or marked in an orderly way, and nothing more is sent."""
        try:
            path = write_crash_report(self._folder, crash_report)
            self._say_why(Crashed(reason[:_REASON_CHARS_MAX], path or ""))
            if path is None:
                print(crash_report)
            sys.stdout.flush()
        finally:
            os._exit(EXIT_FAILED)

    def _say_why(self, event: Event) -> None:
        """Emit the event by which the process ends, and leave its line in the exit record."""
        self._events.emit(event)
        line = describe(event)
        if line is not None:
            self._record(line[1])

    def _record(self, reason: str) -> None:
        if self._exit_record is not None:
            self._exit_record.record(reason)

    def _hear(self) -> None:
        for number in _ENDING:
            self.loop.aio.add_signal_handler(number, self._on_signal, number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def _on_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._stopping or self._node is None:
            self._events.emit(SignalReceived(name, again=True))
            os._exit(128 + number)
        self._stopping = True
        self._events.emit(SignalReceived(name, again=False))
        self._node.stop(self.loop.stop)


def _exit_record(folder: str) -> ExitRecord | None:
    try:
        return ExitRecord(folder)
    except OSError:
        return None  # whatever is wrong with the folder will be said by what needs it
