"""One replica: kinds `leader_partition`, `log`, `truncate`, `out_of_range`, `produce` and `produce_check`.

Owns the players of `tanist.replica`'s objects over a log in memory. The local broker leads, except in the two kinds
about a follower's truncation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from tanist.events.replication import LogTruncated
from tanist.lab.scenarios.fields import Fields, NotUnderstood, event_of
from tanist.lab.scenarios.outcome import Difference, Mismatch, check, error_name, same, same_error
from tanist.log.epochs import LeaderEpochCache
from tanist.replica.effects import AskOffsets, Effect, ProposeIsr
from tanist.replica.follower import FetchedPartition, FollowerState
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.leader import FollowerFetch, LeaderState
from tanist.replica.memory import Entry, MemoryLog
from tanist.replica.metadata import NO_EPOCH, BrokerStatus, PartitionMetadata, ReplicaConfig
from tanist.replica.partition import Partition
from tanist.wire.errors import ErrorCode

START_MS = 1_000_000
"""The scenarios count time from their start; in some, the Unix time 0 means "long before"."""
NEVER_MS = -1
LAG_MS = 30_000
EPOCH_OFFSET = 1000
"""Every broker's epoch is its id and this."""


class Brokers(dict[int, BrokerStatus]):
    """The metadata's registrations."""

    @classmethod
    def of(cls, broker_ids: Iterable[int]) -> Brokers:
        """They are registered and alive."""
        return cls({each: BrokerStatus(each + EPOCH_OFFSET, fenced=False, shutting_down=False) for each in broker_ids})

    def registration(self, broker_id: int, /) -> BrokerStatus | None:
        return self.get(broker_id)

    def mark(self, broker_id: int, **changes: Any) -> None:
        """Change a registration; of one that is unknown, what it would be."""
        self[broker_id] = replace(self.get(broker_id) or Brokers.of([broker_id])[broker_id], **changes)


def _metadata(
    replicas: Iterable[int], isr: Iterable[int], leader: int, leader_epoch: int, partition_epoch: int
) -> PartitionMetadata:
    return PartitionMetadata("foo", UUID(int=1), 0, leader, leader_epoch, partition_epoch, tuple(replicas), tuple(isr))


def _error(name: object) -> int:
    expected = error_name(name)
    if expected not in ErrorCode.__members__:
        raise NotUnderstood(f"{name!r} is no error of the protocol")
    return int(ErrorCode[expected])


# -- leader_partition -------------------------------------------------------------------------------------------------


