"""Write the table of docs/field.md from the tests in tests/field.

python -m tools.field_page
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from tests.field import seeds
from tests.field.catalogue import Bug, all_bugs
from tests.field.seeds import Search
from tools.page_tables import with_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "field.md"
_HEADER = ("Bug", "What went wrong there", "Test", "Planted", "Apache Kafka 4.3.1", "4.4.0")
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
    """The page with the table made anew."""
    return with_table(page, "bugs", _table(all_bugs()))


def _table(bugs: tuple[Bug, ...]) -> Iterator[str]:
    searches = seeds.searches()
    for kind, rows in groupby(bugs, key=lambda each: each.kind):
        yield from ("", f"### {kind[0].upper()}{kind[1:]}", "", _line(_HEADER), "|" + "---|" * len(_HEADER))
        for bug in rows:
            here = " **tanist had it.**" if bug.was_here else ""
            planted = _planted(bug, searches.get(bug.test, ()))
            row = (_linked(bug.source), bug.went_wrong + here, f"`{bug.test}`", planted, _first(bug), _later(bug))
            yield _line(row)
    yield ""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _linked(source: str) -> str:
    return ", ".join(_link(each) for each in source.split(", "))


def _link(issue: str) -> str:
    for begin, address in _ISSUES.items():
        if issue.startswith(begin):
            number = issue if begin == "KAFKA-" else issue.removeprefix(begin)
            return f"[{issue}]({address.format(number)})"
    return issue


def _planted(bug: Bug, searches: tuple[Search, ...]) -> str:
    """The test with the bug, and what the simulator's seeds have shown."""
    shown = ["red"] if bug.planted is not None else []
    tried = sum(search.tried for search in searches)
    if searches and searches[-1].property_id:
        last = searches[-1]
        shown.append(f"{last.property_id} by seed {last.tried} of {last.kind}" + _after(tried, last))
    elif searches:
        shown.append(f"none of {tried} seeds")
    return "; ".join(shown)


def _after(tried: int, last: Search) -> str:
    return f", after {tried}" if tried > last.tried else ""


def _first(bug: Bug) -> str:
    return f"{bug.apache} (shown)" if "4.3.1" in bug.shown else bug.apache


def _later(bug: Bug) -> str:
    if "4.4.0" not in bug.shown:
        return ""
    return f"{'has it' if bug.shown['4.4.0'] else bug.apache.partition(';')[0]} (shown)"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
