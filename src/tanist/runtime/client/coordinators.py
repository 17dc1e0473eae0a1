"""Where the coordinator of a group or of a transactional id is; and the answers of all of them.

A list of groups or of transactional ids is whole only if each partition of the internal topic has a leader, which was
asked: what a partition without one holds is not known, which is not the same as nothing.
"""

from __future__ import annotations

from typing import Final, TypeVar

from tanist.client.errors import error_in, refusal_in
from tanist.client.metadata import PartitionView
from tanist.client.requests import CoordinatorKind, coordinator_in, find_coordinator
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.connection import NobodyToAsk
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tanist.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

_ELECTION_S: Final = 5.0
"""How long a partition may have no leader before that is said."""


def coordinator_of(client: Client, kind: CoordinatorKind, key: str) -> int:
    """The broker that coordinates a group or a transactional id. `NobodyToAsk`."""
    answer = client.ask(find_coordinator(kind, key), FindCoordinatorResponse)
    code, message = refusal_in(answer)
    if code:
        raise NobodyToAsk(code, message or f"the coordinator of {key}")
    return coordinator_in(answer).node_id


def ask_all_coordinators(
    client: Client,
    kind: CoordinatorKind,
    request: Request,
    answers: type[R],
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
            if error_in(answer):
                raise KafkaError(error_in(answer), f"broker {node_id}")
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
