"""An audit again and again, of a cluster that runs: what came of each, as metrics and as an exit code.

Owns the names of the metrics. An audit that cannot judge is counted, and the next one is tried; what must end all of
them is raised by the caller's `unjudged`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from tanist.broker.metrics.definition import counter, gauge
from tanist.broker.metrics.text import Exposition
from tanist.lab.anomalies import OF_AUDITS

if TYPE_CHECKING:
    from tanist.spark.jobs.audit.result import AuditResult

_CLEAN, _FOUND, _UNJUDGED = "clean", "found", "unjudged"
_CANCELLED_EVERY_S: Final = 0.2
"""An audit that is to stop may begin one more job."""
METRICS: Final = (
    counter("tanist_audits_total", "", "Audits, by what came of them: clean, found or unjudged.", "outcome"),
    gauge("tanist_audit_findings", "", "What the last audit has found, in records, offsets or places.", "kind"),
    gauge("tanist_audit_records", "", "Records in all replicas, as the last audit has seen them."),
    gauge("tanist_audit_acknowledged_sends", "", "Of the clients' history, likewise."),
    gauge("tanist_audit_ended_seconds", "", "When the last audit that could judge has ended, in s since 1970."),
    gauge("tanist_audit_took_seconds", "", "How long that one took."),
)


class Audits:
    """What came of audits so far. `page` may be read from another thread."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._last: AuditResult | None = None
        self._ended_s = 0.0
        self.page = self._rendered()

    @property
    def exit_code(self) -> int:
        """1: something was found; 2: none could judge; else 0."""
        if self._outcomes[_FOUND]:
            return 1
        return 0 if self._outcomes[_CLEAN] else 2

    def add(self, result: AuditResult | None) -> None:
        """None: it could not judge."""
        if result is None:
            self._outcomes[_UNJUDGED] += 1
        else:
            self._outcomes[_CLEAN if result.clean else _FOUND] += 1
            self._last, self._ended_s = result, time.time()
        self.page = self._rendered()

    def _rendered(self) -> str:
        out = Exposition(METRICS)
        for outcome in (_CLEAN, _FOUND, _UNJUDGED):
            out.add("tanist_audits_total", self._outcomes[outcome], outcome)
        if self._last is not None:
            for kind in OF_AUDITS:
                out.add("tanist_audit_findings", self._last.count(kind), kind.value)
            out.add("tanist_audit_records", self._last.records)
            out.add("tanist_audit_acknowledged_sends", self._last.sends)
            out.add("tanist_audit_ended_seconds", round(self._ended_s, 3))
            out.add("tanist_audit_took_seconds", round(sum(self._last.seconds.values()), 3))
        return out.render()


def repeat(
    audit: Callable[[], AuditResult],
    every_s: float,
    audits: Audits,
    *,
    judged: Callable[[AuditResult], None],
    unjudged: Callable[[Exception], None],
    stopped: Event,
) -> None:
    """An audit every `every_s`, or one after the other if they take longer, until it is stopped.

    `unjudged` gets what an audit has raised, and raises what must end all of them.
    """
    while not stopped.is_set():
        begun_s = time.monotonic()
        try:
            result = audit()
        except Exception as error:
            if stopped.is_set():
                return
            unjudged(error)
            audits.add(None)
        else:
            judged(result)
            audits.add(result)
        stopped.wait(max(0.0, begun_s + every_s - time.monotonic()))


def until_interrupted(session: Any, task: Callable[[Event], None]) -> None:
    """Run a task until it ends, or a signal interrupts this thread: then it is to stop, and its work is cancelled.

    `session` is that of the task's audits. A thread of its own, because PySpark's connection to Java does not survive
    an interrupted call.
    """
    stopped = Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(task, stopped)
        try:
            running.result()
        except KeyboardInterrupt:
            stopped.set()
            while not wait((running,), _CANCELLED_EVERY_S).done:
                _cancel(session)
            running.result()


def _cancel(session: Any) -> None:
    from tanist.spark.jobs.audit.by_duckdb.session import DuckDB

    if isinstance(session, DuckDB):
        session.cancel()
        return
    from pyspark.sql.utils import is_remote

    if is_remote():
        session.interruptAll()
    else:
        session.sparkContext.cancelAllJobs()
