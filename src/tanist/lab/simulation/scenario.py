"""Scenario files: a plan that can be kept, read by people, and played again to the same bytes.

JSON, with `"tanist-scenario": 3` at the top, and its player ("player"): the simulator here, or the model checker
(`lab.model_scenario`, whose format is 1). Times are virtual; those of faults and operations are in microseconds since
the load began. Missing values are those of `ChaosConfig`; an unknown name is an error, because the file would be played
wrongly. Files of older versions are played as they were: up to version 2 faults had
other names (`former_versions`).

A file is untrusted text: every value is checked before it becomes part of a plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from tanist.faults import FAULTS
from tanist.lab.simulation.former_versions import completed, rearranged, renamed
from tanist.sim.faults.schedule import KINDS, Fault
from tanist.sim.run.chaos_run import WORKLOADS, Plan
from tanist.sim.run.config import (
    BY_NODE,
    SETTINGS,
    ChaosConfig,
    GroupPlan,
    GroupSettings,
    TransactionSettings,
)
from tanist.sim.run.drawing import OPERATORS
from tanist.sim.workload.operations import Operation, Topic
from tanist.sim.workload.share_settings import SharePlan, ShareSettings
from tanist.sim.workload.streams_settings import SHAPES, StreamsPlan, StreamsSettings

FORMAT = "tanist-scenario"
FIRST_VERSION = 1
VERSION = 3
SIMULATOR = "simulator"
MODEL = "model"

_MAX_BYTES = 16 << 20
_MAX_NODES = 100
_MAX_LENGTH = 100_000
_MAX_PARTITIONS = 1_000


class ScenarioError(ValueError):
    """The file is not a scenario, or cannot be played."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A plan, and the violation that it shows."""

    plan: Plan
    title: str
    property_id: str | None = None
    mutation: str | None = None
    """The rule that is broken while it is played (`tanist lab mutants`)."""
    violation: str | None = None
    notes: tuple[str, ...] = ()
    """The parts of the plan that were kept, and the reasons."""


def load(path: Path) -> dict[str, Any]:
    """The document of a scenario file, for its player."""
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ScenarioError(f"{path}: more than {_MAX_BYTES >> 20} MB")
    try:
        document = json.loads(data)
    except ValueError as error:
        raise ScenarioError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict) or FORMAT not in document:
        raise ScenarioError(f'{path}: not a scenario: it has no "{FORMAT}" at the top')
    if document[FORMAT] not in range(FIRST_VERSION, VERSION + 1):
        raise ScenarioError(f"{path}: version {document[FORMAT]} of the format, this is version {VERSION}")
    if document.get("player") not in (SIMULATOR, MODEL):
        raise ScenarioError(f'{path}: "player" is neither "{SIMULATOR}" nor "{MODEL}"')
    return document


def save(scenario: Scenario, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_document(scenario), indent=2) + "\n", encoding="utf-8")


def as_document(scenario: Scenario) -> dict[str, Any]:
    plan = scenario.plan
    return {
        FORMAT: VERSION,
        "player": SIMULATOR,
        "title": scenario.title,
        "property": scenario.property_id,
        "violation": scenario.violation,
        "mutation": scenario.mutation,
        "kept": list(scenario.notes),
        "seed": plan.seed,
        "cluster": {
            field.name: _plain(getattr(plan.config, field.name))
            for field in fields(plan.config)
            if field.name not in SETTINGS or field.name == plan.config.workload
        },
        "faults": [
            {
                "at_us": fault.at_us,
                "kind": fault.kind,
                "node": fault.host,
                "other": fault.other,
                "duration_us": fault.duration_us,
                "detail": fault.detail,
                "meaning": FAULTS[fault.kind].does,
            }
            for fault in plan.faults
        ],
        "operations": [
            {
                "at_us": operation.at_us,
                "kind": operation.kind,
                "first": operation.first,
                "second": operation.second,
                "meaning": OPERATORS[operation.kind],
            }
            for operation in plan.operations
        ],
    }


