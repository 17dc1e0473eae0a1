"""One attempt of a request to the leader of a partition, or to a coordinator, wherever that is by then.

After a failure the next attempt looks for the leader anew. A coordinator is looked up for each attempt.
"""

from __future__ import annotations

from typing import TypeVar

from tanist.client.errors import Meaning, meaning_in, refusal_in
from tanist.client.requests import Ask, Coordinator, Leader
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.coordinators import coordinator_of
from tanist.wire.schema import Request, Response

T = TypeVar("T", bound=Response)


def attempt(client: Client, asked: Ask, answers: type[T], *, timeout_s: float | None = None) -> T:
    """The answer, whatever it says. Raises `Unreachable`, or `KafkaError` if nobody knows whom to ask."""
    if isinstance(asked.to, Coordinator):
        node_id = coordinator_of(client, asked.to.kind, asked.to.key)
        return client.ask(asked.request, answers, node_id=node_id, timeout_s=timeout_s, max_version=asked.version_max)
    topic, partition = asked.to.topic, asked.to.partition
    try:
        leader = client.leader_of(topic, partition)
        answer = client.ask(asked.request, answers, node_id=leader, timeout_s=timeout_s, max_version=asked.version_max)
    except (KafkaError, Unreachable):
        client.forget(topic)
        raise
    if meaning_in(answer) is not Meaning.DONE:
        client.forget(topic)
    return answer


def ask_leader(
    client: Client,
    topic: str,
    partition: int,
    request: Request,
    answers: type[T],
    *,
    timeout_s: float | None = None,
    max_version: int | None = None,
    about: str = "",
) -> T:
    """The leader's answer. Raises `Unreachable`, or `KafkaError` for an error in it; `about` is the default message."""
    answer = attempt(client, Ask(Leader(topic, partition), request, max_version), answers, timeout_s=timeout_s)
    if meaning_in(answer) is not Meaning.DONE:
        code, message = refusal_in(answer)
        raise KafkaError(code, message or about or f"{topic}-{partition}")
    return answer
