"""One run of the test: load, faults, final reads, verdict. `play` is the whole of it.

Owns the folder of results and the worker processes. In any case, Ctrl-C included, workers are ended and the target is
closed. A run that could not be carried out raises `RunFailed`: it proves nothing about the records.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from tanist.installed import add_extra
from tanist.lab.history import Anomaly, HistoryWriter, Operation, Verdict, open_history, report, verify
from tanist.lab.jepsen.confluent_settings import of_librdkafka
from tanist.lab.jepsen.final import read_everything
from tanist.lab.jepsen.nemesis import Mark, Nemesis, Played
from tanist.lab.jepsen.outcome import WriteAccount, account
from tanist.lab.jepsen.own_client import value_of
from tanist.lab.jepsen.plan import ClientName, Isolation, Plan, Role, Workload
from tanist.lab.jepsen.schedule import MIXED, draw
from tanist.lab.jepsen.target import RunFailed, Target, client_of
from tanist.runtime.client import admin
from tanist.runtime.client.client import KafkaError, Unreachable
from tanist.runtime.client.salvaged import by_partition, find_entries
from tanist.runtime.cluster.cluster_file import ClusterError

ALLOWED = (Anomaly.STALE_END,)
"""A deposed leader that does not know it yet may cause this (docs/history.md)."""
REPLICATION_FACTOR = 3
_READY_S = 60.0
_WORKER_PATIENCE_S = 40.0
_LAST_CALM_S = 5.0
"""Share of the time without faults at the end."""
_NS = 1_000_000_000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run."""

    minutes: float = 5.0
    rate: float = 200.0
    """Records a second, of all writers together."""
    partitions: int = 4
    writers: int = 2
    readers: int = 2
    tests: tuple[str, ...] = (MIXED,)
    min_isr: int = 2
    unclean: bool = False
    seed: int = 0
    client: ClientName = "tanist"
    topic: str = "jepsen"
    workload: Workload = "records"
    isolation: Isolation = "read_committed"
    """What the consumers of transactional clients ask for. Their history says read_committed in any case: tests set it
    to see that the checker notices."""


@dataclass(slots=True)
class JepsenResult:
    """The result of a run."""

    settings: Settings
    target: str
    began_ns: int
    ended_ns: int
    """End of the load."""
    played: list[Played]
    marks: list[Mark]
    outcome: WriteAccount
    verdict: Verdict
    lines: list[str] = field(default_factory=list)
    """The checker's report."""
    hanging: list[str] = field(default_factory=list)
    """Partitions where a transaction stays open."""

    @property
    def failed(self) -> bool:
        wrong = report.failures(self.verdict, ALLOWED)
        return bool(self.outcome.lost or self.outcome.unexpected or self.hanging or wrong)

    def as_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "settings": asdict(self.settings),
            "seconds": round((self.ended_ns - self.began_ns) / _NS, 1),
            **self.outcome.as_json(),
            "anomalies": {found.anomaly.value: found.count for found in self.verdict.findings},
            "allowed_by_kafka": {found.anomaly.value: found.count for found in self.verdict.expected},
            "transactions": self.verdict.transactions,
            "hanging": self.hanging,
            "episodes": [
                {
                    "kind": each.episode.kind,
                    "how": each.episode.how,
                    "at_s": round((each.began_ns - self.began_ns) / _NS, 1),
                    "lasted_s": round((each.ended_ns - each.began_ns) / _NS, 1),
                    "in_sync_after_s": round((each.in_sync_ns - each.ended_ns) / _NS, 1) if each.in_sync_ns else None,
                }
                for each in self.played
            ],
        }


def choose_client(wanted: str) -> ClientName:
    """`auto` is confluent-kafka if it is installed, and tanist's own client if not."""
    installed = importlib.util.find_spec("confluent_kafka") is not None
    if wanted == "confluent" and not installed:
        raise RunFailed(f"confluent-kafka is not installed: {add_extra('jepsen')}")
    return "confluent" if installed and wanted != "tanist" else "tanist"


