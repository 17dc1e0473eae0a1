"""A partition of an internal topic that is led here, with the shard of coordinator state that its log holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.coordinator.effects import LogAppend


class Shard(Protocol):
    """The state of one partition (`coordinator.group_shard`, `coordinator.transactions.transaction_shard`).

    Methods return effects: `Answer`s, appends, and others that only their coordinator knows.
    """

    @property
    def check_ms(self) -> int:
        """The next deadline, by the monotonic clock."""

    def replay(self, key: Any, value: Any) -> None:
        """A committed record of the log, while the partition is loaded."""

    def replay_pending(self, producer_id: int, key: Any, value: Any) -> None:
        """A record of a transaction that may still be open."""

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """The end of a producer's transaction."""

    def loaded(self, now_ms: int) -> Sequence[Any]:
        """All records were replayed."""

    def apply(self, append: Any) -> Sequence[Any]:
        """An append of this coordinator is committed."""

    def written(self, append: Any, error: int, now_ms: int) -> Sequence[Any]:
        """An append is committed (and was applied), or was refused, or has taken too long: answer, once."""

    def dismiss(self, error: int) -> Sequence[Any]:
        """Another broker has the partition."""

    def tick(self, now_ms: int) -> Sequence[Any]:
        """`check_ms` has come."""


ShardT = TypeVar("ShardT", bound=Shard)


class CoordinatorPartition(Generic[ShardT]):
    """One partition of the coordinator's topic."""

    def __init__(self, hosted: HostedPartition, shard: ShardT) -> None:
        self.hosted = hosted
        self.shard = shard
        self.ready = False
        self.torn = False
        """An exception has come up in its shard, which nobody asks any more."""
        self.next_offset = hosted.log.log_start_offset
        self.load_end = hosted.log.log_end_offset
        """Records below were written under other leaders."""
        self.written_end = hosted.log.log_end_offset
        """The end of the records that this coordinator has appended."""
        self.gathered: list[LogAppend] = []
        """Appends of this turn."""
        self.began_ms = 0
        self.records = 0

    @property
    def name(self) -> str:
        return self.hosted.name
