"""Kind `epoch_cache`: the start and end offsets of leader epochs."""

from __future__ import annotations

from collections.abc import Sequence

from tanist.lab.scenarios.fields import Fields, NotUnderstood
from tanist.lab.scenarios.outcome import Difference, Mismatch, same
from tanist.log.epochs import UNDEFINED_EPOCH, LeaderEpochCache


def epoch_cache(item: Fields) -> Sequence[Difference]:
    """Assignments, then truncations, then look-ups in the cache."""
    cache = LeaderEpochCache()
    error = item.given("error", "expect_error")
    try:
        for epoch, start in item.get("assign") or ():
            cache.assign(epoch, start)
    except ValueError as refusal:
        if error is None:
            raise Mismatch("assigning", "no error", refusal) from refusal
    else:
        if error is not None:
            raise Mismatch("assigning", error, "no error")
    if item.get("truncate_end") is not None:
        cache.truncate_from_end(item.number("truncate_end"))
    if item.get("truncate_start") is not None:
        cache.truncate_from_start(item.number("truncate_start"))
    if "entries" in item:
        same("entries", [list(entry) for entry in cache.entries], item["entries"])
    if "previous_epoch" in item:
        # Of the latest epoch; no epoch is written as null, or as the undefined epoch.
        previous = UNDEFINED_EPOCH if item["previous_epoch"] is None else item["previous_epoch"]
        same("previous_epoch", cache.previous_epoch(cache.latest_epoch), previous)
    if "latest_epoch" in item:
        latest = UNDEFINED_EPOCH if item["latest_epoch"] is None else item["latest_epoch"]
        same("latest_epoch", cache.latest_epoch, latest)
    if "queries" in item:
        for query in item.each("queries"):
            asked = query["ask"]
            if not isinstance(asked, list) or len(asked) != 2:
                raise NotUnderstood(f"{query.where}.ask is not an epoch and an end offset")
            epoch, leo = asked
            same(f"the end of epoch {epoch}", list(cache.end_offset_for(epoch, leo)), query["answer"])
    return ()
