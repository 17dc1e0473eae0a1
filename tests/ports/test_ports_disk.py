"""What `Disk` and `File` promise, by any that implements them."""

from __future__ import annotations

import errno
from typing import Any

import pytest


def test_write_read_and_size(world: Any) -> None:
    file = world.disk.open(f"{world.folder}/a")
    assert (file.size, file.synced, file.path) == (0, 0, f"{world.folder}/a")
    file.write(0, [b"hello ", bytearray(b"wor"), memoryview(b"ld")])
    assert file.size == 11
    assert file.read(0, 100) == b"hello world"
    assert file.read(6, 3) == b"wor"
    assert file.read(11, 5) == b""
    assert file.read(50, 5) == b""
    file.write(6, [b"there!!"])
    assert file.read(0, 100) == b"hello there!!"
    file.write(0, [])
    file.write(3, [b""])
    assert file.size == 13
    file.close()
    file.close()
    again = world.disk.open(f"{world.folder}/a", create=False)
    assert again.size == 13
    assert again.read(0, 13) == b"hello there!!"
    again.close()


def test_a_gap_reads_as_zeros(world: Any) -> None:
    file = world.disk.open(f"{world.folder}/a")
    file.write(4, [b"end"])
    assert file.read(0, 10) == b"\0\0\0\0end"


def test_more_buffers_than_a_system_call_takes(world: Any) -> None:
    file = world.disk.open(f"{world.folder}/a")
    buffers = [bytes([index % 256]) * 3 for index in range(3000)]
    file.write(0, buffers)
    assert file.read(0, 10_000) == b"".join(buffers)


def test_truncate_cuts_and_extends(world: Any) -> None:
    file = world.disk.open(f"{world.folder}/a")
    file.write(0, [b"0123456789"])
    file.truncate(4)
    assert (file.size, file.read(0, 10)) == (4, b"0123")
    file.truncate(6)
    assert (file.size, file.read(0, 10)) == (6, b"0123\0\0")


def test_open_without_create_and_missing_names(world: Any) -> None:
    disk, folder = world.disk, world.folder
    with pytest.raises(FileNotFoundError):
        disk.open(f"{folder}/absent", create=False)
    with pytest.raises(FileNotFoundError):
        disk.open(f"{folder}/no-folder/a")
    with pytest.raises(FileNotFoundError):
        disk.read_file(f"{folder}/absent")
    with pytest.raises(FileNotFoundError):
        disk.list(f"{folder}/absent")
    assert not disk.exists(f"{folder}/absent")
    assert not disk.is_directory(f"{folder}/absent")
    disk.remove(f"{folder}/absent")


def test_folders(world: Any) -> None:
    disk, folder = world.disk, world.folder
    assert disk.make_directory(f"{folder}/topic-0/deep")
    assert not disk.make_directory(f"{folder}/topic-0/deep")
    assert disk.make_directory(f"{folder}/topic-0/beside")
    disk.remove(f"{folder}/topic-0/beside")
    disk.write_file(f"{folder}/topic-0/b", b"b")
    disk.open(f"{folder}/topic-0/a").close()
    assert disk.list(f"{folder}/topic-0") == ["a", "b", "deep"]
    assert disk.is_directory(f"{folder}/topic-0")
    assert disk.exists(f"{folder}/topic-0/a")
    assert not disk.is_directory(f"{folder}/topic-0/a")
    disk.rename(f"{folder}/topic-0", f"{folder}/topic-0.0123-delete")
    assert disk.list(folder) == ["topic-0.0123-delete"]
    assert disk.read_file(f"{folder}/topic-0.0123-delete/b") == b"b"
    disk.remove(f"{folder}/topic-0.0123-delete")
    assert disk.list(folder) == []


def test_rename_replaces_a_file(world: Any) -> None:
    disk, folder = world.disk, world.folder
    disk.write_file(f"{folder}/a", b"new")
    disk.write_file(f"{folder}/b", b"old, and longer")
    disk.rename(f"{folder}/a", f"{folder}/b")
    assert disk.list(folder) == ["b"]
    assert disk.read_file(f"{folder}/b") == b"new"
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{folder}/a", f"{folder}/c")


