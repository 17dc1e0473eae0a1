"""What a suite's tests came to, read from its runner's own report, and the account of it.

Reads JUnit's XML, as pytest writes it, what `go test -json` prints, and the summary of librdkafka's test program.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

Outcome = Literal["passed", "failed", "skipped"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "skipped")
REASON_CHARACTERS = 240

_GO_ACTIONS: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
# What the test runner itself says of a test, and where a message comes from.
_GO_NOISE = re.compile(r"\s*(=== |--- |PASS\b|ok\b)")
_GO_PLACE = re.compile(r"^\s*\S+_test\.go:\d+: ")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_RDKAFKA = re.compile(r"\| *(\d{4}_\w+) *\| *([A-Z]+) *\| *[\d.]+s *\| ?(.*)")
_RDKAFKA_FAILURE = re.compile(r'^### Test "(\d{4}_\w+).*" failed at .*\n(.*)', re.MULTILINE)
_RDKAFKA_STATES: dict[str, Outcome] = {"PASSED": "passed", "SKIPPED": "skipped"}
_GO_CLEANUP = re.compile(r"NOT DELETING|: deleting (topic|group) ")


@dataclass(frozen=True, slots=True)
class Result:
    """One test."""

    name: str
    outcome: Outcome
    reason: str = ""
    """Why it failed or was skipped, as the suite says it."""


def from_junit(xml: str) -> list[Result]:
    """The tests of a pytest run; one that fails and then fails to clean up counts once."""
    results: dict[str, Result] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        result = Result(name, "passed")
        for problem in case:
            if problem.tag in ("failure", "error"):
                result = Result(name, "failed", _short(problem.get("message") or problem.text or ""))
            elif problem.tag == "skipped":
                result = Result(name, "skipped", _short(problem.get("message") or ""))
        if name not in results or results[name].outcome != "failed":
            results[name] = result
    return list(results.values())


def from_go(lines: Iterable[str]) -> list[Result]:
    """The tests of a `go test -json` run; those that never ended, because the run was, have failed.

    A test that has parts is not reported beside them, unless it failed and none of them did.
    """
    said: dict[str, list[str]] = {}
    outcomes: dict[str, Outcome] = {}
    for line in lines:
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        name = event.get("Test")
        if name is None:
            continue
        if event["Action"] == "run":
            said[name] = []
        elif event["Action"] == "output" and not _GO_NOISE.match(event["Output"]):
            said.setdefault(name, []).append(event["Output"])
        elif event["Action"] in _GO_ACTIONS:
            outcomes[name] = _GO_ACTIONS[event["Action"]]
    results = []
    for name, output in said.items():
        outcome = outcomes.get(name, "failed")
        parts = [outcomes.get(other, "failed") for other in said if other.startswith(f"{name}/")]
        if parts and (outcome != "failed" or "failed" in parts):
            continue
        reason = "" if outcome == "passed" else _go_reason(output) if name in outcomes else "did not end in time"
        results.append(Result(name, outcome, reason))
    return results


def _go_reason(output: Sequence[str]) -> str:
    """The last of what the test itself said before it cleaned up; log lines of the client come before that."""
    reported = [line for line in output if _GO_PLACE.match(line) and not _GO_CLEANUP.search(line)] or list(output)
    return _short(_GO_PLACE.sub("", reported[-1])) if reported else ""


def from_librdkafka(output: str) -> list[Result]:
    """The tests of a run of its program; those that still ran when it was ended have failed.

    A test that fails may take the program along, before the summary; what it said is in the output.
    """
    plain = _COLOURS.sub("", output)
    results = {found[1]: Result(found[1], "failed", _short(found[2])) for found in _RDKAFKA_FAILURE.finditer(plain)}
    for line in plain.splitlines():
        if (found := _RDKAFKA.match(line)) is not None:
            outcome = _RDKAFKA_STATES.get(found[2], "failed")
            why = found[3] if found[2] in ("FAILED", "SKIPPED") else "did not end in time"
            results[found[1]] = Result(found[1], outcome, "" if outcome == "passed" else _short(why))
    return list(results.values())


def _short(reason: str) -> str:
    first = next((line.strip() for line in reason.splitlines() if line.strip()), "")
    return first if len(first) <= REASON_CHARACTERS else f"{first[: REASON_CHARACTERS - 1]}…"


def account(results: Sequence[Result]) -> str:
    """The reason of each test that did not pass, and the counts."""
    lines = [
        f"{result.outcome}: {result.name}\n    {result.reason}"
        for outcome in ("skipped", "failed")
        for result in results
        if result.outcome == outcome
    ]
    counts = Counter(result.outcome for result in results)
    lines.append(", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES))
    return "\n".join(lines)
