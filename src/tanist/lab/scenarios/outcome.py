"""The result of a scenario: it passed, it failed, or tanist differs from Apache on purpose.

Owns the three verdicts and the two ways in which a player reports: it raises `Mismatch` for a defect, and returns the
`Deviation`s that a rule explains (`deviations`). Errors have names: `error_name` gives Apache's exceptions and its
protocol errors the same one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tanist.lab.scenarios.deviations import Deviation
from tanist.lab.scenarios.fields import Fields, NotUnderstood
from tanist.wire.errors import ErrorCode


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    DEVIATES = "deviates"


@dataclass(frozen=True, slots=True)
class Difference:
    """One unexpected result. `deviation`: the rule that explains it."""

    what: str
    expected: str
    seen: str
    deviation: Deviation | None = None

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, saw {self.seen}"


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    id: str
    kind: str
    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    reason: str | None = None
    """The reason why it could not be played at all."""
    unknown_kind: bool = False


class Mismatch(Exception):
    """An unexpected result that no rule explains."""

    def __init__(self, what: str, expected: object, seen: object) -> None:
        self.difference = Difference(what, value_text(expected), value_text(seen))
        super().__init__(str(self.difference))


def value_text(value: object) -> str:
    """A value in a line of the report: sets and tuples as lists, as in the file."""
    if isinstance(value, (set, frozenset)):
        return f"[{', '.join(sorted(map(value_text, value)))}]"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {value_text(each)}' for name, each in value.items())}}}"
    return "none" if value is None else str(value)


def same(what: str, seen: object, expected: object) -> None:
    """They must be equal, and of one type: true is not 1."""
    if isinstance(seen, bool) != isinstance(expected, bool) or seen != expected:
        raise Mismatch(what, expected, seen)


def check(expect: Fields, seen: Mapping[str, object]) -> None:
    """Compare each expectation with the seen value of its name. A name without a seen value is an error."""
    for name in expect:
        if name == "note":
            continue
        if name not in seen:
            raise NotUnderstood(f"not understood: {expect.where}.{name}")
        same(name, _plain(seen[name]), _plain(expect[name]))


def _plain(value: object) -> object:
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def error_name(expected: Any) -> str:
    """The protocol's name of an expected error: StaleBrokerEpochException and STALE_BROKER_EPOCH are the same."""
    name = "NONE" if expected is None else str(expected)
    if name.endswith("Exception"):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Exception")).upper()
    return name


def is_failure(expected: Any) -> bool:
    """Whether an expected error is not a protocol error: if Apache's code throws, ours must raise."""
    return str(expected).endswith("Exception") and error_name(expected) not in ErrorCode.__members__


def same_error(what: str, seen: int, expected: Any) -> None:
    """An error code against an expected name; no name means NONE."""
    same(what, ErrorCode.name_of(seen), error_name(expected))
