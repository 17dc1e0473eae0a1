"""Topics that the cluster keeps for itself, by Kafka's names, and the partition of a group or a transactional id.

The partition is by Kafka's hash of the name, so that Kafka can read the data.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""Where groups are kept (`tanist.coordinator`)."""

TRANSACTIONS_TOPIC: Final = "__transaction_state"
"""The state of each transactional id (`tanist.coordinator.transactions`)."""

SHARE_STATE_TOPIC: Final = "__share_group_state"
"""The delivery state of each share partition (`tanist.coordinator.share`)."""

INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})


def partition_of(key: str, partition_count: int) -> int:
    """The absolute value of Java's hash of the name, modulo the partitions of the topic."""
    code = java_hash(key)
    return (0 if code == -(1 << 31) else abs(code)) % partition_count


@lru_cache(maxsize=1000)
def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 units, as a signed 32-bit number."""
    code = 0
    units = array("H", text.encode("utf-16-le" if array("H", b"\1\0")[0] == 1 else "utf-16-be", "surrogatepass"))
    for unit in units:
        code = (code * 31 + unit) & 0xFFFFFFFF
    return code - (1 << 32) if code >> 31 else code
