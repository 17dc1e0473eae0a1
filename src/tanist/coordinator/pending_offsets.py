"""Offsets that open transactions have committed: no consumer sees them before the transaction's marker (KIP-98).

Owns the table by producer id, and the question whether a partition has any (UNSTABLE_OFFSET_COMMIT, KIP-447). All
entries are committed in the log. A commit counts by its place in the log: the marker of a transaction does not undo a
later commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

CommittedT = TypeVar("CommittedT")


class PendingOffset(NamedTuple, Generic[CommittedT]):
    """One offset of an open transaction."""

    order: int
    """Its place among the commits of the partition."""
    committed: CommittedT


class PendingOffsets(Generic[CommittedT]):
    """The offsets of the open transactions of one partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        self._order = 0
        self._of_producers: dict[int, dict[tuple[str, tuple[str, int]], PendingOffset[CommittedT]]] = {}
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}
        """By group and partition: the producers with an open transaction."""
        self._last: dict[tuple[str, tuple[str, int]], int] = {}
        """The order of the last plain commit of each partition that has a pending offset."""

    def __len__(self) -> int:
        """Producers with an open transaction."""
        return len(self._of_producers)

    def add(self, producer_id: int, group_id: str, topic_partition: tuple[str, int], committed: CommittedT) -> None:
        """An offset that counts once the producer's transaction is committed."""
        self._order += 1
        key = (group_id, topic_partition)
        self._of_producers.setdefault(producer_id, {})[key] = PendingOffset(self._order, committed)
        self._open.setdefault(group_id, {}).setdefault(topic_partition, set()).add(producer_id)

    def plain_commit(self, group_id: str, topic_partition: tuple[str, int]) -> None:
        """A commit outside of transactions: earlier pending offsets no longer replace it."""
        if self.is_unstable(group_id, topic_partition):
            self._order += 1
            self._last[group_id, topic_partition] = self._order

    def removed(self, group_id: str, topic_partition: tuple[str, int]) -> None:
        """A tombstone: the pending offsets of the partition go as well."""
        for producer_id in list(self._open.get(group_id, {}).get(topic_partition, ())):
            self._forget(producer_id, group_id, topic_partition)

    def end(
        self, producer_id: int, *, committed: bool, apply: Callable[[str, tuple[str, int], CommittedT], None]
    ) -> None:
        """The transaction has ended: with `committed` its offsets are applied, unless a later commit stands."""
        for (group_id, topic_partition), pending in list(self._of_producers.get(producer_id, {}).items()):
            later = self._last.get((group_id, topic_partition), -1) > pending.order
            self._forget(producer_id, group_id, topic_partition)
            if committed and not later:
                apply(group_id, topic_partition, pending.committed)
                if self.is_unstable(group_id, topic_partition):
                    # Of another transaction that began before: it ends later, but its commit came first or last.
                    last = self._last.get((group_id, topic_partition), -1)
                    self._last[group_id, topic_partition] = max(last, pending.order)

    def groups_of(self, producer_id: int) -> list[str]:
        """The groups whose offsets the producer's open transaction has committed."""
        return list(dict.fromkeys(group_id for group_id, _ in self._of_producers.get(producer_id, ())))

    def of_group(self, group_id: str) -> Iterable[tuple[str, int]]:
        """The partitions of which open transactions have committed an offset of this group."""
        return self._open.get(group_id, ())

    def is_unstable(self, group_id: str, topic_partition: tuple[str, int]) -> bool:
        """Whether an open transaction has committed an offset of this partition."""
        return topic_partition in self._open.get(group_id, ())

    def has_group(self, group_id: str) -> bool:
        """Whether an open transaction has committed an offset of this group."""
        return group_id in self._open

    def _forget(self, producer_id: int, group_id: str, topic_partition: tuple[str, int]) -> None:
        offsets = self._of_producers[producer_id]
        offsets.pop((group_id, topic_partition), None)
        if not offsets:
            del self._of_producers[producer_id]
        partitions = self._open[group_id]
        partitions[topic_partition].discard(producer_id)
        if not partitions[topic_partition]:
            del partitions[topic_partition]
            self._last.pop((group_id, topic_partition), None)
            if not partitions:
                del self._open[group_id]
