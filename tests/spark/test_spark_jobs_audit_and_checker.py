"""The audit and the history checker judge the same histories: what has one name is found by both, as often.

Each partition is a world of its own: a log, its producers, and readers who read all of it. The checker sees what the
clients did; the audit sees the log as well.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tanist.lab.anomalies import OF_AUDITS, OF_HISTORIES, Anomaly
from tanist.lab.history import verify
from tests.spark.spark_audit_worlds import PLANTS, World
from tests.spark.spark_transaction_samples import log_of, write_logs

WORLDS = 32
SAME = set(OF_HISTORIES) & set(OF_AUDITS)


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
