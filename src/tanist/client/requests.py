"""The effect of a client's state machines: a request, and who is to get it."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.client.coordinators import CoordinatorKind
from tanist.wire.schema import Request


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
