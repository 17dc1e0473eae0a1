"""Clients with quotas: who they are, which quotas they may get, and which quotas everybody else has.

Two users with two client ids each, so that all eight kinds of entities are about somebody, and two addresses. All
others, nodes too, have quotas of their own that are never exceeded: a default is for metered clients only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tanist.sim.secured import CLIENT, METERED_USERS, SUBJECTS

PRODUCE, FETCH, MUTATION, TIME = (
    "producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate", "request_percentage"
)  # fmt: skip
CONNECTIONS: Final = "connection_creation_rate"
USER, CLIENT_ID, ADDRESS = "user", "client-id", "ip"
CLIENT_IDS: Final = ("one", "two")
METERED_TOPIC: Final = "metered"
ADDRESSES: Final = ("10.0.0.7", "10.0.0.8")
"""Of two dialers."""

Entity = tuple[tuple[str, str | None], ...]
"""(type, name) of each part. The name None is the default's."""


class Metered(NamedTuple):
    """A client, as quotas know it."""

    user: str
    client_id: str

    @property
    def name(self) -> str:
        """Of its host."""
        return f"{self.user}-{self.client_id}"


CLIENTS: Final = {
    metered.name: metered for metered in (Metered(user, each) for user in METERED_USERS for each in CLIENT_IDS)
}
UNLIMITED: Final = 1e12
EVERYBODY_ELSE: Final = (CLIENT, "node", *SUBJECTS)
_BYTES: Final = (500, 1_000, 2_000)
"""Ten seconds' worth is free, and a run is short. Of one size: who has used ten seconds of the largest, and gets the
smallest, waits for half a minute."""
VALUES: Final[Mapping[str, tuple[float, ...]]] = {
    PRODUCE: _BYTES,
    FETCH: _BYTES,
    MUTATION: (0.5, 1, 2),
    # Turns take no time, so it is never exceeded.
    TIME: (0.01, 50),
}
RATES_OF_ADDRESSES: Final = (2, 4, 8)
RATE_OF_ALL_ADDRESSES: Final = 15
"""Dialers come faster; nodes and other clients do not."""
ORDER: Final[Mapping[Entity, float]] = {
    ((USER, "dora"), (CLIENT_ID, "one")): 500,
    ((USER, "dora"),): UNLIMITED,
    ((USER, None), (CLIENT_ID, "two")): 500,
    ((CLIENT_ID, "one"),): 500,
}
"""The quotas of producers that stay. One of the four clients has none that it exceeds."""
