"""The port for events, and events as JSON."""

from __future__ import annotations

import copy

import pytest

from tanist.events.event import Event, from_json, to_json
from tanist.events.process import FolderFormatted, NodeFailed
from tanist.events.stream import RECENT_MAX, Events, Recent
from tanist.events.text import describe


def test_listeners_hear_in_order_until_they_end_it() -> None:
    events, heard = Events(), list[tuple[str, Event]]()
    end = events.subscribe(lambda event: heard.append(("first", event)))
    events.subscribe(lambda event: heard.append(("second", event)))
    events.emit(NodeFailed("a"))
    end()
    events.emit(NodeFailed("b"))
    assert [(who, event.reason) for who, event in heard if isinstance(event, NodeFailed)] == [
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
        events.emit(NodeFailed(str(now_ms)))
    kept = list(recent)
    assert (len(kept), kept[0], kept[-1][0]) == (RECENT_MAX, (5, NodeFailed("5")), RECENT_MAX + 4)


def test_json_and_back() -> None:
    event = FolderFormatted("/data", 1, "c")
    assert to_json(event) == {"event": "FolderFormatted", "folder": "/data", "node_id": 1, "cluster_id": "c"}
    assert from_json({**to_json(event), "time": 3}) == event


@pytest.mark.parametrize("document", [{}, {"event": "Nothing"}, {"event": "FolderFormatted", "folder": "/data"}])
def test_what_is_no_event_is_refused(document: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"is no kind of event|FolderFormatted lacks node_id"):
        from_json(document)


@pytest.mark.parametrize("kind", Event.kinds.values())
def test_events_are_immutable_and_their_fields_plain(kind: type[Event]) -> None:
    event = kind(*range(len(kind.fields)))
    assert not hasattr(event, "__dict__")
    with pytest.raises(AttributeError, match="an event does not change"):
        event.partition = 1
    allowed = {"str", "int", "bool", "float", "None", "tuple", "..."}
    for base in kind.__mro__[:-2]:
        for name, annotation in vars(base).get("__annotations__", {}).items():
            words = set(str(annotation).replace("[", " ").replace("]", " ").replace(",", " ").replace("|", " ").split())
            assert words <= allowed, f"{kind.__name__}.{name}: {annotation}"


class Sampled(Event):
    """A kind for these tests."""

    partition: str
    offset: int
    leader: int = -1


del Event.kinds["Sampled"]  # no kind of the product


def test_an_event_is_a_value() -> None:
    event = Sampled("t-0", 5)
    assert event == Sampled(offset=5, partition="t-0", leader=-1) != Sampled("t-0", 5, 2)
    assert hash(event) == hash(Sampled("t-0", 5))
    assert repr(event) == "Sampled(partition='t-0', offset=5, leader=-1)"
    assert copy.deepcopy(event) == event
    match event:
        case Sampled("t-0", offset):
            assert offset == 5
    for wrong in ((), ("t-0",), ("t-0", 1, 2, 3)):
        with pytest.raises(TypeError, match="Sampled"):
            Sampled(*wrong)
    with pytest.raises(TypeError, match="Sampled"):
        Sampled("t-0", 5, epoch=3)  # type: ignore[call-arg]


def test_what_the_operator_reads_comes_from_the_event() -> None:
    assert describe(NodeFailed("why")) == ("ERROR", "why")
