"""Where the coordinator of a group or of a transactional id is; and the answers of all of them.

A list of groups or of transactional ids is whole only if each partition of the internal topic has a leader, which was
asked: what a partition without one holds is not known, which is not the same as nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final, TypeVar

from tanist.runtime.client.client import Client, KafkaError, PartitionView
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tanist.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

_ONE_KEY_VERSION: Final = 3
"""The last version that asks for one key."""
_ELECTION_S: Final = 5.0
"""How long a partition may have no leader before that is said."""


class CoordinatorKind(IntEnum):
    """`key_type` of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1

    @property
    def topic(self) -> str:
        """The internal topic whose partitions' leaders are the coordinators."""
        return TRANSACTIONS_TOPIC if self is CoordinatorKind.TRANSACTION else OFFSETS_TOPIC


def coordinator_of(client: Client, kind: CoordinatorKind, key: str) -> int:
    """The broker that coordinates a group or a transactional id. `KafkaError`."""
    request = FindCoordinatorRequest(key=key, key_type=kind)
    answer = client.ask(request, FindCoordinatorResponse, max_version=_ONE_KEY_VERSION)
    if answer.error_code:
        raise KafkaError(answer.error_code, answer.error_message or f"the coordinator of {key}")
    return answer.node_id


def ask_all_coordinators(
    client: Client,
    kind: CoordinatorKind,
    request: Request,
    answers: type[R],
    error_of: Callable[[R], int],
    *,
    some: bool = False,
) -> dict[int, R]:
    """The answer of each broker that is alive. `KafkaError` if the coordinator of a partition could not be asked.

    `some`: that is no error.
    """

    def attempt() -> dict[int, R]:
        before = _partitions(client, kind.topic)
        found: dict[int, R] = {}
        for node_id in sorted(client.view.brokers):
            answer = client.ask(request, answers, node_id=node_id)
            if error_of(answer):
                raise KafkaError(error_of(answer), f"broker {node_id}")
            found[node_id] = answer
        if some:
            return found
        lacking = sorted(index for index, each in before.items() if each.leader not in found)
        if lacking:
            which = ", ".join(map(str, lacking))
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"no broker leads partition {which} of {kind.topic}: what it holds is not known",
            )
        # Who came to lead a partition after it had been asked has said nothing of it.
        if _leaders(before) != _leaders(_partitions(client, kind.topic)):
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"the leaders of {kind.topic} are on the move")
        return found

    return client.persist(attempt, timeout_s=min(client.timeout_s, _ELECTION_S))


def _partitions(client: Client, topic: str) -> dict[int, PartitionView]:
    """Those of an internal topic; none if nobody has needed it yet, or one may not see it."""
    about = client.metadata([topic]).topics.get(topic)
    return {} if about is None or about.error_code else dict(sorted(about.partitions.items()))


def _leaders(partitions: dict[int, PartitionView]) -> list[tuple[int, int]]:
    return [(each.leader, each.leader_epoch) for each in partitions.values()]
