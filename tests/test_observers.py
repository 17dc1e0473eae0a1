"""Observers of nodes subscribe to their events: nobody reads their lines, and nobody patches or sets their parts.

In `sim`, `lab` and `web`; the mutations of the lab replace functions of the product, which is what they are for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tanist

ROOT = Path(tanist.__file__).parent
OBSERVERS = ("sim", "lab", "web")
PRODUCT = ("broker", "controller", "coordinator", "log", "quorum", "replica")

REGEXES = {
    "lab/model/quorum/trace_format.py": "labels of its own steps",
    "lab/pages/templates.py": "its own way to write code in texts",
    "lab/trace/searching.py": "what TLC has printed at the end of a search",
    "lab/trace/tlc.py": "what TLC has printed of its search",
    "lab/scenarios/outcome.py": "names of Java's exceptions, in files",
}
"""Modules with regular expressions, and what they read."""

SETTERS = {
    "lab/model/quorum/conversion.py": "the model checker puts a node into the state that it explores",
    "lab/model/quorum/nodes.py": "the same: its deadline has passed, or it has yet to tell a voter",
    "lab/model/partition/replicating.py": "the same, of a partition",
    "lab/model/transactions/model.py": "the same, of a transaction",
    "lab/scenarios/brokers.py": "a scenario begins with the configuration that it names",
    "lab/scenarios/quorum_node.py": "a scenario begins in the role that it names",
    "sim/scripted/cluster.py": "a request of its own names a rack",
    "sim/oracle.py": "reads below a log's start, which it puts back",
}
"""Modules that set attributes of objects of the product, and why."""


def modules(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "mutations" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def attributes(*packages: str) -> set[str]:
    """The names of the attributes and methods of all classes of these packages."""
    found: set[str] = set()
    for _, tree in modules(*packages):
        for owner in ast.walk(tree):
            if not isinstance(owner, ast.ClassDef):
                continue
            for node in ast.walk(owner):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                    found.add(node.attr)
            for node in owner.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    found.add(node.target.id)
                elif isinstance(node, ast.FunctionDef):
                    found.add(node.name)
    return found


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def set_elsewhere(tree: ast.Module) -> set[str]:
    """The names of the attributes that are set on other objects than `self`."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) and not _is_self(node.value)
    }


def imports(tree: ast.Module, name: str) -> bool:
    return any(
        (isinstance(node, ast.Import) and any(each.name == name for each in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == name)
        for node in ast.walk(tree)
    )


def calls(tree: ast.Module, *names: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        for node in ast.walk(tree)
    )


def test_nobody_reads_lines_by_regular_expressions() -> None:
    assert {name for name, tree in modules(*OBSERVERS) if imports(tree, "re")} == set(REGEXES)


def test_nobody_asks_for_lines_but_who_shows_them() -> None:
    shown = {name for name, tree in modules(*OBSERVERS) if imports(tree, "tanist.events.text")}
    assert shown == {"lab/simulation/player.py", "sim/world/world.py"}


def test_nobody_patches() -> None:
    assert not [name for name, tree in modules(*OBSERVERS) if calls(tree, "setattr", "delattr")]


def test_nobody_sets_what_only_the_product_has() -> None:
    own = attributes(*PRODUCT) - attributes(*OBSERVERS)
    found = {name: sorted(set_elsewhere(tree) & own) for name, tree in modules(*OBSERVERS)}
    assert {name: names for name, names in found.items() if names}.keys() == SETTERS.keys(), found


def test_what_the_guards_look_for_is_found() -> None:
    tree = ast.parse("import re\nlog.on_truncate = cut\nsetattr(log, 'x', 1)\ndel log.y\nself.z = 1\n")
    assert imports(tree, "re")
    assert calls(tree, "setattr")
    assert set_elsewhere(tree) == {"on_truncate", "y"}
    assert {"high_watermark", "truncate_to", "name"} <= attributes(*PRODUCT)
