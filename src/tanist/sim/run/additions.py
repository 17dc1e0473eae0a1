"""Additions to a run, drawn for a share of the seeds: brokers without private requests, voters that
change, replication throttles, records that go by retention and DeleteRecords, producers of old events, inquirers,
subjects and access control, quotas, exceptions in the nodes' own code; and the conditions of nodes and links, of seeds
of all kinds: clocks that are off, small slices, appends that are written off the loop, logs of new replicas that take
their time, connections with small windows or receive buffers, answers that stay half sent.

Each has a random stream of its own, so a seed without it is what it was before the addition existed. An addition gives
the changes of a configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tanist.faults import in_drawing_order
from tanist.sim.run.config import ChaosConfig
from tanist.sim.workload.operations import (
    ACCESS_OPERATIONS,
    MOVE_OPERATIONS,
    TRIM_OPERATIONS,
    VOTER_OPERATIONS,
    Topic,
)
from tanist.sim.world.clock import stream
from tanist.sim.world.link_conditions import WINDOW_BYTES

VOTERS_SHARE = 0.15

THROTTLES_SHARE = 0.12

TRIMMING_SHARE = 0.10

SECURED_SHARE = 0.10
_OF_ENTRIES = ("allow", "allow", "deny", "revoke", "revoke")

QUOTAS_SHARE = 0.5
"""Of secured runs."""
_OF_QUOTAS = ("set_quota", "set_quota", "set_quota", "drop_quota")

_SLICES_SHARE = 0.25
_SLICES = (None, 1, 2, 5)

_LARGE_WRITES_SHARE = 0.15

_SLOW_LOGS_SHARE = 0.15

_SMALL_WINDOWS_SHARE = 0.25
_BATCHES_A_SECOND = 30
_SMALL_BUFFERS_SHARE = 0.15
_SMALL_BUFFERS = {False: (8, 40), True: (100, 300)}
"""On fast links, and on slow ones, which carry so much in some milliseconds: enough to keep up."""
_SLOW_US = 1_000
_STALLS_SHARE = 0.5
_STALLS_MS = (20, 300, 1_500)
"""Longest: shorter than a session, and than an answer is waited for."""
_ROLLS_MS = ("400", "1500")
"""Logs have to change, for something to stall."""

_RAISED_SHARE = 0.25
_INQUIRERS_SHARE = 0.25

_LAST_EPOCHS_SHARE = 0.15
LAST_EPOCH = 2**15 - 2

_OLD_EVENTS_SHARE = 0.10
OLD_EVENTS_MS = 2 * 24 * 3_600_000
"""More than `producer.id.expiration.ms`, less than `retention.ms`, by their defaults."""

_BATCH_BYTES = 100
"""About the size of a record of the workload, in a batch of its own."""
_COPY_SECONDS = (15, 25, 40)
"""The time that a broker takes to copy one partition. Ten seconds of it are free: the rate is that of ten seconds."""
_PLAIN_SHARE = 0.25
_ALL_PLAIN_SHARE = 0.5
"""Of those runs."""

_SPARE_IDS = (21, 22)
_LOST_DISK = "metadata-disk"


def plain_brokers(seed: int, roles: Mapping[int, str]) -> tuple[int, ...]:
    """Brokers that have Kafka's requests only: none, some or all."""
    rng = stream(seed, "plain")
    if rng.random() >= _PLAIN_SHARE:
        return ()
    brokers = [node_id for node_id, role in roles.items() if "broker" in role]
    if rng.random() >= _ALL_PLAIN_SHARE:
        brokers = sorted(rng.sample(brokers, rng.randint(1, len(brokers) - 1)))
    return tuple(brokers)


