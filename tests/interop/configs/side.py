"""One node that is asked about configurations: the requests of a sweep, and its answers as plain values.

Both sides of a comparison are asked by the same code in the same versions, so a difference is in the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tanist.wire.messages import alter_configs_request as legacy
from tanist.wire.messages.alter_configs_response import AlterConfigsResponse
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.describe_configs_response import DescribeConfigsResponse
from tanist.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tanist.wire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.interop.pair import Asker
from tests.interop.waiting import wait_for

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KINDS = {TOPIC: "topic", BROKER: "broker", BROKER_LOGGER: "logger", CLIENT_METRICS: "client metrics", GROUP: "group"}
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
OPERATIONS = {SET: "set", DELETE: "delete", APPEND: "append", SUBTRACT: "subtract"}


class Resource(NamedTuple):
    """What has a configuration."""

    kind: int
    name: str

    def __str__(self) -> str:
        return f"{KINDS.get(self.kind, self.kind)} {self.name!r}"


class Entry(NamedTuple):
    """What DescribeConfigs says of one name, without the order of names, which has no meaning."""

    value: str | None
    source: int
    read_only: bool
    sensitive: bool
    type: int
    synonyms: tuple[tuple[str, str | None, int], ...]
    documented: bool


class Description(NamedTuple):
    """What DescribeConfigs says of one resource."""

    error: int
    message: str | None
    entries: dict[str, Entry]


class Verdict(NamedTuple):
    """What an alteration is answered."""

    error: int
    message: str | None


class Side(Asker):
    """A node, and the words that are only its own: its addresses and folders, which a comparison must not see."""

    def __init__(self, address: tuple[str, int], own: Mapping[str, str]) -> None:
        super().__init__(address)
        self._own = own

    def _anonymous(self, text: str | None) -> str | None:
        for word, instead in self._own.items():
            text = None if text is None else text.replace(word, instead)
        return text

    def describe(
        self,
        resource: Resource,
        names: Sequence[str] | None = None,
        *,
        synonyms: bool = True,
        documentation: bool = True,
        version: int = 4,
    ) -> Description:
        wanted = DescribeConfigsResource(
            resource_type=resource.kind,
            resource_name=resource.name,
            configuration_keys=None if names is None else tuple(names),
        )
        request = DescribeConfigsRequest(
            resources=(wanted,), include_synonyms=synonyms, include_documentation=documentation
        )
        (found,) = self.ask(request, version, DescribeConfigsResponse).results
        return Description(
            found.error_code,
            self._anonymous(found.error_message),
            {
                each.name: Entry(
                    self._anonymous(each.value),
                    each.config_source,
                    each.read_only,
                    each.is_sensitive,
                    each.config_type,
                    tuple((s.name, self._anonymous(s.value), s.source) for s in each.synonyms),
                    bool(each.documentation),
                )
                for each in found.configs
            },
        )

    def alter(
        self, resource: Resource, name: str, operation: int, value: str | None, *, validate_only: bool = True
    ) -> Verdict:
        """IncrementalAlterConfigs of one name."""
        changed = AlterConfigsResource(
            resource_type=resource.kind,
            resource_name=resource.name,
            configs=(AlterableConfig(name=name, config_operation=operation, value=value),),
        )
        request = IncrementalAlterConfigsRequest(resources=(changed,), validate_only=validate_only)
        (answer,) = self.ask(request, 1, IncrementalAlterConfigsResponse).responses
        return Verdict(answer.error_code, self._anonymous(answer.error_message))

    def replace(self, resource: Resource, name: str, value: str | None) -> Verdict:
        """AlterConfigs, validated only: the resource would have this one value."""
        changed = legacy.AlterConfigsResource(
            resource_type=resource.kind,
            resource_name=resource.name,
            configs=(legacy.AlterableConfig(name=name, value=value),),
        )
        request = legacy.AlterConfigsRequest(resources=(changed,), validate_only=True)
        (answer,) = self.ask(request, 2, AlterConfigsResponse).responses
        return Verdict(answer.error_code, self._anonymous(answer.error_message))

    def settled(self, resource: Resource, name: str, before: Description) -> Description:
        """What the node says of one name, once it is not `before` any more: it hears of a change by and by."""

        def changed() -> Description | None:
            now = self.describe(resource, [name])
            return now if now != before else None

        return wait_for(changed, f"{self.address}: {resource} has another {name}", timeout_s=10.0)
