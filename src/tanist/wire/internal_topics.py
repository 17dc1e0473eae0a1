"""Topics that the cluster keeps for itself, by Kafka's names."""

from __future__ import annotations

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""Where groups are kept (`tanist.coordinator`)."""

INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})
