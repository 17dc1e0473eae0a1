"""What the committed metadata says of quotas, record by record, and whose quota counts (KIP-13, 55, 546, 612).

Owns a model of the precedence that shares nothing with `tanist.security` and the controller's image: it looks for each
of the eight entities in turn. Knows the whole history, so that it can be asked about any prefix of the metadata log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tanist.sim.prefixes import Prefixes
from tanist.wire.metadata import ClientQuotaRecord
from tanist.wire.schema import MetadataRecord

Counter = tuple[str | None, str | None]
"""User and client id; None: all of them share it."""


class Limit(NamedTuple):
    """The quota that counts for a client, and who shares it."""

    bound: float
    counter: Counter


def shares(counter: Counter, user: str, client_id: str) -> bool:
    """Whether what the client uses may be counted there."""
    return counter[0] in (None, user) and counter[1] in (None, client_id)


@dataclass(frozen=True, slots=True)
class Quotas:
    """What some prefix of the metadata log says."""

    values: Mapping[tuple[frozenset[tuple[str, str | None]], str], float] = field(default_factory=dict)
    """By entity and key. The name None is the default's."""

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """The most specific quota; None: there is none."""
        pair, of_user, of_client = (user, client_id), (user, None), (None, client_id)
        for users, clients, counter in (
            ((user,), (client_id,), pair),
            ((user,), (None,), pair),
            ((user,), (), of_user),
            ((None,), (client_id,), pair),
            ((None,), (None,), pair),
            ((None,), (), of_user),
            ((), (client_id,), of_client),
            ((), (None,), of_client),
        ):
            entity = frozenset([*(("user", each) for each in users), *(("client-id", each) for each in clients)])
            bound = self.values.get((entity, key))
            if bound is not None:
                return Limit(bound, counter)
        return None

    def connections(self, address: str) -> float | None:
        """Connections a second from an address."""
        for name in (address, None):
            bound = self.values.get((frozenset([("ip", name)]), "connection_creation_rate"))
            if bound is not None:
                return bound
        return None


class QuotaOracle(Prefixes[Quotas]):
    """The committed history of quotas."""

    def __init__(self) -> None:
        super().__init__(Quotas())

    def replay(self, offset: int, record: MetadataRecord) -> None:
        """Another committed record, in order. `offset`: of the last record of its batch."""
        if not isinstance(record, ClientQuotaRecord):
            return
        entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
        values = {each: value for each, value in self.newest.values.items() if each != (entity, record.key)}
        if not record.remove:
            values[entity, record.key] = record.value
        self.became(offset, Quotas(values))
