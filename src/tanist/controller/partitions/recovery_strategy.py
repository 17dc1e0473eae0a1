"""The recovery strategy of a topic (KIP-966, "Unclean recovery").

Owns the step from configurations to a `Strategy`: `unclean.recovery.strategy` where it is set, else
`unclean.leader.election.enable` in its place (true: Aggressive, false: Balanced), the more specific resource first.
`unclean_recovery` carries the strategies out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from tanist.controller.configs.settings import UNCLEAN_LEADER_ELECTION_ENABLE, UNCLEAN_RECOVERY_STRATEGY
from tanist.controller.decision import ControllerSettings
from tanist.controller.image.image import BROKER, TOPIC, MetadataImage
from tanist.controller.image.partition_state import supports_elr


class Strategy(Enum):
    """The strategy for a partition that no replica can lead without the risk of losing committed records."""

    NONE = "None"
    """Nothing: an operator decides."""
    BALANCED = "Balanced"
    """Ask all replicas that were last known to have all committed records, and wait for them without a limit."""
    AGGRESSIVE = "Aggressive"
    """Ask the replicas that are alive."""


_NAMES = {strategy.value.lower(): strategy for strategy in Strategy}


def recovery_strategy(image: MetadataImage, topic_name: str, node_id: int) -> Strategy:
    """The strategy of a topic: topic > node > cluster > static, on each level the strategy before
    `unclean.leader.election.enable`.
    """
    for values in _levels(image, topic_name, node_id):
        named = values.get(UNCLEAN_RECOVERY_STRATEGY)
        if named is not None and named.strip().lower() in _NAMES:
            return _NAMES[named.strip().lower()]
        switch = values.get(UNCLEAN_LEADER_ELECTION_ENABLE)
        if switch is not None:
            return Strategy.AGGRESSIVE if switch.strip().lower() == "true" else Strategy.BALANCED
    return Strategy.BALANCED


def _levels(image: MetadataImage, topic_name: str, node_id: int) -> Iterator[Mapping[str, str]]:
    yield image.configs.get((TOPIC, topic_name), {})
    yield image.configs.get((BROKER, str(node_id)), {})
    yield image.configs.get((BROKER, ""), {})
    yield image.static_configs


def elr_in_force(image: MetadataImage) -> bool:
    """The feature is on, and the metadata version can carry it (KIP: else "the controller will also ignore")."""
    return image.elr_enabled and supports_elr(image.metadata_version)


def recovers_uncleanly(image: MetadataImage, settings: ControllerSettings) -> bool:
    """Whether the recovery manager decides, rather than the rules of KIP-966's first phase.

    It needs the switch and ELR: without ELR a cluster behaves as before KIP-966: it waits for the last member of the
    ISR, and `unclean.leader.election.enable` elects any live replica.
    """
    return settings.unclean_recovery_manager_enabled and elr_in_force(image)
