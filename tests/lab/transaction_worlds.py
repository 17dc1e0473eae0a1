"""Small random histories of transactions: those of sound logs, and of logs and readers that do what they must not do.

`world(seed)` plays transactional clients on partitions with markers and last stable offsets, step by step: markers come
late, some clients stop in the middle, some outcomes are unknown, some clients are members of a group that moves
partitions. In the end all transactions are ended, and a reader comes to the end. Without plants nothing may be found.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

Line = dict[str, Any]

PLANTS = {
    "a dirty reader": {"G1a", "precommitted-read"},
    "a marker of a part says abort": {"torn", "lost-write", "unseen"},
    "an abort is a commit": {"G1a"},
    "a record is gone": {"lost-write", "unseen", "torn"},
    "a poll leaves out": {"poll-skip", "int-poll-skip"},
    "a poll goes back": {"nonmonotonic-poll", "int-nonmonotonic-poll"},
    "two records change places": {"int-nonmonotonic-send"},
    "a record stands twice": {"duplicate"},
}
"""What goes wrong -> what the checker may call it."""


@dataclass
class Transaction:
    partitions: set[str] = field(default_factory=set)
    open: bool = True
    committed: bool = False
    waiting: list[str] = field(default_factory=list)
    """Partitions that have no marker yet."""
    committed_in: dict[str, bool] = field(default_factory=dict)


@dataclass
class Entry:
    value: str
    transaction: Transaction
    gone: bool = False


Log = list[Entry | None]


@dataclass
class Client:
    name: str
    in_group: bool
    positions: dict[str, int]
    plan: list[str] = field(default_factory=list)
    """What is left of its transaction: partitions to send to, and "poll"."""
    done: list[Line] = field(default_factory=list)
    transaction: Transaction | None = None
    values: list[str] = field(default_factory=list)


class World:
    def __init__(self, seed: int, plants: Collection[str]) -> None:
        self.rng = random.Random(f"transactions {seed}")
        self.plants = plants
        self.names = [f"t-{n}" for n in range(self.rng.randint(1, 3))]
        self.logs: dict[str, Log] = {name: [] for name in self.names}
        self.lines: list[Line] = []
        self.now = 10
        self.number = 0
        self.last: dict[str, Transaction] = {}
        self.clients = [
            Client(f"c{n}", self.rng.random() < 0.3, dict.fromkeys(self.names, 0))
            for n in range(self.rng.randint(2, 3))
        ]

    def tick(self) -> int:
        self.now += self.rng.randint(1, 3)
        return self.now

    def does(self, plant: str, odds: float = 0.2) -> bool:
        return plant in self.plants and self.rng.random() < odds

    def put(self, process: str, kind: str, function: str, **fields: Any) -> None:
        at = fields.pop("time_ns", None) or self.tick()
        kept = {name: value for name, value in fields.items() if value is not None}
        self.lines.append({"process": process, "type": kind, "f": function, "time_ns": at, **kept})

    # -- the cluster

    def stable_end(self, name: str) -> int:
        log = self.logs[name]
        for offset, entry in enumerate(log):
            if entry is not None and name not in entry.transaction.committed_in:
                return offset
        return len(log)

    def markers(self, *, all_: bool = False, only: Transaction | None = None) -> None:
        """Some markers are written; each takes an offset."""
        for transaction in [only] if only else list(self.last.values()):
            while transaction.waiting and (all_ or self.rng.random() < 0.5):
                name = transaction.waiting.pop()
                says = transaction.committed
                if says and self.does("a marker of a part says abort"):
                    says = False
                transaction.committed_in[name] = says
                self.logs[name].append(None)

    def end(self, transaction: Transaction, *, committed: bool) -> None:
        transaction.open = False
        transaction.committed = committed or self.does("an abort is a commit", 0.5)
        transaction.waiting = sorted(transaction.partitions)

    def fetch(self, name: str, position: int, *, committed: bool, most: int) -> tuple[list[list[Any]], int]:
        end = self.stable_end(name) if committed else len(self.logs[name])
        found: list[list[Any]] = []
        while position < end and len(found) < most:
            entry = self.logs[name][position]
            if entry is not None and not entry.gone and (not committed or entry.transaction.committed_in[name]):
                found.append([position, entry.value])
            position += 1
        return found, position

    # -- the clients

    def begin(self, client: Client) -> None:
        rng = self.rng
        if client.name in self.last:
            last = self.last[client.name]
            if last.open:
                self.end(last, committed=False)  # fenced
            self.markers(all_=True, only=last)
        client.transaction = self.last[client.name] = Transaction()
        client.plan = [rng.choice([*self.names, "poll"]) for _ in range(rng.randint(1, 5))]
        client.done, client.values = [], []
        ops: list[Line] = []
        for step in client.plan:
            if step == "poll":
                ops.append({"f": "poll"})
            else:
                self.number += 1
                client.values.append(f"v{self.number}")
                ops.append({"f": "send", "partition": step, "value": client.values[-1]})
        if client.in_group and rng.random() < 0.3:
            # The group has given it partitions from other offsets on.
            name = rng.choice(self.names)
            client.positions[name] = rng.randint(0, len(self.logs[name]))
        self.put(client.name, "invoke", "txn", ops=ops)

    def step(self, client: Client) -> None:
        transaction = client.transaction
        if transaction is None:
            self.begin(client)
        elif client.plan and self.rng.random() < 0.03:
            self.complete(client, "fail", aborted=True)
            self.put(client.name, "info", "crash")
            self.place(client)
        elif client.plan and client.plan[0] == "poll":
            client.plan.pop(0)
            self.poll(client)
        elif client.plan:
            self.send(client, client.plan.pop(0), transaction)
        else:
            self.finish(client, transaction)

    def send(self, client: Client, name: str, transaction: Transaction) -> None:
        log, value = self.logs[name], client.values.pop(0)
        log.append(Entry(value, transaction))
        transaction.partitions.add(name)
        op: Line = {"f": "send", "partition": name, "value": value, "offset": len(log) - 1}
        before = log[-2] if len(log) > 1 else None
        if before is not None and before.transaction is transaction and self.does("two records change places"):
            log[-1], log[-2] = log[-2], log[-1]
            for earlier in client.done:
                if earlier.get("value") == before.value:
                    earlier["offset"] = len(log) - 1
            op["offset"] = len(log) - 2
        if self.does("a record stands twice"):
            log.append(Entry(value, transaction))
        if self.does("a record is gone"):
            log[-1].gone = True
        if self.rng.random() < 0.2:
            del op["offset"]
        client.done.append(op)

    def poll(self, client: Client) -> None:
        name = self.rng.choice(self.names)
        began = self.tick()
        position = client.positions[name]
        if position and self.does("a poll goes back"):
            position -= 1
        dirty = self.does("a dirty reader", 0.6)
        found, after = self.fetch(name, position, committed=not dirty, most=self.rng.randint(1, 4))
        if len(found) > 1 and self.does("a poll leaves out", 0.5):
            del found[0]
        client.positions[name] = after
        op: Line = {"f": "poll", "records": {name: found}} if found else {"f": "poll"}
        client.done.append({**op, "invoked_ns": began, "time_ns": self.tick()})

    def finish(self, client: Client, transaction: Transaction) -> None:
        ending_ns = self.tick()
        outcome = self.rng.choices(("ok", "aborted", "unknown"), (6, 2, 1))[0]
        if outcome == "unknown":
            self.end(transaction, committed=self.rng.random() < 0.5)
            self.complete(client, "info", ending_ns=ending_ns)
        else:
            self.end(transaction, committed=outcome == "ok")
            self.markers()
            committed = outcome == "ok"
            self.complete(
                client, "ok" if committed else "fail", aborted=None if committed else True, ending_ns=ending_ns
            )

    def complete(self, client: Client, kind: str, **fields: Any) -> None:
        isolation = "read_committed"
        self.put(client.name, kind, "txn", ops=client.done, isolation=isolation, **fields)
        client.transaction = None

    def place(self, client: Client) -> None:
        if client.in_group:
            self.put(client.name, "ok", "subscribe")
        else:
            positions = dict(client.positions)
            self.put(client.name, "ok", "assign", partitions=list(positions), positions=positions)

    # -- the readers

    def look(self) -> None:
        """A reader of uncommitted records."""
        name = self.rng.choice(self.names)
        began = self.tick()
        found, _ = self.fetch(name, 0, committed=False, most=100)
        process = f"raw{self.number}/{self.now}"
        self.put(process, "ok", "poll", records={name: found}, invoked_ns=began)

    def read_all(self) -> None:
        for transaction in self.last.values():
            if transaction.open:
                self.end(transaction, committed=False)
        self.markers(all_=True)
        for name in self.names:
            process = f"final/{name}"
            self.put(process, "ok", "assign", partitions=[name], positions={name: 0})
            for isolation, end in (
                ("read_uncommitted", len(self.logs[name])),
                ("read_committed", self.stable_end(name)),
            ):
                began = self.tick()
                self.put(process, "ok", "end", partition=name, offset=end, isolation=isolation, invoked_ns=began)
            found, _ = self.fetch(name, 0, committed=True, most=1000)
            for records in ({name: found}, None):
                began = self.tick()
                self.put(process, "ok", "poll", records=records, isolation="read_committed", invoked_ns=began)

    def play(self) -> list[Line]:
        for client in self.clients:
            self.place(client)
        for _ in range(self.rng.randint(20, 90)):
            self.step(self.rng.choice(self.clients))
            if self.rng.random() < 0.2:
                self.markers()
            if self.rng.random() < 0.05:
                self.look()
        self.read_all()
        return self.lines


def world(seed: int, plants: Collection[str] = ()) -> list[Line]:
    return World(seed, plants).play()
