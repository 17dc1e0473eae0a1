"""The account of a run, as in Jepsen's first test of Kafka: writes, acknowledged writes, and writes found in the end.

Owns the account alone: records are identified by their values, which are unique, and "found" means in the final reads.
The history checker looks for other anomalies (order, duplicates, readers' records during the run).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tanist.lab.history import Operation

FINAL = "final"
"""The process of the final reads."""
_SHOWN = 6


@dataclass(slots=True)
class Sent:
    """One write."""

    partition: str
    value: str
    invoked_ns: int
    ended_ns: int = 0
    """0 if it has no outcome."""
    outcome: str = "info"


@dataclass(slots=True)
class WriteAccount:
    """The account of all writes."""

    sends: dict[tuple[str, str], Sent] = field(default_factory=dict)
    """By partition and value."""
    polled_ns: list[tuple[int, int]] = field(default_factory=list)
    """Times and record counts of readers' polls, without the final reads."""
    there: set[tuple[str, str]] = field(default_factory=set)
    salvaged: set[tuple[str, str]] = field(default_factory=set)
    """Lost writes that a quarantine has."""

    @property
    def acknowledged(self) -> int:
        return sum(sent.outcome == "ok" for sent in self.sends.values())

    @property
    def refused(self) -> int:
        return sum(sent.outcome == "fail" for sent in self.sends.values())

    @property
    def unknown(self) -> int:
        return sum(sent.outcome == "info" for sent in self.sends.values())

    @property
    def lost(self) -> list[Sent]:
        """Acknowledged, and not found in the end."""
        return [sent for key, sent in self.sends.items() if sent.outcome == "ok" and key not in self.there]

    @property
    def survivors(self) -> int:
        return self.acknowledged - len(self.lost)

    @property
    def unacknowledged_found(self) -> int:
        """Found, though not acknowledged."""
        return sum(sent.outcome != "ok" and key in self.there for key, sent in self.sends.items())

    @property
    def unexpected(self) -> list[tuple[str, str]]:
        """Found, though not written by the test."""
        return sorted(self.there - self.sends.keys())

    def note_salvaged(self, salvaged: Iterable[tuple[str, str]]) -> None:
        """Partitions and values that a quarantine has."""
        lost = {(sent.partition, sent.value) for sent in self.lost}
        self.salvaged = lost & set(salvaged)

    def as_json(self) -> dict[str, Any]:
        acknowledged, total = self.acknowledged, len(self.sends)
        return {
            "total": total,
            "acknowledged": acknowledged,
            "refused": self.refused,
            "unknown": self.unknown,
            "survivors": self.survivors,
            "lost": len(self.lost),
            "unacknowledged_found": self.unacknowledged_found,
            "unexpected": len(self.unexpected),
            "lost_in_salvage": len(self.salvaged),
            "ack_rate": round(acknowledged / max(total, 1), 6),
            "loss_rate": round(len(self.lost) / max(acknowledged, 1), 6),
            "unacknowledged_but_found_rate": round(self.unacknowledged_found / max(total, 1), 6),
        }

    def lines(self, *, has_salvage: bool) -> Iterator[str]:
        """The report in Jepsen's form."""
        numbers = self.as_json()
        lost = self.lost
        yield f"{numbers['total']:>8,} total"
        yield f"{numbers['acknowledged']:>8,} acknowledged"
        yield f"{numbers['survivors']:>8,} survivors"
        yield f"{len(lost):>8,} acknowledged writes lost{_some(f'{sent.partition}: {sent.value}' for sent in lost)}"
        if lost and has_salvage:
            yield f"{len(self.salvaged):>8,} of these in the salvage (`tanist salvage`)"
        yield f"{numbers['unacknowledged_found']:>8,} unacknowledged writes found"
        foreign = self.unexpected
        yield f"{len(foreign):>8,} unexpected{_some(': '.join(each) for each in foreign)}"
        yield f"{numbers['ack_rate']:>8.3f} ack rate"
        yield f"{numbers['loss_rate']:>8.3f} loss rate"
        yield f"{numbers['unacknowledged_but_found_rate']:>8.3f} unacknowledged but successful rate"


def account(operations: Iterable[Operation]) -> WriteAccount:
    """Read a history of this test, with each process's lines in order."""
    outcome = WriteAccount()
    open_sends: dict[tuple[str, object], Sent] = {}
    open_transactions: dict[str, list[Sent]] = {}
    for operation in operations:
        f, kind, process = operation["f"], operation["type"], str(operation["process"])
        if f == "send" and kind == "invoke":
            sent = Sent(operation["partition"], operation["value"], operation["time_ns"])
            outcome.sends[sent.partition, sent.value] = sent
            open_sends[process, operation.get("id")] = sent
        elif f == "send":
            sent = open_sends.pop((process, operation.get("id")))
            sent.ended_ns, sent.outcome = operation["time_ns"], kind
        elif f == "txn":
            _transaction(outcome, open_transactions, operation)
        elif f == "poll":
            records: dict[str, list[list[Any]]] = operation.get("records") or {}
            if process.partition("/")[0] == FINAL:
                outcome.there.update((name, pair[1]) for name, pairs in records.items() for pair in pairs)
            else:
                outcome.polled_ns.append((operation["time_ns"], sum(map(len, records.values()))))
    return outcome


def _transaction(outcome: WriteAccount, open_: dict[str, list[Sent]], operation: Operation) -> None:
    """A record of a transaction is acknowledged with the commit, and refused with an abort."""
    kind, process, time_ns = operation["type"], str(operation["process"]), operation["time_ns"]
    ops: list[dict[str, Any]] = operation.get("ops") or []
    if kind == "invoke":
        sends = [Sent(op["partition"], op["value"], time_ns) for op in ops if op["f"] == "send"]
        outcome.sends.update({(sent.partition, sent.value): sent for sent in sends})
        open_[process] = sends
        return
    for sent in open_.pop(process):
        sent.ended_ns, sent.outcome = time_ns, kind
    polled = [op for op in ops if op["f"] == "poll"]
    outcome.polled_ns += [(op["time_ns"], sum(map(len, op["records"].values()))) for op in polled]


def _some(texts: Iterable[str]) -> str:
    """The first few, in parentheses."""
    every: Collection[str] = list(texts)
    if not every:
        return ""
    shown = ", ".join(list(every)[:_SHOWN])
    return f" ({shown}{', ...' if len(every) > _SHOWN else ''})"
