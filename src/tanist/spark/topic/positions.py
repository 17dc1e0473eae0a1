"""How far a stream has read: what is in its checkpoint, and what a trigger adds to it.

A position is an offset and the leader epoch in which it was committed, which is what tells a log that goes on from one
that an unclean election has cut off and that has grown again (KIP-320). Owns the comparison of positions with what
the leaders say, the limits of a trigger, and the form in the checkpoint:

    {"orders": {"0": {"offset": 200, "epoch": 5, "topic_id": "aYmUWaWqTFSZwhgqNvHyGA"}}}

A topic that is gone keeps its positions (`"gone": true`): if it is back, its id tells whether it is the same one, which
goes on, or another, which is read from its beginning.

Where a stream goes on behind a loss, the position at the end of that trigger says so, too, so that a batch that is run
again is the same batch, and the query's progress tells its user: `"begin": 60, "lost": "offsets 60 to 100 ..."`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from tanist.client.topic_partition import TopicPartition
from tanist.spark.topic.offsets import UNKNOWN, OffsetAndEpoch
from tanist.spark.topic.plan import OffsetRange


@dataclass(frozen=True)
class Position:
    offset: int
    epoch: int
    begin: int | None = None
    """Where the trigger that ends here began to read, if that is not where the one before it ended."""
    lost: str | None = None
    """The offsets that the trigger passed over."""
    topic_id: str | None = None
    """Of the topic that the offset is of; None of checkpoints, and clusters, that are older than ids."""
    gone: bool = False
    """The topic is not there any more, which has been said."""


@dataclass(frozen=True)
class Begin:
    """Where a trigger begins to read a partition."""

    offset: int
    lost: str | None = None


Positions = dict[TopicPartition, Position]


class CheckpointError(ValueError):
    """The checkpoint is not one that this source writes."""


def to_json(positions: Mapping[TopicPartition, Position]) -> dict[str, Any]:
    offsets: dict[str, Any] = {}
    for (topic, partition), each in sorted(positions.items()):
        entry: dict[str, Any] = {"offset": each.offset, "epoch": each.epoch}
        if each.begin is not None:
            entry["begin"] = each.begin
        if each.lost is not None:
            entry["lost"] = each.lost
        if each.topic_id is not None:
            entry["topic_id"] = each.topic_id
        if each.gone:
            entry["gone"] = True
        offsets.setdefault(topic, {})[str(partition)] = entry
    return offsets


def from_json(stored: Mapping[str, Any]) -> Positions:
    """Spark's own source has a bare offset where ours has two numbers: its checkpoints are read, without epochs."""
    positions: Positions = {}
    try:
        for topic, partitions in stored.items():
            for partition, entry in partitions.items():
                if isinstance(entry, int):
                    positions[topic, int(partition)] = Position(entry, UNKNOWN)
                    continue
                positions[topic, int(partition)] = Position(
                    int(entry["offset"]),
                    int(entry["epoch"]),
                    entry.get("begin"),
                    entry.get("lost"),
                    entry.get("topic_id"),
                    bool(entry.get("gone")),
                )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"no position of a topic: {stored!r}") from error
    return positions


def expired(where: TopicPartition, at: Position, first: int) -> Begin:
    """Retention or DeleteRecords has overtaken the stream."""
    name = f"{where[0]}-{where[1]}"
    return Begin(first, f"{name}: offsets {at.offset} to {first} have expired before they were read")


def deleted(where: TopicPartition, at: Position, first: int) -> Begin:
    """Another topic has taken the name."""
    name = f"{where[0]}-{where[1]}"
    return Begin(first, f"{name}: the topic that was read up to offset {at.offset} was deleted, and made anew")


def made_anew(where: TopicPartition, at: Position, topic_ids: Mapping[str, str]) -> bool:
    """Whether another topic has the name now, so that the position says nothing of it."""
    topic_id = topic_ids.get(where[0])
    return at.topic_id is not None and topic_id is not None and at.topic_id != topic_id


def truncated(where: TopicPartition, at: Position, latest: OffsetAndEpoch, end: OffsetAndEpoch) -> Begin | None:
    """Whether the log is not the one any more that was read up to `at`. `end`: where the epoch of `at` ends there now.

    Epochs only grow, and a log is only cut off where an epoch begins: as long as that of `at` does not end before
    `at`, all that was read is still in the log. A high watermark that is lower for a moment, after an election, is no
    loss; without epochs the two look the same.
    """
    going_on = end.offset if end.offset != UNKNOWN and at.epoch != UNKNOWN else latest.offset
    if going_on >= at.offset:
        return None
    name = f"{where[0]}-{where[1]}"
    return Begin(
        going_on,
        f"{name}: offsets {going_on} to {at.offset}, which were committed in leader epoch {at.epoch} and have been"
        f" read, were truncated: the log of that epoch ends at {going_on} now, and that of leader epoch {latest.epoch}"
        f" at {latest.offset}",
    )


def doubtful(at: Position, latest: OffsetAndEpoch) -> bool:
    """Whether it has to be asked where the epoch of `at` ends. While the leader is the same it cuts nothing off."""
    return latest.epoch != at.epoch or latest.offset < at.offset


def advanced(
    start: Mapping[TopicPartition, Position],
    begins: Mapping[TopicPartition, Begin],
    latest: Mapping[TopicPartition, OffsetAndEpoch],
    *,
    most: int | None = None,
    topic_ids: Mapping[str, str] = MappingProxyType({}),
    gone: Mapping[TopicPartition, str] = MappingProxyType({}),
) -> Positions:
    """The end of a trigger: all there is, or `most` records, of each partition in proportion to what it has.

    What `start` has and `begins` has not stays as it is; of those that are `gone` by now it is said.
    """
    waiting = {where: max(0, latest[where].offset - begin.offset) for where, begin in begins.items()}
    total = sum(waiting.values())
    moved: Positions = {}
    still: Positions = {}
    for where, begin in begins.items():
        size = waiting[where]
        if most is not None and total > most:
            share = most * size / total
            # At least one, so that a small partition beside a large one is not forgotten.
            size = min(size, int(share) if share >= 1 else -(-most * size // total))
        before = start.get(where)
        if before is not None and not size and begin.lost is None:
            still[where] = before
            continue
        jumped = before is None or begin.offset != before.offset
        moved[where] = Position(
            begin.offset + size,
            latest[where].epoch,
            begin.offset if jumped else None,
            begin.lost,
            topic_ids.get(where[0]),
        )
    moved |= {where: replace(start[where], begin=None, lost=lost, gone=True) for where, lost in gone.items()}
    still |= {where: before for where, before in start.items() if where not in begins and where not in gone}
    if not moved:
        # As it was: a new epoch alone would make a batch.
        return still
    return moved | {where: replace(before, begin=None, lost=None) for where, before in still.items()}


def ranges_between(
    start: Mapping[TopicPartition, Position], end: Mapping[TopicPartition, Position]
) -> list[OffsetRange]:
    """The ranges that the trigger reads, from the checkpoint alone."""
    planned = []
    for (topic, partition), last in sorted(end.items()):
        before = start.get((topic, partition))
        first = last.begin if last.begin is not None else before.offset if before is not None else last.offset
        # A partition that stands unchanged is no part of this trigger: its `begin` is that of an earlier one.
        if last != before and first < last.offset:
            planned.append(OffsetRange(topic, partition, first, last.offset, last.epoch))
    return planned
