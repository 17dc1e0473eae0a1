"""Topics that the cluster keeps for itself, by Kafka's names."""

from __future__ import annotations

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""Where groups are kept (`tanist.coordinator`)."""

TRANSACTIONS_TOPIC: Final = "__transaction_state"
"""The state of each transactional id (`tanist.coordinator.transactions`)."""

INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})
