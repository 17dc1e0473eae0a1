"""Brokers at the controller: registration, sessions, heartbeats, clean shutdowns.

Owns the players of kinds `register`, `heartbeat_state`, `heartbeat_sessions`, `heartbeat_cs_offset`,
`controller_failover` and `clean_shutdown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tanist.controller.brokers import Brokers
from tanist.controller.decision import Decision
from tanist.controller.features import SUPPORTED_FEATURES
from tanist.controller.heartbeats import NO_ACTIVE_BROKER, BrokerState, HeartbeatTable, next_state
from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, MetadataImage
from tanist.lab.scenarios import requests
from tanist.lab.scenarios.controlled import LATEST, phase_one
from tanist.lab.scenarios.fields import Fields, NotUnderstood
from tanist.lab.scenarios.outcome import Difference, check, error_name, same
from tanist.lab.scenarios.partitions import level_of
from tanist.log.checkpoints import previous_broker_epoch
from tanist.wire.errors import ErrorCode
from tanist.wire.metadata import FeatureLevelRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord

CLUSTER_ID = "the-cluster"
NOW_MS = 1_000_000
SESSION_TIMEOUT_MS = 9_000
_TOPIC_ID = UUID(int=7)
_WITNESS = 1 << 20
"""The leader of a partition that has the registering broker in its ELR."""


def _incarnation(name: object) -> UUID:
    return UUID(bytes=str(name).encode()[:16].rjust(16, b"\x01"))


_RESERVED = {"unassigned": 0, "zero": 0, "lost": 1, "migrating": 2, "reserved": 2}
"""Ids that KIP-858 keeps for itself."""


def _directory(name: object) -> UUID:
    text = str(name).lower()
    return UUID(int=_RESERVED[text]) if text in _RESERVED else UUID(bytes=text.encode()[:16].rjust(16, b"\x02"))


def _directories(names: object) -> tuple[UUID, ...]:
    if names is None:
        return ()
    if not isinstance(names, list):
        raise NotUnderstood(f"directories: {names!r}")
    return tuple(map(_directory, names))


def _image(metadata_version: object = LATEST) -> MetadataImage:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level_of(metadata_version)))
    return image


def register(item: Fields) -> Sequence[Difference]:
    """A registration, judged and written."""
    request, existing = item.inner("request"), item.inner("existing")
    broker_id = request.number("broker")
    table = HeartbeatTable(SESSION_TIMEOUT_MS)
    image = _image(item.get("mv", LATEST))
    for name, level in item.inner("finalized").plain().items():
        image.replay(FeatureLevelRecord(name=name, feature_level=level))
    if item.get("existing") is not None:
        _register_before(image, table, broker_id, existing)
    for other, directories in item.inner("other_dirs").plain().items():
        image.replay(
            RegisterBrokerRecord(
                broker_id=int(other), incarnation_id=_incarnation("O"), log_dirs=_directories(directories)
            )
        )
    expect = item.inner("expect")
    if "clean" in expect or "unclean" in expect:
        _make_eligible(image, broker_id)
    decision: Decision = Brokers(0, CLUSTER_ID, phase_one(), table).register(
        image,
        requests.registration(
            broker_id,
            cluster_id=CLUSTER_ID if request.get("cluster_ok", True) else "another",
            incarnation=_incarnation(request["incarnation"]),
            previous_epoch=request.number("prev_epoch", -1),
            directories=_directories(request.get("dirs")),
            features=_ranges(request),
        ),
        NOW_MS,
        next_offset=item.number("new_epoch"),
        api_version=request.number("api_version"),
    )
    answer: Any = decision.response
    same("the registration", ErrorCode.name_of(answer.error_code), error_name(expect.get("error")))
    if answer.error_code != ErrorCode.NONE:
        check(expect, {"error": expect.get("error")})
        return ()
    for record in decision.records:
        image.replay(record)
    broker = image.brokers[broker_id]
    witness = image.partition(_TOPIC_ID, 0)
    clean = witness is not None and broker_id in witness.elr
    check(
        expect,
        {
            "error": expect.get("error"),
            "epoch": answer.broker_epoch,
            "fenced": broker.fenced,
            "in_controlled_shutdown": broker.in_controlled_shutdown,
            "clean": clean,
            "unclean": not clean,
        },
    )
    return ()


def _register_before(image: MetadataImage, table: HeartbeatTable, broker_id: int, existing: Fields) -> None:
    epoch = existing.number("epoch")
    image.replay(
        RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=_incarnation(existing["incarnation"]),
            broker_epoch=epoch,
            fenced=bool(existing.get("fenced", True)),
            in_controlled_shutdown=bool(existing.get("in_controlled_shutdown", False)),
            log_dirs=_directories(existing.get("dirs")),
        )
    )
    if existing.get("session_valid", False):
        table.contact(broker_id, epoch, NOW_MS)


def _make_eligible(image: MetadataImage, broker_id: int) -> None:
    """Make the broker eligible for a partition: only a clean registration keeps it in the ELR."""
    image.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
    image.replay(RegisterBrokerRecord(broker_id=_WITNESS, incarnation_id=_incarnation("W"), fenced=False))
    image.replay(TopicRecord(name="witness", topic_id=_TOPIC_ID))
    image.static_configs = {"min.insync.replicas": "2"}
    image.replay(
        PartitionRecord(
            partition_id=0,
            topic_id=_TOPIC_ID,
            replicas=(_WITNESS, broker_id),
            isr=(_WITNESS,),
            leader=_WITNESS,
            leader_epoch=0,
            partition_epoch=0,
            eligible_leader_replicas=(broker_id,),
        )
    )


def _ranges(request: Fields) -> dict[str, tuple[int, int]]:
    """The broker's supported features; it supports all that the scenario does not mention."""
    ranges = dict(SUPPORTED_FEATURES)
    for name, levels in request.inner("features").plain().items():
        if levels is None:
            ranges.pop(name, None)
        else:
            low, high = levels
            ranges[name] = (int(low), int(high))
    return ranges


