"""A verdict for people and for programs: the counts of a history, anomalies with counts, and the smallest evidence.

Owns the text. The evidence is the operations themselves, without irrelevant parts: only the record in question of a
poll. The checker finds the same anomaly in these operations alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tanist.lab.anomalies import Anomaly
from tanist.lab.history.checker import Verdict
from tanist.lab.history.operation import POLL, SEEK, SEND, Operation
from tanist.lab.history.tally import Cite, Finding
from tanist.text import counted

_PARTITIONS_SHOWN = 4


def cited_lines(verdict: Verdict) -> set[int]:
    """The lines of the evidence."""
    every = (*verdict.findings, *verdict.expected)
    return {line for found in every for cite in found.citations for line in cite.lines}


def failures(verdict: Verdict, allowed: Collection[Anomaly] = ()) -> tuple[Finding, ...]:
    """The anomalies that are not allowed."""
    return tuple(found for found in verdict.findings if found.anomaly not in allowed)


def nothing_to_judge(verdict: Verdict) -> str | None:
    """The reason why a history proves nothing about the log; None if it does."""
    if verdict.acknowledged or verdict.records_polled:
        return None
    if not verdict.operations:
        return "it has no operations, so there is nothing to judge. docs/history.md has the format"
    return (
        f"nothing in its {_many(verdict.operations, 'operation')} was acknowledged: no send, and no polled record. "
        "There is nothing to judge"
    )


def cited_operations(finding: Finding, operations: Mapping[int, Operation]) -> list[tuple[int, dict[str, Any]]]:
    """The lines of the smallest evidence with their operations, without irrelevant parts, in the file's order."""
    meant: dict[int, list[Cite]] = {}
    for cite in finding.citations:
        for line in cite.lines:
            meant.setdefault(line, []).append(cite)
    return [(line, _cut(operations[line], meant[line])) for line in sorted(meant)]


def _cut(operation: Operation, cites: Sequence[Cite]) -> dict[str, Any]:
    """An operation with only the partitions and records in question."""
    partitions = {cite.partition for cite in cites}
    kept: dict[str, Any] = {}
    for name, value in operation.items():
        if value is None:
            continue
        if name == "records":
            value = _cut_records(value, cites)
        elif name == "ops":
            value = [_cut(each, cites) for each in value if _is_meant(each, cites)]
        elif name == "positions":
            chosen = {partition: offset for partition, offset in value.items() if str(partition) in partitions}
            if not chosen and operation.get("f") != SEEK:
                continue
            # A seek of another partition may be needed for its time; without positions it would not be a seek.
            value = chosen or value
        elif name == "partitions":
            value = [partition for partition in value if str(partition) in partitions]
        kept[name] = value
    return kept


def _cut_records(records: Mapping[Any, Sequence[Any]], cites: Sequence[Cite]) -> dict[Any, list[Any]]:
    places = {(cite.partition, cite.offset) for cite in cites}
    chosen = {
        partition: [record for record in polled if (str(partition), record[0]) in places]
        for partition, polled in records.items()
    }
    return {partition: polled for partition, polled in chosen.items() if polled}


def _is_meant(operation: Operation, cites: Sequence[Cite]) -> bool:
    """Whether an operation of a transaction is part of the evidence."""
    if operation.get("f") == SEND:
        return any(cite.sent and str(operation.get("partition")) == cite.partition for cite in cites)
    if operation.get("f") != POLL:
        return False
    records = operation.get("records") or {}
    if operation.get("value") is not None:
        records = {operation.get("partition"): [(operation.get("offset"), operation["value"])]}
    if _cut_records(records, cites):
        return True
    if any(str(partition) == cite.partition for partition in operation.get("positions") or {} for cite in cites):
        return True
    return not any(records.values()) and any(not cite.sent and cite.offset is None for cite in cites)


