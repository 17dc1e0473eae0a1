"""The audit and the history checker judge the same histories: what has one name is found by both, as often.

Each partition is a world of its own: a log, its producers, and readers who read all of it. The checker sees what the
clients did; the audit sees the log as well.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from tanist.lab.anomalies import OF_AUDITS, OF_HISTORIES, Anomaly
from tanist.lab.history import verify
from tests.spark.spark_audit_samples import TOPIC
from tests.spark.spark_transaction_samples import PLAIN, log_of, write_logs

WORLDS = 32
PLANTS = ("duplicate", "write what failed", "swap", "phantom", "read aborted", "lose", "truncate")
SAME = set(OF_HISTORIES) & set(OF_AUDITS)
Line = dict[str, Any]


class World:
    """A partition's log, and the lines of those who write and read it. Without a plant nothing is wrong."""

    def __init__(self, partition: int, plant: str | None) -> None:
        self.rng = random.Random(f"{partition} {plant}")
        self.plant = plant
        self.place = f"{TOPIC}-{partition}"
        self.log: list[tuple[int, str | bool]] = []
        self.aborted: set[int] = set()
        self.lines: list[Line] = []
        self.now_ns = 10
        self.number = 0

    def plants(self, plant: str) -> bool:
        return self.plant == plant and self.rng.random() < 0.3

    def line(self, process: str, function: str, kind: str, **fields: Any) -> None:
        began_ns, self.now_ns = self.now_ns + 1, self.now_ns + 2
        line = {"process": f"{process} {self.place}", "f": function, "type": kind, **fields}
        self.lines.append({**line, "invoked_ns": began_ns, "time_ns": self.now_ns})

    def append(self, value: str, producer: int = PLAIN) -> int:
        self.log.append((producer, value))
        return len(self.log) - 1

    def sent(self, value: str, kind: str, **fields: Any) -> None:
        self.line("p", "send", kind, partition=self.place, value=value, **fields)

    def write(self) -> None:
        self.number += 1
        value, rng = f"v{self.number}", self.rng
        settings = rng.choices(({}, {"idempotent": False}, {"acks": 1}), (8, 1, 1))[0]
        match rng.choices(("ok", "info", "fail", "transaction"), (10, 2, 2, 2))[0]:
            case "ok":
                if self.plants("swap"):
                    before, behind = f"{value} before", self.append(value)
                    self.log.insert(behind, (PLAIN, before))
                    self.sent(value, "ok", offset=behind + 1)
                    self.sent(before, "ok", offset=behind)
                    return
                offset = self.append(value)
                if self.plants("duplicate"):
                    self.append(value)
                self.sent(value, "ok", offset=offset, **settings)
            case "info":
                if rng.random() < 0.5:
                    self.append(value)
                self.sent(value, "info", **settings)
            case "fail":
                if self.plants("write what failed"):
                    self.append(value)
                self.sent(value, "fail")
            case _:
                committed = rng.random() < 0.5
                offset = self.append(value, producer=7)
                self.log.append((7, committed))
                if committed:
                    self.sent(value, "ok", offset=offset)
                else:
                    self.aborted.add(offset)
                    self.sent(value, "fail", aborted=True)

    def read(self, process: str, *, committed: bool) -> None:
        """Everything, from the beginning, until nothing comes."""
        isolation = {"isolation": "read_committed"} if committed else {}
        self.line(process, "assign", "ok", partitions=[self.place], positions={self.place: 0})
        records: list[list[Any]] = []
        for offset, entry in enumerate(self.log):
            if isinstance(entry[1], bool):
                continue
            if committed and offset in self.aborted and not self.plants("read aborted"):
                continue
            records.append([offset, entry[1]])
        end = {"positions": {self.place: len(self.log)}}
        self.line(process, "poll", "ok", records={self.place: records}, **end, **isolation)
        self.line(process, "poll", "ok", **end, **isolation)

    def play(self) -> None:
        for _ in range(self.rng.randint(8, 20)):
            self.write()
        match self.plant:
            case "lose":  # before anybody has read it; another record stands there
                for offset in {self.rng.choice(self._plain()) for _ in range(3)}:
                    self.log[offset] = PLAIN, f"instead {offset}"
                    self.sent(f"instead {offset}", "info", idempotent=False)
                del self.log[self._plain()[-1] :]
            case "truncate":  # what has been read; others are written in its place
                self.read("early", committed=False)
                del self.log[self.rng.choice(self._plain()[-4:]) :]
                self.aborted = {offset for offset in self.aborted if offset < len(self.log)}
                for _ in range(self.rng.randint(0, 2)):
                    self.write()
            case "phantom":
                self.append("of nobody")
        self.read("last", committed=False)
        self.read("committed", committed=True)

    def _plain(self) -> list[int]:
        return [offset for offset, entry in enumerate(self.log) if entry[0] == PLAIN]


def test_both_judges_say_the_same_of_the_same_histories(spark: Any, tmp_path: Path) -> None:
    from tanist.spark.jobs.audit.audit import audit_folder

    worlds = [World(number, (None, *PLANTS)[number % (len(PLANTS) + 1)]) for number in range(WORLDS)]
    for world in worlds:
        world.play()
    logs = [(1, partition, log_of(world.log)) for partition, world in enumerate(worlds)]
    data = write_logs(tmp_path / "data", *logs)
    history = tmp_path / "history.jsonl"
    history.write_text("".join(json.dumps(line) + "\n" for world in worlds for line in world.lines))

    verdict, _ = verify(history)
    checked = {each.anomaly: each.partitions for each in verdict.findings}
    audited: dict[Anomaly, dict[str, int]] = {}
    for (kind, topic, partition), count in audit_folder(spark, data, [history]).counts.items():
        audited.setdefault(kind, {})[f"{topic}-{partition}"] = count

    met: Counter[Anomaly | str | None] = Counter()
    for world in worlds:
        by_checker = {kind: counts[world.place] for kind, counts in checked.items() if world.place in counts}
        by_audit = {kind: counts[world.place] for kind, counts in audited.items() if world.place in counts}
        said = f"{world.place}, {world.plant}: {by_checker} and {by_audit}"
        # Who reads to the end has not seen the lost ones. Of these `lost-write` has those with a record behind them.
        unseen = by_checker.pop(Anomaly.UNSEEN, 0)
        lost = max(unseen, by_checker.pop(Anomaly.LOST_WRITE, 0))
        if lost:
            by_checker[Anomaly.LOST_WRITE] = lost
        assert {kind: by_checker.get(kind) for kind in SAME} == {kind: by_audit.get(kind) for kind in SAME}, said
        # The producers wait for each answer, so an earlier send was acknowledged. Records that are cut off had a place
        # for the checker, and have none in the log.
        if world.plant != "truncate":
            assert (Anomaly.NONMONOTONIC_SEND in by_checker) == (Anomaly.REORDERED in by_audit), said
        assert world.plant or not (by_checker or by_audit), said
        met.update([*by_checker, *by_audit])
    assert all(met[kind] >= 4 for kind in (*SAME, Anomaly.REORDERED)), met
