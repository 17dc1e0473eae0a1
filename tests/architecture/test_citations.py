"""Every rule and every property that code, pages and tests cite exists where it is numbered.

"Rule 41" is in docs/rules.md. S1, U1 and L1 are properties of docs/simulator.md, C1 of docs/groups.md, E1 of
docs/model-checker.md; A1 and G1 are mutations of docs/mutations.md.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FAMILIES = {
    "S": "simulator.md",
    "U": "simulator.md",
    "L": "simulator.md",
    "C": "groups.md",
    "E": "model-checker.md",
    "A": "mutations.md",
    "G": "mutations.md",
}
"""The letter of a property, and the page that has it, in a table or a list."""

_NUMBER = r"\d+[a-z]?"
_RULES = re.compile(rf"(?:\b|_)(?:[Rr]ule|[Ff]act)s?[ _]({_NUMBER}(?:(?:-| to |, and | and |, ){_NUMBER}\b)*)")
_PROPERTY = re.compile(r"\b([SULCEAG])(\d{1,2}b?)(?:-\1?(\d{1,2}))?\b")


def sources() -> Iterator[Path]:
    for folder, endings in (("src", ("py",)), ("tests", ("py", "txt", "yaml")), ("docs", ("md",))):
        for ending in endings:
            yield from (path for path in sorted((ROOT / folder).rglob(f"*.{ending}")) if path != Path(__file__))


@cache
def rules() -> frozenset[int]:
    page = (DOCS / "rules.md").read_text(encoding="utf-8")
    return frozenset(int(number) for number in re.findall(r"^\* \*\*(\d+)\*\* ", page, re.MULTILINE))


@cache
def properties() -> frozenset[str]:
    found: set[str] = set()
    for letter, page in FAMILIES.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        for name, last in re.findall(
            rf"^(?:\| |\* \*\*)({letter}\d+b?)(?:-{letter}(\d+))?(?: \||\*\*) ", text, re.MULTILINE
        ):
            found.add(name)
            if last:
                found.update(f"{letter}{number}" for number in range(int(name[1:]), int(last) + 1))
    return frozenset(found)


def unknown_rules(text: str) -> Iterator[str]:
    for cited in _RULES.findall(text):
        for number in re.findall(r"\d+", cited):
            if int(number) not in rules():
                yield f"rule {number}"


def unknown_properties(text: str) -> Iterator[str]:
    for letter, first, last in _PROPERTY.findall(text):
        for number in (first, last):
            if number and f"{letter}{number}" not in properties():
                yield f"{letter}{number}"


def comments_and_docstrings(source: str) -> str:
    """Of a module, what people read: comments, and strings that stand as statements."""
    comments = (
        token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    )
    docstrings = (
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    return "\n".join([*comments, *docstrings])


def test_each_rule_that_is_cited_exists() -> None:
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in sources()
        if (found := sorted(set(unknown_rules(path.read_text(encoding="utf-8")))))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "package", ["sim", "lab", "client", "replica", "controller", "quorum", "coordinator", "log", "broker"]
)
def test_each_property_that_is_cited_exists(package: str) -> None:
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in sorted((ROOT / "src" / "tanist" / package).rglob("*.py"))
        if (found := sorted(set(unknown_properties(comments_and_docstrings(path.read_text(encoding="utf-8"))))))
    }
    assert wrong == {}


def test_the_tables_are_read() -> None:
    assert len(rules()) > 150
    for letter, least in (("S", 20), ("U", 6), ("L", 13), ("C", 5), ("E", 10), ("A", 50), ("G", 10)):
        assert len([name for name in properties() if name[0] == letter]) >= least, letter


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("rule 12", []),
        ("Rules 3, 5 and 162", []),
        ("(rules 133-149)", []),
        ("rules 32a, 33b", []),
        ("rule 0", ["rule 0"]),
        ("rules 3, 500", ["rule 500"]),
        ("rules 150-190", ["rule 190"]),
        ("test_rule_190_something", ["rule 190"]),
        ("S29 and L1-L16, A38b", []),
        ("S99", ["S99"]),
        ("L1-L99", ["L99"]),
    ],
)
def test_what_is_not_there_is_seen(text: str, wrong: list[str]) -> None:
    assert [*unknown_rules(text), *unknown_properties(text)] == wrong
