"""Exceptions that a run plants in a node, where nobody expects one.

Every other exception that a node meets is a violation, also one that it answers with UNKNOWN_SERVER_ERROR and goes on
after (`Host.met`). What a planted one has torn must not be used any more (docs/operations.md has the table): the safety
properties hold afterwards, and the cluster becomes whole.

Owns where exceptions are planted: before or after the n-th call of the functions of a place, which are named, not
replaced. While a node has a plant, Python tells of each call in its turns (`sys.settrace`); without one nothing is
slower. Calls of named functions are counted and nothing else, so that every version of Python plants in the same one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final


class PlantedError(Exception):
    """Raised by the run, not by the node."""


class PlantedMemoryError(PlantedError, MemoryError):
    """An allocation that fails."""


class PlantedIndexError(PlantedError, IndexError):
    """What code that parses may take for a fault of the bytes."""


def is_planted(error: BaseException | None) -> bool:
    """Whether the run has planted it, or it was raised because of one that was."""
    while error is not None:
        if isinstance(error, PlantedError):
            return True
        error = error.__cause__ or error.__context__
    return False


_BROKER: Final = "tanist.broker."
PLACES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "append": {
        "tanist.log.appender": ("Appender._append_found", "Appender._append_fetched", "Appender.assign_epoch"),
        "tanist.log.segment": ("Segment.append",),
        "tanist.log.segments": ("Segments.roll",),
    },
    "write": {
        "tanist.log.segment": ("Segment.write",),
        _BROKER + "turn": ("Turn._end", "Turn._ended", "Turn._complete_fetches", "Turn._release_held"),
    },
    "truncation": {
        "tanist.log.log": ("Log._cut", "Log._lower_recovery_point", "Log._reload_producers"),
        "tanist.log.segment": ("Segment.truncate_to",),
        "tanist.log.epochs": ("LeaderEpochCache.truncate_from_end",),
    },
    "replica": {
        "tanist.replica.leader": ("LeaderState.appended", "LeaderState.follower_fetch"),
        "tanist.replica.membership": ("IsrMembership.check_lag", "IsrMembership.alter_partition_done"),
        "tanist.replica.follower": ("FollowerState.fetched",),
        "tanist.replica.partition": ("Partition.apply_metadata",),
    },
    "replay": {
        "tanist.controller.image.image": ("MetadataImage.replay",),
        _BROKER + "metadata.view": ("MetadataView.apply", "MetadataView._publish"),
    },
    "controller": {
        "tanist.controller.controller": ("Controller.handle", "Controller.replay", "Controller.tick"),
        _BROKER + "metadata.quorum": ("MetadataQuorum.append",),
    },
    "quorum": {
        "tanist.quorum.raft": ("RaftNode.receive", "RaftNode.response", "RaftNode.tick", "RaftNode.log_synced"),
        "tanist.quorum.storage.metadata_log": ("MetadataLog.append",),
    },
    "coordinator": {
        "tanist.coordinator.group_shard": (
            "GroupShard.join",
            "GroupShard.sync",
            "GroupShard.heartbeat",
            "GroupShard.apply",
            "GroupShard.written",
        ),
        "tanist.coordinator.offsets": ("GroupOffsets.commit",),
        "tanist.coordinator.table": ("GroupTable.replay",),
        "tanist.coordinator.transactions.transaction_shard": (
            "TransactionShard.end",
            "TransactionShard.apply",
            "TransactionShard.written",
        ),
        _BROKER + "coordinator_runtime.loading": ("Loader._load_slice", "Loader._replay"),
    },
    "snapshot": {_BROKER + "metadata.snapshot_writer": ("SnapshotWriter.begin", "SnapshotWriter._write_slice")},
    "salvage": {
        "tanist.log.salvage.quarantine": ("Quarantine._copy", "Quarantine.tidy"),
        "tanist.replica.follower": ("FollowerState.salvaged",),
    },
    "request": {
        _BROKER + "api.produce": ("Produce.handle", "Produce._handle_any"),
        _BROKER + "api.fetch": ("Fetch.handle",),
        _BROKER + "api.metadata": ("Metadata.handle",),
        _BROKER + "api.list_offsets": ("ListOffsets.handle",),
    },
    "continuation": {
        _BROKER + "metadata.controller_channel": ("_Forward._handle_response", "_Forward._reply"),
        _BROKER + "metadata.internal_topics": ("InternalTopics._handle_response",),
        _BROKER + "metadata.producer_ids": ("ProducerIds._handle_response",),
        _BROKER + "transactions.verification": ("_answers_of",),
        _BROKER + "api.produce": ("ProduceWait._answer",),
        _BROKER + "api.produce_transactional": ("_verified",),
        _BROKER + "api.fetch": ("Fetch.answer",),
        _BROKER + "api.follower_fetch": ("FollowerFetch.answer",),
        _BROKER + "api.find_coordinator": ("FindCoordinator._answer",),
        _BROKER + "network.call": ("Call._answer",),
    },
}
"""By place, the functions of each module."""

_CALLS_MAX: Final = 12
_AFTER_SHARE: Final = 0.6
"""After the call there is more to be torn than before it."""
_MEMORY_SHARE: Final = 0.2
_INDEX_SHARE: Final = 0.2


def _kind_of(detail: float) -> type[PlantedError]:
    if detail < _MEMORY_SHARE:
        return PlantedMemoryError
    return PlantedIndexError if detail < _MEMORY_SHARE + _INDEX_SHARE else PlantedError


class Plant:
    """One exception to be raised in a node. `detail` is a random number in [0, 1) for the choices."""

    def __init__(self, detail: float) -> None:
        names = list(PLACES)
        detail *= len(names)
        self.place = names[int(detail)]
        self._functions = PLACES[self.place]
        detail = detail % 1 * _CALLS_MAX
        self._calls = 1 + int(detail)
        detail = detail % 1
        self._after = detail < _AFTER_SHARE
        self._error = _kind_of(detail * 1_000 % 1)
        self.raised = False
        self.reported = False
        """The node has said that it met it."""
        self.hidden = False
        """The process has ended in that turn, and for another reason, as it said."""
        self._is_raised_now = False

    def watch(self, turn: Callable[[], None]) -> None:
        """Run a turn, in which the exception may be raised."""
        before = sys.gettrace()
        self._is_raised_now = False
        sys.settrace(self._called)
        try:
            turn()
        finally:
            sys.settrace(before)

    def gave_up(self) -> None:
        """The process ends itself."""
        self.hidden = self._is_raised_now and not self.reported

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        functions = self._functions.get(frame.f_globals.get("__name__", ""))
        if self.raised or functions is None or code.co_qualname not in functions:
            return None
        self._calls -= 1
        if self._calls > 0:
            return None
        if not self._after:
            self._raise(code.co_qualname)
        return self._in_call

    def _in_call(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if event == "exception":
            return None  # it ends by one of its own
        if event == "return" and not self.raised:
            self._raise(frame.f_code.co_qualname)
        return self._in_call

    def _raise(self, function: str) -> None:
        self.raised = self._is_raised_now = True
        raise self._error(f"planted {'after' if self._after else 'before'} {function}")
