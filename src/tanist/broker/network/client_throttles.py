"""The quotas of clients on this node: what each uses is counted, and who exceeds a quota is held back (KIP-219).

Owns the counters. The answer of a client that exceeds a quota says how long it has to wait, and goes out at once; who
gives it then mutes the connection (`ClientConnection.mute`). While nobody has a quota of a kind, nothing here is called
for requests of that kind. Followers, and nodes that talk to each other, have no quotas.

There are no threads to measure for `request_percentage`: the time that the loop spends in a request's handler counts,
until its answer is made. 100 is a whole second of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.network.call import Call
from tanist.broker.network.client_connection import ClientConnection
from tanist.controller.image.client_quotas import ClientQuotas
from tanist.controller.security.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from tanist.security.quotas import Mutations, MutationThrottle, Throttle, Windows, limits_by_key
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.fetch import FetchCall
from tanist.wire.frames import parse_request_header

_PERCENT_PER_NS: Final = 100.0 / 1e9
_STRICT_FROM: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
"""From these versions on clients know THROTTLING_QUOTA_EXCEEDED."""
_OF_NODES: Final = frozenset(
    {
        ApiKey.FETCH,  # of the metadata log: that of records has a way of its own
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.GET_REPLICA_LOG_INFO,
    }
)
"""Exempt, unless they are refused for want of CLUSTER_ACTION: then it was a client."""

KINDS: Final = ("Produce", "Fetch", "Request", "ControllerMutation")


class ClientThrottles:
    """The quotas for bytes, for time and for changes."""

    def __init__(self, context: NodeContext) -> None:
        config = context.config
        windows = Windows(config.quota_window_num, config.quota_window_size_seconds * 1_000)
        mutation_windows = Windows(
            config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1_000
        )
        self._clock = context.clock
        self.produce = Throttle(windows)
        self.fetch = Throttle(windows)
        self.request = Throttle(windows, throttle_ms_max=windows.sample_ms)
        self.mutations = MutationThrottle(mutation_windows)
        self.throttled = dict.fromkeys(KINDS, 0)
        """Answers that asked a client to wait, by the kind of quota."""
        self.throttled_ms = dict.fromkeys(KINDS, 0)
        self._on_change: list[Callable[[ClientThrottles], None]] = []

    def on_change(self, changed: Callable[[ClientThrottles], None]) -> None:
        """Call `changed` now, and whenever the quotas are others."""
        self._on_change.append(changed)
        changed(self)

    def quotas_changed(self, image: ClientQuotas) -> None:
        """The metadata has these quotas now. What was counted goes on to count."""
        quotas = image.by_entity
        self.produce.limits = limits_by_key(quotas, PRODUCER_BYTE_RATE)
        self.fetch.limits = limits_by_key(quotas, CONSUMER_BYTE_RATE)
        self.request.limits = limits_by_key(quotas, REQUEST_PERCENTAGE)
        self.mutations.limits = limits_by_key(quotas, CONTROLLER_MUTATION_RATE)
        for changed in self._on_change:
            changed(self)

    def counters(self) -> dict[str, int]:
        """How many clients, or groups of them, each kind of quota counts by themselves."""
        counts = (self.produce.counters, self.fetch.counters, self.request.counters, self.mutations.counters)
        return dict(zip(KINDS, counts, strict=True))

    def now_ns(self) -> int:
        """For the time that a handler takes."""
        return self._clock.now_ns()

    # -- Produce

    @property
    def for_produce(self) -> ClientThrottles | None:
        """This, if Produce requests have to be counted."""
        return self if self.produce.active or self.request.active else None

    def produced(self, connection: ClientConnection, frame: memoryview, acks: int, began_ns: int) -> int:
        """A Produce request has been handled: the time in ms that its client has to wait. It is muted from now on."""
        now_ms = self._clock.now_ms()
        user, client_id = connection.session.principal.name, client_id_of(frame)
        bandwidth_ms = self.produce.record(user, client_id, len(frame), now_ms)
        request_ms = 0
        if acks:
            request_ms = self._spent(user, client_id, self._clock.now_ns() - began_ns, now_ms)
        throttle_ms = self._longest("Produce", bandwidth_ms, request_ms)
        if throttle_ms:
            connection.mute(throttle_ms)
        return throttle_ms

    # -- Fetch

    @property
    def for_fetch(self) -> ClientThrottles | None:
        """This, if consumers' fetches have to be counted."""
        return self if self.fetch.active or self.request.active else None

    def fetcher(self, connection: ClientConnection, frame: memoryview, call: FetchCall) -> Fetcher:
        """A consumer's fetch that counts: it is to bring no more than its quota ever lets through."""
        found = Fetcher(self, connection.session.principal.name, client_id_of(frame))
        most = self.fetch.most_at_once(found.user, found.client_id)
        if most is not None:
            call.max_bytes = min(call.max_bytes, int(most))
            call.min_bytes = min(call.min_bytes, call.max_bytes)
        return found

    def fetched(self, connection: ClientConnection, client: Fetcher, size_bytes: int) -> int:
        """A consumer's fetch is about to be answered: the time that it has to wait, muted, with an empty answer."""
        now_ms = self._clock.now_ms()
        request_ms = self._spent(client.user, client.client_id, client.spent_ns, now_ms)
        bandwidth_ms = self.fetch.record(client.user, client.client_id, size_bytes, now_ms)
        throttle_ms = self._longest("Fetch", bandwidth_ms, request_ms)
        if throttle_ms:
            self.fetch.unrecord(client.user, client.client_id, size_bytes, now_ms)
            connection.mute(throttle_ms)
        return throttle_ms

    # -- other requests

    def throttle_ms(self, call: Call, spent_ns: int, error: int) -> int:
        """A request is about to be answered, with this error for the whole: the time that its client has to wait."""
        if call.header.api_key in _OF_NODES and error != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return 0
        user, client_id = call.session.principal.name, call.header.client_id or ""
        throttle_ms = self._spent(user, client_id, spent_ns, self._clock.now_ms())
        return self._longest("Request", 0, throttle_ms)

    def mutations_of(self, call: Call) -> Mutations:
        """What the client of a request to the controller may create and delete."""
        return self.mutations.request(
            call.session.principal.name,
            call.header.client_id or "",
            self._clock.now_ms(),
            strict=call.version >= _STRICT_FROM.get(ApiKey(call.header.api_key), 0),
        )

    def mutations_throttled(self, throttle_ms: int) -> None:
        """The client of such a request has to wait."""
        self._longest("ControllerMutation", throttle_ms, 0)

    def _spent(self, user: str, client_id: str, spent_ns: int, now_ms: int) -> int:
        return self.request.record(user, client_id, spent_ns * _PERCENT_PER_NS, now_ms)

    def _longest(self, kind: str, own_ms: int, request_ms: int) -> int:
        if own_ms <= request_ms:
            kind = "Request"
        throttle_ms = max(own_ms, request_ms)
        if throttle_ms:
            self.throttled[kind] += 1
            self.throttled_ms[kind] += throttle_ms
        return throttle_ms


class Fetcher:
    """The consumer of one fetch that counts, and the loop's time that the fetch has taken so far."""

    __slots__ = ("client_id", "spent_ns", "throttles", "user")

    def __init__(self, throttles: ClientThrottles, user: str, client_id: str) -> None:
        self.throttles = throttles
        self.user = user
        self.client_id = client_id
        self.spent_ns = 0


def client_id_of(frame: memoryview) -> str:
    """The client id in a request's header."""
    return parse_request_header(frame).client_id or ""
