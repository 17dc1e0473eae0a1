"""Bugs of tests/field, on Apache Kafka itself: each row that says so is shown on the version that a run takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.field.catalogue import Bug, all_bugs
from tests.interop.apache import VERSION
from tests.interop.field.node import FieldNode, field_node
from tests.interop.field.shows import SHOWS
from tests.interop.field.unclean import an_unclean_election_leaves_a_transaction_open
from tests.interop.versions import PINS

pytestmark = pytest.mark.interop

BUGS = all_bugs()
OF_SEVERAL_NODES = {
    "test_an_unclean_election_that_takes_a_marker_leaves_no_open_transaction": (
        an_unclean_election_leaves_a_transaction_open
    )
}
"""By the test in tests/field, as `SHOWS`."""


def _cases(shows: Iterable[str]) -> list[Any]:
    return [pytest.param(bug, id=bug.test) for bug in BUGS if bug.test in shows]


@pytest.fixture(scope="module")
def node(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FieldNode]:
    with field_node(tmp_path_factory.mktemp("field") / "node") as started:
        yield started


@pytest.mark.parametrize("bug", _cases(SHOWS))
def test_apache_kafka_has_it_or_has_it_not(node: FieldNode, bug: Bug) -> None:
    assert SHOWS[bug.test](node) == bug.shown[VERSION]


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("bug", _cases(OF_SEVERAL_NODES))
def test_several_nodes_have_it_or_have_it_not(tmp_path: Path, bug: Bug) -> None:
    assert OF_SEVERAL_NODES[bug.test](tmp_path) == bug.shown[VERSION]


def test_each_show_is_a_row_of_all_versions() -> None:
    assert {bug.test for bug in BUGS if bug.shown} == set(SHOWS) | set(OF_SEVERAL_NODES)
    assert all(set(bug.shown) == set(PINS) for bug in BUGS if bug.shown)
