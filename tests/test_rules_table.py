"""docs/rules.md and the rules of docs/kip966.md: every fact has its row, and what a row names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tanist.lab.scenarios.deviations import ALL

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tanist"
TESTS = ROOT / "tests"
RULES = ROOT / "docs" / "rules.md"
KIP = ROOT / "docs" / "kip966.md"

FACTS = range(1, 169)
_VERDICT = re.compile(r"\. \*\*(Differs:|In part:|Here:|n/a)\*\*")
_REFERENCE = re.compile(r"`([^`]+)`")
_PLACE = re.compile(r"[\w/]+\.py(?:::\w+)?|test_\w+(?:::\w+)?|(?:rec|pcb|ctl|hand|deviates)-[\w-]+")
"""Of what stands in backquotes, a module, a test or a scenario."""


class Row(NamedTuple):
    number: int
    rule: str
    where: str

    @property
    def fact(self) -> str:
        return _VERDICT.split(self.rule)[0]

    @property
    def verdict(self) -> str:
        """Empty: tanist does the same."""
        found = _VERDICT.search(self.rule)
        return found[1] if found else ""


def rows() -> list[Row]:
    """The rules, and what stands behind the last of a rule's sentences: modules and tests."""
    items = re.findall(r"^\* \*\*(\d+)\*\* (.*?)(?:\. (`.*))?$", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    return [Row(int(number), rule, where) for number, rule, where in items]


def section(page: Path, heading: str) -> str:
    """What stands between a heading of the second level and the next."""
    return page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def kip_rules() -> list[str]:
    """The items of the lists in the KIP's rules."""
    return [line.removeprefix("* ") for line in section(KIP, "Rules").splitlines() if line.startswith("* ")]


@cache
def names_in(path: Path) -> frozenset[str]:
    """Everything that a module defines: classes, functions, methods, values."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
    return frozenset(found)


@cache
def files_of_tests() -> dict[str, Path]:
    return {path.stem: path for path in TESTS.rglob("test_*.py")}


@cache
def scenario_ids() -> frozenset[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (TESTS / "lab" / "scenarios").glob("*.yaml"))
    return frozenset(re.findall(r"^- \{?id: ([\w-]+)", text, re.MULTILINE))


@cache
def numbers_in_names() -> frozenset[int]:
    """Rules that a test has in its name: `test_rule_41_...`, `test_rules_3_and_100_...`."""
    found: set[int] = set()
    for path in files_of_tests().values():
        for name in names_in(path):
            if cited := re.match(r"test_(?:\w+_)?(?:rule|fact)s?_(\d+(?:_(?:and_)?\d+)*)(?:_|$)", name):
                found.update(int(number) for number in re.findall(r"\d+", cited[1]))
    return frozenset(found)


def modules(references: str) -> list[str]:
    return [each for each in _REFERENCE.findall(references) if ".py" in each]


def checks(references: str) -> list[str]:
    return [each for each in _REFERENCE.findall(references) if ".py" not in each]


def missing(references: str) -> Iterator[str]:
    """Of modules, tests and scenarios in backquotes, those that there are none of."""
    for reference in _REFERENCE.findall(references):
        place, _, name = reference.partition("::")
        if place.endswith(".py"):
            path = SOURCE / place
            if not path.is_file() or (name and name not in names_in(path)):
                yield reference
        elif place.startswith("test_"):
            found = files_of_tests().get(place)
            if found is None or (name and name not in names_in(found)):
                yield reference
        elif reference not in scenario_ids():
            yield f"{reference}: neither module nor test nor scenario"


def test_every_fact_is_there_once_and_in_order() -> None:
    assert [row.number for row in rows()] == list(FACTS)


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row.number))
def test_a_row_says_what_holds_and_by_what(row: Row) -> None:
    assert 2 <= len(row.fact.split()) <= 13
    if row.verdict == "n/a":
        assert row.where == ""
    else:
        assert modules(row.where)
        assert row.number in numbers_in_names() or checks(row.where)
    assert list(missing(row.where)) == []


@pytest.mark.parametrize("rule", kip_rules(), ids=lambda rule: rule[:40])
def test_a_rule_of_the_kip_says_where_it_is_and_what_holds_it(rule: str) -> None:
    if " — " in rule:
        assert len(rule.partition(" — ")[2].split()) > 3, "a rule that is not kept says why"
        return
    named = " ".join(f"`{each}`" for each in _REFERENCE.findall(rule) if _PLACE.fullmatch(each))
    cited = [row for row in rows() if row.number in numbers_in(rule)]
    assert modules(named) or any(modules(row.where) for row in cited)
    held = any(row.number in numbers_in_names() or checks(row.where) for row in cited)
    assert checks(named) or held
    assert list(missing(named)) == []


def numbers_in(rule: str) -> set[int]:
    """Those of rules.md, in brackets: (1, 118), (121-123)."""
    cited = re.findall(r"(\d+)(?:-(\d+))?", " ".join(re.findall(r"\(([\d, -]+)\)", rule)))
    return {number for first, last in cited for number in range(int(first), int(last or first) + 1)}


def test_no_rule_of_the_kip_is_there_twice() -> None:
    rules = [rule.partition(". `")[0] for rule in kip_rules()]
    assert len(rules) > 80
    assert sorted(set(rules)) == sorted(rules)


def test_what_the_code_knows_to_differ_is_a_row_that_says_so() -> None:
    differing = {row.number for row in rows() if row.verdict == "Differs:"}
    for deviation in ALL:
        assert {int(number) for number in deviation.fact.split(", ")} & differing, deviation


def test_what_is_not_there_is_missed() -> None:
    there = "`replica/leader.py::_may_advance`, `test_rules_table::test_what_is_not_there_is_missed`, `rec-01`"
    assert list(missing(there)) == []
    for gone in (
        "`replica/leader.py::_may_advanced`",
        "`replica/leaders.py`",
        "`test_rules_table::test_nothing`",
        "`test_rules_tables`",
        "`rec-1`",
        "`something`",
    ):
        assert len(list(missing(there + gone))) == 1
    assert numbers_in("A rule (1, 118) of (121-123)") == {1, 118, 121, 122, 123}
