"""What the Streams groups of a run are: their processes and topologies, and what those need, worked out by hand.

Owns the shapes of topologies. Each says for given topics how many partitions its internal topics must have and which
tasks it has, without the product's own computation, which the checks compare with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from tanist.client.streams_member import Task
from tanist.client.topic_partition import TopicPartition
from tanist.wire.messages.streams_group_heartbeat_request import CopartitionGroup, Subtopology, TopicInfo, Topology


@dataclass(frozen=True, slots=True)
class StreamsPlan:
    """One Streams group of a run."""

    group: str
    processes: int
    threads: int
    """Members of each process."""
    topics: tuple[str, ...]
    shapes: tuple[str, ...]
    """Of each version of its topology, by name (`SHAPES`)."""
    is_static: bool = False
    """Its members have instance ids, and leave for a while."""


@dataclass(frozen=True)
class StreamsSettings:
    """The settings of a run with Streams groups. Times in virtual milliseconds."""

    plans: tuple[StreamsPlan, ...] = (StreamsPlan("a0", 2, 2, ("events",), ("count",)),)
    session_timeout_ms: int = 3_000
    rebalance_timeout_ms: int = 4_000
    standby_replicas: int = 1
    closing_ms: int = 50
    """How long a member needs to give tasks up, at most, unless it is slow."""
    slow_share: float = 0.05
    """Of revocations that take longer than the rebalance timeout."""
    commit_pause_ms: int = 120
    describe_pause_ms: int = 200
    churn: tuple[str, ...] = ("leave", "die", "pause")
    churn_pause_ms: tuple[int, int] = (400, 4_000)
    away_ms: tuple[int, int] = (50, 4_000)
    change_pause_ms: tuple[int, int] = (2_000, 6_000)
    """Between two changes of a topology, in a group that has several."""
    all_return: bool = True
    """In the end all processes return; else only those that are there stay, at least one of each group."""


class Needs(NamedTuple):
    """A topology, and what must come of it."""

    topology: Topology
    internal: Mapping[str, int]
    """Partitions of each internal topic."""
    tasks: Mapping[str, int]
    """Tasks of each subtopology."""
    stateful: frozenset[str]
    reads: Mapping[str, Mapping[str, int]]
    """Subtopology -> the topics that it reads, with their numbers of partitions."""

    def all_tasks(self) -> frozenset[Task]:
        return frozenset((name, index) for name, count in self.tasks.items() for index in range(count))

    def partitions_of(self, task: Task) -> list[TopicPartition]:
        """What a task reads."""
        name, index = task
        return [(topic, index) for topic, count in sorted(self.reads.get(name, {}).items()) if index < count]

    def tasks_of(self, partition: TopicPartition) -> list[Task]:
        """Those that read it."""
        topic, index = partition
        return [(name, index) for name, counts in self.reads.items() if topic in counts]


class _Sources(NamedTuple):
    """The topics that a topology reads, and the prefix of its internal ones."""

    prefix: str
    counts: Mapping[str, int]

    @property
    def first(self) -> str:
        return min(self.counts)

    @property
    def last(self) -> str:
        return max(self.counts)


def _info(name: str, partitions: int = 0) -> TopicInfo:
    return TopicInfo(name=name, partitions=partitions, replication_factor=3)


def _stateless(of: _Sources) -> Needs:
    """One part reads all topics, and keeps nothing."""
    part = Subtopology(subtopology_id="0", source_topics=tuple(sorted(of.counts)))
    return Needs(Topology(subtopologies=(part,)), {}, {"0": max(of.counts.values())}, frozenset(), {"0": of.counts})


def _table(of: _Sources) -> Needs:
    """One part reads all topics into a store."""
    log, most = f"{of.prefix}-store-changelog", max(of.counts.values())
    part = Subtopology(subtopology_id="0", source_topics=tuple(sorted(of.counts)), state_changelog_topics=(_info(log),))
    return Needs(Topology(subtopologies=(part,)), {log: most}, {"0": most}, frozenset("0"), {"0": of.counts})


def _count(of: _Sources, partitions: int = 0) -> Needs:
    """One part passes records on by another key, the next one counts them."""
    between, log = f"{of.prefix}-count-repartition", f"{of.prefix}-count-changelog"
    most = max(of.counts.values())
    fewer = partitions or most
    parts = (
        Subtopology(subtopology_id="0", source_topics=tuple(sorted(of.counts)), repartition_sink_topics=(between,)),
        Subtopology(
            subtopology_id="1",
            repartition_source_topics=(_info(between, partitions),),
            state_changelog_topics=(_info(log),),
        ),
    )
    return Needs(
        Topology(subtopologies=parts),
        {between: fewer, log: fewer},
        {"0": most, "1": fewer},
        frozenset("1"),
        {"0": of.counts, "1": {between: fewer}},
    )


def _fixed(of: _Sources) -> Needs:
    """The same with four partitions between, whatever the sources have."""
    return _count(of._replace(prefix=f"{of.prefix}-fixed"), 4)


def _join(of: _Sources) -> Needs:
    """The first topic by another key is joined with the last one."""
    between, log = f"{of.prefix}-join-repartition", f"{of.prefix}-join-changelog"
    first, joined = of.counts[of.first], of.counts[of.last]
    parts = (
        Subtopology(subtopology_id="0", source_topics=(of.first,), repartition_sink_topics=(between,)),
        Subtopology(
            subtopology_id="1",
            source_topics=(of.last,),
            repartition_source_topics=(_info(between),),
            state_changelog_topics=(_info(log),),
            copartition_groups=(CopartitionGroup(source_topics=(0,), repartition_source_topics=(0,)),),
        ),
    )
    return Needs(
        Topology(subtopologies=parts),
        {between: joined, log: joined},
        {"0": first, "1": joined},
        frozenset("1"),
        {"0": {of.first: first}, "1": {of.last: joined, between: joined}},
    )


def _chain(of: _Sources) -> Needs:
    """Three parts, each of which reads what the one before writes; the last two have stores."""
    names = [f"{of.prefix}-chain-{n}-repartition" for n in (1, 2)]
    logs = [f"{of.prefix}-chain-{n}-changelog" for n in (1, 2)]
    most = of.counts[of.first]
    parts = (
        Subtopology(subtopology_id="0", source_topics=(of.first,), repartition_sink_topics=(names[0],)),
        Subtopology(
            subtopology_id="1",
            repartition_source_topics=(_info(names[0], 2),),
            repartition_sink_topics=(names[1],),
            state_changelog_topics=(_info(logs[0]),),
        ),
        Subtopology(
            subtopology_id="2",
            repartition_source_topics=(_info(names[1]),),
            state_changelog_topics=(_info(logs[1]),),
        ),
    )
    return Needs(
        Topology(subtopologies=parts),
        {names[0]: 2, names[1]: 2, logs[0]: 2, logs[1]: 2},
        {"0": most, "1": 2, "2": 2},
        frozenset({"1", "2"}),
        {"0": {of.first: most}, "1": {names[0]: 2}, "2": {names[1]: 2}},
    )


_SHAPES: Final[Mapping[str, Callable[[_Sources], Needs]]] = {
    "stateless": _stateless,
    "table": _table,
    "count": _count,
    "fixed": _fixed,
    "join": _join,
    "chain": _chain,
}
SHAPES: Final = tuple(_SHAPES)
"""Names of the shapes that a topology may have."""


def needs_of(plan: StreamsPlan, version: int, counts: Mapping[str, int]) -> Needs:
    """What that version of the group's topology is and needs. `counts`: the partitions of each topic of the run."""
    found = _SHAPES[plan.shapes[version]](_Sources(plan.group, {name: counts[name] for name in plan.topics}))
    return found._replace(topology=Topology(epoch=version, subtopologies=found.topology.subtopologies))
