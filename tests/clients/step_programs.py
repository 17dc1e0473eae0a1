"""The programs that carry out steps with a client: one a client, which runs as long as its tests do.

Each reads cases, one a line of JSON, and answers each with a line: what came of each step. A case has the settings of
the client (`bootstrap`, `protocol`, `ca`, `certificate`, `mechanism`, `username`, `password`, `token`) and `steps`:

    ["create", {"topic"}]                       an admin client's request
    ["produce", {"topic", "values"}]
    ["transaction", {"topic", "id", "values"}]  one that commits
    ["consume", {"topic", "group", "count"}]    in a group; gives the values

The answer of a step is `{"value": ...}`, or `{"error": "..."}` with what the client itself says.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.clients import builds, install
from tests.interop import apache

STEPS: Final = Path(__file__).parent / "steps"
ANSWER_S: Final = 90.0
Step = tuple[str, Mapping[str, object]]


class StepsProgram:
    """A running program of a client."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], said: Path) -> None:
        """`said`: the file of what it prints besides its answers."""
        self._said = said
        with said.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, **environment},
            )  # fmt: skip
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def run(self, settings: Mapping[str, object], *steps: Step) -> list[dict[str, Any]]:
        """What came of each step."""
        self._process.stdin.write(json.dumps({**settings, "steps": steps}) + "\n")
        self._process.stdin.flush()
        try:
            answer = self._answers.get(timeout=ANSWER_S)
        except queue.Empty:
            answer = ""
        if not answer:
            raise AssertionError(f"no answer; the program says:\n{self._said.read_text(errors='replace')[-3000:]}")
        found: list[dict[str, Any]] = json.loads(answer)
        return found

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def _python(name: str) -> tuple[list[str], dict[str, str]]:
    command = [str(install.CACHE / "clients-venv" / "bin" / "python"), str(STEPS / f"{name}_steps.py")]
    return command, {"PYTHONPATH": str(STEPS.parents[2])}


def _kafkajs() -> tuple[list[str], dict[str, str]]:
    environment = {"NODE_PATH": str(builds.node_modules()), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    return ["node", str(builds.KAFKAJS / "steps.js")], environment


def _java() -> tuple[list[str], dict[str, str]]:
    source = Path(__file__).parent / "java" / "Steps.java"
    return apache.java_command(str(source), flags=apache.TOOL_FLAGS), {}


CLIENTS: Final[Mapping[str, tuple[Callable[[], str | None], Callable[[], tuple[list[str], dict[str, str]]]]]] = {
    "confluent-kafka": (lambda: None, lambda: _python("confluent")),
    "kafka-python": (lambda: None, lambda: _python("kafka_python")),
    "aiokafka": (lambda: None, lambda: _python("aiokafka")),
    "kafkajs": (builds.missing_node, _kafkajs),
    "franz-go": (builds.missing_go, lambda: ([str(builds.franz("steps"))], {})),
    "java": (apache.missing, _java),
}
"""Why a client's program cannot run here, and how it is run."""
