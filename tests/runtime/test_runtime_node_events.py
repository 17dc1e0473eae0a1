"""The file of a node's events, and its reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.events.event import Reported
from tanist.runtime import event_log
from tanist.runtime.cluster.node_events import NodeEvent, NodeEvents, merged
from tanist.runtime.event_log import FILE_NAME, PREVIOUS_NAME, EventLog


def texts(found: list[NodeEvent]) -> list[str]:
    return [each.event.text for each in found if isinstance(each.event, Reported)]


def test_events_are_read_as_they_come_and_by_time(tmp_path: Path) -> None:
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
    one, two = (EventLog(str(folder)) for folder in folders)
    readers = [NodeEvents(number, folder) for number, folder in enumerate(folders, start=1)]
    assert list(merged(readers)) == []
    one.write(3, Reported("INFO", "c"))
    one.write(5, Reported("INFO", "e"))
    two.write(4, Reported("WARN", "d"))
    assert list(merged(readers)) == [
        NodeEvent(3, 1, Reported("INFO", "c")),
        NodeEvent(4, 2, Reported("WARN", "d")),
        NodeEvent(5, 1, Reported("INFO", "e")),
    ]
    two.write(6, Reported("INFO", "f"))
    assert texts(list(merged(readers))) == ["f"]
    for reader in readers:
        reader.close()


def test_a_full_file_becomes_the_one_before_and_nothing_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "FILE_BYTES_MAX", 200)
    log, reader, read = EventLog(str(tmp_path)), NodeEvents(1, tmp_path), list[str]()
    for number in range(20):
        log.write(number, Reported("INFO", f"line {number}"))
        read += texts(list(reader.new()))
    assert read == [f"line {number}" for number in range(20)]
    assert sum((tmp_path / name).stat().st_size for name in (FILE_NAME, PREVIOUS_NAME)) <= 400
    late = texts(list(NodeEvents(1, tmp_path).new()))
    assert late == read[-len(late) :]
    assert len(late) >= 3


def test_a_torn_line_and_an_unknown_kind_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b'{"ms":1,"event":"OfAnotherVersion"}\nnot json\n[]\n{"ms":2,"event":"Reported","lev')
    EventLog(str(tmp_path)).write(3, Reported("INFO", "whole"))
    assert texts(list(NodeEvents(1, tmp_path).new())) == ["whole"]


def test_a_line_that_is_not_whole_waits(tmp_path: Path) -> None:
    path, reader = tmp_path / FILE_NAME, NodeEvents(1, tmp_path)
    path.write_bytes(b'{"ms":2,"event":"Reported","level":"INFO",')
    assert list(reader.new()) == []
    with path.open("ab") as file:
        file.write(b'"text":"now"}\n')
    assert texts(list(reader.new())) == ["now"]


def test_a_disk_that_takes_nothing_is_ignored(tmp_path: Path) -> None:
    EventLog(str(tmp_path / "none")).write(1, Reported("INFO", "lost"))


def test_fields_that_an_event_does_not_have_are_named() -> None:
    event = NodeEvent(1, 1, Reported("INFO", "a"))
    assert event.has({"level": "INFO"})
    assert not event.has({"level": "WARN"})
    with pytest.raises(ValueError, match="Reported has no field leader: it has level, text"):
        event.has({"leader": 1})
