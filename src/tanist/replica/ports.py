"""The log as a replica sees it.

`tanist.log.log.Log` is one; so are the logs in memory of the tests and the model checker, and so the protocol is small.
The epochs of a log are a `tanist.log.epochs.LeaderEpochCache` everywhere.
"""

from __future__ import annotations

from typing import Any, Protocol

from tanist.log.epochs import LeaderEpochCache


class AppendOutcome(Protocol):
    """The result of an append: `tanist.log.log.AppendResult`, or another with an error code."""

    @property
    def error(self) -> int: ...

    @property
    def message(self) -> str | None:
        """What is wrong, for people."""


class ReplicaLog(Protocol):
    """One partition's log.

    `latest_epoch` is the latest leader epoch the log knows of, -1 if none. Truncations to or beyond the end of the log
    keep all records, yet must still drop epochs that begin there: a leader that wrote nothing leaves such an entry
    behind, and no log will continue it. A log of batches keeps or drops a batch as a whole, so the end after a
    truncation may be lower than the given offset, never higher.
    """

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def latest_epoch(self) -> int: ...

    @property
    def epochs(self) -> LeaderEpochCache: ...

    def append_as_follower(self, batches: Any, leader_epoch: int, /) -> AppendOutcome:
        """Append batches verbatim that were fetched from the leader of an epoch.

        `Any`: a memoryview in a node, whatever the log is made of elsewhere. An error, and nothing appended, if an
        epoch is below the log's last or above the leader's.
        """

    def truncate_to(self, offset: int, /) -> Any: ...

    def truncate_fully_and_start_at(self, offset: int, /) -> Any: ...

    def advance_log_start_offset(self, offset: int, /) -> Any: ...


class FoundRecord(Protocol):
    """A record that was found by its time."""

    @property
    def timestamp(self) -> int: ...

    @property
    def offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...


class ReadableLog(ReplicaLog, Protocol):
    """A log that can also be searched by time, for ListOffsets."""

    def offset_for_timestamp(self, timestamp_ms: int, /) -> FoundRecord | None:
        """The first record that is not earlier than `timestamp_ms`."""

    def max_timestamp(self) -> FoundRecord | None:
        """The first record with the highest timestamp."""
