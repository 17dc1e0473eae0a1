"""A process of the load: `python -m tanist.lab.jepsen.worker PLAN HISTORY`.

Its standard input begins with a line of JSON: the properties by which its clients connect. It writes its part of the
history to a file, and works until its standard input ends; so it always ends with the process that started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import TextIO

from tanist.lab.history import HistoryWriter
from tanist.lab.jepsen.plan import Plan, Worker


class _Locked:
    """The writer of a file, for one thread at a time. Whole lines reach the file in blocks."""

    def __init__(self, file: TextIO) -> None:
        self._writer = HistoryWriter(file)
        self._lock = threading.Lock()

    def __enter__(self) -> HistoryWriter:
        self._lock.acquire()
        return self._writer

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _worker_of(plan: Plan) -> Worker:
    if plan.role == "transactor":
        if plan.client == "confluent":
            from tanist.lab.jepsen import confluent_transactions

            return confluent_transactions.work
        from tanist.lab.jepsen import own_transactions

        return own_transactions.work
    if plan.client == "confluent":
        from tanist.lab.jepsen import confluent_client

        return confluent_client.work
    from tanist.lab.jepsen import own_client

    return own_client.work


def main(arguments: list[str]) -> None:
    plan = Plan.decode(arguments[0], json.loads(sys.stdin.buffer.readline()))
    stopping = threading.Event()

    def await_end() -> None:
        # Not through `sys.stdin`: a waiting thread would hold its lock while the interpreter ends.
        while os.read(0, 1 << 10):
            pass
        stopping.set()

    threading.Thread(target=await_end, daemon=True).start()
    with open(arguments[1], "w", encoding="utf-8") as file:
        _worker_of(plan)(plan, _Locked(file), stopping)


if __name__ == "__main__":
    main(sys.argv[1:])