def lines(verdict: Verdict, operations: Mapping[int, Operation], allowed: Collection[Anomaly] = ()) -> Iterator[str]:
    """For people."""
    yield (
        f"{verdict.operations:,} operations of {_many(verdict.processes, 'process')} on "
        f"{_many(verdict.partitions, 'partition')}: {_many(verdict.acknowledged, 'send')} acknowledged, "
        f"{verdict.failed:,} failed, {verdict.unknown:,} unknown; {_many(verdict.polls, 'poll')}, "
        f"{_many(verdict.records_polled, 'record')}"
    )
    if verdict.transactions:
        numbers = ", ".join(f"{count:,} {outcome}" for outcome, count in verdict.transactions.items())
        yield f"{_many(sum(verdict.transactions.values()), 'transaction')}: {numbers}"
    for found, note in _noted(verdict, allowed):
        yield ""
        yield f"{found.anomaly.value}: {found.count:,}{note}, {found.anomaly.meaning}{_where(found)}"
        yield f"  {found.summary}"
        for line, operation in cited_operations(found, operations):
            yield f"  line {line}: {json.dumps(operation, ensure_ascii=False)}"
    if verdict.not_polled_at_the_end:
        yield ""
        count, where = sum(verdict.not_polled_at_the_end.values()), len(verdict.not_polled_at_the_end)
        yield (
            f"unseen is not judged in {_many(where, 'partition')}: after the last acknowledgement nobody polled until "
            f"nothing came. Never polled there: {_many(count, 'acknowledged record')}"
        )
    yield ""
    yield summary(verdict, allowed)


def _noted(verdict: Verdict, allowed: Collection[Anomaly]) -> Iterator[tuple[Finding, str]]:
    for found in verdict.findings:
        yield found, " (allowed)" if found.anomaly in allowed else ""
    for found in verdict.expected:
        yield found, " (Kafka allows it)"


def summary(verdict: Verdict, allowed: Collection[Anomaly] = ()) -> str:
    bad = failures(verdict, allowed)
    if bad:
        return f"{_many(len(bad), 'kind')} of anomalies: {', '.join(found.anomaly.value for found in bad)}"
    judged = " in what was judged" if verdict.not_polled_at_the_end else ""
    return "no anomalies" + (" but those allowed" if verdict.findings or verdict.expected else "") + judged


def as_json(verdict: Verdict, operations: Mapping[int, Operation], allowed: Collection[Anomaly] = ()) -> dict[str, Any]:
    """For programs."""
    return {
        "valid": not failures(verdict, allowed),
        "operations": verdict.operations,
        "processes": verdict.processes,
        "partitions": verdict.partitions,
        "sends": {"acknowledged": verdict.acknowledged, "failed": verdict.failed, "unknown": verdict.unknown},
        "polls": verdict.polls,
        "records_polled": verdict.records_polled,
        "transactions": verdict.transactions,
        "anomalies": {
            found.anomaly.value: _finding_json(found, operations, allowed=found.anomaly in allowed)
            for found in verdict.findings
        },
        "allowed_by_kafka": {
            found.anomaly.value: _finding_json(found, operations, allowed=True) for found in verdict.expected
        },
        "not_polled_at_the_end": verdict.not_polled_at_the_end,
    }


def _finding_json(finding: Finding, operations: Mapping[int, Operation], *, allowed: bool) -> dict[str, Any]:
    return {
        "count": finding.count,
        "partitions": finding.partitions,
        "allowed": allowed,
        "smallest": finding.summary,
        "evidence": [
            {"line": line, "operation": operation} for line, operation in cited_operations(finding, operations)
        ],
    }


def _many(count: int, one: str) -> str:
    return counted(count, one, separator=",")


def _where(finding: Finding) -> str:
    """The partitions, the highest count first."""
    ordered = sorted(finding.partitions.items(), key=lambda item: (-item[1], item[0]))
    summary = ", ".join(f"{name} {count:,}" for name, count in ordered[:_PARTITIONS_SHOWN])
    more = f", and {len(ordered) - _PARTITIONS_SHOWN} more" if len(ordered) > _PARTITIONS_SHOWN else ""
    return f" ({summary}{more})" if len(ordered) > 1 else ""