def throttles(seed: int, records: int) -> dict[str, Any]:
    """Reassignments with throttles, at a rate by which they end: `records` is about the number in a partition."""
    rng = stream(seed, "throttles")
    if rng.random() >= THROTTLES_SHARE:
        return {}
    return {
        "throttle_operations": ("throttled_move", "throttled_move", "unthrottle"),
        "throttle_pause_ms": (200, rng.choice((1_000, 4_000))),
        "settle_time_ms": 180_000,
        # The rate is below that of the writers, so replicas catch up only when these have ended.
        "left_out": 0,
        "throttle_bytes": records * _BATCH_BYTES // rng.choice(_COPY_SECONDS),
    }


def directory_moves(seed: int, config: ChaosConfig, records: int) -> dict[str, Any]:
    """Replicas move between log directories, some of them slowly: `records` is about the number in a partition."""
    rng = stream(seed, "directory moves")
    value_bytes = (small_windows(seed) or (0, 0))[1]
    partitions = sum(topic.partitions for topic in config.topics)
    return {
        "move_operations": tuple(MOVE_OPERATIONS),
        "move_pause_ms": (50, rng.choice((400, 1_500))),
        "move_bytes": records * (_BATCH_BYTES + value_bytes) * partitions // rng.choice(_COPY_SECONDS),
        "settle_time_ms": 180_000,
        "properties": {**config.properties, "replica.fetch.max.bytes": str(rng.choice((300, 2_000, 1 << 20)))},
    }


def event_age_ms(seed: int) -> int:
    """How old the events are that producers write: of most seeds they are new."""
    return OLD_EVENTS_MS if stream(seed, "old events").random() < _OLD_EVENTS_SHARE else 0


def last_epochs(seed: int, *, always: bool = False) -> dict[str, str]:
    """Properties by which the epochs of transactional producers soon run out."""
    if not always and stream(seed, "last epochs/drawn").random() >= _LAST_EPOCHS_SHARE:
        return {}
    return {"tanist.transactional.first.epoch": str(LAST_EPOCH - stream(seed, "last epochs").randint(0, 12))}


def has_inquirers(seed: int) -> bool:
    """Whether each broker is asked all the time what there is."""
    return stream(seed, "inquirers").random() < _INQUIRERS_SHARE


def clocks_off(roles: Mapping[int, str], most_ms: int) -> dict[int, int]:
    """How far off the clocks may be. `with_conditions` draws how far off each of them is."""
    return dict.fromkeys(roles, most_ms) if most_ms else {}


