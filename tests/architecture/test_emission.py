"""Each kind of event is made by nodes' code, handed on there, and expected by a test of the package that emits it.

An event that nobody emits is a promise that is not kept; one that no test expects may come at the wrong moment, or with
the values of another. Tests of the operator's lines do not count, nor does an import: they make events themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.events import coordination, metadata, process, quorum, replication, storage
from tanist.events.event import Event

ROOT = Path(__file__).resolve().parents[2]
MODULES = {module.__name__ for module in (coordination, metadata, process, quorum, replication, storage)}
KINDS = sorted(name for name, kind in Event.kinds.items() if kind.__module__ in MODULES)

NODES = ("log", "replica", "quorum", "controller", "coordinator", "broker", "runtime")
"""Packages of nodes' code, in `src/tanist` and in `tests`."""
MAKE_THEIR_OWN = {
    "events/test_events.py", "events/test_lines.py", "events/test_controller_lines.py",
    "runtime/stand_in_node.py", "runtime/test_runtime_node_events.py", "runtime/test_runtime_serve.py",
}  # fmt: skip
"""Tests that make events themselves, for what listens to them."""


def made(tree: ast.AST) -> Iterator[str]:
    """The kinds that a module makes an event of: `Kind(...)`, or `Kind if ... else Other`, which is called later."""
    for node in ast.walk(tree):
        of = (
            (node.func,)
            if isinstance(node, ast.Call)
            else (node.body, node.orelse)
            if isinstance(node, ast.IfExp)
            else ()
        )
        yield from (each.id for each in of if isinstance(each, ast.Name) and each.id in Event.kinds)


def dropped(tree: ast.AST) -> Iterator[str]:
    """The kinds of events that are made and given to nobody."""
    for node in ast.walk(tree):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in KINDS:
            yield call.func.id


def named(tree: ast.AST) -> set[str]:
    """All names of a module but those in its imports."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def trees(root: Path, *packages: str) -> Iterator[tuple[str, ast.AST]]:
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            yield path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def product() -> list[tuple[str, ast.AST]]:
    return list(trees(ROOT / "src" / "tanist", *NODES))


def test_each_is_made_by_nodes_code_and_given_to_somebody(product: list[tuple[str, ast.AST]]) -> None:
    assert sorted(set(KINDS).difference(*(set(made(tree)) for _, tree in product))) == []
    assert [(name, kind) for name, tree in product for kind in dropped(tree)] == []


def test_each_is_expected_by_a_test_of_who_emits_it() -> None:
    expected = {
        kind
        for name, tree in trees(ROOT / "tests", "events", *NODES)
        if name not in MAKE_THEIR_OWN
        for kind in named(tree)
    }
    assert sorted(set(KINDS) - expected) == []


def test_what_is_not_there_is_found() -> None:
    tree = ast.parse("from x import TopicDeleted\nif event is TopicDeleted: ...\nTopicCreated('t', 'id')\n")
    assert set(made(tree)) == {"TopicCreated"}
    assert list(dropped(tree)) == ["TopicCreated"]
    assert named(ast.parse("from x import TopicDeleted")) == set()
    assert list(dropped(ast.parse("emit(TopicCreated('t', 'id'))"))) == []