def test_an_open_file_survives_the_renaming_and_removal_of_its_folder(world: Any) -> None:
    disk, folder = world.disk, world.folder
    disk.make_directory(f"{folder}/t-0")
    file = disk.open(f"{folder}/t-0/log")
    file.write(0, [b"one"])
    disk.rename(f"{folder}/t-0", f"{folder}/t-0-delete")
    file.write(3, [b"two"])
    assert disk.read_file(f"{folder}/t-0-delete/log") == b"onetwo"
    done: list[OSError | None] = []
    disk.sync([file], done.append)
    world.run_until(lambda: bool(done), "the sync")
    assert done == [None]
    disk.remove(f"{folder}/t-0-delete")
    assert file.read(0, 6) == b"onetwo"
    file.close()


def test_a_folder_does_not_take_the_place_of_a_file(world: Any) -> None:
    disk, path = world.disk, f"{world.folder}/t-0"
    disk.write_file(path, b"a file")
    with pytest.raises(FileExistsError):
        disk.make_directory(path)
    assert disk.read_file(path) == b"a file"


def test_a_file_is_made_durable_as_it_is(world: Any) -> None:
    disk, folder = world.disk, world.folder
    disk.write_file(f"{folder}/name", b"content", sync=False)
    disk.make_durable(f"{folder}/name")
    assert disk.read_file(f"{folder}/name") == b"content"
    assert disk.list(folder) == ["name"]
    with pytest.raises(FileNotFoundError):
        disk.make_durable(f"{folder}/absent")


@pytest.mark.parametrize("sync", [True, False])
def test_write_file_replaces_the_whole(world: Any, sync: bool) -> None:
    disk, folder = world.disk, world.folder
    disk.write_file(f"{folder}/checkpoint", b"a longer first version", sync=sync)
    disk.write_file(f"{folder}/checkpoint", memoryview(b"second"), sync=sync)
    assert disk.read_file(f"{folder}/checkpoint") == b"second"
    disk.write_file(f"{folder}/checkpoint", b"", sync=sync)
    assert disk.read_file(f"{folder}/checkpoint") == b""
    assert disk.list(folder) == ["checkpoint"]


def test_write_file_later_replaces_the_whole_in_a_later_turn(world: Any) -> None:
    disk, path = world.disk, f"{world.folder}/checkpoint"
    done: list[OSError | None] = []
    disk.write_file_later(path, b"a longer first version", done.append)
    assert done == []
    world.run_until(lambda: done == [None], "the small files")
    disk.write_file_later(path, memoryview(b"second"), done.append)
    world.run_until(lambda: done == [None, None], "the small files")
    assert disk.read_file(path) == b"second"
    disk.write_file_later(f"{world.folder}/none/checkpoint", b"x", done.append)
    world.run_until(lambda: len(done) == 3, "the small files")
    assert isinstance(done[2], FileNotFoundError)


def test_what_was_to_be_written_later_does_not_replace_what_is_written_meanwhile(world: Any) -> None:
    disk, path = world.disk, f"{world.folder}/checkpoint"
    done: list[OSError | None] = []
    for _ in range(50):
        disk.write_file_later(path, b"first", done.append)
        disk.write_file_later(path, b"second", done.append)
        disk.write_file(path, b"third", sync=False)
        assert disk.read_file(path) == b"third"
    world.run_until(lambda: done == [None] * 100, "the small files")
    assert disk.read_file(path) == b"third"
    disk.write_file_later(path, b"fourth", done.append)
    disk.write_file_later(path, b"fifth", done.append)
    world.run_until(lambda: done == [None] * 102, "the small files")
    assert disk.read_file(path) == b"fifth"


def test_write_file_into_a_missing_folder_is_an_error_and_leaves_nothing(world: Any) -> None:
    with pytest.raises(FileNotFoundError):
        world.disk.write_file(f"{world.folder}/none/checkpoint", b"x")
    assert world.disk.list(world.folder) == []


