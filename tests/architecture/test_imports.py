"""No import cycle: neither between modules nor between packages that stand side by side.

Every import counts: those for types alone (TYPE_CHECKING), those within functions, relative ones. Packages side by side
are seen as a whole: `lab.model` may import `lab.replay`, or the other way round, but not both, even where no two of
their modules import each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import grimp
import pytest

WHOLE_NODE = ("tanist.runtime", "tanist.sim", "tanist.lab")
"""The packages that may import `tanist.broker.node`: they make nodes, or look at them from outside."""


def imports_of(package: str) -> grimp.ImportGraph:
    return grimp.build_graph(package, cache_dir=None)


def cycles(graph: grimp.ImportGraph) -> Iterator[frozenset[str]]:
    """The largest sets of modules in which each imports all others, by whatever way."""
    left = set(graph.modules)
    while left:
        module = left.pop()
        others = graph.find_upstream_modules(module) & graph.find_downstream_modules(module) - {module}
        if others:
            left -= others
            yield frozenset({module, *others})


def side_by_side(graph: grimp.ImportGraph) -> Iterator[grimp.ImportGraph]:
    """For each package, the graph in which its direct children are one module each."""
    for package in sorted(graph.modules):
        children = [child for child in graph.find_children(package) if graph.find_children(child)]
        if children:
            squashed = deepcopy(graph)
            for child in children:
                squashed.squash_module(child)
            yield squashed


def all_cycles(package: str) -> set[frozenset[str]]:
    graph = imports_of(package)
    found = set(cycles(graph))
    for squashed in side_by_side(graph):
        found.update(cycles(squashed))
    return found


def in_words(graph: grimp.ImportGraph, cycle: frozenset[str]) -> str:
    """A shortest way round, and how many modules it is about."""
    modules = sorted(module for module in cycle if module in graph.modules)
    first = modules[0]
    ways = [
        (first, *chain)
        for successor in sorted(graph.find_modules_directly_imported_by(first) & cycle)
        if (chain := graph.find_shortest_chain(successor, first)) is not None
    ]
    way = min(ways, key=len) if ways else tuple(modules)
    return f"{len(cycle)} modules or packages: {' -> '.join(way)}"


@pytest.fixture(scope="module")
def of_tanist() -> set[frozenset[str]]:
    return all_cycles("tanist")


def test_no_import_cycle(of_tanist: set[frozenset[str]]) -> None:
    graph = imports_of("tanist")
    wrong = sorted(in_words(graph, cycle) for cycle in of_tanist)
    assert not wrong, "import cycles:\n" + "\n".join(wrong)


def test_the_parts_of_a_node_do_not_know_the_node() -> None:
    """A part gets the parts that it calls by its constructor; who could reach the node would reach through it."""
    importers = imports_of("tanist").find_modules_that_directly_import("tanist.broker.node")
    wrong = sorted(each for each in importers if not each.startswith(tuple(f"{package}." for package in WHOLE_NODE)))
    assert importers
    assert not wrong, f"these import tanist.broker.node: {', '.join(wrong)}"


# -- the test's own eyes


@pytest.mark.parametrize(
    ("back", "cycle"),
    [
        ("", set()),
        ("from seen_package import one\n", {"seen_package.one", "seen_package.part.two"}),
        ("from ..one import ONE\n", {"seen_package.one", "seen_package.part.two"}),
        ("def late():\n    import seen_package.one\n", {"seen_package.one", "seen_package.part.two"}),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from seen_package.one import ONE\n",
            {"seen_package.one", "seen_package.part.two"},
        ),
        ("from seen_package.part import three\n", set()),
        ("from seen_package.other import OTHER\n", {"seen_package.part", "seen_package.other"}),
    ],
)
def test_every_kind_of_import_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: str, cycle: set[str]
) -> None:
    files = {
        "__init__.py": "",
        "one.py": "from seen_package.part import two\nONE = 1\n",
        "part/__init__.py": "",
        "part/two.py": back,
        "part/three.py": "",
        "other/__init__.py": "OTHER = 1\n",
        "other/back.py": "from seen_package.part import three\nBACK = 1\n",
    }
    for name, text in files.items():
        path = tmp_path / "seen_package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = all_cycles("seen_package")
    assert (frozenset(cycle) in found) if cycle else not found
