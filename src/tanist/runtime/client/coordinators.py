"""Where the coordinator of a group or of a transactional id is."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from tanist.runtime.client.client import Client, KafkaError
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse

_ONE_KEY_VERSION: Final = 3
"""The last version that asks for one key."""


class CoordinatorKind(IntEnum):
    """`key_type` of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


def coordinator_of(client: Client, kind: CoordinatorKind, key: str) -> int:
    """The broker that coordinates a group or a transactional id. `KafkaError`."""
    request = FindCoordinatorRequest(key=key, key_type=kind)
    answer = client.ask(request, FindCoordinatorResponse, max_version=_ONE_KEY_VERSION)
    if answer.error_code:
        raise KafkaError(answer.error_code, answer.error_message or f"the coordinator of {key}")
    return answer.node_id
