"""Each rule of a cleaning switched off, by a patch of the one place where it lives: the courses must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.log import crash_cleanup, log
from tanist.log.cleaner import cleaning as cleaner
from tanist.log.cleaner.cleaning import Cleaned, LogCleaning, Sync
from tanist.log.cleaner.key_map import KeyMap
from tanist.log.names import SWAP_SUFFIX
from tanist.log.segments import Segments
from tests.log.test_cleaner import (
    test_a_map_that_is_too_small_takes_several_rounds,
    test_the_last_batch_of_a_producer_below_what_may_be_lost_stays,
)
from tests.log.test_cleaner_crashes import judge_courses

Patch = Callable[[pytest.MonkeyPatch], None]
SEEDS = range(120)


def cleans_above_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    real: Any = vars(log)["find_cleanable"]
    patch.setattr(log, "find_cleanable", lambda *args: real(*args[:3], 2**62, *args[4:]))


def drops_tombstones_before_their_horizon(patch: pytest.MonkeyPatch) -> None:
    real = LogCleaning._thinned
    patch.setattr(LogCleaning, "_thinned", lambda self, header, batch, past: real(self, header, batch, True))


def drops_what_the_map_does_not_know(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KeyMap, "get", lambda self, key: self._offsets.get(key, 2**62))


def old_segments_go_before_the_new_one_is_named(patch: pytest.MonkeyPatch) -> None:
    real = Segments.replace

    def replace(self: Segments, old: Any, cleaned: Any, now_ms: int) -> None:
        for segment in old:
            segment.mark_deleted()
        real(self, old, cleaned, now_ms)

    patch.setattr(Segments, "replace", replace)


def swaps_in_what_is_not_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cleaner, "Sync", lambda files: Sync(()))


def an_interrupted_naming_is_finished(patch: pytest.MonkeyPatch) -> None:
    """A start finishes a swap of which some files have the old mark yet."""
    patch.setattr(crash_cleanup, "CLEANED_SUFFIX", "no such mark")


def an_interrupted_swap_is_undone(patch: pytest.MonkeyPatch) -> None:
    """A start removes segments that were about to take their place."""
    real = crash_cleanup._swap_in

    def swap_in(disk: Any, directory: str, names: set[str], reasons: list[str]) -> None:
        for name in [name for name in names if name.endswith(SWAP_SUFFIX)]:
            crash_cleanup._remove(disk, directory, name, names)
        real(disk, directory, names, reasons)

    patch.setattr(crash_cleanup, "_swap_in", swap_in)


def producers_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogCleaning, "_is_last_of_producer", lambda self, header: False)


def only_the_very_last_of_a_producer_stays(patch: pytest.MonkeyPatch) -> None:
    """As in Kafka: the last batch that is in memory now, which a crash may take."""

    def is_last(self: LogCleaning, header: Any) -> bool:
        last = self._producers.get(header.producer_id)
        return last is not None and header.last_offset == last[0]

    patch.setattr(LogCleaning, "_is_last_of_producer", is_last)


MUTATIONS: list[Patch] = [
    cleans_above_the_high_watermark,
    drops_tombstones_before_their_horizon,
    drops_what_the_map_does_not_know,
    old_segments_go_before_the_new_one_is_named,
    swaps_in_what_is_not_durable,
    an_interrupted_naming_is_finished,
    an_interrupted_swap_is_undone,
    producers_are_forgotten,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
def test_the_courses_of_crashes_notice(mutation: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    with pytest.raises(AssertionError, match="seed"):
        judge_courses(SEEDS)


def test_a_producer_s_last_batch_that_is_taken_for_that_of_all_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    only_the_very_last_of_a_producer_stays(monkeypatch)
    with pytest.raises(AssertionError):
        test_the_last_batch_of_a_producer_below_what_may_be_lost_stays()


def test_a_checkpoint_that_says_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are superseded would stay, for nobody looks at them again."""
    real = LogCleaning.steps

    def steps(self: LogCleaning) -> Any:
        cleaned = yield from real(self)
        return Cleaned(self._cleanable.first_uncleanable_offset, 0, 0, 0, cleaned.keys)

    monkeypatch.setattr(LogCleaning, "steps", steps)
    with pytest.raises(AssertionError):
        test_a_map_that_is_too_small_takes_several_rounds()
