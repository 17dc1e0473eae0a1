"""The runtime of a coordinator: which shards are here, and how their decisions get into the log and out again.

Owns the partitions of an internal topic that this broker leads, each with its shard, and carries out the effects of the
shards: what a turn's requests append goes into the partition's log together, like any produce with acks=all, and is
applied and answered when the high watermark covers it. A partition whose leadership has come is replayed from its log,
slice by slice between the turns of others, one partition at a time; until then its keys get
COORDINATOR_LOAD_IN_PROGRESS. It begins to be served only when everything that its log held at the start is committed:
state that a client has seen never goes back, whichever broker leads next. A broker that has lost a partition forgets it
at once, and sends the requests that wait elsewhere. A shard that an exception may have torn is forgotten, too, and read
anew from its log.

It must not know what a shard decides: the two coordinators (`groups.group_coordinator` and
`transactions.transaction_coordinator`) tell it how their records are encoded, and do what only they know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final, Generic, cast

from tanist.broker.alarm import Alarm
from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.coordinator_runtime.loading import Decode, Loader
from tanist.broker.coordinator_runtime.partition import CoordinatorPartition, ShardT
from tanist.broker.counters import Latency
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.leadership import Confirmation
from tanist.coordinator.effects import NEVER_MS, Answer, LogAppend, MarkerAppend
from tanist.events.coordination import CoordinatorGivenUp, CoordinatorLoaded
from tanist.replica.leader import LeaderState
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.control import encode_marker_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import partition_of

_NOT_SURE: Final = {
    Confirmation.NO: ErrorCode.NOT_COORDINATOR,
    Confirmation.UNKNOWN: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}

_RELOAD_MS: Final = 200
_RELOAD_MS_MAX: Final = 60_000

Reply = Callable[[Any], None]
"""The tickets that a broker gives along with requests."""


@dataclass(frozen=True, slots=True)
class ShardKind(Generic[ShardT]):
    """One kind of coordinator: its topic, its shards and its records."""

    topic: str
    make_shard: Callable[[HostedPartition], ShardT]
    decode: Decode
    encode: Callable[[Sequence[Any], int], list[NewRecord]]
    """The records of appends, with the time of day where they want it."""
    append_timeout_ms: int
    """How long a client waits for its append."""
    entries: str
    """The content of a shard, in the plural: "groups"."""
    count: Callable[[ShardT], int]
    """How many of them a shard has."""
    loaded: Callable[[ShardT], Sequence[Any]]
    """What a shard is to do when it was replayed, and is served now."""
    carry_out: Callable[[CoordinatorPartition[ShardT], Any], None]
    """An effect that is neither an answer nor an append."""


class _CommittedOnce:
    """Waits, like a produce, until what another leader wrote is committed under this one."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.done = False
        self._then = then

    def complete(self, ticket: int, error: int) -> None:
        self.done = True
        if error in (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
            self._then()


class _Batch(Generic[ShardT]):
    """Appends of one turn, on their way: until they are committed, the leadership is lost, or time is up."""

    __slots__ = ("_answered", "_appends", "_partition", "_runtime", "done")

    def __init__(
        self,
        runtime: CoordinatorRuntime[ShardT],
        partition: CoordinatorPartition[ShardT],
        appends: Sequence[LogAppend],
    ) -> None:
        self._runtime = runtime
        self._partition = partition
        self._appends = appends
        self._answered = False
        self.done = False

    def complete(self, ticket: int, error: int) -> None:
        self.done = True
        if error == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            error = ErrorCode.NONE  # the high watermark has passed it: it is committed
        answered, self._answered = self._answered, True
        if self._partition.torn:
            return  # its clients have been answered, as far as it could be said who they are
        # Refused decisions are taken back, the last first: each rests on those before.
        for append in reversed(self._appends) if error else self._appends:
            if not error:
                self._runtime.carry_out(self._partition, partial(self._partition.shard.apply, append))
            if not answered and not self._partition.torn:
                self._runtime.written(self._partition, append, error)

    def expire(self) -> None:
        """The clients have waited long enough. Their requests count all the same, once they are committed."""
        if not self._answered and not self._partition.torn:
            self._answered = True
            for append in self._appends:
                self._runtime.written(self._partition, append, ErrorCode.REQUEST_TIMED_OUT)


class CoordinatorRuntime(Generic[ShardT]):
    """The shards of this broker, of one kind."""

    def __init__(self, components: CoordinatorComponents, kind: ShardKind[ShardT]) -> None:
        self._components = components
        self._context = components.context
        self._kind = kind
        self._partitions: dict[int, CoordinatorPartition[ShardT]] = {}
        self._loader: Loader[ShardT] = Loader(
            components.context, kind.decode, self.is_served, self._loaded, self.failed
        )
        self._alarm = Alarm(self._context.clock, self._tick)
        self._reload_ms: dict[int, int] = {}
        """How long the last wait was before a shard was read anew, until it was."""
        self._closed = False
        self.load_time = Latency()
        """From the election of this broker to a loaded partition."""

    def start(self) -> None:
        """Take over the partitions that are led here already."""
        for hosted in dict(self._components.replicas.by_topic.get(self._kind.topic) or {}).values():
            self.role_changed(hosted)

    # -- where a key is

    def find(self, key: str) -> CoordinatorPartition[ShardT] | int:
        """The partition of a group or a transactional id, if it is served here; else the error that sends the client
        on.
        """
        topic = self._components.metadata.image.topic(self._kind.topic)
        if topic is None or self._closed:
            return ErrorCode.NOT_COORDINATOR
        partition = self._partitions.get(partition_of(key, len(topic.partitions)))
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        return partition if partition.ready else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def when_sure(self, keys: Iterable[str], then: Callable[[dict[str, int]], None]) -> None:
        """Call `then` with the keys that are not served here, and why; all others are, as of now.

        For answers from memory: a coordinator that was deposed and has yet to hear of it would give old ones.
        """
        errors: dict[str, int] = {}
        sought: dict[CoordinatorPartition[ShardT], list[str]] = {}
        for key in keys:
            found = self.find(key)
            if isinstance(found, int):
                errors[key] = found
            else:
                sought.setdefault(found, []).append(key)
        if not sought:
            then(errors)
            return
        left = set(sought)

        def confirmed(partition: CoordinatorPartition[ShardT], confirmation: Confirmation) -> None:
            left.discard(partition)
            if confirmation is not Confirmation.YES:
                errors.update(dict.fromkeys(sought[partition], _NOT_SURE[confirmation]))
            if not left:
                then(errors)

        for partition in sought:
            self._components.leadership.confirm(
                partition.hosted, self._kind.append_timeout_ms, partial(confirmed, partition)
            )

    def of_index(self, index: int) -> CoordinatorPartition[ShardT] | None:
        """A partition that is led here, loaded or not."""
        return self._partitions.get(index)

    def partitions(self) -> Iterator[CoordinatorPartition[ShardT]]:
        """All partitions that are led here, loaded or not, in order."""
        return iter([self._partitions[index] for index in sorted(self._partitions)])

    # -- leadership

    def role_changed(self, hosted: HostedPartition) -> None:
        """This broker has become the leader of a partition, or is not any more."""
        index = hosted.index
        partition = self._partitions.get(index)
        if hosted.leader is None or hosted.stale:
            if partition is not None and partition.hosted is hosted:
                del self._partitions[index]
                with self.step(partition):
                    self._do(partition, partition.shard.dismiss(ErrorCode.NOT_COORDINATOR))
            return
        if partition is not None and partition.hosted is hosted:
            return  # it leads on
        self._take_over(hosted, hosted.leader)

    def _take_over(self, hosted: HostedPartition, leader: LeaderState) -> None:
        """Begin with an empty shard, and replay the log into it."""
        partition = self._partitions[hosted.index] = CoordinatorPartition(hosted, self._kind.make_shard(hosted))
        partition.began_ms = self._context.clock.now_ms()
        if partition.load_end == partition.next_offset:
            partition.ready = True
        elif leader.high_watermark >= partition.load_end:
            self._loader.add(partition)
        else:
            loading = partition
            waiter = _CommittedOnce(lambda: self._loader.add(loading))
            hosted.wait_for_high_watermark(partition.load_end, waiter)

    def failed(self, partition: CoordinatorPartition[ShardT], error: Exception) -> None:
        """An exception was met in a step of the shard, or while it was replayed: forget it, and read its log anew.

        After a while, which doubles each time: what made it raise may be in the log.
        """
        self._context.unexpected.met(f"a coordinator of {self._kind.topic}", error)
        if partition.torn:
            return
        partition.torn = True
        partition.gathered.clear()
        index = partition.hosted.index
        if not self.is_served(partition):
            return
        partition.ready = False
        try:
            effects = partition.shard.dismiss(ErrorCode.NOT_COORDINATOR)
            self._do(partition, [effect for effect in effects if isinstance(effect, Answer)])
        except Exception as again:  # who waits hears nothing, and asks again in time
            self._context.unexpected.met(f"a coordinator of {self._kind.topic}", again)
        wait_ms = self._reload_ms[index] = min(2 * self._reload_ms.get(index, _RELOAD_MS // 2), _RELOAD_MS_MAX)
        clock = self._context.clock
        clock.call_at(clock.now_ms() + wait_ms, partial(self._reload, partition))

    def _reload(self, partition: CoordinatorPartition[ShardT]) -> None:
        hosted = partition.hosted
        if self.is_served(partition) and hosted.leader is not None and not hosted.stale:
            self._context.events.emit(CoordinatorGivenUp(partition.name))
            self._take_over(hosted, hosted.leader)

    def is_served(self, partition: CoordinatorPartition[ShardT]) -> bool:
        """Whether the partition is still led here, since it was found."""
        return self._partitions.get(partition.hosted.index) is partition

    def _loaded(self, partition: CoordinatorPartition[ShardT]) -> None:
        partition.ready = True
        now_ms = self._context.clock.now_ms()
        self.load_time.record(now_ms - partition.began_ms, now_ms)
        entries, took_ms = self._kind.count(partition.shard), now_ms - partition.began_ms
        loaded = CoordinatorLoaded(partition.name, self._kind.entries, entries, partition.records, took_ms)
        self._context.events.emit(loaded)
        with self.step(partition):
            self._carry_out(partition, partition.shard.loaded(now_ms))
            self._carry_out(partition, self._kind.loaded(partition.shard))
            self._reload_ms.pop(partition.hosted.index, None)

    # -- effects

    def carry_out(
        self,
        partition: CoordinatorPartition[ShardT],
        decide: Callable[[], Sequence[Any]],
        refuse: Callable[[], object] | None = None,
    ) -> None:
        """Let a shard decide, and carry that out. An exception ends the shard: `refuse` who has asked for it."""
        try:
            self._carry_out(partition, decide())
        except Exception as error:
            self.failed(partition, error)
            if refuse is not None:
                refuse()

    @contextmanager
    def step(self, partition: CoordinatorPartition[ShardT]) -> Iterator[None]:
        """A step of a shard that is no single decision. An exception ends the shard."""
        try:
            yield
        except Exception as error:
            self.failed(partition, error)

    def _carry_out(self, partition: CoordinatorPartition[ShardT], effects: Sequence[Any]) -> None:
        """Do what a shard has decided, and see when it is to be looked at again."""
        self._do(partition, effects)
        self._arm(partition.shard.check_ms)

    def _do(self, partition: CoordinatorPartition[ShardT], effects: Sequence[Any]) -> None:
        for effect in effects:
            if isinstance(effect, LogAppend):
                self._append(partition, effect)
        for effect in effects:
            if isinstance(effect, Answer):
                cast(Reply, effect.ticket)(effect.response)
            elif not isinstance(effect, LogAppend):
                self._kind.carry_out(partition, effect)

    def _append(self, partition: CoordinatorPartition[ShardT], append: LogAppend) -> None:
        """The decisions of one turn go into the log together, at the turn's end."""
        partition.gathered.append(append)
        if isinstance(append, MarkerAppend):
            # At once, so that what comes after it finds the transaction ended.
            self._write_gathered(partition)
        elif len(partition.gathered) == 1:
            self._components.turn.before_writes(lambda: self._write_gathered(partition))

    def _write_gathered(self, partition: CoordinatorPartition[ShardT]) -> None:
        appends, partition.gathered = partition.gathered, []
        if not appends:
            return  # the shard was given up since
        hosted = partition.hosted
        if not self.is_served(partition) or hosted.leader is None or hosted.stale:
            # Lost since; or lost and led again, and then what it has is read anew, without this.
            _Batch(self, partition, appends).complete(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        for _, run in groupby(appends, key=_batch_of):
            self._write(partition, hosted.leader, list(run))

    def _write(
        self, partition: CoordinatorPartition[ShardT], leader: LeaderState, appends: Sequence[LogAppend]
    ) -> None:
        """Append what goes into one batch."""
        hosted = partition.hosted
        batch = _Batch(self, partition, appends)
        now_ms, wall_ms = self._context.clock.now_ms(), self._context.clock.wall_ms()
        encoded = self._encoded(appends, wall_ms)
        if not encoded:
            # But earlier decisions are not answered before they are committed, either.
            if leader.high_watermark >= partition.written_end:
                batch.complete(0, ErrorCode.NONE)
            else:
                self._wait(partition, batch, now_ms)
            return
        error = leader.check_before_append(-1)
        if error:
            batch.complete(0, error)
            return
        if len(encoded) > hosted.log.config.max_message_bytes:
            if len(appends) == 1:
                batch.complete(0, ErrorCode.MESSAGE_TOO_LARGE)
                return
            half = len(appends) // 2
            self._write(partition, leader, appends[:half])
            self._write(partition, leader, appends[half:])
            return
        appended = hosted.log.append_as_leader(encoded, hosted.leader_epoch, now_ms, wall_ms, internal=True)
        if appended.error:
            batch.complete(0, appended.error)
            hosted.append_refused()
            return
        partition.written_end = appended.last_offset + 1
        self._components.turn.mark_dirty(hosted)
        self._wait(partition, batch, now_ms)
        self._components.effects.leader_has_appended(hosted, leader, now_ms)

    def _encoded(self, appends: Sequence[LogAppend], wall_ms: int) -> memoryview:
        """The batch of a run of appends; empty if there is nothing to write."""
        first = appends[0]
        if isinstance(first, MarkerAppend):
            return memoryview(
                encode_marker_batch(
                    committed=first.committed,
                    coordinator_epoch=first.coordinator_epoch,
                    producer_id=first.producer_id,
                    producer_epoch=first.producer_epoch,
                    timestamp_ms=wall_ms,
                )
            )
        records = self._kind.encode(appends, wall_ms)
        if not records:
            return memoryview(b"")
        if first.producer is None:
            return memoryview(encode_batch(records))
        producer_id, epoch = first.producer
        return memoryview(encode_batch(records, producer_id=producer_id, producer_epoch=epoch, transactional=True))

    def _wait(self, partition: CoordinatorPartition[ShardT], batch: _Batch[ShardT], now_ms: int) -> None:
        """Until all that this coordinator has written is committed, or time is up."""
        partition.hosted.wait_for_high_watermark(partition.written_end, batch)
        self._components.purgatory.add(now_ms + self._kind.append_timeout_ms, batch)

    def written(self, partition: CoordinatorPartition[ShardT], append: LogAppend, error: int) -> None:
        """Records of a shard are committed, or it is time to say that they may not be."""
        now_ms = self._context.clock.now_ms()
        self.carry_out(partition, partial(partition.shard.written, append, error, now_ms))

    # -- time

    def _arm(self, check_ms: int) -> None:
        """Look again at this time, if not before."""
        if not self._closed:
            self._alarm.set(check_ms)

    def _tick(self) -> None:
        now_ms = self._context.clock.now_ms()
        for partition in list(self._partitions.values()):
            if partition.shard.check_ms <= now_ms:
                self.carry_out(partition, partial(partition.shard.tick, now_ms))
        self._arm(min((each.shard.check_ms for each in self._partitions.values()), default=NEVER_MS))

    def close(self) -> None:
        """The broker is going down; its connections close with it."""
        self._closed = True
        self._partitions.clear()
        self._loader.close()
        self._alarm.cancel()


def _batch_of(append: LogAppend) -> object:
    """Appends with the same one go into one batch."""
    return id(append) if isinstance(append, MarkerAppend) else append.producer
