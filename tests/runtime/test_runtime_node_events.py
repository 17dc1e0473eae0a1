"""The file of a node's events, and its reader."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tanist.events.process import NodeFailed
from tanist.runtime import event_log
from tanist.runtime.cluster.node_events import NodeEvent, NodeEvents, merged
from tanist.runtime.event_log import FILE_NAME, PREVIOUS_NAME, EventLog


def texts(found: list[NodeEvent]) -> list[str]:
    return [each.event.reason for each in found if isinstance(each.event, NodeFailed)]


def test_events_are_read_as_they_come_and_by_time(tmp_path: Path) -> None:
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
    one, two = (EventLog(str(folder)) for folder in folders)
    readers = [NodeEvents(number, folder) for number, folder in enumerate(folders, start=1)]
    assert list(merged(readers)) == []
    one.write(3, NodeFailed("c"))
    one.write(5, NodeFailed("e"))
    two.write(4, NodeFailed("d"))
    assert list(merged(readers)) == [
        NodeEvent(3, 1, NodeFailed("c")),
        NodeEvent(4, 2, NodeFailed("d")),
        NodeEvent(5, 1, NodeFailed("e")),
    ]
    two.write(6, NodeFailed("f"))
    assert texts(list(merged(readers))) == ["f"]
    for reader in readers:
        reader.close()


def test_a_full_file_becomes_the_one_before_and_nothing_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "FILE_BYTES_MAX", 200)
    log, reader, read = EventLog(str(tmp_path)), NodeEvents(1, tmp_path), list[str]()
    for number in range(20):
        log.write(number, NodeFailed(f"line {number}"))
        read += texts(list(reader.new()))
    assert read == [f"line {number}" for number in range(20)]
    assert sum((tmp_path / name).stat().st_size for name in (FILE_NAME, PREVIOUS_NAME)) <= 400
    late = texts(list(NodeEvents(1, tmp_path).new()))
    assert late == read[-len(late) :]
    assert len(late) >= 3


def rotate_at_open(monkeypatch: pytest.MonkeyPatch, rotate: Callable[[], None]) -> None:
    """Have the node go on to a new file when a reader is about to open the present one, once."""
    opens = Path.open
    due = [rotate]

    def opened(path: Path, *how: Any) -> Any:
        if path.name == FILE_NAME and due:
            due.pop()()
        return opens(path, *how)

    monkeypatch.setattr(Path, "open", opened)


@pytest.mark.parametrize("looked_before", [False, True])
def test_a_file_that_is_replaced_just_when_it_is_to_be_opened_is_not_missed(
    looked_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first look; and when the file before it was read to its end, and has been replaced as well."""
    monkeypatch.setattr(event_log, "FILE_BYTES_MAX", 200)
    log, reader, read, written = EventLog(str(tmp_path)), NodeEvents(1, tmp_path), list[str](), list[str]()

    def write_a_file() -> None:
        """Until there is a new one."""
        before = (tmp_path / FILE_NAME).stat().st_ino
        while (tmp_path / FILE_NAME).stat().st_ino == before:
            written.append(f"line {len(written)}")
            log.write(len(written), NodeFailed(written[-1]))

    log.write(0, NodeFailed("the first"))
    written.append("the first")
    if looked_before:
        read += texts(list(reader.new()))
        write_a_file()
    rotate_at_open(monkeypatch, write_a_file)
    for _ in range(3):
        read += texts(list(reader.new()))
    assert read == written
    reader.close()


def test_a_line_that_the_disk_takes_in_parts_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    log = EventLog(str(tmp_path))
    for reason in ("a", "b"):
        log.write(1, NodeFailed(reason))
    assert texts(list(NodeEvents(1, tmp_path).new())) == ["a", "b"]


def test_a_line_of_which_the_disk_takes_only_a_part_costs_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    log, parts = EventLog(str(tmp_path)), [7, 0]
    log.write(1, NodeFailed("a"))

    def full(fd: int, data: bytes) -> int:
        size = parts.pop(0)
        if not size:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:size])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        log.write(2, NodeFailed("cut off"))
    log.write(3, NodeFailed("b"))
    assert texts(list(NodeEvents(1, tmp_path).new())) == ["a", "b"]


def test_a_torn_line_and_an_unknown_kind_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b'{"ms":1,"event":"OfAnotherVersion"}\nnot json\n[]\n{"ms":2,"event":"NodeFailed","rea')
    EventLog(str(tmp_path)).write(3, NodeFailed("whole"))
    assert texts(list(NodeEvents(1, tmp_path).new())) == ["whole"]


def test_a_line_that_is_not_whole_waits(tmp_path: Path) -> None:
    path, reader = tmp_path / FILE_NAME, NodeEvents(1, tmp_path)
    path.write_bytes(b'{"ms":2,"event":"NodeFailed",')
    assert list(reader.new()) == []
    with path.open("ab") as file:
        file.write(b'"reason":"now"}\n')
    assert texts(list(reader.new())) == ["now"]


def test_a_disk_that_takes_nothing_is_ignored(tmp_path: Path) -> None:
    EventLog(str(tmp_path / "none")).write(1, NodeFailed("lost"))


def test_fields_that_an_event_does_not_have_are_named() -> None:
    event = NodeEvent(1, 1, NodeFailed("a"))
    assert event.has({"reason": "a"})
    assert not event.has({"reason": "b"})
    with pytest.raises(ValueError, match="NodeFailed has no field leader: it has reason"):
        event.has({"leader": 1})
