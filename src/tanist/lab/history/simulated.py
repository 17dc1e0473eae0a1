"""The history of a simulated run, in the format of the checker.

`Recorder(history)` is attached before the run begins. It also gets events that the run's own history does not keep (a
consumer that moves to another offset, a producer that starts again), and passes everything on to the attached checkers.
`write` gives the lines. The simulator judges each event by the nodes' state; the lines have only the clients'
knowledge.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from tanist.lab.history.operation import ASSIGN, CRASH, FAIL, INFO, OK, POLL, SEEK, SEND
from tanist.lab.history.writer import HistoryWriter
from tanist.sim.workload.history import History, Read, Send

_OUTCOMES = {"ok": OK, "failed": FAIL, "unknown": INFO}
_Line = dict[str, Any]


class Recorder:
    """Follows the clients of a run."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._moves: list[tuple[int, str, int, str, int]] = []
        """(number of reads so far, (topic, partition, consumer), the offset at which it continued)."""
        self._renewed: dict[str, list[int]] = {}
        """Producer -> numbers of sends after which it started again."""
        self._moved_before, self._refused_before = history.on_moved, history.on_refused
        history.on_moved, history.on_refused = self._moved, self._refused

    def write(self, file: TextIO, *, drained_us: int | None = None) -> None:
        """All lines; `drained_us` is the time when every consumer had read everything."""
        writer = HistoryWriter(file)
        for line in self._sends():
            writer.write(line)
        consumers = self._consumers()
        for line in consumers:
            writer.write(line)
        if drained_us is not None:
            for process in dict.fromkeys(line["process"] for line in consumers):
                writer.write(_at(drained_us, {"process": process, "type": OK, "f": POLL}))

    def _moved(self, topic: str, partition: int, consumer: str, offset: int) -> None:
        self._moves.append((len(self._history.reads), topic, partition, consumer, offset))
        self._moved_before(topic, partition, consumer, offset)

    def _refused(self, send: Send, error: int) -> None:
        self._renewed.setdefault(send.producer, []).append(len(self._history.sends))
        self._refused_before(send, error)

    def _sends(self) -> Iterator[_Line]:
        """In the order of their starts, which is that of the list."""
        for count, send in enumerate(self._history.sends):
            renewed = self._renewed.get(send.producer, [])
            if renewed and renewed[0] <= count:
                # Under another producer id: open records may land behind later ones.
                del renewed[: sum(at <= count for at in renewed)]
                yield _at(send.invoked_us, {"process": send.producer, "type": INFO, "f": CRASH})
            ended_us = max(send.completed_us, send.invoked_us)
            line: _Line = {
                "process": send.producer,
                "type": _OUTCOMES[send.outcome],
                "f": SEND,
                "partition": f"{send.topic}-{send.partition}",
                "value": send.value.decode(),
                "offset": send.offset if send.offset >= 0 else None,
                "acks": None if send.promised else 1,
                "idempotent": None if send.ordered else False,
                "invoked_ns": send.invoked_us * 1000,
            }
            yield _at(ended_us, line)

    def _consumers(self) -> list[_Line]:
        """Each partition has a process of its own, because a consumer fetches them in parallel."""
        lines: list[_Line] = []
        begun: set[str] = set()
        moves = iter([*self._moves, (len(self._history.reads) + 1, "", 0, "", 0)])
        move = next(moves)
        now_us = 0
        for count, read in enumerate([*self._history.reads, None]):
            while move[0] <= count:
                _, topic, partition, consumer, offset = move
                process = f"{consumer}/{topic}-{partition}"
                self._begin(lines, begun, process, f"{topic}-{partition}", now_us)
                seek = {"process": process, "type": OK, "f": SEEK, "positions": {f"{topic}-{partition}": offset}}
                lines.append(_at(now_us, seek))
                move = next(moves)
            if read is not None:
                now_us = read.at_us
                self._polled(lines, begun, read)
        return lines

    def _polled(self, lines: list[_Line], begun: set[str], read: Read) -> None:
        name = f"{read.topic}-{read.partition}"
        process = f"{read.consumer}/{name}"
        self._begin(lines, begun, process, name, read.at_us)
        last = lines[-1]
        record = [read.offset, read.value.decode()]
        if last["process"] == process and last["f"] == POLL and last["time_ns"] == read.at_us * 1000:
            last["records"][name].append(record)
        else:
            line = {"process": process, "type": OK, "f": POLL, "records": {name: [record]}}
            lines.append(_at(read.at_us, line))

    def _begin(self, lines: list[_Line], begun: set[str], process: str, name: str, now_us: int) -> None:
        if process not in begun:
            begun.add(process)
            assign = {"process": process, "type": OK, "f": ASSIGN, "partitions": [name], "positions": {name: 0}}
            lines.append(_at(now_us, assign))


def _at(time_us: int, line: _Line) -> _Line:
    return {**line, "time_ns": time_us * 1000}
