"""Simulated runs, judged by what their clients could know.

Where nothing was given up, nothing may be found. Where something was, what the clients miss is found, and whatever is
found is of the partitions that lost something.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tanist.lab.history import Anomaly, Verdict, verify
from tanist.lab.history.simulated import Recorder
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.workload.history import History, Read, Send

SEEDS = (1, 3, 149, 182)


def _check(seed: int, path: Path) -> Verdict | None:
    """None if the run did not come to its end, which is for the simulator's tests, or records are deleted in it."""
    run = ChaosRun(seed)
    if run.config.trims:
        return None  # retention deletes what nobody has polled
    if any(("cleanup.policy", "compact") in topic.configs for topic in run.config.topics):
        return None  # a compacted topic skips offsets, and Jepsen's poll-skip is about topics that keep all records
    recorder = Recorder(run.history)
    if run.run().violation is not None:
        return None
    with path.open("w") as file:
        recorder.write(file, drained_us=run.world.now_us)
    verdict, _ = verify(path)
    sends = run.history.sends
    assert verdict.acknowledged == sum(send.outcome == "ok" for send in sends)
    assert verdict.failed == sum(send.outcome == "failed" for send in sends)
    assert verdict.acknowledged + verdict.failed + verdict.unknown == len(sends)
    assert verdict.records_polled == len(run.history.reads)
    unclean = {oracle.name for oracle in run.checkers.replicas.oracles.values() if oracle.unclean}
    for found in verdict.findings:
        assert set(found.partitions) <= unclean, (seed, found)
    read = {entry.value for entry in run.history.reads}
    missed = [send for send in sends if send.outcome == "ok" and send.promised and send.value not in read]
    reported = next((found.count for found in verdict.findings if found.anomaly is Anomaly.UNSEEN), 0)
    # A reader beyond the end of what an unclean election has left polls nothing there any more.
    assert set(verdict.not_polled_at_the_end) <= unclean
    assert reported + sum(verdict.not_polled_at_the_end.values()) == len(missed)
    return verdict


@pytest.mark.parametrize("seed", SEEDS)
def test_a_simulated_run(seed: int, tmp_path: Path) -> None:
    assert _check(seed, tmp_path / "run.jsonl") is not None


@pytest.mark.slow
def test_many_of_which_some_lose(tmp_path: Path) -> None:
    verdicts = [_check(seed, tmp_path / "run.jsonl") for seed in range(100, 220)]
    judged = [verdict for verdict in verdicts if verdict is not None]
    assert len(judged) >= 95
    assert sum(Anomaly.LOST_WRITE in {found.anomaly for found in verdict.findings} for verdict in judged) >= 2
    assert sum(not verdict.findings for verdict in judged) >= 60


def _send(number: int, at_us: int, outcome: str = "ok", offset: int = -1, **fields: Any) -> Send:
    send = Send("p", number, "t", 0, b"v%d" % number, at_us, **fields)
    send.outcome, send.offset, send.completed_us = outcome, offset, at_us + 5 if outcome != "unknown" else -1
    return send


def test_the_lines(tmp_path: Path) -> None:
    history = History()
    heard: list[object] = []
    history.on_moved = lambda *what: heard.append(what)
    history.on_refused = lambda *what: heard.append(what)
    recorder = Recorder(history)
    history.sent(_send(1, 10, offset=0))
    refused = _send(2, 20, "unknown")
    history.sent(refused)
    history.on_refused(refused, 45)
    history.sent(_send(3, 30, "failed", promised=False, ordered=False))
    history.read(Read("t", 0, 0, b"v1", "c", 40))
    history.read(Read("t", 0, 1, b"v2", "c", 40))
    history.on_moved("t", 0, "c", 7)
    history.read(Read("t", 0, 7, b"v3", "c", 50))
    with (tmp_path / "lines").open("w") as file:
        recorder.write(file, drained_us=60)
    assert (tmp_path / "lines").read_text().splitlines() == [
        '{"process":"p","type":"ok","f":"send","partition":"t-0","value":"v1","offset":0,"invoked_ns":10000,'
        '"time_ns":15000}',
        '{"process":"p","type":"info","f":"send","partition":"t-0","value":"v2","invoked_ns":20000,"time_ns":20000}',
        '{"process":"p","type":"info","f":"crash","time_ns":30000}',
        '{"process":"p","type":"fail","f":"send","partition":"t-0","value":"v3","acks":1,"idempotent":false,'
        '"invoked_ns":30000,"time_ns":35000}',
        '{"process":"c/t-0","type":"ok","f":"assign","partitions":["t-0"],"positions":{"t-0":0},"time_ns":40000}',
        '{"process":"c/t-0","type":"ok","f":"poll","records":{"t-0":[[0,"v1"],[1,"v2"]]},"time_ns":40000}',
        '{"process":"c/t-0","type":"ok","f":"seek","positions":{"t-0":7},"time_ns":40000}',
        '{"process":"c/t-0","type":"ok","f":"poll","records":{"t-0":[[7,"v3"]]},"time_ns":50000}',
        '{"process":"c/t-0","type":"ok","f":"poll","time_ns":60000}',
    ]
    assert heard == [(refused, 45), ("t", 0, "c", 7)]
