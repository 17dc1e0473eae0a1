"""The anomalies of a history by their definitions alone, word for word, with no thought of speed.

It shares nothing with `tanist.lab.history`: lists and comprehensions over all pairs, no indexes, no hashes, no single
pass. Takes the lines of a well-formed history as objects, and counts each anomaly in each partition.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

Line = dict[str, Any]
READERS = ("poll", "end", "assign", "subscribe", "seek", "crash")


@dataclass(frozen=True)
class Op:
    """One operation, whether it stands on one line or on two."""

    process: Any
    f: str
    type: str
    begun: int
    """Its place among the lines."""
    ended: int | None
    start: int | None
    """When it began at the earliest; None if that may have been at any time."""
    end: int | None
    fields: Line
    client: int
    """How often its process had crashed before it began."""


@dataclass(frozen=True)
class Send:
    op: Op
    partition: str
    value: str
    outcome: str
    offset: int | None
    idempotent: bool
    aborted: bool


@dataclass(frozen=True)
class Read:
    op: Op
    partition: str
    offset: int
    value: str
    committed: bool


def _text(value: Any) -> str:
    return "|".join(map(str, value)) + "|" if isinstance(value, list) else str(value)


def _operations(lines: list[Line]) -> list[Op]:
    lines = [line for line in lines if line["process"] != "nemesis"]
    clock = [line.get("time_ns", place) for place, line in enumerate(lines)]
    taken: set[int] = set()
    ops: list[Op] = []

    def crashes(process: Any, before: int) -> int:
        return sum(
            1
            for line in lines[:before]
            if line["process"] == process and line["f"] == "crash" and line["type"] != "invoke"
        )

    for place, line in enumerate(lines):
        if line["type"] == "invoke":
            continue
        same = [
            earlier
            for earlier in range(place)
            if earlier not in taken
            and lines[earlier]["type"] == "invoke"
            and lines[earlier]["f"] == line["f"] != "crash"
            and lines[earlier]["process"] == line["process"]
            and lines[earlier].get("id") == line.get("id")
            and (line.get("id") is not None or crashes(line["process"], earlier) == crashes(line["process"], place))
        ]
        if same:
            taken.add(same[-1])
            begun, start, fields = same[-1], clock[same[-1]], {**lines[same[-1]], **line}
        else:
            begun, start, fields = place, line.get("invoked_ns"), line
            if start is None and line["f"] in READERS:
                before = [
                    earlier
                    for earlier in range(place)
                    if lines[earlier]["process"] == line["process"]
                    and lines[earlier]["type"] != "invoke"
                    and lines[earlier]["f"] in READERS
                ]
                start = clock[before[-1]] if before else None
        client = crashes(line["process"], begun)
        ops.append(Op(line["process"], line["f"], line["type"], begun, place, start, clock[place], fields, client))
    for place, line in enumerate(lines):
        if line["type"] == "invoke" and place not in taken and line["f"] == "send":
            client = crashes(line["process"], place)
            ops.append(Op(line["process"], "send", "info", place, None, clock[place], None, line, client))
    return sorted(ops, key=lambda op: op.begun)


def _sends(ops: list[Op]) -> list[Send]:
    found = []
    for op in ops:
        if op.f != "send":
            continue
        promised = op.fields.get("acks") not in (0, 1, "0", "1")
        outcome = {"ok": "ok" if promised else "unknown", "fail": "fail", "info": "unknown"}[op.type]
        found.append(
            Send(
                op,
                str(op.fields["partition"]),
                _text(op.fields["value"]),
                outcome,
                op.fields.get("offset") if outcome == "ok" else None,
                promised and op.fields.get("idempotent", True),
                op.fields.get("aborted", False),
            )
        )
    return found


def _polled(op: Op) -> list[tuple[str, int, str]]:
    if op.f != "poll" or op.type != "ok":
        return []
    if "records" in op.fields:
        return [(name, o, _text(v)) for name, records in op.fields["records"].items() for o, v in records]
    if "value" in op.fields:
        return [(str(op.fields["partition"]), op.fields["offset"], _text(op.fields["value"]))]
    return []


def _reads(ops: list[Op]) -> list[Read]:
    return [
        Read(op, name, offset, value, op.fields.get("isolation") == "read_committed")
        for op in sorted((op for op in ops if op.ended is not None), key=lambda op: op.ended or 0)
        for name, offset, value in _polled(op)
    ]


def _events(ops: list[Op], process: Any) -> list[tuple[Any, ...]]:
    """A consumer's life: (forget, all or which), (at, partition, next), (got, partition, offset, op)."""
    events: list[tuple[Any, ...]] = []
    in_group = False
    mine = [op for op in ops if op.process == process and op.ended is not None and op.f in READERS]
    for op in sorted(mine, key=lambda op: op.ended or 0):
        if op.f == "crash" or (op.f == "subscribe" and op.type != "fail"):
            events.append(("forget", lambda name: True))
            in_group = op.f == "subscribe"
        elif op.f == "assign" and op.type != "fail":
            kept = set() if in_group or op.type == "info" else {str(each) for each in op.fields["partitions"]}
            events.append(("forget", lambda name, kept=kept: name not in kept))
            in_group = False
        if op.f in ("assign", "seek") and op.type != "fail":
            for name, position in op.fields.get("positions", {}).items():
                if position is None or op.type == "info":
                    events.append(("forget", lambda other, name=name: other == name))
                else:
                    events.append(("at", name, position))
        if op.f == "poll" and op.type == "ok":
            if in_group:
                events.append(("forget", lambda name: True))
            if not _polled(op):
                events.append(("vain", op))
            events += [("got", name, offset, op) for name, offset, _ in _polled(op)]
            events += [("stands", name, position, op) for name, position in op.fields.get("positions", {}).items()]
    return events


