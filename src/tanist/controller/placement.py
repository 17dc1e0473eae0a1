"""The brokers of a new partition's replicas: striped over racks and brokers.

Owns `Placer`. The aim is Kafka's: leaders and followers spread evenly over racks, then over the brokers of a rack, with
a random start so that small topics do not all land on the first brokers. A leader is never placed on a fenced broker;
followers are only when no other broker is left. Must never know of topics or partitions that exist already.

For each partition one rack after the other is asked for its next broker. The first replica is an unfenced broker of the
rack whose turn it is; the others come from the following racks, unfenced brokers of a rack before its fenced ones. Once
every unfenced broker has led once, all orders are shuffled, so that the same sets of brokers do not come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from tanist.ports import Random

T = TypeVar("T")


class PlacementError(Exception):
    """Too few brokers (INVALID_REPLICATION_FACTOR)."""


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A registered broker that is not shutting down."""

    broker_id: int
    rack: str | None = None
    fenced: bool = False


class Placer:
    """Gives the replicas of one new partition after another."""

    __slots__ = ("_placed", "_racks", "_random", "_total", "_turn", "_unfenced")

    def __init__(self, brokers: Iterable[UsableBroker], random: Random) -> None:
        by_rack: dict[str | None, tuple[list[int], list[int]]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, ([], []))[broker.fenced].append(broker.broker_id)
        # Sorted first: the order depends on the rng alone, never on the order in which brokers registered.
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [_Rack(_Ring(by_rack[name][0], random), _Ring(by_rack[name][1], random)) for name in names]
        self._random = random
        self._unfenced = sum(len(unfenced) for unfenced, _ in by_rack.values())
        self._total = self._unfenced + sum(len(fenced) for _, fenced in by_rack.values())
        self._turn = random.below(len(self._racks)) if self._racks else 0
        self._placed = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        if replication_factor <= 0:
            raise PlacementError("Replication factor must be larger than 0.")
        if self._unfenced == 0:
            raise PlacementError("All brokers are currently fenced.")
        if replication_factor > self._total:
            raise PlacementError(
                f"The target replication factor of {replication_factor} cannot be reached because only {self._total} "
                "broker(s) are registered."
            )
        if self._placed == self._unfenced:
            self._shuffle()
        for rack in self._racks:
            rack.begin()
        first = self._turn
        leader = self._racks[first].leader()
        while leader is None:
            first = (first + 1) % len(self._racks)
            leader = self._racks[first].leader()
        replicas = [leader]
        position = self._turn
        skip_first = True  # in the first round: that rack has given the leader
        while len(replicas) < replication_factor:
            if position == first and skip_first:
                skip_first = False
            else:
                follower = self._racks[position].follower()
                if follower is not None:
                    replicas.append(follower)
            position = (position + 1) % len(self._racks)
        self._turn = (self._turn + 1) % len(self._racks)
        self._placed += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        shuffle(self._racks, self._random)
        for rack in self._racks:
            rack.shuffle(self._random)
        self._placed = 0


class _Ring:
    """Brokers of a rack, each given at most once per partition."""

    __slots__ = ("_brokers", "_given", "_start")

    def __init__(self, brokers: list[int], random: Random) -> None:
        self._brokers = sorted(brokers)
        self._start = random.below(len(brokers)) if brokers else 0
        self._given = 0

    def begin(self, *, further: bool) -> None:
        """A new partition: all can be given again, starting one further on or where the last one started."""
        if further and self._brokers:
            self._start = (self._start + 1) % len(self._brokers)
        self._given = 0

    @property
    def used(self) -> bool:
        return self._given > 0

    def next(self) -> int | None:
        if self._given == len(self._brokers):
            return None
        broker = self._brokers[(self._start + self._given) % len(self._brokers)]
        self._given += 1
        return broker

    def shuffle(self, random: Random) -> None:
        shuffle(self._brokers, random)


class _Rack:
    """A rack's two rings. The unfenced one moves on when it has given a leader, so that all lead equally often."""

    __slots__ = ("_fenced", "_led", "_unfenced")

    def __init__(self, unfenced: _Ring, fenced: _Ring) -> None:
        self._unfenced = unfenced
        self._fenced = fenced
        self._led = False

    def begin(self) -> None:
        self._unfenced.begin(further=self._led)
        self._fenced.begin(further=self._fenced.used)
        self._led = False

    def leader(self) -> int | None:
        broker = self._unfenced.next()
        self._led = broker is not None
        return broker

    def follower(self) -> int | None:
        broker = self._unfenced.next()
        return broker if broker is not None else self._fenced.next()

    def shuffle(self, random: Random) -> None:
        self._unfenced.shuffle(random)
        self._fenced.shuffle(random)


def shuffle(items: list[T], random: Random) -> None:
    """Every order equally likely (Fisher-Yates)."""
    for last in range(len(items) - 1, 0, -1):
        other = random.below(last + 1)
        items[last], items[other] = items[other], items[last]
