"""Write the bugs of docs/field.md from the tests in tests/field.

python -m tools.field_page
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.field import seeds
from tests.field.catalogue import Bug, all_bugs
from tests.field.seeds import Search
from tools.page_tables import with_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "field.md"
_ISSUES = {
    "KAFKA-": "https://issues.apache.org/jira/browse/{}",
    "aiokafka #": "https://github.com/aio-libs/aiokafka/issues/{}",
    "apache/kafka#": "https://github.com/apache/kafka/pull/{}",
    "AutoMQ #": "https://github.com/AutoMQ/automq/issues/{}",
    "etcd #": "https://github.com/etcd-io/etcd/issues/{}",
    "fluss #": "https://github.com/apache/fluss/issues/{}",
    "hashicorp/raft #": "https://github.com/hashicorp/raft/pull/{}",
    "openraft #": "https://github.com/databendlabs/openraft/issues/{}",
    "redpanda #": "https://github.com/redpanda-data/redpanda/issues/{}",
    "strimzi #": "https://github.com/strimzi/strimzi-kafka-operator/issues/{}",
}


def rewritten(page: str) -> str:
    """The page with the bugs made anew."""
    return with_table(page, "bugs", _lists(all_bugs()))


def _lists(bugs: tuple[Bug, ...]) -> Iterator[str]:
    searches = seeds.searches()
    for kind, rows in groupby(bugs, key=lambda each: each.kind):
        yield from ("", f"### {kind[0].upper()}{kind[1:]}", "")
        for bug in rows:
            here = " **tanist had it.**" if bug.was_here else ""
            shown = [f"`{bug.test}`", *_found(searches.get(bug.test, ())), *_of_apache(bug)]
            yield f"* {_linked(bug.source)}: {bug.went_wrong}{here} {'; '.join(shown)}"
    yield ""


def _linked(source: str) -> str:
    return ", ".join(_link(each) for each in source.split(", "))


def _link(issue: str) -> str:
    for begin, address in _ISSUES.items():
        if issue.startswith(begin):
            number = issue if begin == "KAFKA-" else issue.removeprefix(begin)
            return f"[{issue}]({address.format(number)})"
    return issue


def _found(searches: tuple[Search, ...]) -> Iterator[str]:
    """What the simulator's seeds have shown with the bug planted."""
    if searches and searches[-1].property_id:
        last = searches[-1]
        yield f"{last.property_id}: {last.tried} of {last.kind}"


def _of_apache(bug: Bug) -> Iterator[str]:
    """Nothing: mended. A show is of both versions: `tests/field/test_page.py` sees to it."""
    if bug.shown:
        yield f"Apache Kafka: {bug.apache} (shown)"
    elif bug.apache != "mended":
        yield f"Apache Kafka: {bug.apache}"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
