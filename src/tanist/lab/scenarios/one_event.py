"""Kinds `config` and `feature`: one change of a configuration or a feature, and its result.

They are events of a cluster (`cluster`), with the settings in the same mapping: `elr` and `mv`, or a whole `cluster`,
`topics`, and the change itself beside them or under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tanist.lab.scenarios.cluster import ScenarioCluster
from tanist.lab.scenarios.fields import Fields, event_of
from tanist.lab.scenarios.outcome import Difference

_CONFIG = ("topic", "broker", "cluster", "key", "value")
_FEATURE = ("name", "level", "upgrade_type")


def config(item: Fields) -> Sequence[Difference]:
    return _play(item, "set_config", _CONFIG)


def feature(item: Fields) -> Sequence[Difference]:
    return _play(item, "feature", _FEATURE)


def _play(item: Fields, event: str, names: Sequence[str]) -> Sequence[Difference]:
    cluster = ScenarioCluster(_circumstances(item), item.inner("topics"))
    if "events" in item:
        for each in item.each("events"):
            cluster.play(each)
        return cluster.differences
    nested = next((name for name in (event, "request", "change", "set", "config", "update") if name in item), None)
    change: dict[str, Any] = {}
    if nested is not None:
        change = item.inner(nested).plain()
    else:
        change = {name: item[name] for name in names if name in item and not isinstance(item[name], dict)}
    expect = item.inner("expect")
    for name, wanted in (("error", "expect_error"), ("records", "expect_records")):
        if name in expect:
            change[wanted] = expect[name]
    played = Fields({event: change}, item.where)
    cluster.play(played)
    event_of(played)
    played.require_all_read()
    if "after" in expect:
        cluster.expect(expect.inner("after"))
    return cluster.differences


def _circumstances(item: Fields) -> Fields:
    if isinstance(item.get("cluster"), dict):
        return item.inner("cluster")
    brokers = item.get("brokers", [1])
    given = {name: item[name] for name in ("elr", "mv", "static_config") if name in item}
    return Fields({"brokers": brokers, "unfenced": item.get("unfenced", brokers), **given}, "cluster")
