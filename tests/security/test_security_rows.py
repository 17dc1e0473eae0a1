"""There is no check of authorization but by a row of the table, and each row is asked about where it belongs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.broker.api.table import BROKER_TABLE, CONTROLLER_TABLE, INTER_BROKER_TABLE
from tanist.security import controller_requirements, requirements
from tanist.security.controller_requirements import CONTROLLER_ROWS
from tanist.security.requirements import BROKER_ROWS, Row
from tanist.wire.apis import FORWARDABLE, ApiKey

SOURCES = Path(__file__).resolve().parents[2] / "src" / "tanist"
ROWS = {
    name: value
    for name, value in {**vars(requirements), **vars(controller_requirements)}.items()
    if isinstance(value, Row)
}
ASKING = {"may", "allows", "operations"}
"""The methods of calls, sessions and authorizers that ask about a row."""
DECIDING = {"decide", "by_type"}
"""The methods of `AclImage`."""
UNCHECKED = {
    ApiKey.API_VERSIONS: "everybody may ask what is served",
    ApiKey.SASL_HANDSHAKE: "nobody is anybody before it",
    ApiKey.SASL_AUTHENTICATE: "nobody is anybody before it",
    ApiKey.RENEW_DELEGATION_TOKEN: "those who have the token, and are named in it",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "those who have the token, and are named in it",
}


def calls(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    """The calls of methods of these names, and `partial`s of them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "partial" and node.args:
            called = node.args[0]
        if isinstance(called, ast.Attribute) and called.attr in names:
            yield node


def rows_in(node: ast.AST) -> set[str]:
    """The rows that are named within."""
    names = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return names & ROWS.keys()


def trees() -> list[tuple[str, ast.Module]]:
    return [
        (path.relative_to(SOURCES).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(SOURCES.rglob("*.py"))
    ]


@pytest.fixture(scope="module")
def sources() -> list[tuple[str, ast.Module]]:
    return trees()


def test_only_the_authorizer_asks_the_lists(sources: list[tuple[str, ast.Module]]) -> None:
    """`decide` is a name of other things too: what counts is who can reach an `AclImage`."""
    importers = {
        name
        for name, tree in sources
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tanist.security.acls"
        if not name.startswith("lab/mutations/")  # they break it
    }
    assert importers == {"security/authorizer.py"}
    (authorizer,) = (tree for name, tree in sources if name == "security/authorizer.py")
    assert len(list(calls(authorizer, DECIDING))) == 2


def test_each_question_names_its_row_and_each_row_has_its_question(sources: list[tuple[str, ast.Module]]) -> None:
    asked: Counter[str] = Counter()
    for name, tree in sources:
        if not name.startswith("broker/"):
            continue
        within = rows_in(tree)
        if any(calls(tree, ASKING)):
            asked.update(within)
        else:
            assert not within, f"{name} names rows and asks about none"
    handled = {name for name, row in ROWS.items() if row.names is None}
    assert handled - asked.keys() == set(), "rows that nobody asks about"
    assert asked.keys() - handled == set(), "rows of whole requests, which only the guard asks about"


def test_no_one_refuses_by_an_error_of_authorization_without_a_row(sources: list[tuple[str, ast.Module]]) -> None:
    wrong = [
        f"{name}:{node.lineno}"
        for name, tree in sources
        if name.startswith(("broker/", "controller/", "coordinator/", "replica/")) and name not in ALLOWED_ERRORS
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.endswith("_AUTHORIZATION_FAILED")
    ]
    assert wrong == []


ALLOWED_ERRORS = {
    "broker/guard.py": "their words",
    "broker/network/client_throttles.py": "a client that sends what nodes send is throttled for it",
    "broker/api/produce_transactional.py": "a transactional batch without an id",
    "broker/api/describe_topic_partitions.py": "topics that are hidden",
    "coordinator/transactions/transaction_shard.py": "two-phase commit, where it is not enabled",
}


@pytest.mark.parametrize("controller", [False, True])
def test_each_api_has_rows_or_a_reason_for_none(controller: bool) -> None:
    table = CONTROLLER_TABLE if controller else {**BROKER_TABLE, **INTER_BROKER_TABLE}
    rows = {row.api for row in (CONTROLLER_ROWS if controller else BROKER_ROWS)}
    served = {ApiKey(key) for key in table}
    assert rows <= served
    forwarded = set() if controller else set(FORWARDABLE)
    assert served - rows - forwarded <= UNCHECKED.keys()


def test_a_row_stands_once_in_its_order() -> None:
    for rows in (BROKER_ROWS, CONTROLLER_ROWS):
        assert len(set(rows)) == len(rows)
        apis = [row.api for row in rows]
        assert [api for at, api in enumerate(apis) if at == 0 or apis[at - 1] is not api] == list(dict.fromkeys(apis))
