"""Bugs that replicated logs have had: each is a test that fails if tanist had it, and mostly one that plants it.

`bug` makes an entry of docs/field.md of a test. The test's docstring is one sentence: what went wrong there. `planted`
makes the patches that put the bug into tanist; with them the test must be red. `tools/field_page.py` writes the page.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tanist.lab.mutations.patching import Breaks

Check = Callable[[], None]

FOLDER = Path(__file__).parent

BOTH_HAVE_IT: Mapping[str, bool] = {"4.3.1": True, "4.4.0": True}
NEITHER_HAS_IT: Mapping[str, bool] = {"4.3.1": False, "4.4.0": False}


@dataclass(frozen=True, slots=True)
class Bug:
    """An entry of docs/field.md."""

    source: str
    """Where it was: the number of an issue, or of a pull request."""
    kind: str
    """The test file's."""
    check: Check
    planted: Breaks | None
    mutations: tuple[str, ...]
    """Those of docs/mutations.md that are this bug: the simulator finds them from seeds."""
    apache: str
    """What is known of Apache Kafka 4.3.1."""
    shown: Mapping[str, bool]
    """Versions of Apache Kafka on which `tests/interop/field` has shown whether they have it."""
    was_here: bool
    """tanist has had it."""

    @property
    def test(self) -> str:
        return self.check.__name__

    @property
    def went_wrong(self) -> str:
        """One sentence."""
        return " ".join((inspect.getdoc(self.check) or "").split())


BUGS: list[Bug] = []
"""In the order of the files, and of the tests in them, once `all_bugs` has imported them."""


def bug(
    source: str,
    *,
    planted: Breaks | None = None,
    mutations: tuple[str, ...] = (),
    apache: str = "mended",
    shown: Mapping[str, bool] | None = None,
    was_here: bool = False,
) -> Callable[[Check], Check]:
    """The test is about this bug of others."""

    def enter(check: Check) -> Check:
        kind = Path(inspect.getfile(check)).stem.removeprefix("test_field_").replace("_", " ")
        BUGS.append(Bug(source, kind, check, planted, mutations, apache, shown or {}, was_here))
        return check

    return enter


def all_bugs() -> tuple[Bug, ...]:
    """Those of all files."""
    for path in sorted(FOLDER.glob("test_field_*.py")):
        importlib.import_module(f"tests.field.{path.stem}")
    known = {(each.source, each.test): each for each in BUGS}
    return tuple(sorted(known.values(), key=lambda each: each.kind))