def _steps(ops: list[Op], process: Any) -> list[tuple[str, int, int, Op]]:
    """(partition, what was next, what came, when) wherever something was next."""
    events = _events(ops, process)
    steps = []
    for place, event in enumerate(events):
        if event[0] not in ("got", "stands"):
            continue
        _, name, offset, op = event
        for earlier in reversed(events[:place]):
            if earlier[0] == "vain":
                continue
            if earlier[0] == "forget":
                if earlier[1](name):
                    break
            elif earlier[1] == name:
                steps.append((name, earlier[2] + (earlier[0] == "got"), offset, op))
                break
    return steps


def _in_vain(ops: list[Op]) -> list[tuple[Op, str, int]]:
    """(poll that gave nothing, partition, what was next there) as far as it is known what was next."""
    found = []
    for process in {op.process for op in ops}:
        events = _events(ops, process)
        for place, event in enumerate(events):
            if event[0] != "vain":
                continue
            following: dict[str, int | None] = {}
            for earlier in events[:place]:
                if earlier[0] == "forget":
                    following = {name: at for name, at in following.items() if not earlier[1](name)}
                elif earlier[0] != "vain":
                    following[earlier[1]] = earlier[2] + (earlier[0] == "got")
            found += [(event[1], name, at) for name, at in following.items() if at is not None]
    return found


def _reads_at(ops: list[Op], poll: Op) -> set[str]:
    """The partitions that the process of a poll is known to read when it polls, or by what the poll says."""
    shown = set(poll.fields.get("positions", {}))
    mine = [
        op
        for op in ops
        if op.process == poll.process and op.ended is not None and op.ended < (poll.ended or 0) and op.f in READERS
    ]
    for op in sorted(mine, key=lambda op: -(op.ended or 0)):
        if op.f == "crash":
            return shown
        if op.type == "fail":
            continue
        if op.f == "subscribe":
            return set(poll.fields.get("positions", {}))
        if op.f == "assign":
            return shown | ({str(each) for each in op.fields["partitions"]} if op.type == "ok" else set())
        if op.f == "poll" and op.type == "ok":
            shown |= {name for name, _, _ in _polled(op)} | set(op.fields.get("positions", {}))
        if op.f == "seek" and op.type == "ok":
            shown |= set(op.fields["positions"])
    return shown


def count(lines: list[Line]) -> dict[tuple[str, str], int]:
    """(anomaly, partition) -> how often."""
    ops = _operations(lines)
    sends, reads = _sends(ops), _reads(ops)
    partitions = {send.partition for send in sends} | {read.partition for read in reads}
    partitions |= {name for op in ops if op.f == "poll" for name in op.fields.get("positions", {})}
    counts: Counter[tuple[str, str]] = Counter()
    for p in partitions:
        ws = [send for send in sends if send.partition == p]
        rs = [read for read in reads if read.partition == p]
        counts.update({(name, p): number for name, number in _of_partition(ops, p, ws, rs).items()})
    return {key: number for key, number in counts.items() if number}


