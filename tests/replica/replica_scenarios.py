"""Plays the behaviour scenarios of one replica; `KINDS` says which.

`play(item)` raises `AssertionError` where the expectation of an item of the schema does not hold, and `KeyError`
for a field it does not know: an expectation that is not understood must never count as met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from tanist.log.epochs import LeaderEpochCache
from tanist.replica.effects import AskOffsets, Effect, ProposeIsr, Truncated
from tanist.replica.follower import FetchedPartition, FollowerState
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.leader import FollowerFetch, LeaderState
from tanist.replica.memory import Entry, MemoryLog
from tanist.replica.metadata import BrokerStatus, PartitionMetadata, ReplicaConfig
from tanist.replica.partition import Partition
from tanist.wire.errors import ErrorCode

Item = Mapping[str, Any]

START_MS = 1_000_000
"""The scenarios count time from their start, and some mean "long before it" by 0 of the era."""


class Brokers(dict[int, BrokerStatus]):
    """The metadata's registrations."""

    def registration(self, broker_id: int) -> BrokerStatus | None:
        return self.get(broker_id)


def _metadata(
    replicas: list[int], isr: list[int], leader: int, leader_epoch: int, partition_epoch: int
) -> PartitionMetadata:
    return PartitionMetadata("foo", UUID(int=1), 0, leader, leader_epoch, partition_epoch, tuple(replicas), tuple(isr))


def _same(what: str, actual: object, expected: object) -> None:
    assert actual == expected, f"{what}: {actual!r}, expected {expected!r}"


def _error(name: str | None) -> int:
    return 0 if name in (None, "NONE") else int(ErrorCode[name])


# ---- leader_partition


class LeaderPlay:
    """One `leader_partition` item: the local broker is its leader."""

    def __init__(self, state: Item) -> None:
        replicas = list(state["replicas"])
        self.me: int = state["leader"]
        leo = state.get("leo", 0)
        old_epoch = max(0, state["leader_epoch"] - 1)
        self.log = MemoryLog(Entry(at, old_epoch, f"r{at}") for at in range(leo))
        self.brokers = Brokers({b: BrokerStatus(b + 1000, fenced=False, shutting_down=False) for b in replicas})
        config = ReplicaConfig(
            min_insync_replicas=state.get("min_isr", 1), replica_lag_time_max_ms=state.get("lag_ms", 30_000)
        )
        self.partition = Partition(self.me, self.log, config, self.brokers)
        self.now_ms = START_MS
        self.outstanding: list[ProposeIsr] = []
        self.sent: ProposeIsr | None = None
        self._take(
            self.partition.apply_metadata(
                _metadata(replicas, state["isr"], self.me, state["leader_epoch"], state["partition_epoch"]), self.now_ms
            )
        )

    @property
    def leader(self) -> LeaderState:
        if self.partition.leader is None:
            raise ValueError("the local broker does not lead at this point of the scenario")
        return self.partition.leader

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ProposeIsr):
                self.outstanding.append(effect)
                self.sent = effect

    def play(self, event: Item) -> None:
        ((name, argument),) = event.items()
        handler: Callable[[Any], None] | None = getattr(self, f"on_{name}", None)
        if handler is None:
            raise KeyError(f"event: {name}")
        handler(argument)

    def on_fetch(self, event: Item) -> None:
        unknown = set(event) - {"from", "offset", "broker_epoch", "expect_error", "last_epoch", "leader_epoch"}
        if unknown:
            raise KeyError(f"fetch: {unknown}")
        broker = event["from"]
        fetch = FollowerFetch(
            broker,
            event.get("broker_epoch", broker + 1000),
            event["offset"],
            event.get("last_epoch", -1),
            event.get("leader_epoch", self.leader.leader_epoch),
            0,
        )
        decision = self.leader.follower_fetch(fetch, self.now_ms)
        self._take(decision.effects)
        _same("error of the fetch", decision.error, _error(event.get("expect_error")))

    def on_append(self, count: int) -> None:
        self.on_seed(count)
        self._take(self.leader.appended(self.now_ms))

    def on_seed(self, count: int) -> None:
        self.log.append_as_leader([f"a{n}" for n in range(count)], self.leader.leader_epoch)

    def on_sleep_ms(self, duration_ms: int) -> None:
        self.now_ms += duration_ms

    def on_shrink_check(self, _: Item) -> None:
        self._take(self.leader.check_lag(self.now_ms))

    def on_alter_result(self, event: Item) -> None:
        proposal = self.outstanding.pop(0)
        if "ok" in event:
            result = AlterPartitionResult(
                error=0,
                leader=event.get("leader", self.me),
                leader_epoch=event.get("leader_epoch", proposal.leader_epoch),
                isr=tuple(event.get("isr", [broker for broker, _ in proposal.isr])),
                partition_epoch=event["ok"],
            )
        else:
            result = AlterPartitionResult(error=_error(event["error"]))
        self._take(self.partition.alter_partition_done(proposal, result, self.now_ms))

    def on_metadata(self, event: Item) -> None:
        known = self.partition.metadata
        if known is None:
            raise ValueError("the partition has no metadata to change")
        changes: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in event.items()
        }
        self._take(self.partition.apply_metadata(replace(known, **changes), self.now_ms))

    def on_mark(self, event: Item) -> None:
        changes = dict(event)
        broker = changes.pop("broker")
        self.brokers[broker] = replace(self.brokers[broker], **changes)

    def on_expect(self, expected: Item) -> None:
        for name, value in expected.items():
            actual = self._read(name)
            if name == "last_caught_up":
                actual = {broker: actual[broker] for broker in value}
                value = {broker: -1 if at in (None, "never") else at for broker, at in value.items()}
            if isinstance(value, list):
                value = sorted(value)
            _same(name, actual, value)

    def _read(self, name: str) -> Any:
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
            case "last_caught_up":
                remotes = self.leader.remotes
                # "Never" is before the start; the sources write that as 0 of the era, or leave it out.
                return {b: max(-1, remote.last_caught_up_ms - START_MS) for b, remote in remotes.items()}
            case "under_min_isr" | "at_min_isr" | "under_replicated" | "in_sync_count" | "effective_min_isr":
                return getattr(self.leader, name)
            case "leader_epoch" | "partition_epoch":
                return getattr(self.partition, name)
            case "epoch_start" | "leader_epoch_start_offset":
                return self.leader.leader_epoch_start_offset
            case _:
                raise KeyError(f"expect: {name}")