def play(target: Target, settings: Settings, out: Path, say: Say) -> JepsenResult:
    """Run on a cluster that is up, and leave `history.jsonl` in `out`. The target is the caller's to close."""
    wait = threading.Event().wait  # it is never set: Ctrl-C interrupts it
    episodes = draw(settings.seed, settings.tests, target.node_ids, settings.partitions, target.abilities)
    first = next(episodes)
    if settings.client == "confluent":
        of_librdkafka(target.properties)  # says now what it does not have
    nemesis = Nemesis(target, settings.topic, wait, say)
    _create_topic(target, settings)
    if not nemesis.await_in_sync():
        raise RunFailed("the new topic has not all its replicas in sync after a minute")
    began_ns = time.monotonic_ns()
    deadline_s = time.monotonic() + settings.minutes * 60
    parts = out / "clients"
    parts.mkdir(parents=True, exist_ok=True)
    with _workers(target, settings, parts) as workers:
        episode = first
        if not list(planned(target, settings)):
            say("the time is too short for a fault: say more --minutes")
        while time.monotonic() + episode.calm_s + 2 * episode.lasts_s + _LAST_CALM_S < deadline_s:
            _require_alive(workers)
            wait(episode.calm_s)
            say(f"{(time.monotonic_ns() - began_ns) / _NS:6.1f} s  {episode}")
            try:
                nemesis.play(episode)
            except (ClusterError, KafkaError, Unreachable) as error:
                raise RunFailed(f"{episode.kind}: {error}") from error
            episode = next(episodes)
        wait(max(0.0, deadline_s - time.monotonic()))
        _require_alive(workers)
        ended_ns = time.monotonic_ns()
        say(f"{(ended_ns - began_ns) / _NS:6.1f} s  the writers stop; everything is read")
    history = out / "history.jsonl"
    nemesis.restore()
    nemesis.await_in_sync()
    with history.open("w", encoding="utf-8") as file:
        for part in sorted(parts.iterdir()):
            with part.open(encoding="utf-8") as lines:
                file.writelines(lines)
        _write_marks(HistoryWriter(file), nemesis)
        hanging = read_everything(HistoryWriter(file), target, settings.topic, settings.partitions, settings.workload)
    return judge(history, target, settings, nemesis, (began_ns, ended_ns), hanging)


def judge(
    history: Path,
    target: Target,
    settings: Settings,
    nemesis: Nemesis,
    span_ns: tuple[int, int],
    hanging: Sequence[str] = (),
) -> JepsenResult:
    """Judge the history, and look for lost writes in the salvage."""
    outcome = account(_reported_operations(history))
    if target.data is not None and outcome.lost:
        outcome.note_salvaged(_salvaged(target.data, settings.topic))
    verdict, operations = verify(history)
    lines = list(report.lines(verdict, operations, ALLOWED))
    lines += [f"{each}: a transaction hangs, and readers of committed records wait there" for each in hanging]
    played, marks = nemesis.played, nemesis.marks
    return JepsenResult(settings, target.name, *span_ns, played, marks, outcome, verdict, lines, list(hanging))


def planned(target: Target, settings: Settings) -> Iterator[str]:
    """The expected schedule: calm, the episode, and the same time again to get in sync."""
    left_s = settings.minutes * 60 - _LAST_CALM_S
    episodes = draw(settings.seed, settings.tests, target.node_ids, settings.partitions, target.abilities)
    for episode in islice(episodes, 1000):
        left_s -= episode.calm_s + 2 * episode.lasts_s
        if left_s < 0:
            return
        yield str(episode)


# -- the cluster


def _create_topic(target: Target, settings: Settings) -> None:
    config = {
        "min.insync.replicas": str(settings.min_isr),
        "unclean.leader.election.enable": str(settings.unclean).lower(),
    }
    if len(target.node_ids) < REPLICATION_FACTOR:
        raise RunFailed(f"the test takes {REPLICATION_FACTOR} brokers, and the cluster has {len(target.node_ids)}")
    try:
        with client_of(target, _READY_S) as client:
            admin.create_topic(
                client,
                settings.topic,
                partitions=settings.partitions,
                replication_factor=REPLICATION_FACTOR,
                config=config,
            )
    except (KafkaError, Unreachable) as error:
        raise RunFailed(f"topic {settings.topic} cannot be created: {error}") from error


