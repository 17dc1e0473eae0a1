"""Runs behaviour scenarios about brokers (registration, heartbeats, failover, clean stops) against the controller.

The scenarios state what Apache Kafka 4.3 does. Also a program: `python broker_scenario_runner.py FILE...` runs whole
files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from tanist.controller.brokers import Brokers
from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.features import SUPPORTED_FEATURES
from tanist.controller.heartbeats import NO_ACTIVE_BROKER, BrokerState, HeartbeatTable, next_state
from tanist.controller.image import MetadataImage
from tanist.log.checkpoints import previous_broker_epoch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from tanist.wire.metadata import FeatureLevelRecord, RegisterBrokerRecord

METADATA_VERSION = 30
NOW_MS = 1_000_000


@dataclass(frozen=True)
class Outcome:
    id: str
    expected: dict[str, Any]
    actual: dict[str, Any]

    @property
    def same(self) -> bool:
        return self.expected == {name: self.actual.get(name, "nothing") for name in self.expected}


def _incarnation(name: str) -> UUID:
    return UUID(bytes=name.encode().rjust(16, b"\x01"))


def _directory(name: str) -> UUID:
    """A scenario's d1, d2, ...; `reserved` and the like are ids that KIP-858 keeps for itself."""
    return UUID(bytes=name.encode().rjust(16, b"\x02")) if name[:1] == "d" else UUID(int=2)


def _image(*brokers: RegisterBrokerRecord) -> MetadataImage:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION))
    for broker in brokers:
        image.replay(broker)
    return image


def _register(item: dict[str, Any]) -> dict[str, Any]:
    request, existing = item["request"], item.get("existing")
    table = HeartbeatTable(9000)
    records = []
    if existing is not None:
        records.append(
            RegisterBrokerRecord(
                broker_id=request["broker"],
                incarnation_id=_incarnation(existing["incarnation"]),
                broker_epoch=existing["epoch"],
                fenced=existing.get("fenced", True),
                in_controlled_shutdown=existing.get("in_controlled_shutdown", False),
                log_dirs=tuple(map(_directory, existing.get("dirs", ()))),
            )
        )
        if existing["session_valid"]:
            table.contact(request["broker"], existing["epoch"], NOW_MS)
    for broker_id, dirs in (item.get("other_dirs") or {}).items():
        records.append(
            RegisterBrokerRecord(
                broker_id=int(broker_id), incarnation_id=_incarnation("O"), log_dirs=tuple(map(_directory, dirs))
            )
        )
    image = _image(*records)
    decision: Decision = Brokers(0, "the-cluster", ControllerSettings(), table).register(
        image,
        BrokerRegistrationRequest(
            broker_id=request["broker"],
            cluster_id="the-cluster" if request.get("cluster_ok", True) else "another",
            incarnation_id=_incarnation(request["incarnation"]),
            previous_broker_epoch=request.get("prev_epoch", -1),
            log_dirs=tuple(map(_directory, request.get("dirs", ()))),
            features=tuple(
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ),
        ),
        NOW_MS,
        next_offset=item["new_epoch"],
        api_version=request["api_version"],
    )
    answer: Any = decision.response
    if answer.error_code != ErrorCode.NONE:
        return {"error": ErrorCode(answer.error_code).name}
    for record in decision.records:
        image.replay(record)
    broker = image.brokers[request["broker"]]
    return {
        "epoch": answer.broker_epoch,
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
    }


def _heartbeat_state(item: dict[str, Any]) -> dict[str, Any]:
    broker, request = item["broker"], item["request"]
    others = item.get("other_active_offsets") or [NO_ACTIVE_BROKER]
    after = next_state(
        BrokerState[broker["current"]],
        want_fence=request["want_fence"],
        want_shut_down=request["want_shutdown"],
        metadata_offset=request["offset"],
        register_offset=item["register_offset"],
        controlled_shutdown_offset=broker.get("controlled_shutdown_offset", -1),
        leads_any=lambda: item["has_leaderships"],
        lowest_active_offset=lambda: min(others),
    )
    return {"next": after.name}


def _heartbeat_sessions(item: dict[str, Any]) -> dict[str, Any]:
    table = HeartbeatTable(9000)
    for session in item["sessions"]:
        table.contact(session["broker"], session["epoch"], NOW_MS)
    asked = [*item["expect"]["valid"], *item["expect"]["invalid"]]
    valid = [pair for pair in asked if table.has_valid_session(*pair, NOW_MS)]
    return {"valid": valid, "invalid": [pair for pair in asked if pair not in valid]}


def _heartbeat_cs_offset(item: dict[str, Any]) -> dict[str, Any]:
    table = HeartbeatTable(9000)
    for offset in item["updates"]:
        table.set_controlled_shutdown_offset(0, offset)
    return {"controlled_shutdown_offset": table.controlled_shutdown_offset(0)}


def _controller_failover(item: dict[str, Any]) -> dict[str, Any]:
    image = _image(
        *(
            RegisterBrokerRecord(
                broker_id=each["broker"],
                broker_epoch=each["epoch"],
                incarnation_id=_incarnation("A"),
                fenced=each["fenced"],
            )
            for each in item["registrations"]
        )
    )
    table = HeartbeatTable(9000)
    table.activate(image.brokers, item["activated_at_ms"])
    return {
        "contact_times": {
            each["broker"]: table.contact_time_ms(each["broker"], each["epoch"]) for each in item["registrations"]
        }
    }


def _clean_shutdown(item: dict[str, Any]) -> dict[str, Any]:
    return {"previous_epoch": previous_broker_epoch(None if epoch == "offline" else epoch for epoch in item["dirs"])}


RUNNERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "register": _register,
    "heartbeat_state": _heartbeat_state,
    "heartbeat_sessions": _heartbeat_sessions,
    "heartbeat_cs_offset": _heartbeat_cs_offset,
    "controller_failover": _controller_failover,
    "clean_shutdown": _clean_shutdown,
}


def run(item: dict[str, Any]) -> Outcome:
    return Outcome(item["id"], item["expect"], RUNNERS[item["kind"]](item))


def load(text: str) -> list[dict[str, Any]]:
    return [item for item in yaml.safe_load(text)["scenarios"] if item["kind"] in RUNNERS]


def main(paths: list[str]) -> int:
    outcomes = [run(item) for path in paths for item in load(Path(path).read_text())]
    for outcome in outcomes:
        if not outcome.same:
            print(f"failed  {outcome.id}  expected {outcome.expected}, got {outcome.actual}")
    print(f"{sum(outcome.same for outcome in outcomes)} of {len(outcomes)} the same")
    return int(not all(outcome.same for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
