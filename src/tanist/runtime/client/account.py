"""The account of a topic: what was acknowledged, what is there, and what became of the rest.

Owns the comparison, pure (`compare`) and on a cluster (`account_of`). Records are known by their contents (key, value,
headers), not by their offsets: one that was lost and put back stands at another offset, and is not lost. Contents that
were acknowledged twice are to be there twice.

(The history checker judges operations, with their times and offsets; the pipeline's audit judges logs of any size.)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

from tanist.client.admin import TOPIC_RESOURCE
from tanist.client.positions import EARLIEST, LATEST
from tanist.runtime.client import admin
from tanist.runtime.client.acknowledged import NOT_KNOWN, Acknowledged, Digest, digest_of
from tanist.runtime.client.client import Client
from tanist.runtime.client.records import list_offset, read
from tanist.runtime.client.salvaged import by_partition, find_entries

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Account(Generic[T]):
    """The fate of the acknowledged records of one partition."""

    acknowledged: int
    stored: int
    """Records in the log, acknowledged or not."""
    lost: tuple[T, ...]
    """Acknowledged, and not in the log; in the order of their acknowledgement."""
    duplicated: int
    """Records that the log has more often than they were acknowledged, or more than once."""
    disordered: int
    """How often the log goes back to a record that was acknowledged earlier."""

    @property
    def good(self) -> bool:
        return not (self.lost or self.duplicated or self.disordered)

    def __str__(self) -> str:
        numbers = [each for each in self.lost if isinstance(each, int)]
        which = f" ({ranges(numbers)})" if numbers else ""
        return (
            f"{self.acknowledged} acknowledged, {self.stored} in the log: "
            f"{len(self.lost)} lost{which}, {self.duplicated} duplicated, {self.disordered} out of order"
        )


def compare(acknowledged: Sequence[T], stored: Sequence[T]) -> Account[T]:
    """One partition: what was acknowledged, in that order, and what the log holds, in its order."""
    places: dict[T, deque[int]] = {}
    for place, each in enumerate(stored):
        places.setdefault(each, deque()).append(place)
    asked = Counter(acknowledged)
    duplicated = sum(max(0, len(found) - max(1, asked[each])) for each, found in places.items())
    lost: list[T] = []
    order: list[int] = []
    for each in acknowledged:
        if places.get(each):
            order.append(places[each].popleft())
        else:
            lost.append(each)
    return Account(
        acknowledged=len(acknowledged),
        stored=len(stored),
        lost=tuple(lost),
        duplicated=duplicated,
        disordered=sum(1 for earlier, later in pairwise(order) if later < earlier),
    )


def ranges(numbers: Iterable[int]) -> str:
    """1, 2, 3, 7 as `1..3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("..".join(map(str, run)) for run in runs)


# -- on a cluster -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class PartitionAccount:
    """The account of one partition of a topic."""

    topic: str
    partition: int
    account: Account[Digest]
    lost: list[Acknowledged] = field(default_factory=list)
    expired: int = 0
    """Not in the log, and from before its start: retention took them, or DeleteRecords."""
    superseded: int = 0
    """Not in the log, which is compacted and has another record of the same key."""
    salvaged: int | None = None
    """Of the lost ones, how many the brokers' salvage has; None if it cannot be looked at."""

    @property
    def good(self) -> bool:
        return not (self.lost or self.account.duplicated or self.account.disordered)


def account_of(
    client: Client, topic: str, acknowledged: dict[int, list[Acknowledged]], salvage: Path | None = None
) -> list[PartitionAccount]:
    """Compare each partition that has acknowledged records with the topic as a consumer reads it now.

    `salvage`: the folder of the cluster, whose quarantines are looked at for what is lost. `KafkaError` if there is no
    such topic, or no leader to read a partition from.
    """
    (described,) = admin.describe_topics(client, [topic])
    settings = {entry.name: entry.value or "" for entry in admin.describe_configs(client, TOPIC_RESOURCE, topic)}
    compacted = "compact" in settings.get("cleanup.policy", "")
    known = {each.partition for each in described.partitions}
    found = []
    for partition, noted in sorted(acknowledged.items()):
        if partition in known:
            one = _partition_account(client, topic, partition, noted, compacted=compacted)
        else:
            account = compare([each.digest for each in noted], [])
            one = PartitionAccount(topic, partition, account, list(noted))
        found.append(one)
    if salvage is not None:
        _count_salvaged(salvage, topic, found)
    return found


def _partition_account(
    client: Client, topic: str, partition: int, noted: Sequence[Acknowledged], *, compacted: bool
) -> PartitionAccount:
    start = list_offset(client, topic, partition, EARLIEST)
    end = list_offset(client, topic, partition, LATEST)
    stored: list[Digest] = []
    keys: set[bytes | None] = set()
    for record in read(client, topic, partition, start, end):
        stored.append(digest_of(record))
        if compacted:
            keys.add(record.key)
    account = compare([each.digest for each in noted], stored)
    found = PartitionAccount(topic, partition, account)
    missing = Counter(account.lost)
    for each in noted:
        if not missing[each.digest]:
            continue
        missing[each.digest] -= 1
        if NOT_KNOWN < each.offset < start:
            found.expired += 1
        elif compacted and each.key is not None and each.key in keys:
            found.superseded += 1
        else:
            found.lost.append(each)
    return found


def _count_salvaged(folder: Path, topic: str, accounts: Sequence[PartitionAccount]) -> None:
    entries, _ = find_entries(folder)
    saved = {
        found.partition: Counter(digest_of(salvaged.record) for salvaged in found.records())
        for found in by_partition(entry for entry in entries if entry.manifest.topic == topic)
    }
    for each in accounts:
        there = saved.get(each.partition, Counter())
        each.salvaged = (Counter(lost.digest for lost in each.lost) & there).total()