def from_document(document: Mapping[str, Any]) -> Scenario:
    """The inverse of `as_document`, of older versions as well. `ScenarioError` for anything else."""
    try:
        of_the_first = document.get(FORMAT) == FIRST_VERSION
        if of_the_first:
            document = rearranged(document)
        if document.get(FORMAT) != VERSION:
            document = renamed(document)
        config = _config(document["cluster"])
        seed, mutation = _integer(document["seed"]), _text_or_none(document.get("mutation"))
        if of_the_first:
            config = completed(config, seed, mutation)
        nodes = frozenset(config.roles)
        plan = Plan(
            seed,
            config,
            tuple(_fault(each, nodes) for each in _bounded(document["faults"])),
            tuple(_operation(each) for each in _bounded(document["operations"])),
        )
        return Scenario(
            plan,
            title=str(document.get("title", "")),
            property_id=_text_or_none(document.get("property")),
            mutation=mutation,
            violation=_text_or_none(document.get("violation")),
            notes=tuple(str(each) for each in _bounded(document.get("kept", ()))),
        )
    except ScenarioError:
        raise
    except KeyError as error:
        raise ScenarioError(f"the scenario has no {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ScenarioError(f"the scenario cannot be played: {error}") from error


# -- values


def _plain(value: Any) -> Any:
    """A field of the configuration as JSON."""
    if isinstance(value, Topic):
        return {
            "name": value.name,
            "partitions": value.partitions,
            "replication_factor": value.replication_factor,
            "configs": dict(value.configs),
        }
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


def _config(values: Mapping[str, Any]) -> ChaosConfig:
    config = ChaosConfig(**_values(ChaosConfig, values))
    if config.workload not in WORKLOADS:
        raise ScenarioError(f'"workload" is {config.workload!r}, which is none of {", ".join(WORKLOADS)}')
    if not 1 <= len(config.roles) <= _MAX_NODES:
        raise ScenarioError(f"{len(config.roles)} nodes")
    if not any("broker" in role for role in config.roles.values()):
        raise ScenarioError("a cluster without a broker")
    strangers = [each for each in config.voters if "controller" not in config.roles.get(each, "")]
    if strangers:
        raise ScenarioError(f"the first voters {strangers} are no controllers")
    others = sorted(config.nodes_with_conditions - config.roles.keys())
    if others:
        raise ScenarioError(f"conditions of node {', '.join(map(str, others))}, which the cluster does not have")
    if min(config.window_bytes, *config.slices.values(), *config.receive_bytes.values(), 1) < 1:
        raise ScenarioError("a window, a buffer or a slice without space")
    if config.plans:
        read = {name for plan in config.plans for name in plan.topics}
        unread = read - {topic.name for topic in config.topics}
        if unread or not config.topics:
            raise ScenarioError(f"groups read {', '.join(sorted(unread)) or 'topics'}, which the cluster does not have")
    for topic in config.topics:
        if not 1 <= topic.partitions <= _MAX_PARTITIONS or not 1 <= topic.replication_factor <= len(config.roles):
            raise ScenarioError(
                f"topic {topic.name}: {topic.partitions} partitions on {topic.replication_factor} nodes"
            )
    return config


def _values(
    kind: type[ChaosConfig | GroupSettings | TransactionSettings | ShareSettings | StreamsSettings],
    values: Mapping[str, Any],
) -> dict[str, Any]:
    known = {field.name: field for field in fields(kind)}
    unknown = sorted(values.keys() - known.keys())
    if unknown:
        raise ScenarioError(f"the cluster has {', '.join(unknown)}, which this version does not know")
    plan = _PLANS.get(kind, _group)
    return {
        name: tuple(map(plan, value)) if name == "plans" else _value(known[name], value)
        for name, value in values.items()
    }


def _value(field: Field[Any], value: Any) -> Any:
    """A value of JSON as a value of that field."""
    if field.name in SETTINGS:
        return SETTINGS[field.name](**_values(SETTINGS[field.name], value))
    if field.name in BY_NODE:
        return {int(node): _integer(each) for node, each in value.items()}
    if field.name == "roles":
        return {int(node): str(role) for node, role in value.items()}
    if field.name == "properties":
        return {str(key): str(each) for key, each in value.items()}
    if field.name == "topics":
        return tuple(_topic(each) for each in value)
    default = field.default if field.default is not MISSING else None
    if isinstance(default, tuple):
        return tuple(value)
    if default is not None and type(value) is not type(default):
        raise ScenarioError(f"{field.name} is {value!r}")
    return value


def _topic(value: Mapping[str, Any]) -> Topic:
    return Topic(
        str(value["name"]),
        _integer(value["partitions"]),
        _integer(value["replication_factor"]),
        tuple((str(name), str(each)) for name, each in value.get("configs", {}).items()),
    )


def _group(value: Mapping[str, Any]) -> GroupPlan:
    return GroupPlan(
        str(value["group"]),
        str(value["protocol"]),
        _integer(value["members"]),
        tuple(str(each) for each in value["topics"]),
    )


def _share_group(value: Mapping[str, Any]) -> SharePlan:
    return SharePlan(
        str(value["group"]),
        _integer(value["members"]),
        tuple(str(each) for each in value["topics"]),
        from_latest=value.get("from_latest", False) is True,
    )


def _streams_group(value: Mapping[str, Any]) -> StreamsPlan:
    shapes = tuple(str(each) for each in value["shapes"])
    if not shapes or not set(shapes) <= set(SHAPES):
        raise ScenarioError(f"a topology is one of {', '.join(SHAPES)}")
    return StreamsPlan(
        str(value["group"]),
        _integer(value["processes"]),
        _integer(value["threads"]),
        tuple(str(each) for each in value["topics"]),
        shapes,
    )


_PLANS: Final[Mapping[type, Callable[[Mapping[str, Any]], GroupPlan | SharePlan | StreamsPlan]]] = {
    ShareSettings: _share_group,
    StreamsSettings: _streams_group,
}


def _fault(value: Mapping[str, Any], nodes: frozenset[int]) -> Fault:
    kind, node, other = str(value["kind"]), _integer(value["node"]), _integer(value["other"])
    if kind not in KINDS:
        raise ScenarioError(f"there is no fault {kind!r}")
    if not {node, other} <= nodes:
        raise ScenarioError(f"a fault of node {node} and {other}, the nodes are {sorted(nodes)}")
    return Fault(_time(value["at_us"]), kind, node, other, _time(value["duration_us"]), _share(value["detail"]))


def _operation(value: Mapping[str, Any]) -> Operation:
    kind = str(value["kind"])
    if kind not in OPERATORS:
        raise ScenarioError(f"there is no operation {kind!r}")
    return Operation(_time(value["at_us"]), kind, _share(value["first"]), _share(value["second"]))


def _bounded(values: Any) -> list[Any]:
    if not isinstance(values, list | tuple) or len(values) > _MAX_LENGTH:
        raise ScenarioError("a list is missing, or is too long")
    return list(values)


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ScenarioError(f"{value!r} is no whole number")
    return value


def _time(value: Any) -> int:
    if _integer(value) < 0:
        raise ScenarioError(f"{value!r} is before the beginning")
    return int(value)


def _share(value: Any) -> float:
    """A random number for a choice, in [0, 1)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ScenarioError(f"{value!r} is not in [0, 1)")
    return float(value)


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)
