"""`tanist incident` with an operator who types what it says, in a shell of his own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_rig import TANIST

PROMPT = "    $ "
EXPORT = "    export "


@pytest.mark.long
def test_an_operator_who_types_what_it_says_loses_fifty_records_and_gets_them_back(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    incident = subprocess.Popen(
        [*TANIST, "incident", "--elr", "off"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    export, typed, lines = "", [], []
    try:
        assert incident.stdout is not None
        for line in incident.stdout:
            lines.append(line)
            if line.startswith(EXPORT):
                export = line.strip()
            elif line.startswith(PROMPT):
                typed.append(line.removeprefix(PROMPT).strip())
                subprocess.run(["bash", "-c", f"{export}; {typed[-1]}"], env=environment, timeout=60, check=False)
        assert incident.wait(60) == 0, "".join(lines)
    finally:
        incident.kill()
    assert [words.split()[1] for words in typed if words.startswith("tanist")] == [
        "pause", "pause", "crash", "resume", "resume", "start", "account", "salvage", "salvage",
    ]  # fmt: skip
    assert "A write with acks=all is refused now: NOT_ENOUGH_REPLICAS.\n" in lines
    assert "without ELR: 150 acknowledged, 50 lost, 50 of them salvaged, 0 missing now\n" in lines
    assert [line for line in lines if len(line) > 81 and not line.startswith(EXPORT)] == []
    assert list(tmp_path.glob("tanist-incident-*")) == []


def test_json_needs_auto() -> None:
    done = subprocess.run([*TANIST, "incident", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["message"] == ("--json needs --auto")
