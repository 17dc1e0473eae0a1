"""The port for events, and events as JSON."""

from __future__ import annotations

import dataclasses

import pytest

from tanist.events.event import Event, Reported, from_json, to_json
from tanist.events.stream import RECENT_MAX, Events, Recent
from tanist.events.text import describe


def test_listeners_hear_in_order_until_they_end_it() -> None:
    events, heard = Events(), list[tuple[str, Event]]()
    end = events.subscribe(lambda event: heard.append(("first", event)))
    events.subscribe(lambda event: heard.append(("second", event)))
    events.emit(Reported("INFO", "a"))
    end()
    events.emit(Reported("INFO", "b"))
    assert [(who, event.text) for who, event in heard if isinstance(event, Reported)] == [
        ("first", "a"), ("second", "a"), ("second", "b"),
    ]  # fmt: skip


def test_fine_events_are_wanted_as_long_as_somebody_listens_to_them() -> None:
    events = Events()
    events.subscribe(lambda event: None)
    assert not events.fine
    one = events.subscribe(lambda event: None, fine=True)
    other = events.subscribe(lambda event: None, fine=True)
    one()
    assert events.fine
    other()
    assert not events.fine


def test_the_last_events_are_kept_with_their_times() -> None:
    events, now_ms = Events(), 0
    recent = Recent(lambda: now_ms)
    events.subscribe(recent)
    for now_ms in range(RECENT_MAX + 5):
        events.emit(Reported("INFO", str(now_ms)))
    kept = list(recent)
    assert (len(kept), kept[0], kept[-1][0]) == (RECENT_MAX, (5, Reported("INFO", "5")), RECENT_MAX + 4)


def test_json_and_back() -> None:
    event = Reported("WARN", "a line")
    assert to_json(event) == {"event": "Reported", "level": "WARN", "text": "a line"}
    assert from_json({**to_json(event), "time": 3}) == event


@pytest.mark.parametrize("document", [{}, {"event": "Nothing"}, {"event": "Reported", "level": "INFO"}])
def test_what_is_no_event_is_refused(document: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"is no kind of event|Reported: "):
        from_json(document)


@pytest.mark.parametrize("kind", Event.kinds.values())
def test_events_are_frozen_and_their_fields_plain(kind: type[Event]) -> None:
    parameters = kind.__dataclass_params__  # type: ignore[attr-defined]
    assert parameters.frozen
    assert "__slots__" in vars(kind)
    allowed = {"str", "int", "bool", "float", "None", "tuple", "..."}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        words = set(str(field.type).replace("[", " ").replace("]", " ").replace(",", " ").replace("|", " ").split())
        assert words <= allowed, f"{kind.__name__}.{field.name}: {field.type}"


def test_what_the_operator_reads_comes_from_the_event() -> None:
    assert describe(Reported("ERROR", "why")) == ("ERROR", "why")
