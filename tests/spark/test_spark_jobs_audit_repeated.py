"""Audits again and again: what came of each as metrics, and as the exit code of all."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tanist.lab.anomalies import Anomaly
from tanist.runtime.cluster.processes import wait_until
from tanist.spark.jobs.audit.repeated import Audits, repeat
from tanist.spark.jobs.audit.result import AuditResult
from tests.cli.cli_rig import free_port
from tests.spark.spark_audit_samples import missing_tail, sound_scene

PATIENCE_S = 900
SPARK = ("--master", "local[1]", "--conf", "spark.driver.memory=1g")
CLEAN = AuditResult(records=7, sends=3)
FOUND = AuditResult(records=5, counts={(Anomaly.LOST_WRITE, "orders", 0): 2, (Anomaly.LOST_WRITE, "orders", 1): 1})


class Over(Exception):
    """No more audits."""


class Pauses(Event):
    """Does not wait; stopped when there are no more results."""

    def __init__(self, left: list[Any], reported: list[str]) -> None:
        super().__init__()
        self._left, self._reported = left, reported

    def wait(self, timeout: float | None = None) -> bool:
        self._reported.append("paused" if timeout is not None and 59 < timeout <= 60 else f"paused {timeout}")
        return False

    def is_set(self) -> bool:
        return not self._left


def played(*results: AuditResult | Exception) -> tuple[Audits, list[str]]:
    """What comes of these; and of each how it was reported."""
    audits, reported, left = Audits(), [], [*results, Over()]

    def audit() -> AuditResult:
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def unjudged(error: Exception) -> None:
        reported.append(str(error))
        if isinstance(error, Over):
            raise error

    with suppress(Over):
        repeat(
            audit, 60, audits, judged=lambda each: reported.append(str(each.clean)), unjudged=unjudged,
            stopped=Pauses(left, reported),
        )  # fmt: skip
    return audits, reported


def test_each_audit_is_reported_and_the_next_begins_an_interval_after_it_began() -> None:
    audits, reported = played(CLEAN, ValueError("gone"), FOUND)
    assert reported == ["True", "paused", "gone", "paused", "False", "paused"]
    assert audits.exit_code == 1


@pytest.mark.parametrize(
    ("results", "exit_code"),
    [
        ((), 2),
        ((ValueError("gone"),), 2),
        ((CLEAN,), 0),
        ((ValueError("gone"), CLEAN, ValueError("gone")), 0),
        ((CLEAN, FOUND, CLEAN), 1),
        ((CLEAN, Over(), FOUND), 0),
    ],
)
def test_the_exit_code_is_that_of_all(results: tuple[AuditResult | Exception, ...], exit_code: int) -> None:
    assert played(*results)[0].exit_code == exit_code


def test_metrics_are_of_the_last_audit_that_could_judge() -> None:
    assert "tanist_audit_records" not in Audits().page
    page = samples(played(FOUND, CLEAN, FOUND, ValueError("gone"))[0].page)
    assert {outcome: page[f'tanist_audits_total{{outcome="{outcome}"}}'] for outcome in ("clean", "found")} == {
        "clean": 1, "found": 2,
    }  # fmt: skip
    assert page['tanist_audits_total{outcome="unjudged"}'] == 1
    assert page['tanist_audit_findings{kind="lost-write"}'] == 3
    assert page['tanist_audit_findings{kind="duplicate"}'] == 0
    assert (page["tanist_audit_records"], page["tanist_audit_ended_seconds"] > 1.7e9) == (5, True)


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(("--engine", "duckdb"), id="duckdb"),
        pytest.param(SPARK, id="spark", marks=pytest.mark.slow),
    ],
)
def test_a_service_finds_what_was_lost_goes_on_without_its_folder_and_ends_with_a_code(
    tmp_path: Path, engine: tuple[str, ...]
) -> None:
    sound_scene(1, 500, seed=3).write(tmp_path)
    with service(tmp_path, *engine) as (process, port):
        assert wait_until(lambda: scraped(port).get('tanist_audits_total{outcome="clean"}', 0) >= 2, PATIENCE_S)
        assert scraped(port)['tanist_audit_findings{kind="lost-write"}'] == 0
        (tmp_path / "data").rename(tmp_path / "elsewhere")
        assert wait_until(lambda: scraped(port).get('tanist_audits_total{outcome="unjudged"}', 0) >= 1, PATIENCE_S)
        assert scraped(port)['tanist_audits_total{outcome="found"}'] == 0
        broken = missing_tail(sound_scene(1, 500, seed=3), partition=0, records=100).write(tmp_path / "broken")
        (broken / "data").rename(tmp_path / "data")
        assert wait_until(lambda: scraped(port).get('tanist_audit_findings{kind="lost-write"}', 0) > 0, PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    problem = (tmp_path / "stderr").read_text()
    assert process.returncode == 1, problem
    lines = [json.loads(line) for line in (tmp_path / "stdout").read_text().splitlines()]
    assert [bool(each["counts"]) for each in lines[:2]] == [False, False]
    assert lines[-1]["counts"][0]["kind"] == "lost-write"
    assert {len(each["findings"]) for each in lines if not each["counts"]} == {0}
    assert "not judged: " in problem
    assert "Traceback" not in problem


@pytest.mark.slow
def test_a_service_whose_java_is_gone_ends(tmp_path: Path) -> None:
    sound_scene(1, 200, seed=3).write(tmp_path)
    with service(tmp_path, *SPARK) as (process, port):
        assert wait_until(lambda: scraped(port).get('tanist_audits_total{outcome="clean"}', 0) >= 1, PATIENCE_S)
        (java,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(java), signal.SIGKILL)
        assert process.wait(PATIENCE_S) == 2
    assert "not judged: " in (tmp_path / "stderr").read_text()


@contextmanager
def service(folder: Path, *engine: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_port()
    command = [
        sys.executable, "-m", "tanist.cli.main", "spark", "audit", "--data", str(folder / "data"),
        "--history", str(folder / "history.jsonl"), "--every", "500 milliseconds", "--metrics", f"127.0.0.1:{port}",
        "--json", *engine,
    ]  # fmt: skip
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
    try:
        yield process, port
    finally:
        process.kill()
        process.wait()


def scraped(port: int) -> dict[str, float]:
    """Empty before the service listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.status == 200
        return samples(response.read().decode())
    except ConnectionRefusedError:
        return {}
    finally:
        connection.close()


def samples(page: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in page.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}
