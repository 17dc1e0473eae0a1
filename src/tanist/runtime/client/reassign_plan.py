"""Which brokers partitions should move to: a plan that moves as few replicas as balance allows.

Pure. A replica stays where it is, unless its broker is not among those that are wanted, a rack has two replicas of
a partition where it need not, or its broker has more than its share. Then the order of the replicas is chosen so that
each broker is the preferred leader of its share; that moves no data. Kafka's own tool deals all replicas anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

Partition = tuple[str, int]
Assignment = Mapping[Partition, tuple[int, ...]]


class PlanError(ValueError):
    """There are not the brokers for it."""


def plan(
    present: Assignment, brokers: Mapping[int, str | None], replication_factor: int | None = None
) -> dict[Partition, tuple[int, ...]]:
    """Replicas on `brokers` (each with its rack), the preferred leader first; as many as now, or so many."""
    factor_max = max((replication_factor or len(replicas) for replicas in present.values()), default=0)
    if factor_max > len(brokers):
        raise PlanError(f"{factor_max} replicas of a partition need as many brokers, and {len(brokers)} are named")
    load: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    planned: dict[Partition, list[int]] = {}
    for partition, replicas in sorted(present.items()):
        kept = [broker for broker in replicas if broker in brokers][: replication_factor or len(replicas)]
        planned[partition] = kept
        load.update(kept)
    for partition, replicas in sorted(present.items()):
        chosen = planned[partition]
        while len(chosen) < (replication_factor or len(replicas)):
            chosen.append(_best(brokers, load, chosen))
            load[chosen[-1]] += 1
    _spread_over_racks(planned, brokers, load)
    _balance(planned, brokers, load)
    return _led(planned)


def _best(brokers: Mapping[int, str | None], load: Counter[int], chosen: Sequence[int]) -> int:
    """For one more replica: a rack that has fewest of the partition, then the broker that has fewest at all."""
    racks = Counter(brokers[each] for each in chosen)
    return min(
        (each for each in brokers if each not in chosen), key=lambda each: (racks[brokers[each]], load[each], each)
    )


def _spread_over_racks(
    planned: Mapping[Partition, list[int]], brokers: Mapping[int, str | None], load: Counter[int]
) -> None:
    """Move the later of two replicas in one rack to a rack that has none."""
    names = set(brokers.values())
    for chosen in planned.values():
        for place in reversed(range(len(chosen))):
            racks = Counter(brokers[each] for each in chosen)
            if racks[brokers[chosen[place]]] < 2 or len(racks) == len(names):
                continue
            before, others = chosen[place], chosen[:place] + chosen[place + 1 :]
            chosen[place] = _best(brokers, load, others)
            load[before] -= 1
            load[chosen[place]] += 1


def _balance(planned: Mapping[Partition, list[int]], brokers: Mapping[int, str | None], load: Counter[int]) -> None:
    """Take replicas from the fullest broker to the emptiest that may have them, until none has two more."""
    hosted: dict[int, set[Partition]] = {broker: set() for broker in brokers}
    for partition, chosen in planned.items():
        for broker in chosen:
            hosted[broker].add(partition)
    while (step := _step(planned, brokers, load, hosted)) is not None:
        partition, source, target = step
        chosen = planned[partition]
        chosen[chosen.index(source)] = target
        hosted[source].remove(partition)
        hosted[target].add(partition)
        load[source] -= 1
        load[target] += 1


def _step(
    planned: Mapping[Partition, list[int]],
    brokers: Mapping[int, str | None],
    load: Counter[int],
    hosted: Mapping[int, set[Partition]],
) -> tuple[Partition, int, int] | None:
    order = sorted(brokers, key=lambda broker: (load[broker], broker))
    for source in reversed(order):
        for target in order:
            if load[source] - load[target] < 2:
                break
            movable = (
                partition
                for partition in hosted[source] - hosted[target]
                if not _crowds(planned[partition], brokers, source, target)
            )
            if (first := min(movable, default=None)) is not None:
                return first, source, target
    return None


def _crowds(chosen: Sequence[int], brokers: Mapping[int, str | None], source: int, target: int) -> bool:
    """Whether the target's rack would have more replicas of the partition than the source's has."""
    racks = [brokers[each] for each in chosen if each != source]
    return racks.count(brokers[target]) > racks.count(brokers[source])


def _led(planned: Mapping[Partition, list[int]]) -> dict[Partition, tuple[int, ...]]:
    """Each partition with its preferred leader first: its present one, unless that has more than its share."""
    leads = Counter(chosen[0] for chosen in planned.values() if chosen)
    moved = True
    while moved:
        moved = False
        for _, chosen in sorted(planned.items()):
            best = min(chosen, key=lambda each: (leads[each], each), default=None)
            if best is not None and leads[chosen[0]] - leads[best] >= 2:
                place = chosen.index(best)
                leads[chosen[0]] -= 1
                leads[best] += 1
                chosen[0], chosen[place] = chosen[place], chosen[0]
                moved = True
    return {partition: tuple(chosen) for partition, chosen in planned.items()}