def heartbeat_state(item: Fields) -> Sequence[Difference]:
    """The heartbeat's decision table."""
    broker, request = item.inner("broker"), item.inner("request")
    before = broker.get("metadata_offset", 0)  # its earlier offset; this heartbeat may report another
    others = item.get("other_active_offsets") or [NO_ACTIVE_BROKER]
    leads_any = bool(item.get("has_leaderships", False))
    current = str(broker["current"])
    if current not in BrokerState.__members__:
        raise NotUnderstood(f"{current!r} is no state of a broker")
    after = next_state(
        BrokerState[current],
        want_fence=bool(request.get("want_fence", False)),
        want_shut_down=bool(request.get("want_shutdown", False)),
        metadata_offset=request.number("offset", before),
        register_offset=item.number("register_offset"),
        controlled_shutdown_offset=broker.number("controlled_shutdown_offset", -1),
        leads_any=lambda: leads_any,
        lowest_active_offset=lambda: min(others),
    )
    check(item.inner("expect"), {"next": after.name})
    return ()


def heartbeat_sessions(item: Fields) -> Sequence[Difference]:
    """Whose sessions count: by broker and epoch."""
    table = HeartbeatTable(SESSION_TIMEOUT_MS)
    for session in item.each("sessions"):
        table.contact(session.number("broker"), session.number("epoch"), NOW_MS)
    expect = item.inner("expect")
    for name in ("valid", "invalid"):
        for broker_id, epoch in expect.get(name) or ():
            seen = table.has_valid_session(broker_id, epoch, NOW_MS)
            same(f"the session of broker {broker_id} in epoch {epoch} is valid", seen, name == "valid")
    return ()


def heartbeat_cs_offset(item: Fields) -> Sequence[Difference]:
    """The offset at which a controlled shutdown began."""
    table = HeartbeatTable(SESSION_TIMEOUT_MS)
    for offset in item["updates"]:
        table.set_controlled_shutdown_offset(0, offset)
    check(item.inner("expect"), {"controlled_shutdown_offset": table.controlled_shutdown_offset(0)})
    return ()


def controller_failover(item: Fields) -> Sequence[Difference]:
    """Brokers whose sessions a new active controller starts."""
    image = _image()
    epochs: dict[int, int] = {}
    for each in item.each("registrations"):
        broker_id, epoch = each.number("broker"), each.number("epoch")
        epochs[broker_id] = epoch
        image.replay(
            RegisterBrokerRecord(
                broker_id=broker_id,
                broker_epoch=epoch,
                incarnation_id=_incarnation("A"),
                fenced=bool(each.get("fenced", True)),
            )
        )
    table = HeartbeatTable(SESSION_TIMEOUT_MS)
    table.activate(image.brokers, item.number("activated_at_ms"))
    times = {broker_id: table.contact_time_ms(broker_id, epoch) for broker_id, epoch in epochs.items()}
    check(item.inner("expect"), {"contact_times": times})
    return ()


def clean_shutdown(item: Fields) -> Sequence[Difference]:
    """The epoch of a broker's clean shutdown, from the files that it finds."""
    found = (None if epoch == "offline" else epoch for epoch in item["dirs"])
    check(item.inner("expect"), {"previous_epoch": previous_broker_epoch(found)})
    return ()
