"""What has come of a step, in sentences: each is made from two samples, one after the other, and from nothing else.

A step of a play says what is done; this says what was seen then. A sentence is about the moment in which it is made and
stays true, for it is shown with its time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tanist.text import counted
from tanist.web.state import Json

_DECIDED = ("leader", "isr", "elr", "last_known_elr", "recovering", "last_unclean_epoch")


def findings(before: Mapping[str, Json], changed: Mapping[str, Json]) -> Iterator[str]:
    """`changed` are the keys that have new values, `before` is all that was shown until now."""
    for key, value in changed.items():
        old: Any = before.get(key)
        new: Any = value
        if key.startswith("p/"):
            if old is None or any(old[name] != new[name] for name in _DECIDED):
                yield new["why"]
        elif key.startswith("r/"):
            yield from _of_replicas(old, new)
        elif key == "salvage":
            yield from _of_salvage(old or (), new)


def _of_replicas(old: Any, new: Any) -> Iterator[str]:
    ends = {each["broker"]: each for each in old["replicas"]} if old is not None else {}
    for each in new["replicas"]:
        last = ends.get(each["broker"])
        if last is None or last.get("end") is None or each.get("end") is None or each["end"] >= last["end"]:
            continue
        name = f"broker {each['broker']}"
        if each["alive"]:
            yield f"{name} truncates its log: it ends at {each['end']}, and not at {last['end']} any more"
        else:
            yield f"{name} has lost its power: its log on the disk ends at {each['end']}, and ended at {last['end']}"


def _of_salvage(old: Any, new: Any) -> Iterator[str]:
    known = {(each["broker"], each["id"]) for each in old}
    for each in new:
        if (each["broker"], each["id"]) not in known:
            number = each["end"] - each["start"]
            offsets = f"offset {each['start']}" if number == 1 else f"offsets {each['start']} to {each['end'] - 1}"
            yield f"broker {each['broker']} keeps {counted(number, 'record')} in its salvage ({offsets})"
