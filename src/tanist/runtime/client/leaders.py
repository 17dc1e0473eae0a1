"""Requests to the leader of a partition: one attempt, after whose failure the next one looks for the leader anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.wire.schema import Request, Response

T = TypeVar("T", bound=Response)

Refusal = tuple[int, str | None]
"""(error code, the broker's message); the code is 0 if it is none."""


def ask_leader(
    client: Client,
    topic: str,
    partition: int,
    request: Request,
    answers: type[T],
    refusal: Callable[[T], Refusal],
    *,
    timeout_s: float | None = None,
    max_version: int | None = None,
) -> T:
    """The leader's answer. Raises `Unreachable`, or `KafkaError` of what `refusal` finds in the answer."""
    try:
        leader = client.leader_of(topic, partition)
        answer = client.ask(request, answers, node_id=leader, timeout_s=timeout_s, max_version=max_version)
        code, message = refusal(answer)
        if code:
            raise KafkaError(code, message or f"{topic}-{partition}")
    except (KafkaError, Unreachable):
        client.forget(topic)
        raise
    return answer
