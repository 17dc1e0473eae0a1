"""Additions to a run, drawn for a share of the seeds: brokers without private requests, voters that
change, replication throttles.

Each has a random stream of its own, so a seed without it is what it was before the addition existed. An addition gives
the changes of a configuration (`profiles.ChaosConfig`), which it knows by the names of the fields only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tanist.sim.workload.operations import VOTER_OPERATIONS
from tanist.sim.world.clock import stream

VOTERS_SHARE = 0.15

THROTTLES_SHARE = 0.12

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
