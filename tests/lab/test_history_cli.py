"""`tanist lab verify`: what it prints, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.lab.anomalies import OF_HISTORIES

SOUND = """\
{"process":"p","type":"ok","f":"send","partition":"t-0","value":"a","offset":0}
{"process":"c","type":"ok","f":"poll","records":{"t-0":[[0,"a"]]}}
"""
LOSING = (
    SOUND
    + """\
{"process":"p","type":"ok","f":"send","partition":"t-0","value":"b","offset":1}
{"process":"p","type":"ok","f":"send","partition":"t-0","value":"c","offset":2}
{"process":"d","type":"ok","f":"poll","records":{"t-0":[[2,"c"]]}}
"""
)


def _verify(tmp_path: Path, text: str, *options: str) -> Result:
    path = tmp_path / "history.jsonl"
    path.write_text(text)
    return CliRunner().invoke(app, ["lab", "verify", str(path), *options])


def test_a_sound_history(tmp_path: Path) -> None:
    result = _verify(tmp_path, SOUND)
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "no anomalies"


def test_a_verdict_is_about_what_was_judged(tmp_path: Path) -> None:
    """Nobody has polled to the end, so a record that nobody sees may be lost."""
    unpolled = "".join(f"{line}\n" for line in SOUND.splitlines() if '"poll"' not in line)
    result = _verify(tmp_path, unpolled)
    assert result.exit_code == 0
    assert "unseen is not judged in" in result.output
    assert result.output.splitlines()[-1] == "no anomalies in what was judged"


def test_a_history_with_an_anomaly(tmp_path: Path) -> None:
    result = _verify(tmp_path, LOSING)
    assert result.exit_code == 1
    assert result.output.splitlines()[2:6] == [
        "lost-write: 1, acknowledged, and not there where somebody looked for it later",
        "  t-0: offset 1 was acknowledged and never polled, though 2 was polled",
        '  line 3: {"process": "p", "type": "ok", "f": "send", "partition": "t-0", "value": "b", "offset": 1}',
        '  line 5: {"process": "d", "type": "ok", "f": "poll", "records": {"t-0": [[2, "c"]]}}',
    ]
    assert result.output.splitlines()[-1] == "1 kind of anomalies: lost-write"


def test_what_is_allowed_is_no_failure(tmp_path: Path) -> None:
    result = _verify(tmp_path, LOSING, "--allow", "lost-write", "--allow", "unseen")
    assert result.exit_code == 0
    assert "lost-write: 1 (allowed), acknowledged" in result.output
    assert _verify(tmp_path, LOSING, "--allow", "unseen").exit_code == 1
    assert _verify(tmp_path, LOSING, "--allow", "lossy").exit_code == 2


def test_every_anomaly_of_histories_can_be_allowed_and_none_of_audits_alone(tmp_path: Path) -> None:
    allowed = [option for anomaly in OF_HISTORIES for option in ("--allow", anomaly.value)]
    assert _verify(tmp_path, LOSING, *allowed).exit_code == 0
    assert _verify(tmp_path, LOSING, *allowed, "--allow", "divergent").exit_code == 2


def test_json(tmp_path: Path) -> None:
    result = _verify(tmp_path, LOSING, "--json")
    reported = json.loads(result.output)
    assert result.exit_code == 1
    assert reported["valid"] is False
    assert reported["anomalies"]["lost-write"]["count"] == 1
    assert [each["line"] for each in reported["anomalies"]["lost-write"]["evidence"]] == [3, 5]


def test_a_malformed_file(tmp_path: Path) -> None:
    result = _verify(tmp_path, SOUND + '{"process":"p"\n')
    assert result.exit_code == 2
    assert "history.jsonl: line 3: it is not JSON: Expecting ',' delimiter at column 15" in result.output
    assert CliRunner().invoke(app, ["lab", "verify", str(tmp_path / "nothing.jsonl")]).exit_code == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has no operations"),
        ("\n\n", "it has no operations"),
        ('{"process":"nemesis","f":"kill"}\n', "it has no operations"),
        (
            '{"process":"p","type":"fail","f":"send","partition":"t-0","value":"a"}\n'
            '{"process":"p","type":"info","f":"send","partition":"t-0","value":"b"}\n'
            '{"process":"c","type":"ok","f":"poll"}\n',
            "nothing in its 3 operations was acknowledged",
        ),
    ],
)
def test_a_history_that_has_nothing_to_judge_is_an_error(tmp_path: Path, text: str, why: str) -> None:
    for options in ((), ("--json",)):
        result = _verify(tmp_path, text, *options)
        assert result.exit_code == 2
        assert f"history.jsonl: {why}" in result.output
        assert "no anomalies" not in result.output


def test_what_consumers_were_given_is_something_to_judge(tmp_path: Path) -> None:
    polled = '{"process":"c","type":"ok","f":"poll","records":{"t-0":[[0,"a"]]}}\n'
    assert "phantom: 1" in _verify(tmp_path, polled).output


def test_nothing_of_a_cluster_is_loaded() -> None:
    """A history of another Kafka can be judged without the rest of tanist."""
    code = (
        "import sys, tanist.lab.history; print([m for m in sys.modules if m.startswith(('tanist.broker', 'uvloop'))])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