def play_leader_partition(item: Item) -> None:
    stage = LeaderPlay(item["state"])
    for event in item["events"]:
        stage.play(event)


# ---- log


def play_log(item: Item) -> None:
    """Diverging-epoch answers of a leader whose log has the given batches."""
    log = MemoryLog()
    for epoch, count in item["batches"]:
        log.append_as_leader([f"e{epoch}"] * count, epoch)
    _same("leo", log.log_end_offset, item.get("leo", log.log_end_offset))
    log.advance_log_start_offset(item.get("log_start", 0))
    brokers = Brokers({b: BrokerStatus(-1, fenced=False, shutting_down=False) for b in (1, 2)})
    partition = Partition(1, log, ReplicaConfig(), brokers)
    partition.apply_metadata(_metadata([1, 2], [1, 2], 1, item["leader_epoch"], 0), START_MS)
    leader = partition.leader
    if leader is None:
        raise ValueError("broker 1 is to lead")
    for fetch in item["fetches"]:
        unknown = set(fetch) - {"last_epoch", "offset", "diverging", "error"}
        if unknown:
            raise KeyError(f"fetches: {unknown}")
        before = leader.remotes[2].snapshot(None, 0)
        last_epoch = fetch.get("last_epoch", -1)
        decision = leader.follower_fetch(
            FollowerFetch(2, -1, fetch["offset"], last_epoch, item["leader_epoch"], 0), START_MS
        )
        wanted = fetch.get("diverging")
        _same(f"error of {fetch}", decision.error, _error(fetch.get("error")))
        _same(f"answer to {fetch}", decision.diverging, wanted and (wanted["epoch"], wanted["end"]))
        if decision.error or decision.diverging:
            _same(f"follower after {fetch}", leader.remotes[2].snapshot(None, 0), before)


# ---- truncate, out_of_range


