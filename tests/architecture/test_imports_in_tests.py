"""One way to import what tests share: `from tests.log.log_rig import ...`, by its whole name, from the checkout's root.

pytest puts the root on the path (`pythonpath` in pyproject.toml). No test and no conftest.py changes `sys.path` for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"


def modules() -> list[Path]:
    return sorted(path for folder in (TESTS, ROOT / "bench") for path in folder.rglob("*.py"))


def names_of_siblings() -> frozenset[str]:
    return frozenset(path.stem for path in TESTS.rglob("*.py") if path.name not in ("conftest.py", "__main__.py"))


def wrong_imports(source: str, siblings: frozenset[str]) -> Iterator[str]:
    """The imports that name a module of the tests without `tests.` before it."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(level=0, module=str(module)):
                names = [module]
            case ast.ImportFrom():
                yield f"{node.lineno}: a relative import"
                continue
            case ast.Import():
                names = [alias.name for alias in node.names]
            case _:
                continue
        yield from (f"{node.lineno}: {name}" for name in names if name.partition(".")[0] in siblings | {"conftest"})


def test_tests_import_each_other_by_their_whole_names() -> None:
    siblings = names_of_siblings()
    wrong = [
        f"{path.relative_to(ROOT)}:{where}"
        for path in modules()
        for where in wrong_imports(path.read_text(encoding="utf-8"), siblings)
    ]
    assert wrong == []


def test_no_test_changes_the_path_of_imports() -> None:
    changing = re.compile(r"^ *sys\.path(\.insert|\[.*\] =| =|\.extend)", re.MULTILINE)
    allowed = {
        "tests/sim/test_sim_determinism.py": "a program that a child process runs",
        "tests/cli/test_cli_transcript.py": "a program that a child process runs",
    }
    found = {str(path.relative_to(ROOT)) for path in modules() if changing.search(path.read_text(encoding="utf-8"))}
    assert found == set(allowed)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("from tests.log.log_rig import make_log", []),
        ("from log_rig import make_log", ["1: log_rig"]),
        ("import log_rig", ["1: log_rig"]),
        ("def f():\n    from log_rig import make_log", ["2: log_rig"]),
        ("from . import log_rig", ["1: a relative import"]),
        ("from conftest import runner", ["1: conftest"]),
        ("import json", []),
    ],
)
def test_each_way_is_seen(source: str, wrong: list[str]) -> None:
    assert list(wrong_imports(source, frozenset({"log_rig"}))) == wrong
