"""Additions to a run, drawn for a share of the seeds: brokers without private requests, voters that
change, replication throttles, records that go by retention and DeleteRecords, producers of old events, appends that
are written off the loop, logs of new replicas that take their time, connections with small windows, inquirers,
exceptions in the nodes' own code.

Each has a random stream of its own, so a seed without it is what it was before the addition existed. An addition gives
the changes of a configuration (`profiles.ChaosConfig`), which it knows by the names of the fields only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tanist.sim.faults.schedule import Fault, draw_faults
from tanist.sim.workload.operations import TRIM_OPERATIONS, VOTER_OPERATIONS, Topic
from tanist.sim.world.clock import stream

VOTERS_SHARE = 0.15

THROTTLES_SHARE = 0.12

TRIMMING_SHARE = 0.10

_LARGE_WRITES_SHARE = 0.15

_SLOW_LOGS_SHARE = 0.15

_SMALL_WINDOWS_SHARE = 0.25

RAISED_SHARE = 0.25
_INQUIRERS_SHARE = 0.25

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
_LOST_DISK = "metadata_disk"


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


def event_age_ms(seed: int) -> int:
    """How old the events are that producers write: of most seeds they are new."""
    return OLD_EVENTS_MS if stream(seed, "old events").random() < _OLD_EVENTS_SHARE else 0


def has_inquirers(seed: int) -> bool:
    """Whether each broker is asked all the time what there is."""
    return stream(seed, "inquirers").random() < _INQUIRERS_SHARE


def large_write_bytes(seed: int) -> int | None:
    """From how many bytes on a produce request is large, whose records are written off the loop; mostly None is.

    Those of the workload are small: with one byte all of them are large.
    """
    rng = stream(seed, "large writes")
    return rng.choice((1, 1, 3 * _BATCH_BYTES)) if rng.random() < _LARGE_WRITES_SHARE else None


def new_log_ms(seed: int) -> int | None:
    """How long a broker takes for the log of a new replica, so that others fetch it before; mostly None is drawn."""
    rng = stream(seed, "new logs")
    return rng.choice((1, 100, 1_500)) if rng.random() < _SLOW_LOGS_SHARE else None


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
        "kinds": ("freeze", "slow"),
        "fault_pause_ms": (30, rng.choice((300, 1_000))),
        "operations": ("preferred", "preferred", "reassign"),
        "operation_pause_ms": (20, rng.choice((100, 400))),
        "latency_us": rng.choice(((50, 300), (500, 5_000))),
    }


def raised_exceptions(seed: int, hosts: list[int], time_us: int) -> list[Fault]:
    """Exceptions in the nodes' own code, beside all other faults; of most seeds there are none."""
    rng = stream(seed, "raised exceptions")
    if rng.random() >= RAISED_SHARE:
        return []
    return draw_faults(rng, ("raise",), hosts, time_us, (100_000, rng.choice((1_000_000, 4_000_000))))


def has_trimming(seed: int) -> bool:
    """Whether the seed draws it by itself."""
    return stream(seed, "trimming").random() < TRIMMING_SHARE


def trimming(seed: int, topics: tuple[Topic, ...], properties: Mapping[str, str]) -> dict[str, Any]:
    """Records go, by retention of short segments, and by an operator's DeleteRecords. Not those of compacted topics.

    `segment.bytes` is a megabyte at least, so segments are short by their time.
    """
    if any(name == "cleanup.policy" for topic in topics for name, _ in topic.configs):
        return {}
    rng = stream(seed, "what is trimmed")
    trimmed = []
    for topic in topics:
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
            **properties,
            "log.retention.check.interval.ms": str(rng.choice((50, 300, 1_500))),
            "log.segment.delete.delay.ms": str(rng.choice((1, 60_000))),
            "replica.high.watermark.checkpoint.interval.ms": str(rng.choice((300, 5_000))),
        },
    }


def has_changing_voters(seed: int) -> bool:
    """Whether the seed draws them by itself."""
    return stream(seed, "voters").random() < VOTERS_SHARE


def changing_voters(
    seed: int, roles: Mapping[int, str], kinds: tuple[str, ...], properties: Mapping[str, str]
) -> dict[str, Any]:
    """A dynamic quorum, to which controllers are added, and from which they are removed, while all faults go on."""
    rng = stream(seed, "changing voters")
    controllers = [node_id for node_id, role in roles.items() if "controller" in role]
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
    properties = dict(properties)
    if "metadata.max.retention.bytes" in properties:
        # A single voter's log may be cut in the turn in which it was applied, and then no other log has the records.
        properties["metadata.max.retention.bytes"] = "1000000"
    loses_disks = rng.random() < 0.6
    return {
        "roles": {**roles, **dict.fromkeys(spare, "controller")},
        "voters": tuple(sorted(first)),
        "voter_operations": tuple(VOTER_OPERATIONS),
        "voter_pause_ms": (50, rng.choice((400, 1_500, 3_000))),
        "kinds": tuple(sorted({*kinds, *((_LOST_DISK,) if loses_disks else ())})),
        "properties": {**properties, **({"controller.quorum.auto.join.enable": "true"} if joins else {})},
    }