class LeaderPlay:
    """The partition of a leader, its followers' fetches, and the controller's answers."""

    def __init__(self, state: Fields) -> None:
        self.me = state.number("leader")
        leo, leader_epoch = state.number("leo", 0), state.number("leader_epoch")
        old_epoch = max(0, leader_epoch - 1)
        self.log = MemoryLog(Entry(at, old_epoch, f"r{at}") for at in range(leo))
        replicas = state.ids("replicas")
        self.brokers = Brokers.of(replicas)
        config = ReplicaConfig(
            min_insync_replicas=state.number("min_isr", 1), replica_lag_time_max_ms=state.number("lag_ms", LAG_MS)
        )
        self.partition = Partition(self.me, self.log, config, self.brokers)
        self.now_ms = START_MS
        self.outstanding: list[ProposeIsr] = []
        self.sent: ProposeIsr | None = None
        metadata = _metadata(replicas, state.ids("isr"), self.me, leader_epoch, state.number("partition_epoch"))
        metadata = replace(metadata, adding=state.ids("adding"), removing=state.ids("removing"))
        self._take(self.partition.apply_metadata(metadata, self.now_ms))

    @property
    def leader(self) -> LeaderState:
        if self.partition.leader is None:
            raise NotUnderstood("the local broker does not lead at this point of the scenario")
        return self.partition.leader

    def _take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ProposeIsr):
                self.outstanding.append(effect)
                self.sent = effect

    def play(self, event: Fields) -> None:
        name, argument = event_of(event)
        handler = EVENTS.get(name)
        if handler is None:
            raise NotUnderstood(f"there is no event {name}")
        handler(self, event.inner(name) if isinstance(argument, dict) else argument)

    def fetch(self, event: Fields) -> None:
        broker = event.number("from")
        fetch = FollowerFetch(
            broker,
            event.number("broker_epoch", broker + EPOCH_OFFSET),
            event.number("offset"),
            event.number("last_epoch", NO_EPOCH),
            event.number("leader_epoch", self.leader.leader_epoch),
            0,
        )
        decision = self.leader.follower_fetch(fetch, self.now_ms)
        self._take(decision.effects)
        same_error(f"the fetch of {broker} at {fetch.fetch_offset}", decision.error, event.get("expect_error"))

    def append(self, count: int) -> None:
        self.seed(count)
        self._take(self.leader.appended(self.now_ms))

    def seed(self, count: int) -> None:
        self.log.append_as_leader([f"a{n}" for n in range(count)], self.leader.leader_epoch)

    def sleep_ms(self, duration_ms: int) -> None:
        self.now_ms += duration_ms

    def shrink_check(self, _: Fields) -> None:
        self._take(self.leader.check_lag(self.now_ms))

    def alter_result(self, event: Fields) -> None:
        if not self.outstanding:
            raise Mismatch("AlterPartition requests without an answer", "one at least", "none")
        proposal = self.outstanding.pop(0)
        if "ok" in event:
            result = AlterPartitionResult(
                error=0,
                leader=event.number("leader", self.me),
                leader_epoch=event.number("leader_epoch", proposal.leader_epoch),
                isr=event.ids("isr") if "isr" in event else tuple(broker for broker, _ in proposal.isr),
                partition_epoch=event.number("ok"),
            )
        else:
            result = AlterPartitionResult(error=_error(event["error"]))
        self._take(self.partition.alter_partition_done(proposal, result, self.now_ms))

    def metadata(self, event: Fields) -> None:
        known = self.partition.metadata
        if known is None:
            raise NotUnderstood("the partition has no metadata to change")
        changes: dict[str, Any] = {
            name: event.number(name) for name in ("leader", "leader_epoch", "partition_epoch") if name in event
        }
        changes |= {name: event.ids(name) for name in ("isr", "replicas", "adding", "removing") if name in event}
        self._take(self.partition.apply_metadata(replace(known, **changes), self.now_ms))

    def mark(self, event: Fields) -> None:
        given = {name: bool(event[name]) for name in ("fenced", "shutting_down") if name in event}
        epoch = {"epoch": event.number("epoch")} if "epoch" in event else {}
        self.brokers.mark(event.number("broker"), **given, **epoch)

    def expect(self, expected: Fields) -> None:
        for name in expected:
            if name == "last_caught_up":
                self._expect_caught_up(expected.inner(name).plain())
            elif name != "note":
                wanted = expected[name]
                same(name, self._seen(name), sorted(wanted) if isinstance(wanted, list) else wanted)

    def _expect_caught_up(self, wanted: dict[Any, Any]) -> None:
        """In ms since the start. "Never" is before it; the sources write it as Unix time 0, or leave it out."""
        for broker, at_ms in wanted.items():
            remote = self.leader.remotes.get(broker)
            seen = NEVER_MS if remote is None else max(NEVER_MS, remote.last_caught_up_ms - START_MS)
            same(f"last_caught_up of {broker}", seen, NEVER_MS if at_ms in (None, "never") else at_ms)

    def _seen(self, name: str) -> object:
        match name:
            case "hw":
                return self.partition.high_watermark
            case "leo":
                return self.log.log_end_offset
            case "isr":
                return sorted(self.leader.isr)
            case "maximal_isr":
                return sorted(self.leader.maximal_isr)
            case "inflight":
                return self.leader.pending is not None
            case "outstanding":
                return len(self.outstanding)
            case "sent_isr":
                return None if self.sent is None else sorted(broker for broker, _ in self.sent.isr)
            case "sent_isr_epochs":
                return None if self.sent is None else sorted([broker, epoch] for broker, epoch in self.sent.isr)
            case "under_min_isr" | "at_min_isr" | "under_replicated" | "in_sync_count" | "effective_min_isr":
                return getattr(self.leader, name)
            case "leader_epoch" | "partition_epoch":
                return getattr(self.partition, name)
            case "epoch_start" | "leader_epoch_start_offset":
                return self.leader.leader_epoch_start_offset
            case _:
                raise NotUnderstood(f"not understood: expect.{name}")


