"""Whether there is a controller to ask, as the brokers know it.

Owns the question that comes before every request that the active controller decides: without a quorum nothing is sent
that nobody would decide, so that what failed is known, and known to be undone. Apache Kafka's brokers do not say how
old their metadata is; they are believed to have a controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.text import span
from tanist.wire.ids import KNOWS_NOTHING_MS
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.schema import Request

T = TypeVar("T")

_NO_PATIENCE_S = 2.0
_ELECTION_S = 1.5
"""An election takes less: a cluster whose brokers have heard from no controller for longer has no quorum."""
_LOOK_EVERY_S = 0.1


class NoQuorum(Unreachable):
    """No broker hears from an active controller, so nothing was asked for."""

    def __init__(self, age_ms: int) -> None:
        super().__init__(silence(age_ms))
        self.age_ms = age_ms

    @property
    def in_words(self) -> str:
        return str(self)


def silence(age_ms: int) -> str:
    """In words, for how long there has been no quorum."""
    since = "since it started" if age_ms == KNOWS_NOTHING_MS else f"for {span(age_ms)}"
    return f"no quorum: no broker has heard from a controller {since}"


def ask_controller(
    client: Client,
    request: Request,
    answer: type[T],
    *,
    node_id: int | None = None,
    timeout_s: float | None = None,
    once: bool = False,
) -> T:
    """`Client.ask` for what the active controller decides. `NoQuorum`: nothing was sent."""
    age_ms = metadata_age_ms(client)
    if age_ms is not None:
        raise NoQuorum(age_ms)
    return client.ask(request, answer, node_id=node_id, timeout_s=timeout_s, once=once)


def missing_quorum(client: Client) -> str:
    """That there is no quorum, beside another trouble; empty if there is one, or nobody answers."""
    try:
        age_ms = metadata_age_ms(client, election_s=0.0)
    except (KafkaError, Unreachable):
        return ""
    return "" if age_ms is None or age_ms <= _ELECTION_S * 1000 else silence(age_ms)


def watching(client: Client, say: Callable[[str], None]) -> Client:
    """The client, which says that there is no quorum as soon as it has to wait for longer than an election takes."""

    def report_missing_quorum() -> bool:
        with client.apart() as other:
            trouble = missing_quorum(other)
        if trouble:
            say(trouble)
        return bool(trouble)

    client.on_long_wait = report_missing_quorum
    return client


def metadata_age_ms(client: Client, election_s: float = _ELECTION_S) -> int | None:
    """How old is what the brokers know, where none of them hears from an active controller; None: it is current.

    Brokers of Apache Kafka do not say, which counts as current. A broker that is alone in this is not asked further:
    the next one that knows better is. An election takes a moment, so it is given one.
    """
    deadline = time.monotonic() + election_s
    while True:
        age_ms = _age_of(client, None)
        for node_id in sorted(client.metadata(()).brokers) if age_ms >= 0 else ():
            age_ms = min(age_ms, _age_of(client, node_id))
            if age_ms < 0:
                break  # the client goes on with the broker that answered last
        if age_ms < 0:
            return None
        if age_ms > _ELECTION_S * 1000 or time.monotonic() > deadline:
            return age_ms
        time.sleep(_LOOK_EVERY_S)


def _age_of(client: Client, node_id: int | None) -> int:
    try:
        answer = client.ask(
            DescribeClusterRequest(), DescribeClusterResponse, node_id=node_id, timeout_s=_NO_PATIENCE_S
        )
    except Unsupported:
        return -1
    except Unreachable:
        if node_id is None:
            raise
        return KNOWS_NOTHING_MS
    return answer.metadata_age_ms
