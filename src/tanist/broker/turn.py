"""The end of a turn: what a burst of requests has produced is written, then acknowledged.

A turn is everything a node does between two waits for input. Appends are queued on their logs while requests are
handled; here they are written, one write a partition, and only then are waiting fetches looked at, follow-up requests
sent and answers put on the wire. With `flush.messages` the answers wait for a sync as well: one sync for all that
came together (group commit), and later turns wait behind it so that answers keep their order.

A large append is written off the loop. Its turn's answers wait for that, and its connection is not read from; nothing
else waits. A turn that touches the partition meanwhile ends the write before its own end, so no answer that is sent
speaks of records that are not written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from tanist.broker.network.call import Slot
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.log.log import Log
from tanist.ports import Chunk, Clock, Disk, File
from tanist.replica.leader import LeaderState


class _HeldTurn:
    """Answers of one turn, held until its writes are as durable as they must be."""

    __slots__ = ("after_writes", "connections", "partitions", "ready")

    def __init__(
        self,
        partitions: list[HostedPartition],
        after_writes: list[Callable[[], None]],
        connections: list[tuple[ClientConnection, list[Chunk]]],
    ) -> None:
        self.partitions = partitions
        self.after_writes = after_writes
        self.connections = connections
        self.ready = False


class _LateTurn:
    """What waits for large writes that are made off the loop."""

    __slots__ = ("after_writes", "answers", "errors", "lenders", "missing", "partitions")

    def __init__(self, lenders: list[Lender]) -> None:
        self.lenders = lenders
        """Their receive buffers are what is written."""
        self.partitions: list[tuple[HostedPartition, bool]] = []
        """And whether they have grown, as leaders."""
        self.after_writes: list[Callable[[], None]] = []
        self.answers: list[tuple[ClientConnection, Slot, list[Chunk]]] = []
        self.missing = 0
        """Writes that have not ended."""
        self.errors: list[tuple[HostedPartition, OSError]] = []


class Lender(Protocol):
    """A connection whose frames are lent to appends."""

    def hold(self) -> None:
        """Receive nothing, so that the memory stays as it is, until `release`."""

    def release(self) -> None: ...


class LeaderEffects(Protocol):
    """The interpreter of a leader's effects (`replica_effects.ReplicaEffects`)."""

    def leader_has_appended(self, hosted: HostedPartition, leader: LeaderState, now_ms: int) -> None:
        """See whether more is committed."""