EVENTS: dict[str, Callable[[LeaderPlay, Any], None]] = {
    "fetch": LeaderPlay.fetch,
    "append": LeaderPlay.append,
    "seed": LeaderPlay.seed,
    "sleep_ms": LeaderPlay.sleep_ms,
    "shrink_check": LeaderPlay.shrink_check,
    "alter_result": LeaderPlay.alter_result,
    "metadata": LeaderPlay.metadata,
    "mark": LeaderPlay.mark,
    "expect": LeaderPlay.expect,
}


def leader_partition(item: Fields) -> Sequence[Difference]:
    """The leader's side: high watermark, ISR, and one AlterPartition in flight at a time."""
    play = LeaderPlay(item.inner("state"))
    for event in item.each("events"):
        play.play(event)
    return ()


# -- log --------------------------------------------------------------------------------------------------------------


def log(item: Fields) -> Sequence[Difference]:
    """Diverging-epoch answers of a leader whose log has the given batches."""
    epoch = item.number("leader_epoch")
    entries = MemoryLog()
    for batch_epoch, count in item["batches"]:
        entries.append_as_leader([f"e{batch_epoch}"] * count, batch_epoch)
    same("leo", entries.log_end_offset, item.number("leo", entries.log_end_offset))
    entries.advance_log_start_offset(item.number("log_start", 0))
    brokers = Brokers({b: BrokerStatus(NO_EPOCH, fenced=False, shutting_down=False) for b in (1, 2)})
    partition = Partition(1, entries, ReplicaConfig(), brokers)
    partition.apply_metadata(_metadata([1, 2], [1, 2], 1, epoch, 0), START_MS)
    leader = partition.leader
    if leader is None:
        raise NotUnderstood("broker 1 is to lead")
    for fetch in item.each("fetches"):
        before = leader.remotes[2].snapshot()
        asked = FollowerFetch(2, NO_EPOCH, fetch.number("offset"), fetch.number("last_epoch", NO_EPOCH), epoch, 0)
        decision = leader.follower_fetch(asked, START_MS)
        what = f"the fetch at {asked.fetch_offset} of epoch {asked.last_fetched_epoch}"
        same_error(what, decision.error, fetch.given("error", "expect_error"))
        wanted = fetch.inner("diverging")
        answer = None if fetch.get("diverging") is None else (wanted.number("epoch"), wanted.number("end"))
        same(f"the answer to {what}", decision.diverging, answer)
        if decision.error or decision.diverging:
            same(f"the follower after {what}", leader.remotes[2].snapshot(), before)
    return ()


# -- truncate, out_of_range -------------------------------------------------------------------------------------------


def _follower(leo: int, cache: Iterable[Sequence[int]]) -> tuple[FollowerState, MemoryLog]:
    entries = MemoryLog(Entry(at, 0, f"r{at}") for at in range(leo))
    entries.epochs = LeaderEpochCache((epoch, start) for epoch, start in cache)
    metadata = _metadata([1, 2], [1, 2], 1, 100, 100)
    return FollowerState(2, entries, ReplicaConfig(), metadata, high_watermark=0), entries


