"""Which recovery strategy a topic's settings mean, read off the wire; as the controller reads it off its image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.controller.configs.description import describe_topic
from tanist.controller.configs.settings import Levels
from tanist.controller.image.image import MetadataImage
from tanist.controller.partitions.recovery_strategy import recovery_strategy as controllers_strategy
from tanist.runtime.client.admin import _SOURCES, ConfigEntry
from tanist.runtime.client.partition_context import recovery_strategy
from tanist.wire.metadata import ConfigRecord

SETTINGS = {
    "unclean.recovery.strategy": ("None", "Balanced", "Aggressive"),
    "unclean.leader.election.enable": ("true", "false"),
}


def level() -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in SETTINGS.items()})


@given(topic=level(), node=level(), cluster=level(), static=level())
def test_the_strategy_is_the_controllers(
    topic: dict[str, str], node: dict[str, str], cluster: dict[str, str], static: dict[str, str]
) -> None:
    image = MetadataImage(static)
    for kind, name, values in ((2, "t", topic), (4, "1", node), (4, "", cluster)):
        for key, value in values.items():
            image.replay(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
    shown = describe_topic(topic, Levels.of(image.configs, 1, static), tuple(SETTINGS))
    entries = {e.name: ConfigEntry(e.name, e.value, _SOURCES[int(e.source)], False, False) for e in shown}
    assert recovery_strategy(entries) == controllers_strategy(image, "t", 1).value


@pytest.mark.parametrize(("value", "strategy"), [("true", "Aggressive"), ("false", "Balanced")])
def test_apache_has_the_switch_only(value: str, strategy: str) -> None:
    name = "unclean.leader.election.enable"
    assert recovery_strategy({name: ConfigEntry(name, value, "topic", False, False)}) == strategy
    assert recovery_strategy({}) == "Balanced"