class Turn:
    """Collects the marks of the running turn, and carries out its end."""

    __slots__ = (
        "_after_writes",
        "_before_writes",
        "_beside_large",
        "_clock",
        "_dirty",
        "_disk",
        "_effects",
        "_held",
        "_lenders",
        "_lent_bytes",
        "_touched",
        "begun",
        "large_bytes",
        "late",
        "now_ms",
        "wall_ms",
    )

    _effects: LeaderEffects

    def __init__(self, clock: Clock, disk: Disk) -> None:
        self._clock = clock
        self._disk = disk
        self.begun = False
        """Whether this turn has come to anything yet; what follows is right only then."""
        self.now_ms = 0
        self.wall_ms = 0
        """The clocks, read once for all requests of the turn."""
        self._dirty: list[HostedPartition] = []
        self._before_writes: list[Callable[[], None]] = []
        self._beside_large: list[Callable[[], None]] = []
        self._after_writes: list[Callable[[], None]] = []
        self._touched: list[ClientConnection] = []
        self._lenders: list[Lender] = []
        self._lent_bytes: dict[HostedPartition, int] = {}
        """Queued appends that lie in frames of lenders."""
        self.large_bytes = disk.large_write_bytes
        """A frame of so many bytes or more is one to `lend`."""
        self.late = 0
        """Turns whose answers wait for large writes. Each holds the connections that these came from."""
        self._held: deque[_HeldTurn] = deque()

    def bind(self, effects: LeaderEffects) -> None:
        """The effects mark partitions of this turn, so they are made after it."""
        self._effects = effects

    @property
    def held(self) -> int:
        """Turns whose answers wait for a sync."""
        return len(self._held)

    def begin(self) -> None:
        """The turn's first mark: read the clocks, and see to the turn's end."""
        self.begun = True
        clock = self._clock
        self.now_ms = clock.now_ms()
        self.wall_ms = clock.wall_ms()
        clock.call_soon(self._end)

    def time_ms(self) -> int:
        """The time to handle a request by: the turn's, if it has begun."""
        return self.now_ms if self.begun else self._clock.now_ms()

    def mark_dirty(self, hosted: HostedPartition) -> None:
        """The partition has queued appends, or news for the requests that wait on it."""
        if not hosted.dirty:
            if not self.begun:
                self.begin()  # first: where a partition is dirty, the turn has begun, whatever a follower raises
            hosted.dirty = True
            hosted.upkeep_ms = 0
            self._dirty.append(hosted)
            for follower in hosted.followers:
                follower.activate()

    def mark_grown(self, hosted: HostedPartition) -> None:
        """The leader's log has grown: once that is written, see whether more is committed."""
        hosted.grown = True
        self.mark_dirty(hosted)

    def before_writes(self, callback: Callable[[], None]) -> None:
        """Run `callback` at the end of this turn, which appends together what the turn's requests have gathered."""
        self._before_writes.append(callback)
        if not self.begun:
            self.begin()

    def after_writes(self, callback: Callable[[], None]) -> None:
        """Run `callback` once this turn's appends are written."""
        self._after_writes.append(callback)
        if not self.begun:
            self.begin()

    def beside_large(self, callback: Callable[[], None]) -> None:
        """Run `callback` while large appends of this turn are being written off the loop; never if there are none.

        The turn's small appends are written then. `after_writes` waits for the large ones, too.
        """
        self._beside_large.append(callback)
        if not self.begun:
            self.begin()

    def touch(self, connection: ClientConnection) -> None:
        """The connection has an answer to send."""
        self._touched.append(connection)
        if not self.begun:
            self.begin()

    def lend(self, lender: Lender) -> None:
        """A large frame of this connection may be appended: see `mark_lent`."""
        self._lenders.append(lender)
        if not self.begun:
            self.begin()

    def mark_lent(self, hosted: HostedPartition, size: int) -> None:
        """So many bytes that are queued for the partition lie in a lender's frame, or stay as they are in any case."""
        if self._lenders:
            self._lent_bytes[hosted] = self._lent_bytes.get(hosted, 0) + size

    def _end(self) -> None:
        while self._before_writes:
            gathered, self._before_writes = self._before_writes, []
            for callback in gathered:
                callback()
        dirty, self._dirty = self._dirty, []
        late = self._write_large_later(dirty) if self._lenders else None
        beside_large, self._beside_large = self._beside_large, []
        sync_files: list[File] | None = None
        synced: list[tuple[HostedPartition, Log, int]] = []
        for hosted in dirty:
            grown, hosted.grown = hosted.grown, False
            if hosted.stale:
                hosted.dirty = False
                if hosted.directory.failed is not None and hosted.log.pending_bytes:
                    self._close_touched(self._touched)
                continue
            log = hosted.log
            files: list[File] | None = None
            try:
                log.write_pending()
                if log.flush_messages_due:
                    files = log.unflushed_files()
            except OSError as failure:
                hosted.dirty = False
                self._write_failed(hosted, failure, self._touched)
                continue
            if grown and hosted.leader is not None:
                self._effects.leader_has_appended(hosted, hosted.leader, self.now_ms)
            hosted.dirty = False  # not before: news of the append are no reason for another turn
            if files is not None:
                sync_files = files + (sync_files or [])
                synced.append((hosted, log, log.log_end_offset))
        if sync_files is None and not self._held:
            # The common case: the page cache is durable enough. Looking at waiters may touch more connections.
            self._complete_fetches(dirty)
            if late is not None:
                for callback in beside_large:
                    callback()
                self._wait_for(late)
                return
            while self._after_writes:
                callbacks, self._after_writes = self._after_writes, []
                for callback in callbacks:
                    callback()
            # Marks from here on schedule the next turn: connections only send below.
            self._ended()
            touched, self._touched = self._touched, []
            for connection in touched:
                connection.flush()
            return
        self._ended()
        callbacks, self._after_writes = self._after_writes, []
        touched, self._touched = self._touched, []
        held_turn = _HeldTurn(dirty, callbacks, [(connection, connection.take()) for connection in touched])
        self._held.append(held_turn)
        if sync_files is None:
            held_turn.ready = True
            return

        def done(error: OSError | None) -> None:
            for hosted, log, end_offset in synced:
                if hosted.stale or hosted.log is not log:
                    continue  # what took the log's place has all that it had, and is synced
                if error is not None:
                    self._write_failed(hosted, error, [connection for connection, _ in held_turn.connections])
                else:
                    log.mark_flushed(end_offset)
            held_turn.ready = True
            self._release_held()

        self._disk.sync(sync_files, done)

    def _write_large_later(self, dirty: list[HostedPartition]) -> _LateTurn | None:
        """Begin the large writes of the turn, and take their partitions out of `dirty`. None if there are none.

        Where answers wait for a sync, large writes are made at once as the others: nothing may be sent before these.
        """
        lenders, self._lenders = self._lenders, []
        lent, self._lent_bytes = self._lent_bytes, {}
        if self._held or any(hosted.log.flush_messages_due for hosted in dirty if not hosted.stale):
            return None
        # What lies elsewhere is valid in this turn only.
        large = [
            hosted for hosted, size in lent.items() if size >= self.large_bytes and hosted.log.pending_bytes == size
        ]
        if not large:
            return None
        late = _LateTurn(lenders)
        for hosted in large:
            if hosted.stale:
                continue
            dirty.remove(hosted)
            hosted.dirty = False
            grown, hosted.grown = hosted.grown, False
            try:
                hosted.log.write_pending_later(partial(self._written_late, late, hosted))
            except OSError as failure:
                self._write_failed(hosted, failure, self._touched)
                continue
            late.missing += 1
            late.partitions.append((hosted, grown))
        if not late.missing:
            return None
        self.late += 1
        for lender in lenders:
            lender.hold()
        return late

    def _wait_for(self, late: _LateTurn) -> None:
        """The end of a turn with large writes: its answers keep their places, and later ones wait behind them."""
        self._ended()
        late.after_writes, self._after_writes = self._after_writes, []
        touched, self._touched = self._touched, []
        for connection in touched:
            late.answers += [(connection, slot, chunks) for slot, chunks in connection.bar()]

    def _written_late(self, late: _LateTurn, hosted: HostedPartition, error: OSError | None) -> None:
        """A large write has ended. After the last of its turn the rest is done, as part of the present one."""
        if error is not None:
            late.errors.append((hosted, error))
        late.missing -= 1
        if late.missing:
            return
        self.late -= 1
        if late.errors:
            for connection, _, _ in late.answers:
                connection.close()
        for failed, failure in late.errors:
            if not failed.stale:
                failed.disk_failed(failure)
        for each, grown in late.partitions:
            if each.stale:
                continue
            if grown:
                self.mark_grown(each)
            else:
                self.mark_dirty(each)
        for callback in late.after_writes:
            self.after_writes(callback)
        for connection, slot, chunks in late.answers:
            connection.complete(slot, chunks)
        for lender in late.lenders:
            lender.release()

    def _ended(self) -> None:
        """Marks that came too late for this turn have the next one."""
        self.begun = False
        if self._dirty or self._before_writes:
            self.begin()

    def _release_held(self) -> None:
        while self._held and self._held[0].ready:
            held_turn = self._held.popleft()
            self._complete_fetches(held_turn.partitions)
            for callback in held_turn.after_writes:
                callback()
            for connection, chunks in held_turn.connections:
                connection.send(chunks)

    def _complete_fetches(self, partitions: list[HostedPartition]) -> None:
        for hosted in partitions:
            waiters = hosted.fetch_waiters
            if waiters:
                hosted.fetch_waiters = []
                for waiter in waiters:
                    waiter.try_complete(hosted)
                hosted.fetch_waiters += [waiter for waiter in waiters if not waiter.done]
            for follower in hosted.followers:
                follower.partition_changed()

    def _write_failed(self, hosted: HostedPartition, failure: OSError, touched: Sequence[ClientConnection]) -> None:
        self._close_touched(touched)
        hosted.disk_failed(failure)

    def _close_touched(self, touched: Sequence[ClientConnection]) -> None:
        """Answers of the turn may speak of records that are not there: their connections close instead."""
        for connection in touched:
            connection.close()
