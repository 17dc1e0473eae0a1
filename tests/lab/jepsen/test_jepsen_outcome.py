"""The account of a run, and that the history checker comes to the same number of losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tanist.lab.history import Anomaly, HistoryWriter, verify
from tanist.lab.jepsen.outcome import FINAL, account

NAME = "t-0"


def _send(number: int, outcome: str | None, at_ns: int) -> list[dict[str, Any]]:
    common = {"process": "w1/0", "f": "send", "id": number}
    lines = [{**common, "type": "invoke", "partition": NAME, "value": f"w1/{number}", "time_ns": at_ns}]
    if outcome is not None:
        offset = {"offset": number} if outcome == "ok" and number % 2 else {}
        lines.append({**common, "type": outcome, "time_ns": at_ns + 1, **offset})
    return lines


def _final(values: list[str], at_ns: int) -> list[dict[str, Any]]:
    process = f"{FINAL}/0"
    common = {"process": process, "type": "ok", "time_ns": at_ns}
    records = {NAME: [[offset, value] for offset, value in enumerate(values)]}
    return [
        {**common, "f": "assign", "partitions": [NAME], "positions": {NAME: 0}},
        {**common, "f": "poll", "records": records, "invoked_ns": at_ns},
        {**common, "f": "poll", "time_ns": at_ns + 2, "invoked_ns": at_ns + 1},
    ]


def test_each_write_has_its_place() -> None:
    outcomes = ["ok", "ok", "info", "info", "fail", None]
    lines = [line for number, each in enumerate(outcomes) for line in _send(number, each, 10 * number)]
    lines.insert(0, {"process": "r1/0", "type": "ok", "f": "poll", "time_ns": 7, "records": {NAME: [[0, "w1/1"]]}})
    outcome = account([*lines, *_final(["w1/0", "w1/2", "foreign"], 1000)])
    assert (outcome.acknowledged, outcome.refused, outcome.unknown) == (2, 1, 3)
    # A reader saw w1/1 once; it is not there in the end, so it is lost.
    assert [(sent.partition, sent.value) for sent in outcome.lost] == [(NAME, "w1/1")]
    assert outcome.survivors == 1
    assert outcome.unacknowledged_found == 1
    assert outcome.unexpected == [(NAME, "foreign")]
    assert outcome.polled_ns == [(7, 1)]
    outcome.note_salvaged([(NAME, "w1/1"), (NAME, "w1/0"), ("t-1", "w1/1")])
    assert outcome.salvaged == {(NAME, "w1/1")}
    reported = "\n".join(outcome.lines(has_salvage=True))
    assert "       1 acknowledged writes lost (t-0: w1/1)" in reported
    assert "       1 of these in the salvage" in reported
    assert "       1 unexpected (t-0: foreign)" in reported
    assert "   0.500 loss rate" in reported


def test_a_salvage_that_there_is_not_is_not_spoken_of() -> None:
    outcome = account([*_send(0, "ok", 0), *_final([], 100)])
    assert not any("salvage" in line for line in outcome.lines(has_salvage=False))
    assert any("salvage" in line for line in outcome.lines(has_salvage=True))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["ok", "info", "fail", None]), st.booleans()), min_size=1, max_size=8))
def test_the_checker_loses_as_many(tmp_path: Path, writes: list[tuple[str | None, bool]]) -> None:
    lines = [line for number, (outcome, _) in enumerate(writes) for line in _send(number, outcome, 10 * number)]
    there = [f"w1/{number}" for number, (_, kept) in enumerate(writes) if kept]
    lines += _final(there, 1000)
    path = tmp_path / "history.jsonl"
    with path.open("w") as file:
        for line in lines:
            HistoryWriter(file).write(line)
    found = {each.anomaly: each.count for each in verify(path)[0].findings}
    # In a history that was read to its end `unseen` is every loss; `lost-write` has those that others stand behind.
    assert len(account(lines).lost) == found.get(Anomaly.UNSEEN, 0)
