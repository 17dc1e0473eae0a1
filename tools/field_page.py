"""Write the table of docs/field.md from the tests in tests/field.

python -m tools.field_page
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.field.catalogue import Bug, all_bugs
from tools.page_tables import with_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "field.md"
_ISSUES = {
    "KAFKA-": "https://issues.apache.org/jira/browse/{}",
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
    for kind, rows in groupby(bugs, key=lambda each: each.kind):
        yield ""
        yield f"### {kind[0].upper()}{kind[1:]}"
        yield ""
        yield "| Bug | What went wrong there | Test | Planted | Apache Kafka 4.3.1 |"
        yield "|---|---|---|---|---|"
        for bug in rows:
            here = " **tanist had it.**" if bug.was_here else ""
            yield f"| {_linked(bug.source)} | {bug.went_wrong}{here} | `{bug.test}` | {_shown(bug)} | {bug.apache} |"
    yield ""


def _linked(source: str) -> str:
    return ", ".join(_link(each) for each in source.split(", "))


def _link(issue: str) -> str:
    for begin, address in _ISSUES.items():
        if issue.startswith(begin):
            number = issue if begin == "KAFKA-" else issue.removeprefix(begin)
            return f"[{issue}]({address.format(number)})"
    return issue


def _shown(bug: Bug) -> str:
    shown = ["red"] if bug.planted is not None else []
    if bug.mutations:
        shown.append(f"simulator: {', '.join(bug.mutations)}")
    return "; ".join(shown)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
