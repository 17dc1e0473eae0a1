"""An operator of quotas: quotas of users, client ids and addresses come and go.

Owns the requests of a list of such operations, which go to any broker and may overlap; what they change is judged from
the committed metadata. In the end it puts things in order: quotas that stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tanist.client.quotas import quota_entry
from tanist.sim.events import QuotaRequested
from tanist.sim.metered import (
    ADDRESS,
    ADDRESSES,
    CLIENT_ID,
    CLIENT_IDS,
    CONNECTIONS,
    EVERYBODY_ELSE,
    ORDER,
    PRODUCE,
    RATE_OF_ALL_ADDRESSES,
    RATES_OF_ADDRESSES,
    UNLIMITED,
    USER,
    VALUES,
    Entity,
)
from tanist.sim.quota_oracle import QuotaOracle
from tanist.sim.secured import METERED_USERS
from tanist.sim.workload.cluster_client import BACKOFF_MS
from tanist.sim.workload.history import History
from tanist.sim.workload.operations import Operation, Operator
from tanist.sim.world.clock import stream
from tanist.sim.world.world import World
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest

_VERSION: Final = 1
_TIMEOUT_MS: Final = 5_000
_LOOKS_MS: Final = 500

Change = tuple[Entity, str, float | None]
"""Entity, key, and its value; None: it is removed."""
_ALWAYS: Final[tuple[Change, ...]] = tuple(
    (((USER, name),), key, UNLIMITED) for name in EVERYBODY_ELSE for key in VALUES
)


class QuotaAdmin(Operator):
    """Sends the operations of a list."""

    def __init__(self, world: World, history: History, oracle: QuotaOracle) -> None:
        super().__init__(world, "bursar", history)
        self._oracle = oracle
        self._wanted: tuple[Change, ...] = _ALWAYS
        """What stays, when things are put in order."""

    @property
    def in_order(self) -> bool:
        """Whether what stays stands, and nothing else."""
        values = self._oracle.newest.values
        return values == {(frozenset(entity), key): value for entity, key, value in self._wanted}

    # -- operations

    def _set_quota(self, operation: Operation) -> None:
        rng = stream(self.world.seed, f"quota/{operation.at_us}")
        if rng.random() < 0.15:
            name = rng.choice((*ADDRESSES, None))
            rate = RATE_OF_ALL_ADDRESSES if name is None else rng.choice(RATES_OF_ADDRESSES)
            self._change([(((ADDRESS, name),), CONNECTIONS, rate)])
            return
        user, client_id = rng.choice((*METERED_USERS, None)), rng.choice((*CLIENT_IDS, None))
        whose = rng.random()
        entity: Entity = ((USER, user), (CLIENT_ID, client_id))
        if whose > 0.5:
            entity = entity[:1] if whose < 0.75 else entity[1:]
        keys = rng.sample(list(VALUES), rng.choice((1, 1, 2)))
        self._change([(entity, key, rng.choice(VALUES[key])) for key in keys])

    def _drop_quota(self, operation: Operation) -> None:
        standing = self._those_that_may_go()
        if standing:
            self._change([standing[int(operation.first * len(standing))]])

    def _drop_quotas(self, operation: Operation) -> None:
        """Of one key, of all."""
        keys = sorted({key for _, key, _ in self._those_that_may_go()})
        if keys:
            gone = keys[int(operation.first * len(keys))]
            self._change([each for each in self._those_that_may_go() if each[1] == gone])

    def _those_that_may_go(self, but: Iterable[Change] = _ALWAYS) -> list[Change]:
        """In the order in which they were set."""
        kept = {(frozenset(entity), key) for entity, key, _ in but}
        return [
            (tuple(sorted(entity, key=lambda part: part[0])), key, None)
            for entity, key in self._oracle.newest.values
            if (entity, key) not in kept
        ]

    # -- what stays

    def put_in_order(self, *, with_quotas: bool) -> None:
        """Only what stays stands from now on; again and again, until it does. `with_quotas`: of metered clients too."""
        self.stopped = False
        more = tuple((entity, PRODUCE, value) for entity, value in ORDER.items()) if with_quotas else ()
        self._wanted = (*_ALWAYS, *more)
        self.run(self._keep_in_order)

    def _keep_in_order(self) -> None:
        if self.stopped:
            return
        if self.in_order or self._under_way:
            self.later(_LOOKS_MS if self.in_order else BACKOFF_MS, self._keep_in_order)
            return
        self._change([*self._those_that_may_go(self._wanted), *self._wanted])
        self.later(BACKOFF_MS, self._keep_in_order)

    # -- bits

    def _change(self, changes: Sequence[Change]) -> None:
        by_entity: dict[Entity, list[tuple[str, float | None]]] = {}
        for entity, key, value in changes:
            by_entity.setdefault(entity, []).append((key, value))
        if changes != list(self._wanted):
            self.world.emit(QuotaRequested(", ".join(_text(*each) for each in changes if each not in _ALWAYS)))
        self._under_way += 1

        def handle_response(response: Any | None) -> None:
            self._under_way -= 1
            done = response is not None and all(each.error_code == ErrorCode.NONE for each in response.entries)
            self.world.counts[f"quotas: changes {'acknowledged' if done else 'not carried out'}"] += 1

        request = AlterClientQuotasRequest(entries=tuple(quota_entry(*each) for each in by_entity.items()))
        self.any_broker().call(request, _VERSION, _TIMEOUT_MS, handle_response)


def _text(entity: Entity, key: str, value: float | None) -> str:
    whose = " ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity)
    return f"removes {key} of {whose}" if value is None else f"sets {key} of {whose} to {value:g}"
