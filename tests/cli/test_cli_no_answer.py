"""Where no broker answers, every command says so after the same few seconds."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tests.cli.command_cases import ALL, CASES, has

SECONDS_MAX = 4.0
OTHERWISE = {
    "ui": "a server until Ctrl-C",
    "wait": "it waits for as long as --timeout says",
    "salvage export": "it reads a folder, and asks brokers with --to topic only",
    "jepsen": "it waits for a cluster that is still starting",
}


@pytest.fixture
def refused() -> Iterator[str]:
    """An address that nobody listens at, and that nobody can take."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Time passes only in pauses."""
    now = SimpleNamespace(s=0.0)

    def sleep(seconds: float) -> None:
        now.s += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now.s)
    monkeypatch.setattr(time, "sleep", sleep)
    return now


@pytest.mark.parametrize(
    "name", [name for name in CASES if name in ALL and has(ALL[name], "--bootstrap") and name not in OTHERWISE]
)
def test_it_gives_up_after_a_few_seconds(refused: str, clock: SimpleNamespace, tmp_path: Path, name: str) -> None:
    (move := tmp_path / "move.json").write_text(
        '{"version": 1, "partitions": [{"topic": "things", "partition": 0, "replicas": [1, 2, 3]}]}'
    )
    (ledger := tmp_path / "ledger.jsonl").write_text('{"topic": "things", "partition": 0, "offset": 0, "value": "a"}\n')
    names = {"topic": "things", "group": "g", "move": str(move), "ledger": str(ledger), "hangs_at": "0"}
    names |= {"entry": "1", "out": str(tmp_path / "out"), "data": str(tmp_path)}
    words = f"{name} {CASES[name].arguments} --bootstrap {refused}".format(**names).split()
    done = CliRunner().invoke(app, words, input=CASES[name].stdin)
    assert done.exit_code == 1, done.output
    assert "Connection refused" in done.stderr
    assert clock.s <= SECONDS_MAX