def _of_partition(ops: list[Op], p: str, ws: list[Send], rs: list[Read]) -> dict[str, int]:
    claims = {(w.offset, w.value) for w in ws if w.outcome == "ok" and w.offset is not None}
    claims |= {(r.offset, r.value) for r in rs}
    oks = [w for w in ws if w.outcome == "ok"]

    def position(w: Send) -> int | None:
        polled = [r.offset for r in rs if r.value == w.value]
        return w.offset if w.offset is not None else min(polled, default=None)

    def was_polled(w: Send) -> bool:
        return any(r.value == w.value for r in rs)

    def sender(value: str) -> Send | None:
        return next((w for w in ws if w.value == value), None)

    def before(w: Send, later: Send) -> bool:
        return later.op.start is not None and w.op.end is not None and w.op.end < later.op.start

    def visible(offset: int, reader: Op) -> bool:
        if reader.fields.get("isolation") != "read_committed":
            return True
        senders = [sender(value) for at, value in claims if at == offset]
        return any(w is None or not (w.outcome == "fail" and w.aborted) for w in senders)

    found: dict[str, int] = {}
    found["inconsistent-offsets"] = sum(
        1 for offset in {o for o, _ in claims} if len({v for o, v in claims if o == offset}) > 1
    )
    found["duplicate"] = sum(
        1
        for value in {v for _, v in claims}
        if len({o for o, v in claims if v == value}) > 1 and ((w := sender(value)) is None or w.idempotent)
    )

    def at(op: Op) -> int:
        return (op.ended if op.end is None else op.end) or 0 if op.start is None else op.start

    def acknowledged(w: Send) -> int:
        return w.op.end or 0

    def something_else_came(w: Send) -> bool:
        mine = [at(r.op) for r in rs if r.value == w.value]
        others = [at(r.op) for r in rs if r.offset == w.offset and r.value != w.value]
        return any(all(other > mine_at for mine_at in [*mine, acknowledged(w)]) for other in others)

    vain = [(op.start, position) for op, name, position in _in_vain(ops) if name == p and op.start is not None]
    vain = [each for each in vain if each[0] == max(start for start, _ in vain)]
    end = min((position for _, position in vain), default=0)
    ended = (
        bool(vain)
        and all(vain[0][0] > acknowledged(w) for w in oks)
        and not any(r.offset >= end and at(r.op) >= vain[0][0] for r in rs)
    )
    found["lost-write"] = sum(
        1
        for w in oks
        if w.offset is not None
        and not any(r.value == w.value and r.offset != w.offset for r in rs)
        and (
            (not was_polled(w) and any(r.offset >= w.offset for r in rs))
            or something_else_came(w)
            or (ended and w.offset >= end)
        )
    )
    found["G1a"] = sum(
        1 for w in ws if w.outcome == "fail" and any(r.value == w.value and (r.committed or not w.aborted) for r in rs)
    )
    found["phantom"] = len({r.value for r in rs} - {w.value for w in ws})
    found["realtime-order"] = sum(
        1
        for later in ws
        if any(
            before(w, later) and at <= place
            for w in oks
            if w is not later and (place := position(w)) is not None
            for at, value in claims
            if value == later.value
        )
    )
    found["stale-end"] = sum(
        1
        for op in ops
        if op.f == "end"
        and op.type == "ok"
        and str(op.fields["partition"]) == p
        and op.fields.get("isolation") != "read_committed"
        and op.start is not None
        and any(
            (w.op.end or 0) < op.start and place >= op.fields["offset"]
            for w in oks
            if (place := position(w)) is not None
        )
    )
    found["nonmonotonic-send"] = 0
    for w in (each for each in ws if each.idempotent and each.outcome != "fail" and position(each) is not None):
        earlier = [
            other
            for other in ws
            if other.idempotent
            and other.outcome != "fail"
            and position(other) is not None
            and (other.op.process, other.op.client) == (w.op.process, w.op.client)
            and other.op.begun < w.op.begun
        ]
        if earlier and (position(w) or 0) <= (position(max(earlier, key=lambda other: other.op.begun)) or 0):
            found["nonmonotonic-send"] += 1
    steps = [step for process in {op.process for op in ops} for step in _steps(ops, process) if step[0] == p]
    found["nonmonotonic-poll"] = sum(1 for _, following, came, _ in steps if came < following)
    found["poll-skip"] = sum(
        1
        for _, following, came, op in steps
        if any(following <= offset < came and visible(offset, op) for offset, _ in claims)
    )
    final = any(
        op.f == "poll"
        and op.type == "ok"
        and not _polled(op)
        and op.start is not None
        and all((w.op.end or 0) < op.start for w in oks)
        and p in _reads_at(ops, op)
        for op in ops
    )
    found["unseen"] = sum(1 for w in oks if not was_polled(w)) if final else 0
    return found