def test_an_open_reader_of_a_replaced_file_keeps_the_old_content(world: Any) -> None:
    disk, folder = world.disk, world.folder
    disk.write_file(f"{folder}/checkpoint", b"old")
    before = disk.open(f"{folder}/checkpoint")
    disk.write_file(f"{folder}/checkpoint", b"new")
    assert before.read(0, 10) == b"old"
    before.close()


def test_sync_makes_what_was_there_durable_and_is_never_done_at_once(world: Any) -> None:
    file = world.disk.open(f"{world.folder}/a")
    file.write(0, [b"12345"])
    assert file.synced == 0
    done: list[OSError | None] = []
    world.disk.sync([file], done.append)
    assert done == []
    world.run_until(lambda: bool(done), "the sync")
    assert done == [None]
    assert file.synced == 5
    file.write(5, [b"678"])
    assert (file.size, file.synced) == (8, 5)


def test_sync_of_many_files_and_of_none(world: Any) -> None:
    files = [world.disk.open(f"{world.folder}/{index}") for index in range(20)]
    for file in files:
        file.write(0, [b"abc"])
    done: list[Any] = []
    world.disk.sync(files, lambda error: done.append(("many", error)))
    world.disk.sync([], lambda error: done.append(("none", error)))
    world.disk.sync(files[:1], lambda error: done.append(("one", error)))
    assert done == []
    world.run_until(lambda: len(done) == 3, "all syncs")
    assert sorted(done) == [("many", None), ("none", None), ("one", None)]
    assert [file.synced for file in files] == [3] * 20


def test_truncating_and_overwriting_lower_what_is_synced(world: Any) -> None:
    disk = world.disk
    file = disk.open(f"{world.folder}/a")
    file.write(0, [b"0123456789"])
    disk.sync_now(file)
    assert file.synced == 10
    file.truncate(6)
    assert file.synced == 6
    file.write(6, [b"abcd"])
    assert (file.size, file.synced) == (10, 6)
    file.write(2, [b"x"])
    assert (file.size, file.synced) == (10, 2)
    disk.sync_now(file)
    assert file.synced == 10


def test_what_changes_while_a_sync_runs_is_not_counted_as_synced(world: Any) -> None:
    """Cut and written anew between the sync's start and its end: the old bytes may be what is durable."""
    disk, clock = world.disk, world.clock
    file = disk.open(f"{world.folder}/a")
    file.write(0, [b"0123456789"])
    done: list[OSError | None] = []

    def start() -> None:
        disk.sync([file], done.append)
        clock.call_soon(lambda: clock.call_at(clock.now_ms(), change))

    def change() -> None:
        if not done:
            changed.append(True)
            file.truncate(4)
            file.write(4, [b"abcdef"])

    changed: list[bool] = []
    clock.call_at(clock.now_ms(), start)
    world.run_until(lambda: bool(done), "the sync")
    assert file.synced == (4 if changed else 10)


def test_syncs_are_reported_to_all_who_asked_while_one_was_running(world: Any) -> None:
    disk = world.disk
    file = disk.open(f"{world.folder}/a")
    done: list[int] = []
    synced: list[int] = []
    for index in range(50):
        file.write(index * 2, [b"ab"])
        disk.sync([file], lambda _, index=index: (done.append(index), synced.append(file.synced)))
        if index % 10 == 0:
            world.run_until(lambda: True)
    world.run_until(lambda: len(done) == 50, "all syncs")
    assert sorted(done) == list(range(50))
    assert all(length >= (index + 1) * 2 for index, length in zip(done, synced, strict=True))


def test_a_file_closed_while_it_is_synced_is_still_synced(world: Any) -> None:
    file = world.disk.open(f"{world.folder}/a")
    file.write(0, [b"abc"])
    done: list[OSError | None] = []
    world.disk.sync([file], done.append)
    file.close()
    world.run_until(lambda: bool(done), "the sync")
    assert done == [None]