def _follower(leo: int, cache: list[list[int]] | None = None) -> tuple[FollowerState, MemoryLog]:
    log = MemoryLog(Entry(at, 0, f"r{at}") for at in range(leo))
    log.epochs = LeaderEpochCache((epoch, start) for epoch, start in (cache if cache is not None else [[0, 0]]))
    metadata = _metadata([1, 2], [1, 2], 1, 100, 100)
    return FollowerState(2, log, ReplicaConfig(), metadata, high_watermark=0), log


def play_truncate(item: Item) -> None:
    follower, log = _follower(item["leo"], item["cache"])
    answer, expected = item["answer"], item["expect"]
    offset, done = follower.truncation_target(answer["epoch"], answer["end"])
    for name, value in expected.items():
        _same(name, {"truncate_to": offset, "done": done}[name], value)
    diverging = FetchedPartition(diverging_epoch=(answer["epoch"], answer["end"]))
    follower.fetched(diverging, follower.fetch_position(), START_MS)
    _same("end of the log", log.log_end_offset, offset)


def play_out_of_range(item: Item) -> None:
    follower, _ = _follower(item["follower_leo"])
    leader, expected = item["leader"], item["expect"]
    asked = follower.fetched(
        FetchedPartition(error=int(ErrorCode.OFFSET_OUT_OF_RANGE)), follower.fetch_position(), START_MS
    )
    _same("first effects", asked, [AskOffsets(1, 100)])
    effects = follower.offsets_answered(leader["start"], leader["end"], 100, START_MS)
    cut = [effect for effect in effects if isinstance(effect, Truncated)]
    truncated = next((effect.offset for effect in cut if not effect.fully), None)
    restarted = next((effect.offset for effect in cut if effect.fully), None)
    for name, value in expected.items():
        if name == "fetch":
            actual: object = follower.fetch_position().offset
        elif name == "truncate_to":
            actual = truncated
        elif "full" in name or "start" in name:
            actual = restarted is not None if isinstance(value, bool) else restarted
        else:
            raise KeyError(f"expect: {name}")
        _same(name, actual, value)


# ---- produce, produce_check


def play_produce(item: Item) -> None:
    """What a produce gets before anything is appended."""
    brokers = Brokers({b: BrokerStatus(b, fenced=False, shutting_down=False) for b in item["replicas"]})
    metadata = _metadata(item["replicas"], item["isr"], 1, 0, 0)
    log = MemoryLog()
    leader = LeaderState(1, log, ReplicaConfig(item["min_isr"]), brokers, metadata, 0, START_MS)
    for joining in sorted(set(item.get("maximal", [])) - set(item["isr"])):
        leader.follower_fetch(FollowerFetch(joining, joining, 0, -1, 0, 0), START_MS)
    if "maximal" in item:
        _same("maximal ISR", sorted(leader.maximal_isr), sorted(item["maximal"]))
    error = leader.check_before_append(item["acks"])
    if not error:
        log.append_as_leader(["r"], 0)
        leader.appended(START_MS)
    for name, value in item["expect"].items():
        if name == "error":
            _same(name, error, _error(value))
        else:
            _same(name, {"appended": not error, "hw": leader.high_watermark}[name], value)


def play_produce_check(item: Item) -> None:
    """What a produce with acks=all gets when it is looked at again."""
    replicas = list(range(1, item["replicas"] + 1))
    metadata = _metadata(replicas, replicas[: item["maximal_isr"]], 1, 0, 0)
    log = MemoryLog(Entry(at, 0, "r") for at in range(max(item["hw"], item["required_offset"])))
    leader = LeaderState(1, log, ReplicaConfig(item["min_isr"]), Brokers(), metadata, item["hw"], START_MS)
    status = leader.acks_status(item["required_offset"])
    expected = item["expect"]
    _same("done", status.done, expected["done"])
    _same("error", status.error, _error(expected.get("error")))


KINDS: Mapping[str, Callable[[Item], None]] = {
    "leader_partition": play_leader_partition,
    "log": play_log,
    "truncate": play_truncate,
    "out_of_range": play_out_of_range,
    "produce": play_produce,
    "produce_check": play_produce_check,
}


def play(item: Item) -> None:
    """Play one item of a kind in `KINDS`."""
    KINDS[item["kind"]](item)