def with_conditions(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The configuration with the conditions of nodes and links that the seed draws, whatever its workload is."""
    window_bytes, value_bytes = small_windows(seed) or (WINDOW_BYTES, 0)
    throttle_bytes = config.throttle_bytes
    if throttle_bytes and value_bytes:
        # Some batches a second, large as they are: or a throttled replica joins and leaves the ISR for minutes.
        throttle_bytes = max(throttle_bytes, _BATCHES_A_SECOND * (_BATCH_BYTES + value_bytes))
    return replace(
        config,
        skews_ms=_skews_ms(seed, config),
        slices=_slices(seed, config.roles),
        large_write_bytes=_large_write_bytes(seed),
        properties={**config.properties, **_slow_logs(seed)},
        window_bytes=window_bytes,
        value_bytes=value_bytes,
        throttle_bytes=throttle_bytes,
        raise_pause_ms=raise_pause_ms(seed, config),
    )


def _skews_ms(seed: int, config: ChaosConfig) -> dict[int, int]:
    rng, most_ms = stream(seed, "clocks"), max(config.skews_ms.values(), default=0)
    return {node_id: rng.randint(-most_ms, most_ms) for node_id in config.roles} if most_ms else {}


def _slices(seed: int, roles: Mapping[int, str]) -> dict[int, int]:
    """In a run of four, nodes need many turns for what is many partitions' work elsewhere."""
    rng = stream(seed, "slices")
    if rng.random() >= _SLICES_SHARE:
        return {}
    drawn = {node_id: rng.choice(_SLICES) for node_id in roles}
    return {node_id: records for node_id, records in drawn.items() if records is not None}


def _large_write_bytes(seed: int) -> int:
    """Records of the workload are small: with one byte all of their writes are large."""
    rng = stream(seed, "large writes")
    return rng.choice((1, 1, 3 * _BATCH_BYTES)) if rng.random() < _LARGE_WRITES_SHARE else 0


def _slow_logs(seed: int) -> dict[str, str]:
    """The logs of new replicas are made one by one, so that others fetch them before."""
    rng = stream(seed, "new logs")
    if rng.random() >= _SLOW_LOGS_SHARE:
        return {}
    return {"tanist.new.logs.turn.max": "1", "tanist.new.logs.pause.ms": str(rng.choice((1, 100, 1_500)))}


def with_torn_links(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The configuration with receive buffers of a few bytes in front of some nodes.

    Where these or small windows leave answers half sent, they stay so for a while, in half of the runs, when a log
    changes under them.
    """
    rng = stream(seed, "torn links")
    small = rng.random() < _SMALL_BUFFERS_SHARE
    nodes = rng.sample(list(config.roles), rng.randint(1, 2)) if small else []
    sizes = _SMALL_BUFFERS[max(config.latency_us) > _SLOW_US]
    stalls = (small or config.window_bytes < WINDOW_BYTES) and rng.random() < _STALLS_SHARE
    return replace(
        config,
        receive_bytes={node_id: rng.choice(sizes) for node_id in sorted(nodes)},
        stall_ms=rng.choice(_STALLS_MS) if stalls else 0,
        properties={**({"log.roll.ms": rng.choice(_ROLLS_MS)} if stalls else {}), **config.properties},
    )


def small_windows(seed: int) -> tuple[int, int] | None:
    """The window of each connection, if it is small, so that the rest of an answer waits at the sender; and the length
    of each value, 0 for any: where batches are of one length, those of two histories begin at the same positions.
    """
    rng = stream(seed, "windows")
    if rng.random() >= _SMALL_WINDOWS_SHARE:
        return None
    return rng.choice((1, 400, 1_500, 6_000)), rng.choice((0, 64, 700))


def stalled_readers(seed: int, topics: tuple[Topic, ...]) -> dict[str, Any]:
    """In runs with small windows and batches of one length: readers are frozen while answers to them are half sent, and
    leaders change meanwhile without a crash, so that deposed ones cut off what they have begun to send.
    """
    drawn = small_windows(seed)
    if drawn is None or not drawn[1]:
        return {}
    rng = stream(seed, "stalled readers")
    return {
        "topics": tuple(replace(topic, replication_factor=3) for topic in topics),
        "careless_producers": rng.randint(1, 2),
        "pause_ms": 20,
        "kinds": ("pause", "slow"),
        "fault_pause_ms": (30, rng.choice((300, 1_000))),
        "operations": ("preferred", "preferred", "reassign"),
        "operation_pause_ms": (20, rng.choice((100, 400))),
        "latency_us": rng.choice(((50, 300), (500, 5_000))),
    }


def raise_pause_ms(seed: int, config: ChaosConfig, *, always: bool = False) -> tuple[int, int]:
    """Exceptions in the nodes' own code, beside all other faults; in most seeds there are none."""
    rng = stream(seed, "raised exceptions")
    drawn = rng.random() < _RAISED_SHARE
    return (100, rng.choice((1_000, 4_000))) if config.kinds and (drawn or always) else (0, 0)


def has_trimming(seed: int) -> bool:
    """Whether the seed draws it by itself."""
    return stream(seed, "trimming").random() < TRIMMING_SHARE


def trimming(seed: int, config: ChaosConfig) -> dict[str, Any]:
    """Records go, by retention of short segments, and by an operator's DeleteRecords. Not those of compacted topics.

    `segment.bytes` is a megabyte at least, so segments are short by their time.
    """
    if any(name == "cleanup.policy" for topic in config.topics for name, _ in topic.configs):
        return {}
    rng = stream(seed, "what is trimmed")
    trimmed = []
    for topic in config.topics:
        settings = {}
        way = rng.choice(("bytes", "time", "both", "neither"))
        if way != "neither":
            settings["segment.ms"] = str(rng.choice((100, 300, 1_000)))
        if way in ("bytes", "both"):
            settings["retention.bytes"] = str(rng.choice((0, 300, 2_000, 8_000)))
        if way in ("time", "both"):
            settings["retention.ms"] = str(rng.choice((200, 1_000, 5_000)))
        trimmed.append(replace(topic, configs=(*topic.configs, *settings.items())))
    return {
        "topics": tuple(trimmed),
        "trim_operations": rng.choice((("delete_records", "delete_all", "delete_beyond"), tuple(TRIM_OPERATIONS)[:1])),
        "trim_pause_ms": (50, rng.choice((500, 2_000, 6_000))),
        "properties": {
            **config.properties,
            "log.retention.check.interval.ms": str(rng.choice((50, 300, 1_500))),
            "log.segment.delete.delay.ms": str(rng.choice((1, 60_000))),
            "replica.high.watermark.checkpoint.interval.ms": str(rng.choice((300, 5_000))),
        },
    }


def has_subjects(seed: int) -> bool:
    """Whether the seed draws subjects and access control by itself."""
    return stream(seed, "access").random() < SECURED_SHARE


def secured_by(seed: int, config: ChaosConfig) -> dict[str, Any]:
    """Everybody authenticates. An operator changes entries, users and tokens, and often the metadata is read from
    snapshots."""
    rng = stream(seed, "what is secured")
    kinds = rng.choice((_OF_ENTRIES, (*_OF_ENTRIES, *ACCESS_OPERATIONS), tuple(ACCESS_OPERATIONS)))
    short = {"metadata.log.max.record.bytes.between.snapshots": "2000"} if rng.random() < 0.5 else {}
    return {
        "secured": True,
        "access_operations": kinds,
        "access_pause_ms": (10, rng.choice((100, 400, 1_500))),
        "properties": {**short, **config.properties},
    }


def quotas(seed: int) -> dict[str, Any]:
    """Clients have quotas, which an operator changes, in a share of the secured runs."""
    rng = stream(seed, "quotas")
    if rng.random() >= QUOTAS_SHARE:
        return {}
    return {
        "quotas": True,
        "quota_operations": rng.choice((_OF_QUOTAS, (*_OF_QUOTAS, "drop_quota", "drop_quotas"))),
        "quota_pause_ms": (50, rng.choice((300, 1_000, 3_000))),
    }


def has_changing_voters(seed: int) -> bool:
    """Whether the seed draws them by itself."""
    return stream(seed, "voters").random() < VOTERS_SHARE


def changing_voters(seed: int, config: ChaosConfig) -> dict[str, Any]:
    """A dynamic quorum, to which controllers are added, and from which they are removed, while all faults go on."""
    rng = stream(seed, "changing voters")
    controllers = [node_id for node_id, role in config.roles.items() if "controller" in role]
    spare = _SPARE_IDS[: rng.choice((0, 1, 1, 2))]
    everybody = [*controllers, *spare]
    fate = rng.random()
    if fate < 0.5:
        first = controllers
    elif fate < 0.7:
        first = [rng.choice(controllers)]  # `tanist format --standalone`
    else:
        first = rng.sample(everybody, rng.randint(2, len(everybody)))
    joins = rng.random() < 0.2
    properties = dict(config.properties)
    if "metadata.max.retention.bytes" in properties:
        # A single voter's log may be cut in the turn in which it was applied, and then no other log has the records.
        properties["metadata.max.retention.bytes"] = "1000000"
    loses_disks = rng.random() < 0.6
    return {
        "roles": {**config.roles, **dict.fromkeys(spare, "controller")},
        "voters": tuple(sorted(first)),
        "voter_operations": tuple(VOTER_OPERATIONS),
        "voter_pause_ms": (50, rng.choice((400, 1_500, 3_000))),
        "kinds": in_drawing_order({*config.kinds, *((_LOST_DISK,) if loses_disks else ())}),
        "properties": {**properties, **({"controller.quorum.auto.join.enable": "true"} if joins else {})},
    }