def test_a_late_write_writes_the_buffers_and_is_reported_in_a_later_turn(world: Any) -> None:
    disk, clock = world.disk, world.clock
    file = disk.open(f"{world.folder}/a")
    file.write(0, [b"before, "])
    order: list[Any] = []

    def start() -> None:
        clock.call_soon(lambda: order.append("end of the turn"))
        disk.write_later(file, 8, [b"hello ", bytearray(b"wor"), memoryview(b"ld")], order.append)
        order.append("asked")

    clock.call_at(clock.now_ms(), start)
    world.run_until(lambda: len(order) == 3, "the write")
    assert order == ["asked", "end of the turn", None]
    assert (file.size, file.read(0, 100)) == (19, b"before, hello world")


def test_a_late_write_takes_large_buffers_and_more_than_a_system_call_takes(world: Any) -> None:
    disk = world.disk
    file = disk.open(f"{world.folder}/a")
    buffers = [bytes([index % 256]) * 300 for index in range(3000)]
    done: list[OSError | None] = []
    disk.write_later(file, 0, buffers, done.append)
    world.run_until(lambda: done == [None], "the write")
    assert file.read(0, 1_000_000) == b"".join(buffers)
    disk.sync([file], done.append)
    world.run_until(lambda: done == [None, None], "the sync")
    assert file.synced == file.size == 900_000


def test_who_finishes_a_late_write_finds_it_in_the_file_and_it_is_still_reported_once(world: Any) -> None:
    disk = world.disk
    done: list[OSError | None] = []
    for index in range(30):
        file = disk.open(f"{world.folder}/{index}")
        write = disk.write_later(file, 0, [b"x" * 200_000, b"y"], done.append)
        write.finish()
        assert (file.size, file.read(199_999, 10)) == (200_001, b"xy")
        assert len(done) == index
        file.write(200_001, [b"behind"])  # the file is anybody's again
        write.finish()
        world.run_until(lambda index=index: len(done) > index, "the report")
        assert file.read(199_999, 10) == b"xybehind"
    later = world.clock.now_ms() + 10
    world.run_until(lambda: world.clock.now_ms() >= later, "time passes")
    assert done == [None] * 30


def test_late_writes_to_many_files_end_each_by_itself(world: Any) -> None:
    disk = world.disk
    files = [disk.open(f"{world.folder}/{index}") for index in range(20)]
    done: list[int] = []
    writes = [
        disk.write_later(file, 0, [b"%d" % index], lambda _, index=index: done.append(index))
        for index, file in enumerate(files)
    ]
    writes[19].finish()
    assert files[19].read(0, 10) == b"19"
    assert done == []
    world.run_until(lambda: len(done) == 20, "all writes")
    assert sorted(done) == list(range(20))
    assert [file.read(0, 10) for file in files] == [b"%d" % index for index in range(20)]


@pytest.mark.parametrize("finish_first", [True, False])
def test_a_late_write_that_fails_is_reported_by_done_and_by_finish(world: Any, finish_first: bool) -> None:
    disk = world.disk
    file = disk.open(f"{world.folder}/a")
    file.close()
    done: list[OSError | None] = []
    write = disk.write_later(file, 0, [b"to nowhere"], done.append)
    assert done == []
    if finish_first:
        with pytest.raises(OSError) as caught:
            write.finish()
        assert caught.value.errno == errno.EBADF
        assert done == []
    world.run_until(lambda: bool(done), "the report")
    assert [type(error) for error in done] == [OSError]
    assert done[0] is not None
    assert done[0].errno == errno.EBADF
    with pytest.raises(OSError) as caught:
        write.finish()
    assert caught.value.errno == errno.EBADF
    assert disk.read_file(f"{world.folder}/a") == b""


def test_run_gives_what_the_job_gave_or_raised_later(world: Any) -> None:
    got: list[Any] = []

    def fails() -> int:
        raise ValueError("no")

    world.disk.run(lambda: 6 * 7, got.append)
    world.disk.run(fails, got.append)
    assert got == []
    world.run_until(lambda: len(got) == 2, "both jobs")
    assert 42 in got
    assert any(isinstance(result, ValueError) for result in got)


def test_opening_a_folder_as_a_file_is_an_os_error(world: Any) -> None:
    world.disk.make_directory(f"{world.folder}/d")
    with pytest.raises(IsADirectoryError):
        world.disk.open(f"{world.folder}/d")
