"""What a crash leaves on a simulated disk: everything; and a loss of power: what a real file system might."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.sim.world.clock import stream
from tanist.sim.world.disk import SimDisk, SimDiskView, SimFile
from tanist.sim.world.page_cache import JOURNAL_US, PAGE_BYTES, SECTOR_BYTES, WRITE_BACK_US
from tanist.sim.world.scheduler import Process, Scheduler

SEEDS = range(60)


def machine(seed: int) -> tuple[Scheduler, SimDisk, SimDiskView]:
    scheduler = Scheduler()
    disk = SimDisk(scheduler, stream(seed, "disk"))
    view = disk.view(Process("node"))
    view.make_directory("/data")
    settle = view.open("/data/.settled")
    view.sync_now(settle)
    return scheduler, disk, view


def outcomes(play: Callable[[SimDiskView], None], read: Callable[[SimDiskView], object]) -> set[object]:
    """What `read` finds after `play` and a loss of power, over many disks."""
    found = set()
    for seed in SEEDS:
        _, disk, view = machine(seed)
        play(view)
        disk.lose_power()
        found.add(read(disk.view(Process("next life"))))
    return found


def content(view: SimDiskView, path: str) -> bytes | None:
    return view.read_file(path) if view.exists(path) else None


def test_a_crash_of_the_process_loses_nothing() -> None:
    _, disk, view = machine(1)
    view.open("/data/a").write(0, [b"never synced"])
    view.write_file("/data/b", b"nor this", sync=False)
    view.rename("/data/b", "/data/c")
    after = disk.view(Process("next life"))
    assert (after.read_file("/data/a"), after.read_file("/data/c")) == (b"never synced", b"nor this")


Change = tuple[str, int, bytes]
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 9000), st.binary(min_size=1, max_size=3000)),
        st.tuples(st.just("cut"), st.integers(0, 9000), st.just(b"")),
        st.tuples(st.just("sync"), st.just(0), st.just(b"")),
        st.tuples(st.just("begin sync"), st.just(0), st.just(b"")),
        st.tuples(st.just("wait"), st.integers(0, 4000), st.just(b"")),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1000), changes=CHANGES)
def test_what_is_called_synced_survives_and_nothing_is_made_up(seed: int, changes: list[Change]) -> None:
    scheduler, disk, view = machine(seed)
    file = view.open("/data/log")
    view.sync_now(file)
    longest = 0
    for kind, number, data in changes:
        if kind == "write":
            file.write(number, [data])
        elif kind == "cut":
            file.truncate(number)
        elif kind == "sync":
            view.sync_now(file)
            assert file.synced == file.size
        elif kind == "begin sync":
            view.sync([file], lambda error: None)
        else:
            scheduler.run_until(scheduler.now_us + number)
        assert 0 <= file.synced <= file.size
        longest = max(longest, file.size)
    before, synced = file.read(0, 1 << 20), file.synced
    disk.lose_power()
    scheduler.run_until(scheduler.now_us + 1_000_000)  # a sync that was under way changes nothing any more
    after = disk.view(Process("next life")).read_file("/data/log")
    assert after[:synced] == before[:synced]
    assert len(after) <= longest


def test_an_unsynced_append_comes_whole_in_part_or_not_at_all() -> None:
    written = b"".join(bytes([1 + number]) * SECTOR_BYTES for number in range(8))

    def play(view: SimDiskView) -> None:
        file = view.open("/data/log")
        file.write(0, [b"durable"])
        view.sync_now(file)
        file.write(7, [written])

    def read(view: SimDiskView) -> str:
        found = view.read_file("/data/log")
        whole = b"durable" + written
        assert found.startswith(b"durable")
        assert len(found) <= len(whole)
        if found == b"durable":
            return "nothing"
        if found == whole:
            return "all"
        if whole.startswith(found):
            assert len(found) % SECTOR_BYTES == 0
            return "a beginning"
        assert all(mine in (theirs, 0) for mine, theirs in zip(found, whole, strict=False))
        return "with holes"

    assert outcomes(play, read) == {"nothing", "all", "a beginning", "with holes"}


def test_a_sector_is_as_it_was_at_some_time() -> None:
    """Two small appends to one sector: the second is never there without the first."""

    def play(view: SimDiskView) -> None:
        file = view.open("/data/log")
        view.sync_now(file)
        file.write(0, [b"first"])
        file.write(5, [b"second"])

    # (The size may come through without the data: zeros.)
    found = outcomes(play, lambda view: view.read_file("/data/log").rstrip(bytes(1)))
    assert found == {b"", b"first", b"firstsecond"}


def test_a_truncation_may_be_undone_with_what_was_written_since() -> None:
    old, new = b"o" * 3 * PAGE_BYTES, b"n" * PAGE_BYTES

    def play(view: SimDiskView) -> None:
        file = view.open("/data/log")
        file.write(0, [old])
        view.sync_now(file)
        file.truncate(100)
        file.write(100, [new])

    found = outcomes(play, lambda view: view.read_file("/data/log"))
    assert old in found, "undone, and nothing of the new"
    assert old[:100] + new in found, "all of it"
    assert old[:100] in found, "cut, and nothing of the new"
    mixed = [each for each in found if isinstance(each, bytes) and len(each) == len(old) and b"n" in each]
    assert mixed, "two histories in one file"
    assert all(each[PAGE_BYTES:] == old[PAGE_BYTES:] for each in mixed), "only the page of the cut is written in place"


def test_a_synced_truncation_stands() -> None:
    def play(view: SimDiskView) -> None:
        file = view.open("/data/log")
        file.write(0, [b"o" * 1000])
        view.sync_now(file)
        file.truncate(10)
        view.sync_now(file)

    assert outcomes(play, lambda view: view.read_file("/data/log")) == {b"o" * 10}


def test_a_small_file_is_the_old_one_or_the_new_one_or_empty() -> None:
    def play(view: SimDiskView) -> None:
        view.write_file("/data/checkpoint", b"old" * 1000, sync=True)
        view.write_file("/data/checkpoint", b"newer" * 1000, sync=False)

    assert outcomes(play, lambda view: content(view, "/data/checkpoint")) == {b"old" * 1000, b"newer" * 1000, b""}


def test_a_synced_small_file_is_the_new_one() -> None:
    def play(view: SimDiskView) -> None:
        view.write_file("/data/checkpoint", b"old", sync=True)
        view.write_file("/data/checkpoint", b"new", sync=True)

    assert outcomes(play, lambda view: content(view, "/data/checkpoint")) == {b"new"}


def test_names_come_in_order() -> None:
    """The journal is written from its beginning: what happened later is not there without what happened before."""

    def play(view: SimDiskView) -> None:
        for name in "abc":
            view.open(f"/data/{name}")
        view.remove("/data/a")

    found = outcomes(play, lambda view: "".join(view.list("/data")[1:]))
    assert found == {"", "a", "ab", "abc", "bc"}


def test_renames_and_removals_may_be_undone() -> None:
    def play(view: SimDiskView) -> None:
        view.make_directory("/data/t-0")
        file = view.open("/data/t-0/log")
        file.write(0, [b"records"])
        view.sync_now(file)
        view.rename("/data/t-0", "/data/t-0-delete")
        view.remove("/data/t-0-delete")

    found = outcomes(play, lambda view: tuple(view.list("/data")[1:]))
    assert found == {("t-0",), ("t-0-delete",), ()}


def test_a_synced_file_has_its_name_and_folders() -> None:
    def play(view: SimDiskView) -> None:
        view.make_directory("/data/t-0/deeper")
        file = view.open("/data/t-0/deeper/log")
        file.write(0, [b"records"])
        view.open("/data/t-0/deeper/other")
        view.sync_now(file)

    found = outcomes(play, lambda view: content(view, "/data/t-0/deeper/log"))
    assert found == {b"records"}


def test_some_file_systems_sync_nothing_but_the_file() -> None:
    """ext4 writes its whole journal with any sync; btrfs does not."""

    def play(view: SimDiskView) -> None:
        view.open("/data/other")
        view.sync_now(view.open("/data/log"))

    found = outcomes(play, lambda view: view.exists("/data/other"))
    assert found == {True, False}
    assert {machine(seed)[1].cache.syncs_all for seed in SEEDS} == {True, False}


def test_what_a_sync_depends_on_comes_with_it() -> None:
    """A file that took a name from another one: the sync of the second is not undone by what the first left behind."""

    def play(view: SimDiskView) -> None:
        view.open("/data/log").write(0, [b"first"])
        view.rename("/data/log", "/data/log.old")
        file = view.open("/data/log")
        file.write(0, [b"second"])
        view.sync_now(file)

    def read(view: SimDiskView) -> tuple[object, bool]:
        return content(view, "/data/log"), view.exists("/data/log.old")

    assert outcomes(play, read) == {(b"second", True)}


def test_time_writes_back_by_itself() -> None:
    for seed in SEEDS:
        scheduler, disk, view = machine(seed)
        file = view.open("/data/log")
        file.write(0, [b"old news"])
        scheduler.run_until(scheduler.now_us + WRITE_BACK_US + JOURNAL_US)
        file.write(8, [b"!"])
        assert file.synced == 0, "the process does not know it"
        disk.lose_power()
        assert disk.content("/data/log").startswith(b"old news")


def test_a_sync_counts_from_its_beginning() -> None:
    for seed in SEEDS:
        scheduler, disk, view = machine(seed)
        file = view.open("/data/log")
        file.write(0, [b"before"])
        reported: list[OSError | None] = []
        view.sync([file], reported.append)
        file.write(6, [b" and after"])
        scheduler.run_until(scheduler.now_us + 10_000)
        assert reported == [None]
        assert file.synced == 6
        disk.lose_power()
        assert disk.content("/data/log").startswith(b"before")


def test_the_kernel_ends_a_sync_that_a_dead_process_began() -> None:
    for seed in SEEDS:
        scheduler, disk, view = machine(seed)
        file = view.open("/data/log")
        file.write(0, [b"records"])
        reported: list[OSError | None] = []
        view.sync([file], reported.append)
        file._process.end()
        scheduler.run_until(scheduler.now_us + 10_000)
        assert reported == []
        disk.lose_power()
        assert disk.content("/data/log") == b"records"


def test_a_lying_disk_says_synced_and_loses_it() -> None:
    lost = 0
    for seed in SEEDS:
        _, disk, view = machine(seed)
        file = view.open("/data/log")
        disk.lying = True
        file.write(0, [b"records"])
        view.sync_now(file)
        assert file.synced == 7
        disk.lose_power()
        lost += not view.exists("/data/log") or disk.content("/data/log") != b"records"
    assert lost > 10


@pytest.mark.parametrize("fuse", range(6))
def test_a_process_dies_in_its_nth_change(fuse: int) -> None:
    """Whatever it does behind that is not done, and a write may be left half done."""
    scheduler = Scheduler()
    disk = SimDisk(scheduler, stream(3, "disk"))
    crashed: list[int] = []
    process = Process("node", lambda: crashed.append(fuse))
    view = disk.view(process)
    view.make_directory("/data")
    process.fuse = fuse

    def turn() -> None:
        file = view.open("/data/log")  # change 0
        try:
            file.write(0, [b"x" * 1000])  # 1
            file.truncate(900)  # 2
            view.rename("/data/log", "/data/final")  # 3
        finally:
            view.write_file("/data/unwound", b"")  # 4
        process.soon.append(lambda: view.write_file("/data/soon", b""))  # 5

    scheduler.dispatch(process, turn)
    after = disk.view(Process("next life"))
    assert process.alive is False
    assert crashed == [fuse]
    assert after.exists("/data/log") == (0 < fuse <= 3)
    assert after.exists("/data/final") == (fuse > 3)
    assert after.exists("/data/unwound") == (fuse > 4)
    assert not after.exists("/data/soon")
    if 0 < fuse <= 3:
        size = len(after.read_file("/data/log"))
        assert size == {2: 1000, 3: 900}.get(fuse, size)
        assert size <= 1000


def test_faults_of_a_disk() -> None:
    _, disk, view = machine(1)
    file = view.open("/data/log")
    file.write(0, [b"records"])
    disk.full = True
    with pytest.raises(OSError, match="no space"):
        file.write(7, [b"more"])
    assert b"recordsmo".startswith(file.read(0, 100))
    assert file.size >= 7
    disk.full = False
    disk.failing.append("/data")
    with pytest.raises(OSError, match="input/output"):
        file.read(0, 1)
    with pytest.raises(OSError, match="input/output"):
        view.sync_now(file)
    disk.failing.clear()
    disk.corrupt("/data/log", 0, 0x01)
    assert file.read(0, 7) == b"secords"
    disk.lose_power()
    assert isinstance(file, SimFile)


@pytest.mark.parametrize("finish_first", [True, False])
def test_a_late_write_to_a_full_disk_is_reported_by_done_and_by_finish(finish_first: bool) -> None:
    scheduler, disk, view = machine(1)
    file = view.open("/data/log")
    file.write(0, [b"records"])
    done: list[OSError | None] = []
    write = view.write_later(file, 7, [b"more"], done.append)
    disk.full = True
    if finish_first:
        with pytest.raises(OSError, match="no space"):
            write.finish()
        disk.full = False  # it has failed, and stays so
    scheduler.run_until(1_000_000)
    assert [str(error) for error in done] == ["[Errno 28] no space left on device: '/data/log'"]
    with pytest.raises(OSError, match="no space"):
        write.finish()
    assert b"recordsmo".startswith(file.read(0, 100))


def test_a_late_write_dies_with_its_process() -> None:
    scheduler, disk, _ = machine(1)
    process = Process("node")
    view = disk.view(process)
    done: list[OSError | None] = []
    file, finished = view.open("/data/log"), view.open("/data/finished")
    view.write_later(file, 0, [b"records"], done.append)
    view.write_later(finished, 0, [b"records"], done.append).finish()
    process.end()
    scheduler.run_until(1_000_000)
    assert done == []
    assert (disk.content("/data/log"), disk.content("/data/finished")) == (b"", b"records")
