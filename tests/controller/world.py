"""The scenarios' cluster for tests written in Python: its events are methods that take what a file would say."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.image.image import MetadataImage, PartitionState
from tanist.lab.scenarios.cluster import EVENTS, ScenarioCluster
from tanist.lab.scenarios.fields import Fields


class World:
    """`world.fence(1)`, `world.reassign({...})`, `world.expect({...})`: any event of the schema."""

    def __init__(self, item: dict[str, Any]) -> None:
        self._cluster = ScenarioCluster(Fields(item["cluster"]), Fields(item.get("topics") or {}))
        self.settings: ControllerSettings = self._cluster.settings

    @property
    def image(self) -> MetadataImage:
        return self._cluster.image

    def replay(self, *records: Any) -> list[str]:
        return [type(record).__name__ for record in self._cluster.replay(*records)]

    def apply(self, decision: Decision) -> list[str]:
        return [type(record).__name__ for record in self._cluster.apply(decision)]

    def partition(self, topic: str, number: int) -> tuple[UUID, PartitionState]:
        topic_id, state = self._cluster.partition(topic, number)
        if state is None:
            raise LookupError(f"there is no {topic}-{number}")
        return topic_id, state

    def directory(self, broker_id: int) -> UUID:
        return self._cluster.kept_in[broker_id][0]

    def __getattr__(self, event: str) -> Any:
        if event not in EVENTS:
            raise AttributeError(event)

        def happen(argument: Any) -> None:
            reported = Fields({event: argument})
            self._cluster.play(reported)
            reported.require_all_read()
            if self._cluster.differences:
                raise AssertionError(self._cluster.differences)

        return happen