def truncate(item: Fields) -> Sequence[Difference]:
    """A follower's truncation after its leader's answer about the end of an epoch."""
    follower, entries = _follower(item.number("leo"), item.get("cache") or ())
    answer = item.inner("answer")
    epoch, end = answer.number("epoch"), answer.number("end")
    offset, done = follower.truncation_target(epoch, end)
    check(item.inner("expect"), {"truncate_to": offset, "done": done})
    follower.fetched(FetchedPartition(diverging_epoch=(epoch, end)), follower.fetch_position(), START_MS)
    same("the end of the log", entries.log_end_offset, offset)
    return ()


def out_of_range(item: Fields) -> Sequence[Difference]:
    """A follower's reaction when its offset is out of the leader's range."""
    follower, _ = _follower(item.number("follower_leo"), [[0, 0]])
    leader = item.inner("leader")
    asked = follower.fetched(
        FetchedPartition(error=int(ErrorCode.OFFSET_OUT_OF_RANGE)), follower.fetch_position(), START_MS
    )
    same("what it asks", asked, [AskOffsets(1, 100)])
    effects = follower.handle_offsets_response(leader.number("start"), leader.number("end"), 100, START_MS)
    cut = [effect for effect in effects if isinstance(effect, LogTruncated)]
    truncated = next((effect.offset for effect in cut if not effect.fully), None)
    restarted = next((effect.offset for effect in cut if effect.fully), None)
    expect = item.inner("expect")
    for name in expect:
        if name == "fetch":
            seen: object = follower.fetch_position().offset
        elif name == "truncate_to":
            seen = truncated
        elif "full" in name or "start" in name:  # the whole log, and the start of a new one: as a flag or an offset
            seen = restarted is not None if isinstance(expect[name], bool) else restarted
        else:
            raise NotUnderstood(f"not understood: expect.{name}")
        same(name, seen, expect[name])
    return ()


# -- produce, produce_check -------------------------------------------------------------------------------------------


def produce(item: Fields) -> Sequence[Difference]:
    """The error of a produce request before anything is appended."""
    replicas, isr = item.ids("replicas"), item.ids("isr")
    brokers = Brokers({b: BrokerStatus(b, fenced=False, shutting_down=False) for b in replicas})
    entries = MemoryLog()
    config = ReplicaConfig(item.number("min_isr"))
    leader = LeaderState(1, entries, config, brokers, _metadata(replicas, isr, 1, 0, 0), 0, START_MS)
    if "maximal" in item:
        for joining in sorted(set(item.ids("maximal")) - set(isr)):
            leader.follower_fetch(FollowerFetch(joining, joining, 0, NO_EPOCH, 0, 0), START_MS)
        same("the maximal ISR", sorted(leader.maximal_isr), sorted(item.ids("maximal")))
    error = leader.check_before_append(item.number("acks"))
    if not error:
        entries.append_as_leader(["r"], 0)
        leader.appended(START_MS)
    expect = item.inner("expect")
    same_error("the produce", error, expect.get("error"))
    check(expect, {"error": expect.get("error"), "appended": not error, "hw": leader.high_watermark})
    return ()


def produce_check(item: Fields) -> Sequence[Difference]:
    """The error of a waiting produce request with acks=all."""
    replicas = range(1, item.number("replicas") + 1)
    hw, required = item.number("hw"), item.number("required_offset")
    metadata = _metadata(replicas, replicas[: item.number("maximal_isr")], 1, 0, 0)
    entries = MemoryLog(Entry(at, 0, "r") for at in range(max(hw, required)))
    leader = LeaderState(1, entries, ReplicaConfig(item.number("min_isr")), Brokers(), metadata, hw, START_MS)
    status = leader.acks_status(required)
    expect = item.inner("expect")
    same_error("the produce", status.error, expect.get("error"))
    check(expect, {"error": expect.get("error"), "done": status.done})
    return ()
