"""The coordinators of groups and transactional ids, as FindCoordinator responses tell them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tanist.client.metadata import Broker
from tanist.wire.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest


class CoordinatorKind(IntEnum):
    """`key_type` of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1

    @property
    def topic(self) -> str:
        """The internal topic whose partitions' leaders are the coordinators."""
        return TRANSACTIONS_TOPIC if self is CoordinatorKind.TRANSACTION else OFFSETS_TOPIC


def find_coordinator(kind: CoordinatorKind, key: str) -> FindCoordinatorRequest:
    """For one group or transactional id, in any version."""
    return FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=(key,))


def coordinator_in(answer: Any) -> Broker:
    """The coordinator in a response without an error, of any version."""
    found = answer.coordinators[0] if answer.coordinators else answer
    return Broker(found.node_id, found.host, found.port)
