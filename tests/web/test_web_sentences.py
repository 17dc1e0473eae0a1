"""What a page of the lab says stands beside what it shows: each sentence, at each moment, of every play and setting.

A sentence is read here by patterns of its own, and each thing that it says of the cluster is looked for in the state
that the page shows at that moment.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tanist.lab.plays import PLAYS
from tests.web.test_web_simulated import recorded

Sample = Mapping[str, Any]

_DOWN = ("crashed", "stopped")
_ONE = r"brokers? ([\d, and]*\d)"


def _numbers(text: str) -> set[int]:
    return set(map(int, re.findall(r"\d+", text)))


def _is_down(sample: Sample, broker: int) -> bool:
    (state,) = [each["state"] for each in sample["cluster"]["nodes"] if each["id"] == broker]
    return state in _DOWN


def _partition(sample: Sample) -> dict[str, Any]:
    (found,) = [value for key, value in sample.items() if key.startswith("p/")]
    return found  # type: ignore[no-any-return]


def _leads(sample: Sample, brokers: set[int]) -> bool:
    return brokers == {_partition(sample)["leader"]} and not any(_is_down(sample, each) for each in brokers)


CLAIMS: tuple[tuple[str, Callable[[Sample, set[int]], bool]], ...] = (
    (r"\bno leader\b", lambda sample, _: _partition(sample)["leader"] < 0),
    (rf"^{_ONE} leads (?:and|, )", _leads),
    (rf"{_ONE} leads, but", _leads),
    (
        rf"{_ONE} is the leader in the metadata only",
        lambda sample, said: said == {_partition(sample)["leader"]} and all(_is_down(sample, each) for each in said),
    ),
    (rf"{_ONE} (?:does|do) not run", lambda sample, said: all(_is_down(sample, each) for each in said)),
    (
        rf"{_ONE} (?:is|are) eligible \(ELR\)",
        lambda sample, said: said <= set(_partition(sample)["elr"]),
    ),
    (rf"{_ONE} of LastKnownElr", lambda sample, said: said <= set(_partition(sample)["last_known_elr"])),
    (
        r"every replica is in sync",
        lambda sample, _: set(_partition(sample)["isr"]) == set(_partition(sample)["replicas"]),
    ),
    (r"ISR is empty", lambda sample, _: not _partition(sample)["isr"]),
    (r"ISR and ELR are empty", lambda sample, _: not _partition(sample)["isr"] and not _partition(sample)["elr"]),
    (r"(\d+) in sync", lambda sample, said: said == {len(_partition(sample)["isr"])}),
    (r"in the ELR", lambda sample, _: bool(_partition(sample)["elr"])),
    (r"LastKnownElr is (?:still )?missing", lambda sample, _: bool(_partition(sample)["last_known_elr"])),
    (r"LastKnownElr have answered", lambda sample, _: not _partition(sample)["last_known_elr"]),
    (r"(?:is|are) elected", lambda sample, _: _partition(sample)["leader"] >= 0),
)
"""What a sentence may say of a partition, and whether it is so."""


def lies(text: str, sample: Sample) -> list[str]:
    found = []
    for pattern, holds in CLAIMS:
        for claim in re.finditer(pattern, text):
            said = _numbers(claim[1]) if claim.re.groups else set()
            if not holds(sample, said):
                found.append(claim[0])
    return found


def moments(lines: list[dict[str, Any]]) -> Iterator[tuple[float, Sample, set[str]]]:
    """Each moment, with what the page shows then and the keys that have just changed."""
    sample: dict[str, Any] = {}
    for at, several in itertools.groupby(lines, key=lambda line: line["at"]):
        changed: set[str] = set()
        for line in several:
            sample.update(line["set"])
            changed |= set(line["set"])
            for key in line["gone"]:
                sample.pop(key, None)
        yield at, sample, changed


SETTINGS = [
    (name, dict(zip([each.name for each in play.settings], choices, strict=True)))
    for name, play in PLAYS.items()
    for choices in itertools.product(*(each.choices for each in play.settings))
]
ACTIONS = ["2000000.power-loss.1", "2200000.crash.2", "6000000.start.1", "9000000.start.2", "12000000.crash.3"]


def request(name: str, settings: Mapping[str, str], seed: int) -> dict[str, Any]:
    actions = ACTIONS if PLAYS[name].goes_on else []
    return {"name": name, "settings": settings, "seed": PLAYS[name].seed + seed, "actions": actions}


def named(each: object) -> str:
    return each if isinstance(each, str) else "-".join(each.values())  # type: ignore[attr-defined]


STATE = re.compile(r"\b(leads?|leader is|elected|eligible|ISR|ELR|acknowledged|in sync|truncate[sd]?|lost|missing)\b")
"""Words that say what a cluster is like, and not what is done to it."""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=named)
def test_no_sentence_denies_what_is_shown(name: str, settings: dict[str, str], seed: int) -> None:
    found = []
    for at, sample, changed in moments(recorded(request(name, settings, seed))):
        if not any(key.startswith("p/") for key in sample) or "cluster" not in sample:
            continue
        new = [each["text"] for each in sample["found"] if each["at"] == at and "found" in changed]
        assert "story" not in changed or [each for each in sample["found"] if each["at"] < at] == []
        for text in (sample["story"]["text"], _partition(sample)["why"], *new):
            found += [f"{at / 1000:.3f}: {claim!r} in {text!r}" for claim in lies(text, sample)]
        if "story" in changed and sample["story"]["title"] != "the end" and STATE.search(sample["story"]["text"]):
            found.append(f"a step says what comes of it: {sample['story']['text']!r}")
    assert found == []


def test_what_is_found_is_in_the_look() -> None:
    """Each kind of finding, with the numbers of the picture beside it."""
    kinds = {"truncates its log": 0, "lost its power": 0, "in its salvage": 0}
    for name, settings in SETTINGS:
        before: dict[str, Any] = {}
        for line in recorded(request(name, settings, 0)) if not PLAYS[name].goes_on else ():
            for each in line["set"].get("found", ()):
                if each["at"] == line["at"]:
                    for kind in kinds:
                        kinds[kind] += kind in each["text"]
                    _check(each["text"], before, line["set"])
            before.update(line["set"])
    assert all(kinds.values()), kinds


def _check(text: str, before: Sample, new: Sample) -> None:
    numbers = list(map(int, re.findall(r"\d+", text)))
    if "truncates its log" in text or "lost its power" in text:
        (key,) = [key for key in new if key.startswith("r/")] or [""]
        if not key:  # it was said with an earlier line of this moment
            return
        ends, last = ({each["broker"]: each["end"] for each in sample[key]["replicas"]} for sample in (new, before))
        assert numbers == [numbers[0], ends[numbers[0]], last[numbers[0]]]
        assert numbers[1] < numbers[2]
    if "in its salvage" in text and "salvage" in new:
        kept = [(each["broker"], each["end"] - each["start"], each["start"]) for each in new["salvage"]]
        assert tuple(numbers[:3]) in kept


def test_what_a_loss_of_power_has_left_is_on_the_disk_also_when_its_broker_is_back() -> None:
    returned = 0
    for seed in range(4):
        left: dict[int, int] = {}
        for _, sample, _ in moments(recorded(request("unclean-recovery", {"strategy": "Balanced"}, seed))):
            whys = {each["id"]: each.get("why") or "" for each in sample.get("cluster", {"nodes": ()})["nodes"]}
            for each in sample.get("r/orders/0", {"replicas": ()})["replicas"]:
                broker, end = each["broker"], each.get("end")
                if not each["alive"] and "lost its power" in whys[broker]:
                    left[broker] = end
                elif each["alive"] and left.get(broker) == end and end:
                    assert each["synced"] == end, f"seed {seed}: {each}"
                    returned += 1
    assert returned
