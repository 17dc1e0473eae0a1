"""Bugs of tests/field, on Apache Kafka itself: each row that says so is shown on the version that a run takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.field.catalogue import Bug, all_bugs
from tests.interop.apache import VERSION
from tests.interop.field.node import FieldNode, field_node
from tests.interop.field.shows import SHOWS
from tests.interop.versions import PINS

pytestmark = pytest.mark.interop

BUGS = all_bugs()


@pytest.fixture(scope="module")
def node(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FieldNode]:
    with field_node(tmp_path_factory.mktemp("field") / "node") as started:
        yield started


@pytest.mark.parametrize("bug", [pytest.param(bug, id=bug.test) for bug in BUGS if VERSION in bug.shown])
def test_apache_kafka_has_it_or_has_it_not(node: FieldNode, bug: Bug) -> None:
    assert SHOWS[bug.test](node) == bug.shown[VERSION]


def test_each_show_is_a_row_of_all_versions() -> None:
    assert {bug.test for bug in BUGS if bug.shown} == set(SHOWS)
    assert all(set(bug.shown) == set(PINS) for bug in BUGS if bug.shown)
