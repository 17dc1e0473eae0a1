"""The effect of a client's state machines: a request, and who is to get it; and how a coordinator is found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tanist.client.metadata import Broker
from tanist.wire.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.schema import Request


class CoordinatorKind(IntEnum):
    """`key_type` of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1

    @property
    def topic(self) -> str:
        """The internal topic whose partitions' leaders are the coordinators."""
        return TRANSACTIONS_TOPIC if self is CoordinatorKind.TRANSACTION else OFFSETS_TOPIC


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group or transactional id."""

    kind: CoordinatorKind
    key: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the request there, as long as `errors.meaning_in` says so, and give the answer to the machine."""

    to: Leader | Coordinator
    request: Request
    version_max: int | None = None
    """The last version that may be sent; None: any. The request has the fields of all of them."""

    patience_ms: int = 0
    """How much longer than usual its answer may take."""

    @property
    def newest(self) -> int:
        """The last version of ours that may be sent."""
        return self.request.VERSIONS[1] if self.version_max is None else self.version_max


def find_coordinator(kind: CoordinatorKind, key: str) -> FindCoordinatorRequest:
    """For one group or transactional id, in any version."""
    return FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=(key,))


def coordinator_in(answer: Any) -> Broker:
    """The coordinator in a response without an error, of any version."""
    found = answer.coordinators[0] if answer.coordinators else answer
    return Broker(found.node_id, found.host, found.port)
