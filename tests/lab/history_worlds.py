"""Small random histories: those of a sound log, those of a log that misbehaves, and soups that make no sense at all.

`world(seed)` plays producers and consumers on logs that do what a log must not do, as far as `plants` says; without
plants the history is sound, and nothing may be found. `soup(seed)` throws operations together, so that each check meets
combinations that no cluster would make. Both give lines in any of the format's forms.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

Line = dict[str, Any]

PLANTS = (
    "lose",
    "truncate",
    "duplicate",
    "write what failed",
    "swap",
    "wrong offset",
    "old end",
    "skip",
    "go back",
    "phantom",
    "hide",
)


@dataclass
class _Entry:
    value: str
    aborted: bool = False


@dataclass
class _Log:
    entries: list[_Entry | None] = field(default_factory=list)
    read_to: int = 0
    """A consumer that begins no later skips nothing."""
    hidden: int = 0
    """Its last entries are not acknowledged any more."""

    @property
    def end(self) -> int:
        return len(self.entries)


@dataclass
class _Event:
    """A line, when it is written."""

    process: Any
    line: Line
    at: int


class _World:
    def __init__(self, seed: int, plants: Collection[str]) -> None:
        self.rng = random.Random(f"world {seed}")
        self.plants = plants
        rng = self.rng
        self.logs = {f"t-{n}": _Log() for n in range(rng.randint(1, 2))}
        self.now = 10
        self.events: list[_Event] = []
        self.timed = rng.random() < 0.6
        self.coarse = rng.choice((0, 1, 1, 3))
        self.paired = rng.choice(("never", "always", "sometimes"))
        self.positions: dict[str, dict[str, int]] = {}
        self.open: list[tuple[Any, ...]] = []
        self.number = 0

    def tick(self) -> int:
        self.now += self.rng.randint(0 if self.timed else 1, max(1, self.coarse))
        return self.now

    def do(self, plant: str, odds: float = 0.25) -> bool:
        return plant in self.plants and self.rng.random() < odds

    def pair(self) -> bool:
        return {"never": False, "always": True, "sometimes": self.rng.random() < 0.5}[self.paired]

    def put(self, process: Any, function: str, kind: str, at: int, fields: Line, invoked: int | None = None) -> None:
        line = {"process": process, "type": kind, "f": function, **fields}
        if self.timed:
            line["time_ns"] = at
            if invoked is not None:
                line["invoked_ns"] = invoked
        self.events.append(_Event(process, line, at))

    def simple(self, process: Any, function: str, kind: str, fields: Line, begun: Line | None = None) -> None:
        """An operation during which nothing else happens to its process; what it does it does between its lines."""
        if function == "crash" or not self.pair():
            began = self.tick()
            reported = began if self.rng.random() < 0.7 else None
            self.put(process, function, kind, self.tick(), {**(begun or {}), **fields}, reported)
            return
        self.put(process, function, "invoke", self.tick(), begun or {})
        self.put(process, function, kind, self.tick(), fields)

    # -- producers

    def begin_send(self, producer: str) -> None:
        rng = self.rng
        self.number += 1
        name = rng.choice(list(self.logs))
        value: Any = f"v{self.number}"
        if rng.random() < 0.1:
            value = [producer, self.number]
        fields: Line = {"partition": name, "value": value}
        if rng.random() < 0.12:
            fields["idempotent"] = False
        careless = rng.random() < 0.08
        if careless:
            fields["acks"] = rng.choice((0, 1, "1"))
        outcome = rng.choices(("ok", "info", "fail", "aborted", "never"), (12, 2, 1, 1, 1))[0]
        pipelined = rng.random() < 0.4 or outcome == "never"
        while not pipelined and any(send[0] == producer for send in self.open):
            self.finish_sends(producer)
        paired = pipelined or self.pair()
        began = self.tick()
        identity = {"id": self.number} if paired and (pipelined or rng.random() < 0.3) else {}
        if paired:
            self.put(producer, "send", "invoke", began, {**fields, **identity})
        self.open.append((producer, name, value, outcome, fields, identity, paired, began))
        if not pipelined:
            self.end_send(self.open.pop())

    def end_send(self, send: tuple[Any, ...]) -> None:
        producer, name, value, outcome, fields, identity, paired, began = send
        log, rng = self.logs[name], self.rng
        offset: int | None = None
        written = outcome in ("ok", "aborted") or (outcome in ("info", "never") and rng.random() < 0.6)
        if outcome == "fail" and self.do("write what failed", 0.7):
            written = True
        if written:
            offset = log.end
            log.entries.append(_Entry(value, outcome == "aborted"))
            if self.do("duplicate"):
                log.entries.append(_Entry(value, outcome == "aborted"))
            if rng.random() < 0.05:
                log.entries.append(None)  # a control record
            if self.do("swap") and log.end > 1:
                log.entries[-1], log.entries[-2] = log.entries[-2], log.entries[-1]
                offset -= 1
        ended: Line = {} if paired and rng.random() < 0.3 else dict(fields)
        ended |= identity
        if outcome == "ok":
            if offset is not None and self.do("wrong offset"):
                offset += rng.choice((-1, 1, 2))
            if offset is not None and offset >= 0 and rng.random() < 0.9:
                ended["offset"] = offset
            reported = began if not paired and rng.random() < 0.8 else None
            self.put(producer, "send", "ok", self.tick(), ended, reported)
        elif outcome != "never":
            if outcome == "aborted":
                ended["aborted"] = True
            kind = "info" if outcome == "info" else "fail"
            self.put(producer, "send", kind, self.tick(), ended, None if paired else began)
        if self.do("lose") and log.end > 1:
            log.entries[rng.randrange(log.end)] = None
        if self.do("truncate") and log.end > 1:
            del log.entries[-rng.randint(1, 2) :]
        if self.do("hide", 0.1):
            log.hidden = 1

    def finish_sends(self, producer: str) -> None:
        """Of a producer that pipelines, answers come in the order of its sends."""
        mine = [send for send in self.open if send[0] == producer]
        for send in mine[: self.rng.randint(1, len(mine))] if mine else []:
            self.open.remove(send)
            self.end_send(send)

    # -- consumers

    def poll(self, consumer: str, at_most: int = 4) -> None:
        rng = self.rng
        places = self.positions.setdefault(consumer, {})
        if not places:
            places.update(dict.fromkeys(self.logs, 0))
        committed = consumer.endswith("committed")
        records: dict[str, list[list[Any]]] = {}
        for name in places:
            log = self.logs[name]
            if self.do("skip"):
                places[name] += 1
            if self.do("go back") and places[name]:
                places[name] -= 1
            polled: list[list[Any]] = []
            limit = rng.randint(1, at_most)
            while len(polled) < limit and places[name] < log.end - log.hidden:
                entry = log.entries[places[name]]
                if entry is not None and not (committed and entry.aborted):
                    polled.append([places[name], entry.value])
                places[name] += 1
            log.read_to = max(log.read_to, places[name])
            if self.do("phantom", 0.1):
                polled.append([places[name], f"nobody's {self.number} {rng.random()}"])
                places[name] += 1
            if polled or rng.random() < 0.1:
                records[name] = polled
        fields: Line = {"isolation": "read_committed"} if committed else {}
        single = [(name, record) for name, many in records.items() for record in many]
        if len(single) == 1 and rng.random() < 0.5:
            (name, (offset, value)) = single[0]
            fields |= {"partition": name, "offset": offset, "value": value}
        elif records or rng.random() < 0.5:
            fields["records"] = records
        if rng.random() < 0.3:
            fields["positions"] = {name: place for name, place in places.items() if rng.random() < 0.8}
        kind = "ok" if single or "positions" in fields or rng.random() < 0.8 else rng.choice(("info", "fail"))
        if kind != "ok":
            fields = {}
        self.simple(consumer, "poll", kind, fields)

    def place(self, consumer: str) -> None:
        rng = self.rng
        places = self.positions.setdefault(consumer, {})
        which = rng.choice(("assign", "assign", "seek", "crash", "subscribe"))
        if which == "crash":
            places.clear()
            self.simple(consumer, "crash", rng.choice(("ok", "info")), {})
        elif which == "subscribe":
            places.clear()
            self.simple(consumer, "subscribe", "ok", {"topics": ["t"]})
        elif which == "seek":
            name = rng.choice(list(self.logs))
            places[name] = rng.randint(0, self.logs[name].read_to)
            self.simple(consumer, "seek", "ok", {"positions": {name: places[name]}})
        else:
            chosen = [name for name in self.logs if rng.random() < 0.7] or list(self.logs)
            kept = {name: places[name] for name in chosen if name in places}
            fields: Line = {"partitions": chosen}
            reported = {}
            for name in chosen:
                if name not in kept or rng.random() < 0.5:
                    kept[name] = rng.choice((0, rng.randint(0, self.logs[name].read_to)))
                    reported[name] = kept[name] if rng.random() < 0.8 else None
            if reported:
                fields["positions"] = reported
            places.clear()
            places.update(kept)
            self.simple(consumer, "assign", "ok", fields)

    def ask_end(self, process: str) -> None:
        name = self.rng.choice(list(self.logs))
        end = max(0, self.logs[name].end - self.logs[name].hidden)
        if self.do("old end", 0.5):
            end = max(0, end - self.rng.randint(1, 3))
        fields: Line = {"offset": end}
        if self.rng.random() < 0.2:
            fields["isolation"] = "read_committed"
        begun = {"partition": name}
        if not self.pair():
            self.simple(process, "end", "ok", {**begun, **fields})
        else:
            self.put(process, "end", "invoke", self.tick(), begun)
            self.put(process, "end", "ok", self.tick(), {**begun, **fields})

    # -- all of it

    def play(self) -> list[Line]:
        rng = self.rng
        producers = [f"p{n}" for n in range(rng.randint(1, 3))]
        consumers = ["c0", "c1 committed", "c2"][: rng.randint(1, 3)]
        for _ in range(rng.randint(4, 24)):
            what = rng.random()
            if what < 0.5:
                producer = rng.choice(producers)
                self.finish_sends(producer) if rng.random() < 0.4 else self.begin_send(producer)
            elif what < 0.85:
                self.poll(rng.choice(consumers))
            elif what < 0.92:
                self.place(rng.choice(consumers))
            elif what < 0.99:
                self.ask_end(rng.choice(["c0", "observer"]))
            else:
                self.put("nemesis", "kill", "info", self.tick(), {"value": 3})
        for producer in producers:
            while any(send[0] == producer for send in self.open) and rng.random() < 0.9:
                self.finish_sends(producer)
        if rng.random() < 0.7:
            self.positions["last"] = dict.fromkeys(self.logs, 0)
            self.simple(
                "last", "assign", "ok", {"partitions": list(self.logs), "positions": self.positions["last"] | {}}
            )
            for _ in range(rng.randint(1, 3)):
                self.poll("last", 40)
        return self.lines()

    def lines(self) -> list[Line]:
        """In the order of time; or, if lines have times, each process after the other."""
        if self.timed and self.rng.random() < 0.3:
            order = {process: self.rng.random() for process in sorted({str(event.process) for event in self.events})}
            return [event.line for event in sorted(self.events, key=lambda event: order[str(event.process)])]
        return [event.line for event in self.events]


def world(seed: int, plants: Collection[str] = ()) -> list[Line]:
    """A history of logs that do what is planted."""
    return _World(seed, plants).play()


def planted(seed: int) -> list[Line]:
    """A history of logs that do something that they must not do, or several things."""
    rng = random.Random(f"plants {seed}")
    return world(seed, rng.sample(PLANTS, rng.choice((1, 1, 2, 3))))


def soup(seed: int) -> list[Line]:
    """Operations without sense or order, but well-formed: few offsets, few values, anything."""
    rng = random.Random(f"soup {seed}")
    names = ["t-0", "t-1"][: rng.randint(1, 2)]
    far = rng.choice((0, 0, 7, 1 << 40))
    timed = rng.random() < 0.5
    clock = dict.fromkeys(("a", "b", 3), 0)
    unsent = {name: [f"v{n}" for n in range(12)] for name in names}
    lines: list[Line] = []

    def offset() -> int:
        return far + rng.choice((1, 1, 16)) * rng.randint(0, 9)

    def times(process: Any, sent: bool) -> Line:
        if not timed:
            return {}
        began = clock[process] + rng.randint(0, 2)
        clock[process] = began + rng.randint(0, 3)
        reported = {"invoked_ns": began} if rng.random() < 0.7 else {}
        if sent and reported and rng.random() < 0.4:
            # It ends long after others have begun.
            return {"time_ns": clock[process] + rng.randint(0, 9), **reported}
        return {"time_ns": clock[process], **reported}

    for _ in range(rng.randint(2, 22)):
        process: Any = rng.choice(list(clock))
        name = rng.choice(names)
        what = rng.random()
        if what < 0.5 and unsent[name]:
            value = unsent[name].pop(rng.randrange(len(unsent[name])))
            line: Line = {"process": process, "f": "send", "partition": name, "value": value, **times(process, True)}
            line["type"] = rng.choice(("ok", "ok", "ok", "ok", "info", "fail"))
            if rng.random() < 0.8:
                line["offset"] = offset()
            if line["type"] == "fail" and rng.random() < 0.5:
                line["aborted"] = True
            if rng.random() < 0.15:
                line |= rng.choice(({"idempotent": False}, {"acks": 1}))
        elif what < 0.85:
            line = {"process": process, "f": "poll", "type": "ok", **times(process, False)}
            line["records"] = {
                each: [[offset(), f"v{rng.randint(0, 12)}"] for _ in range(rng.randint(0, 4))]
                for each in names
                if rng.random() < 0.8
            }
            if rng.random() < 0.3:
                line["positions"] = {name: offset()}
            if rng.random() < 0.3:
                line["isolation"] = "read_committed"
        elif what < 0.9:
            line = {"process": process, "f": "end", "type": "ok", "partition": name, "offset": offset()}
            line |= times(process, False)
        else:
            function = rng.choice(("assign", "seek", "crash", "subscribe"))
            line = {"process": process, "f": function, **times(process, False)}
            line["type"] = rng.choice(("ok", "ok", "info", "fail"))
            if function == "assign":
                line["partitions"] = [each for each in names if rng.random() < 0.7]
                line["positions"] = {each: offset() for each in line["partitions"] if rng.random() < 0.5}
            elif function == "seek":
                line["positions"] = {name: rng.choice((None, offset()))}
        lines.append(line)
    return lines
