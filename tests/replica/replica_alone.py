"""One real replica and nobody else: its log, its view of the brokers, and the metadata it was given."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from tanist.events.event import Event
from tanist.events.stream import Events
from tanist.lab.scenarios.replica import LAG_MS, Brokers
from tanist.replica.effects import Effect, HighWatermarkAdvanced, ProposeIsr
from tanist.replica.follower import FollowerState
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.leader import FetchDecision, FollowerFetch, LeaderState
from tanist.replica.memory import Entry, MemoryLog
from tanist.replica.metadata import PartitionMetadata, ReplicaConfig
from tanist.replica.partition import Partition

TOPIC_ID = UUID(int=1)


class Alone:
    """Broker 1's replica; it leads unless `leader` says otherwise. Its log has `epochs` (epoch, start) up to `leo`."""

    def __init__(
        self,
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        isr: tuple[int, ...] | None = None,
        leo: int = 0,
        min_isr: int = 1,
        leader: int = 1,
        leader_epoch: int = 5,
        partition_epoch: int = 10,
        epochs: tuple[tuple[int, int], ...] = ((4, 0),),
        high_watermark: int = 0,
    ) -> None:
        self.log = MemoryLog()
        for at, (epoch, start) in enumerate(epochs):
            end = epochs[at + 1][1] if at + 1 < len(epochs) else leo
            self.log.append_as_follower(tuple(Entry(offset, epoch, "old") for offset in range(start, end)), 9)
        self.brokers = Brokers.of(replicas)
        self.now_ms = 1_000
        config = ReplicaConfig(min_insync_replicas=min_isr, replica_lag_time_max_ms=LAG_MS)
        self.heard: list[Event] = []
        """What it emits itself. Its effects may be events, too."""
        events = Events()
        events.subscribe(self.heard.append, fine=True)
        self.partition = Partition(1, self.log, config, self.brokers, events)
        self.partition.restore_high_watermark(high_watermark)
        metadata = PartitionMetadata(
            "foo", TOPIC_ID, 0, leader, leader_epoch, partition_epoch, replicas, replicas if isr is None else isr
        )
        self.effects = self.partition.apply_metadata(metadata, self.now_ms)

    @property
    def leader(self) -> LeaderState:
        assert self.partition.leader is not None
        return self.partition.leader

    @property
    def follower(self) -> FollowerState:
        assert self.partition.follower is not None
        return self.partition.follower

    @property
    def high_watermark(self) -> int:
        return self.partition.high_watermark

    def append(self, count: int = 1) -> list[Effect]:
        self.log.append_as_leader([f"new{n}" for n in range(count)], self.leader.leader_epoch)
        return self.leader.appended(self.now_ms)

    def fetch(
        self,
        broker: int,
        offset: int,
        *,
        broker_epoch: int | None = None,
        last_epoch: int = -1,
        leader_epoch: int | None = None,
        log_start: int = 0,
    ) -> FetchDecision:
        return self.leader.follower_fetch(
            FollowerFetch(
                broker,
                broker + 1000 if broker_epoch is None else broker_epoch,
                offset,
                last_epoch,
                self.leader.leader_epoch if leader_epoch is None else leader_epoch,
                log_start,
            ),
            self.now_ms,
        )

    def learn(self, **changes: object) -> list[Effect]:
        """Metadata with these fields changed, one partition epoch on by default."""
        known = self.partition.metadata
        assert known is not None
        changes.setdefault("partition_epoch", known.partition_epoch + 1)
        return self.partition.apply_metadata(replace(known, **changes), self.now_ms)  # type: ignore[arg-type]

    def propose(self, broker: int) -> ProposeIsr:
        """Let `broker` catch up, and give the proposal to add it."""
        effects = self.fetch(broker, self.log.log_end_offset).effects
        return proposals(effects)[0]

    def answer(
        self,
        proposal: ProposeIsr,
        *,
        error: int = 0,
        partition_epoch: int | None = None,
        leader_epoch: int | None = None,
    ) -> list[Effect]:
        """The controller's answer: yes, in the next partition epoch, by default."""
        if error:
            result = AlterPartitionResult(error=error)
        else:
            result = AlterPartitionResult(
                error=0,
                leader=1,
                leader_epoch=proposal.leader_epoch if leader_epoch is None else leader_epoch,
                isr=tuple(broker for broker, _ in proposal.isr),
                partition_epoch=proposal.partition_epoch + 1 if partition_epoch is None else partition_epoch,
            )
        return self.partition.alter_partition_done(proposal, result, self.now_ms)


def state(replica: Partition | LeaderState | FollowerState, log: MemoryLog | None = None) -> dict[str, object]:
    """All that it remembers, and what is in its log if that is given."""
    if isinstance(replica, Partition) and replica.role is not None:
        return {"role": type(replica.role), **state(replica.role, log)}
    slots = [name for kind in type(replica).__mro__ for name in getattr(kind, "__slots__", ())]
    found = {name: getattr(replica, name) for name in slots if name not in ("log", "brokers", "events")}
    for name, value in found.items():
        if name == "remotes":
            found[name] = {broker_id: remote.snapshot() for broker_id, remote in value.items()}
        elif name in ("members", "others"):
            found[name] = [remote.snapshot() for remote in value]
    return found if log is None else {**found, "log": log_state(log)}


def log_state(log: MemoryLog) -> tuple[object, ...]:
    return log.log_start_offset, log.entries, log.epochs.entries


def proposals(effects: list[Effect]) -> list[ProposeIsr]:
    return [effect for effect in effects if isinstance(effect, ProposeIsr)]


def advances(effects: list[Effect]) -> list[int]:
    return [effect.high_watermark for effect in effects if isinstance(effect, HighWatermarkAdvanced)]
