"""Profiles of a run: cluster, topics, clients, faults, operators, drawn from the seed (swarm testing).

Each run has its own faults, operations and sizes; a mixture of all kinds would hide the bugs that single kinds find. A
profile is only a configuration: it makes a situation likelier, and never forces it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from tanist.faults import Where, in_drawing_order, names_of
from tanist.sim.checkers.compaction import POLICY
from tanist.sim.run.additions import (
    clocks_off,
    directory_moves,
    event_age_ms,
    has_inquirers,
    plain_brokers,
    stalled_readers,
    throttles,
    trimming,
)
from tanist.sim.run.config import DEFAULT_KINDS, TOPIC, ChaosConfig
from tanist.sim.workload.operations import OPERATIONS, RISKY, Topic
from tanist.sim.world.clock import stream
from tanist.sim.world.world import COMBINED

_RECOVERY = "unclean.recovery.manager.enabled"
_CUT = ("partition", "partition-one-way")
_LOSSLESS = ("stop", "crash", "crash-leader", "crash-mid-turn", "pause", *_CUT)
_LEAVING = ("stop", *_CUT, "pause", "crash-leader", "crash", "power-loss", "blackout", "crash-mid-turn")
_OF_CONTROLLERS = ("crash-controller", *_CUT, "slow", "reset", "pause", "disk-slow", "power-loss")


def drawn(seed: int, *, trims: bool) -> ChaosConfig:
    """What a seed draws for producers and consumers; `trims`: of topics whose records go."""
    config = _plainly_drawn(seed)
    if trims:
        return replace(config, **trimming(seed, config))
    return replace(config, event_age_ms=event_age_ms(seed), **stalled_readers(seed, config.topics))


def _plainly_drawn(seed: int) -> ChaosConfig:
    rng = stream(seed, "config")
    roles = _roles(rng)
    brokers = sum("broker" in role for role in roles.values())
    directories = 2 if rng.random() < 0.15 else 1
    possible = names_of(Where.SEEDS) if directories > 1 else DEFAULT_KINDS
    min_insync_replicas, topics = _topics(rng, brokers)
    may_lose = rng.random() < 0.2
    down_max = rng.choice((1, 1, 2, 3) if brokers < 5 else (2, 2, 3, 4))
    mixture = ChaosConfig(
        roles=roles,
        directories=directories,
        topics=topics,
        min_insync_replicas=min_insync_replicas,
        producers=rng.randint(1, 2) if len(topics) == 1 else 1,
        careless_producers=rng.choice((0, 0, 1)),
        pause_ms=rng.choice((20, 60, 60, 150) if brokers < 5 else (60, 100, 150)),
        kinds=in_drawing_order(rng.sample(possible, rng.randint(2, len(possible)))),
        operations=_operations(rng, may_lose),
        down_max=down_max,
        left_out=rng.choice((0, 0, 0, 1)) if down_max < 2 else rng.choice((0, 0, 1, 2)),
        may_lose=may_lose,
        latency_us=rng.choice(((50, 300), (50, 300), (500, 5_000))),
        properties=_properties(rng),
    )
    leaning = rng.choices(list(LEANINGS), weights=list(LEANINGS.values()))[0]
    config = _with_extras(seed, leaning(mixture, rng))
    config = replace(config, plain=plain_brokers(seed, config.roles), inquirers=has_inquirers(seed))
    written = config.fault_time_ms // config.pause_ms * (config.producers + config.careless_producers)
    config = replace(config, **throttles(seed, written))
    return replace(config, **directory_moves(seed, config, written)) if directories > 1 else config


def _as_it_is(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    return config


def last_standing(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """Brokers leave one after the other, cleanly or not, until none is left (KIP-966's "last replica")."""
    kinds = rng.sample(_LEAVING, rng.randint(3, len(_LEAVING)))
    brokers = sum("broker" in role for role in config.roles.values())
    return replace(
        config,
        kinds=in_drawing_order({*kinds, "stop"}),
        fault_pause_ms=(50, rng.choice((500, 1_000, 2_000))),
        down_max=brokers,
        properties={
            **config.properties,
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
            "replica.lag.time.max.ms": "1000",
        },
    )


def busy_operators(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """Reassignments, configurations and elections, one after the other."""
    kinds = [kind for kind in OPERATIONS if config.may_lose or kind not in RISKY or rng.random() < 0.4]
    roles = config.roles
    if rng.random() < 0.5:
        roles = {**dict.fromkeys((1, 2, 3), COMBINED), 4: "broker"}
    return replace(
        config,
        roles=roles,
        topics=tuple(replace(topic, replication_factor=3) for topic in config.topics),
        operations=tuple(kinds),
        operation_pause_ms=(50, rng.choice((300, 1_000))),
    )


def fallen_controllers(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """The quorum's leaders die, and are hard to reach."""
    kinds = rng.sample(_OF_CONTROLLERS, rng.randint(3, len(_OF_CONTROLLERS)))
    return replace(config, kinds=in_drawing_order({*kinds, "crash-controller"}), fault_pause_ms=(50, 1_000))


def shifting_minimum(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """min.insync.replicas changes all the time, while members of the ISR fall behind and their leaders drop them."""
    return replace(
        config,
        topics=tuple(replace(topic, replication_factor=3) for topic in config.topics),
        kinds=("pause", "partition-one-way", "partition"),
        fault_pause_ms=(300, 1_500),
        down_max=2,
        operations=("cluster_min_isr", "min_isr", "min_isr"),
        operation_pause_ms=(5, rng.choice((40, 200))),
        latency_us=(500, 5_000),
        properties={
            **config.properties,
            "broker.session.timeout.ms": "18000",
            "broker.heartbeat.interval.ms": "1500",
            "replica.lag.time.max.ms": "1000",
        },
    )


def wandering_leaders(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """Leaders change without a crash, over slow links; logs diverge."""
    return replace(
        config,
        topics=tuple(replace(topic, replication_factor=3) for topic in config.topics),
        careless_producers=max(1, config.careless_producers),
        kinds=in_drawing_order({"slow", *rng.sample(("reset", "partition-one-way", "crash-leader", "pause"), 2)}),
        fault_pause_ms=(50, 400),
        operations=("preferred", "preferred", "reassign"),
        operation_pause_ms=(20, rng.choice((100, 400))),
    )


Leaning = Callable[[ChaosConfig, random.Random], ChaosConfig]

LEANINGS: dict[Leaning, int] = {
    _as_it_is: 45,
    last_standing: 25,
    busy_operators: 12,
    fallen_controllers: 8,
    shifting_minimum: 5,
    wandering_leaders: 5,
}
"""Profiles, and their share of a hundred runs."""


# -- extras


def _with_extras(seed: int, config: ChaosConfig) -> ChaosConfig:
    """Drawn from a random stream of their own, so a run without extras does not depend on them."""
    rng = stream(seed, "extras")
    extra = rng.choices(list(EXTRAS), weights=list(EXTRAS.values()))[0]
    return extra(config, rng)


def crooked_links(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """Links that work one way only, flap or lose packets; bytes of old connections that come after those of new
    ones."""
    kinds = ("mute", "deaf", "partition-clients", "flap", "lossy", "strand", "strand-clients", "reborn")
    return replace(
        config,
        properties={**config.properties, "unclean.recovery.timeout.ms": "3000"},
        kinds=_more(config.kinds, rng.sample(kinds, rng.randint(2, len(kinds))), rng),
        fault_pause_ms=rng.choice((config.fault_pause_ms, (50, 800))),
        skews_ms=clocks_off(config.roles, rng.choice((0, 5_000, 3_600_000))),
    )


def crooked_disks(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """Disks that are full, rot, fail, are slow and lose logs, under logs of many segments."""
    kinds = (
        "disk-full",
        "rot",
        "lost-log",
        "disk-failed",
        "disk-slow",
        *(("log-dir-failed",) if config.directories > 1 else ()),
    )
    properties = dict(config.properties)
    properties["log.roll.ms"] = str(rng.choice((400, 1_500)))
    if rng.random() < 0.7:
        properties["log.flush.interval.messages"] = "1"
    return replace(
        config,
        kinds=_more(config.kinds, ["rot", *rng.sample(kinds, 2)], rng),
        properties=properties,
        operations=tuple(sorted({*config.operations, "configs", "reassign"})),
        late_consumers=1,
    )


def rolling_restarts(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """All nodes are restarted while other things happen; now and then the quorum has no majority."""
    kinds = ("rolling", *rng.sample(("quorum", "flap", "lossy", "partition-clients", "strand"), 2))
    return replace(config, kinds=_more(config.kinds, kinds, rng))


def lost_quorums(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """Most controllers are gone for a while, again and again, and brokers leave meanwhile; logs are short."""
    kinds = ("quorum", "quorum", "crash-controller", *rng.sample(("crash", "stop", "flap", "strand", "rolling"), 2))
    properties = {
        **config.properties,
        "metadata.log.max.record.bytes.between.snapshots": "1000",
        # Enough to keep the records of one turn until it has ended: the checkers read them.
        "metadata.max.retention.bytes": "20000",
    }
    return replace(config, kinds=_more((), kinds, rng), fault_pause_ms=(300, 1_500), properties=properties)


def changing_features(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """ELR is switched off and on, while brokers leave. No node loses a page cache."""
    lossless = (*_LOSSLESS, "crash-controller", "rolling", "quorum")
    return replace(
        config,
        may_lose=False,
        kinds=in_drawing_order(rng.sample(lossless, rng.randint(3, 6))),
        fault_pause_ms=(100, rng.choice((700, 2_000))),
        down_max=max(2, config.down_max),
        operations=(
            "configs",
            "features",
            "features",
            *rng.sample(("min_isr", "reassign", "preferred", "strategy"), 2),
        ),
        operation_pause_ms=(100, rng.choice((800, 2_500))),
        # Only these tasks elect leaders after ELR goes off, or on again.
        properties={
            **config.properties,
            "unclean.leader.election.interval.ms": "2000",
            "leader.imbalance.check.interval.seconds": "5",
        },
    )


def compacted_topics(config: ChaosConfig, rng: random.Random) -> ChaosConfig:
    """Compacted topics of many short segments, which are cleaned all the time, while brokers die and replicas move."""
    kinds = (*_LOSSLESS, "power-loss", "blackout", "slow")
    settings = {
        POLICY: "compact",
        "segment.ms": str(rng.choice((200, 600))),
        "min.cleanable.dirty.ratio": rng.choice(("0.01", "0.3")),
        "unclean.recovery.strategy": "Balanced",
    }
    properties = {
        **config.properties,
        "log.cleaner.backoff.ms": str(rng.choice((50, 400))),
        "log.flush.interval.messages": rng.choice(("1", "9223372036854775807")),
        "log.segment.delete.delay.ms": str(rng.choice((1, 60_000))),
        "unclean.leader.election.enable": "false",
    }
    if rng.random() < 0.3:
        properties["log.cleaner.dedupe.buffer.size"] = "2000"
    if rng.random() < 0.3:
        properties["log.cleaner.io.max.bytes.per.second"] = "20000"
    return replace(
        config,
        may_lose=False,
        topics=tuple(
            replace(
                topic,
                replication_factor=3,
                configs=(*(each for each in topic.configs if each[0] not in settings), *settings.items()),
            )
            for topic in config.topics
        ),
        producers=max(1, config.producers),
        pause_ms=20,
        kinds=in_drawing_order(rng.sample(kinds, rng.randint(3, 6))),
        operations=rng.choice(((), ("preferred", "reassign"))),
        late_consumers=1,
        properties=properties,
    )


def _more(kinds: tuple[str, ...], added: Iterable[str], rng: random.Random) -> tuple[str, ...]:
    """The added kinds, and a few of the present ones: fewer kinds hide fewer bugs."""
    kept = rng.sample(kinds, min(len(kinds), rng.randint(1, 4)))
    return in_drawing_order({*kept, *added})


EXTRAS: dict[Leaning, int] = {
    _as_it_is: 46,
    compacted_topics: 4,
    crooked_links: 16,
    crooked_disks: 12,
    rolling_restarts: 6,
    lost_quorums: 6,
    changing_features: 10,
}
"""Extras, and their share of a hundred runs."""


def _roles(rng: random.Random) -> dict[int, str]:
    draw = rng.random()
    if draw < 0.65:
        return dict.fromkeys((1, 2, 3), COMBINED)
    if draw < 0.80:  # some nodes are brokers only
        return {**dict.fromkeys((1, 2, 3), COMBINED), **dict.fromkeys((4, 5), "broker")}
    if draw < 0.90:
        return {**dict.fromkeys((1, 2, 3), COMBINED), 4: "broker"}
    return {**dict.fromkeys((1, 2, 3), "broker"), **dict.fromkeys((11, 12, 13), "controller")}


def _topics(rng: random.Random, brokers: int) -> tuple[int, tuple[Topic, ...]]:
    """min.insync.replicas of the cluster, and the topics."""
    factor = brokers if rng.random() < 0.7 else 3
    cluster = rng.choice((2, 2, 3)) if factor >= 5 else 2
    first = Topic(TOPIC, rng.randint(1, 3) if brokers < 5 else rng.randint(1, 2), factor, _strategy(rng))
    if rng.random() < 0.75:
        return cluster, (first,)
    second = Topic("orders", 1, 3, (("min.insync.replicas", rng.choice(("1", "2", "2", "3"))), *_strategy(rng)))
    return cluster, (first, second)


def _strategy(rng: random.Random) -> tuple[tuple[str, str], ...]:
    strategy = rng.choice((None, "None", "Balanced", "Balanced", "Aggressive"))
    return () if strategy is None else (("unclean.recovery.strategy", strategy),)


def _operations(rng: random.Random, may_lose: bool) -> tuple[str, ...]:
    if rng.random() < 0.3:
        return ()
    possible = [kind for kind in OPERATIONS if may_lose or kind not in RISKY or rng.random() < 0.3]
    return tuple(sorted(rng.sample(possible, rng.randint(1, len(possible)))))


def _properties(rng: random.Random) -> dict[str, str]:
    session_ms = rng.choice((3_000, 9_000))
    properties = {
        "broker.session.timeout.ms": str(session_ms),
        "broker.heartbeat.interval.ms": str(session_ms // 6),
        "replica.lag.time.max.ms": str(rng.choice((1_000, 3_000, 10_000))),
        _RECOVERY: "true" if rng.random() < 0.7 else "false",
        "tanist.unclean.recovery.grace.ms": str(rng.choice((100, 1_000, 5_000))),
    }
    if rng.random() < 0.3:
        properties["metadata.log.max.record.bytes.between.snapshots"] = "1500"
    if rng.random() < 0.3:
        properties["log.flush.interval.messages"] = "1"
    if properties[_RECOVERY] == "false" and rng.random() < 0.2:
        properties["unclean.leader.election.enable"] = "true"
        properties["unclean.leader.election.interval.ms"] = "2000"
    return properties