def _salvaged(folder: Path, topic: str) -> Iterator[tuple[str, str]]:
    entries, _ = find_entries(folder)
    for salvage in by_partition(entries):
        if salvage.topic == topic:
            for each in salvage.records():
                yield f"{topic}-{salvage.partition}", value_of(each.record.value)


# -- the history


def _write_marks(writer: HistoryWriter, nemesis: Nemesis) -> None:
    """Write the faults, for people: checkers skip them."""
    for each in nemesis.played:
        writer.complete("nemesis", each.episode.kind, "info", each.began_ns, how=each.episode.how)
    for mark in nemesis.marks:
        writer.complete("nemesis", mark.what, "info", mark.began_ns, node=mark.node_id, until_ns=mark.ended_ns)


def _reported_operations(history: Path) -> Iterator[Operation]:
    for _, operation in open_history(history).operations(None):
        if operation["process"] != "nemesis":
            yield operation


# -- the workers


def _plans(target: Target, settings: Settings) -> Iterator[Plan]:
    clients = settings.writers + settings.readers
    roles: tuple[tuple[Role, int, int], ...] = (
        ("writer", settings.writers, settings.writers),
        ("reader", settings.readers, settings.writers),
    )
    if settings.workload == "transactions":
        roles = (("transactor", clients, clients),)
    for role, count, share in roles:
        for number in range(count):
            yield Plan(
                role,
                f"{role[0]}{number + 1}",
                settings.client,
                tuple(target.addresses),
                settings.topic,
                settings.partitions,
                settings.rate / share,
                settings.seed,
                settings.isolation,
                target.properties,
            )


@contextmanager
def _workers(target: Target, settings: Settings, parts: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes of the load. At the end they stop by themselves; after an error they are killed."""
    started: list[subprocess.Popen[bytes]] = []
    with ExitStack() as files:
        try:
            for plan in _plans(target, settings):
                part = parts / f"{plan.name}.jsonl"
                errors = files.enter_context((parts.parent / f"{plan.name}.err").open("wb"))
                worker = subprocess.Popen(
                    [sys.executable, "-m", "tanist.lab.jepsen.worker", plan.encode(), str(part)],
                    stdin=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
                started.append(worker)
                if worker.stdin is not None:
                    worker.stdin.write(json.dumps(dict(plan.properties)).encode() + b"\n")
                    worker.stdin.flush()
            yield started
            for worker in started:
                if worker.stdin is not None:
                    worker.stdin.close()
            for worker in started:
                worker.wait(_WORKER_PATIENCE_S)
            _require_success(started, parts.parent)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"a client has not ended within {_WORKER_PATIENCE_S:.0f} s") from None
        finally:
            for worker in started:
                if worker.poll() is None:
                    worker.kill()
                    worker.wait()
                if worker.stdin is not None:
                    worker.stdin.close()


def _require_alive(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        if worker.poll() is not None:
            raise RunFailed(f"a client has ended by itself, with {worker.returncode}: see the .err files")


def _require_success(workers: Sequence[subprocess.Popen[bytes]], out: Path) -> None:
    if any(worker.returncode for worker in workers):
        raise RunFailed(f"a client has failed: see the .err files in {out}")
    for errors in out.glob("*.err"):
        if not errors.stat().st_size:
            errors.unlink()


def interrupt_on_sigterm() -> None:
    """A SIGTERM ends the run as Ctrl-C does: with everything stopped."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def save(result: JepsenResult, out: Path) -> None:
    """`summary.json`, for programs and for comparing runs."""
    (out / "summary.json").write_text(json.dumps(result.as_json(), indent=2) + "\n")
