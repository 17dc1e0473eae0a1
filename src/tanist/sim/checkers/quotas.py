"""How much clients are given, and how long they are not heard (S31, S32), judged from frames.

* S31: a client is throttled only by the quota that counts for it at a moment between the arrival of its request and the
  answer, the most specific one. It waits as long as its use demands, and no longer.
* S32: nothing is heard of a connection before the time is over that its client was given, and something soon after.

The use of a counter is known by the frames: the sizes of produce requests and of answers to fetches, partitions asked
for, connections that were answered. Apache Kafka's rate is measured over 10 to 12 seconds, in samples that begin with
their first value. So there are two bounds. What was surely counted in the last 11 seconds, as a rate over 12, gives the
shortest time that a client has to wait. All that may have been counted in the last 12, as a rate over 10, gives the
longest. Buckets of tokens are judged alike: by what this controller has surely counted, and by what any may have.

Counters are a node's, and begin anew with its process. Must not ask the product's counters or its precedence; those are
`QuotaOracle`'s and this file's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from tanist.broker.node import Node
from tanist.events.event import Event as NodeEvent
from tanist.events.process import ConnectionRefused
from tanist.ports import NEVER_LARGE
from tanist.sim.checkers.metadata import MetadataChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.metered import ADDRESSES, CLIENTS, FETCH, MUTATION, PRODUCE, Metered
from tanist.sim.quota_oracle import Counter, Limit, QuotaOracle, Quotas, shares
from tanist.sim.world.connection import SimConnection
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import correlation_id_of, decode_request, decode_response, parse_request_header

_KEYS: Final = {ApiKey.PRODUCE: PRODUCE, ApiKey.FETCH: FETCH, ApiKey.CREATE_TOPICS: MUTATION}
_WINDOW_MS: Final = (10_000, 12_000)
"""Over which a rate is measured."""
_KEPT_MS: Final = 11_000
"""What is younger is counted."""
_ANSWERED_MS: Final = 60_000
"""Every request is answered by then, or never."""
_DIALS_MS: Final = 3_000
"""A dialer waits for no longer."""
_SAVED_S: Final = 11
"""So many seconds' worth of changes is saved up."""
_STRICT_VERSION: Final = 6
"""Of CreateTopics."""
_ROUNDING_MS: Final = 2
_GRACE_MS: Final = 100
"""A process that was frozen has its timers and its frames in one turn after the other."""


@dataclass(slots=True, eq=False)
class _Use:
    """What a client has used, or asked for."""

    key: str
    client: Metered
    first_ms: int
    last_ms: int
    """It was counted between the two, if at all."""
    value: float = 0.0
    sure: bool = False
    counters: frozenset[Counter | None] = frozenset()
    """Where it was counted: one of them, None: nowhere. Empty: it is not known yet."""
    controller: object = None

    def may_be_in(self, counter: Counter) -> bool:
        """Whether it may have been counted there."""
        return counter in self.counters if self.counters else shares(counter, *self.client)

    def is_in(self, counter: Counter) -> bool:
        """Whether it was surely counted there."""
        return self.sure and self.counters == {counter}


@dataclass(slots=True, eq=False)
class _Asked:
    """A request, as it arrived."""

    use: _Use
    api_key: int
    version: int
    request: Any
    host: Host
    node: Node
    since: int
    """The metadata offset that was applied by who counts."""

    @property
    def what(self) -> str:
        return f"{ApiKey(self.api_key).name} of {self.use.client.name} at {self.host.name}"


@dataclass(slots=True, eq=False)
class _Talk:
    """One connection of a client, by the node's end."""

    end: SimConnection
    node: Node
    asked: dict[int, _Asked] = field(default_factory=dict)
    unheard_until_ms: int = 0
    """The client knows that it is not heard before."""
    heard_from_ms: int | None = None
    """It must be by then. None: nothing is known."""
    late_since_ms: int | None = None


@dataclass(slots=True, eq=False)
class Dial:
    """A dialer wants a connection."""

    address: str
    node: Node | None
    since: int
    use: _Use


class QuotaChecks(Watcher):
    """Of one run. Reads each frame where it arrives, before the process does."""

    def __init__(self, world: World, metadata: MetadataChecks) -> None:
        self._world = world
        self._metadata = metadata
        self.oracle = QuotaOracle()
        self._hosts = {host.name: host for host in world.hosts.values()}
        self._talks: dict[SimConnection, _Talk] = {}
        self._talks_of: dict[str, list[_Talk]] = defaultdict(list)
        self._uses: dict[tuple[object, str], list[_Use]] = defaultdict(list)
        """By node and key; of changes all, for the next controller may be another one. In order of arrival."""
        self._dials: dict[str, list[Dial]] = defaultdict(list)
        self._refused: list[tuple[Host, str]] = []
        """Addresses, in this turn."""
        world.network.readers.append(self.read)
        world.watchers.append(self)

    # -- requests

    def read(self, end: SimConnection, frame: memoryview) -> None:
        """One of `SimNetwork.readers`."""
        if end.accepted:
            client = CLIENTS.get(end.peer_host)
            if client is not None:
                self._request(client, end, frame)
        elif end.host in CLIENTS and end.other is not None:
            talk = self._talks.get(end.other)
            asked = None if talk is None else talk.asked.pop(correlation_id_of(frame), None)
            if talk is not None and asked is not None:
                response = decode_response(asked.api_key, asked.version, memoryview(bytes(frame)))
                self._answer(talk, asked, response, len(frame))

    def _request(self, client: Metered, end: SimConnection, frame: memoryview) -> None:
        host = self._hosts[end.host]
        node = host.node
        if node is None:
            return
        talk = self._talks.get(end)
        if talk is None:
            talk = self._talks[end] = _Talk(end, node)
            self._talks_of[host.name].append(talk)
        now_ms = self._world.now_ms
        if now_ms < talk.unheard_until_ms:
            early_ms = talk.unheard_until_ms - now_ms
            self._fail("S32", f"{client.name} is heard at {host.name} {early_ms} ms before it may be")
        talk.heard_from_ms = None
        header = parse_request_header(frame)
        key = _KEYS.get(ApiKey(header.api_key))
        if key is None:
            return
        request: Any = decode_request(header, memoryview(bytes(frame)))
        use = _Use(key, client, now_ms, now_ms + _ANSWERED_MS)
        asked = _Asked(use, header.api_key, header.api_version, request, host, node, node.metadata.applied_offset)
        if key == PRODUCE:
            use.value, use.last_ms = len(frame), now_ms
            use.counters = self._counters(asked)
        elif key == FETCH:
            use.value = request.max_bytes + _HEAD_BYTES
        else:
            use.value = request.topics[0].num_partitions
            asked.since, use.controller = self._controllers()
        self._uses[None if key == MUTATION else node, key].append(use)
        talk.asked[header.correlation_id] = asked

    def _controllers(self) -> tuple[int, object]:
        """What any node has applied that takes itself for the active controller; which node it is, if one does."""
        leaders = [node for node in self._world.nodes() if node.quorum.raft.is_leader]
        applied = min((node.metadata.applied_offset for node in leaders), default=self._metadata.applied_offset)
        return applied, (leaders[0], leaders[0].quorum.raft.epoch) if len(leaders) == 1 else None

    def _states(self, asked: _Asked) -> list[Quotas]:
        until = self._metadata if asked.use.key == MUTATION else asked.node.metadata
        return list(self.oracle.between(asked.since, until.applied_offset))

    def _limits(self, asked: _Asked) -> set[Limit | None]:
        return {state.limit(asked.use.key, *asked.use.client) for state in self._states(asked)}

    def _counters(self, asked: _Asked) -> frozenset[Counter | None]:
        return frozenset(None if limit is None else limit.counter for limit in self._limits(asked))

    # -- answers

    def _answer(self, talk: _Talk, asked: _Asked, response: Any, size_bytes: int) -> None:
        use, throttle_ms = asked.use, response.throttle_time_ms
        now_ms = self._world.now_ms
        errors = set(_errors(asked.api_key, response))
        if use.key == PRODUCE:
            self._heard_in(talk, use.first_ms, use.first_ms, throttle_ms)
            use.sure = errors == {ErrorCode.NONE}
            self._judge_rate(asked, throttle_ms, least=use.value if use.sure else None, most=0)
        elif use.key == FETCH:
            self._heard_in(talk, use.first_ms, now_ms, throttle_ms)
            use.last_ms = now_ms
            use.counters = self._counters(asked)
            asked_for = use.value
            # As Apache Kafka counts: the body and four bytes more; of this version the frame has five.
            use.value = 0 if throttle_ms else size_bytes - 1
            use.sure = errors == {ErrorCode.NONE}
            most = asked_for if throttle_ms else 0
            self._judge_rate(asked, throttle_ms, least=use.value if use.sure else None, most=most)
        else:
            self._heard_in(talk, use.first_ms, now_ms, throttle_ms)
            use.last_ms = now_ms
            use.counters = self._counters(asked)
            self._judge_changes(asked, throttle_ms, errors)

    def _heard_in(self, talk: _Talk, first_ms: int, last_ms: int, throttle_ms: int) -> None:
        """The client knows that it is not heard for so long, from a time between the two."""
        if throttle_ms and not talk.asked:
            talk.unheard_until_ms = max(talk.unheard_until_ms, first_ms + throttle_ms)
            talk.heard_from_ms = max(last_ms + throttle_ms, self._world.now_ms)

    def _judge_rate(self, asked: _Asked, throttle_ms: int, *, least: float | None, most: float) -> None:
        """`least`: what was surely counted last, None if that is not known. `most`: what may have been, beside it."""
        use = asked.use
        uses = self._uses[asked.node, use.key]

        def bounds(limit: Limit) -> tuple[int, int]:
            used = most + sum(
                each.value
                for each in _recent(uses, use.first_ms - _WINDOW_MS[1] - _ANSWERED_MS)
                if each.last_ms >= use.first_ms - _WINDOW_MS[1]
                and each.first_ms <= use.last_ms
                and each.may_be_in(limit.counter)
            )
            longest_ms = _ms(used / limit.bound) - _WINDOW_MS[0] + _ROUNDING_MS
            if least is None:
                return 0, longest_ms
            used = least + sum(
                each.value
                for each in _recent(uses, use.last_ms - _KEPT_MS + 1)
                if each is not use and each.last_ms <= use.first_ms and each.is_in(limit.counter)
            )
            return _ms(used / limit.bound) - _WINDOW_MS[1] - _ROUNDING_MS, longest_ms

        self._judge(asked, throttle_ms, bounds)

    def _judge_changes(self, asked: _Asked, throttle_ms: int, errors: set[int]) -> None:
        use, strict = asked.use, asked.version >= _STRICT_VERSION
        uses, refused = self._uses[None, MUTATION], errors == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}
        use.sure = (
            errors == {ErrorCode.NONE} and use.controller is not None and use.controller == self._controllers()[1]
        )
        if refused:
            self._world.counts["quotas: changes refused"] += 1
            uses.remove(use)
        # (Refused for what is owed, which may be less than half a millisecond: then it is 0 ms, as in Apache Kafka.)
        if strict and throttle_ms and not refused:
            self._fail("S31", f"{asked.what} is carried out, throttled for {throttle_ms} ms")

        def bounds(limit: Limit) -> tuple[int, int]:
            rates = {
                found.bound
                for state in self.oracle.between(-1, self._metadata.applied_offset)
                if (found := state.limit(MUTATION, *use.client)) is not None and found.counter == limit.counter
            }
            possible = [each for each in uses if each.may_be_in(limit.counter)]
            owed = _owed_at_most(possible, use.first_ms, min(rates))
            longest_ms = _ms(owed / limit.bound) + _ROUNDING_MS if owed else 0
            if not use.sure:
                return 0, longest_ms
            surely = [
                each
                for each in uses
                if each.is_in(limit.counter)
                and each.controller == use.controller
                and (not strict if each is use else each.last_ms <= use.first_ms)
            ]
            return _ms(_owed_at_least(surely, use.last_ms, max(rates)) / max(rates)) - _ROUNDING_MS, longest_ms

        self._judge(asked, throttle_ms, bounds)

    def _judge(self, asked: _Asked, throttle_ms: int, bounds: Callable[[Limit], tuple[int, int]]) -> None:
        """`bounds`: the shortest and the longest time that a client of this quota has to wait; below 0: none."""
        limits = self._limits(asked)
        found = [(0, 0) if limit is None else bounds(limit) for limit in limits]
        shortest_ms, longest_ms = min(each[0] for each in found), max(each[1] for each in found)
        self._world.counts["quotas: changed meanwhile"] += len(limits) > 1
        if throttle_ms:
            self._world.counts[f"quotas: throttled {ApiKey(asked.api_key).name}"] += 1
        elif None not in limits:
            self._world.counts["quotas: within a quota"] += 1
        if not shortest_ms <= throttle_ms <= max(0, longest_ms):
            texts = " or ".join(sorted("no quota" if limit is None else _text(limit) for limit in limits))
            self._fail(
                "S31",
                f"{asked.what} is throttled for {throttle_ms} ms: at least {max(0, shortest_ms)} and at most "
                f"{max(0, longest_ms)} are right, by {texts}",
            )

    # -- what is not heard any more

    def turn_ended(self, host: Host) -> None:
        talks = self._talks_of.get(host.name)
        if talks:
            now_ms = self._world.now_ms
            for talk in list(talks):
                if talk.end.closed or talk.node is not host.node:
                    talks.remove(talk)
                    self._talks.pop(talk.end, None)
                elif talk.heard_from_ms is not None and host.disk.large_write_bytes == NEVER_LARGE:
                    self._check_heard(host, talk, now_ms)
        refused, self._refused = self._refused, []
        for at, address in refused:
            self._check_refused(at, address)

    def _check_heard(self, host: Host, talk: _Talk, now_ms: int) -> None:
        """Its process runs, its time is over, and nothing is read."""
        if talk.heard_from_ms is None or now_ms <= talk.heard_from_ms or talk.end.reads:
            talk.late_since_ms = None
        elif talk.late_since_ms is None:
            talk.late_since_ms = now_ms
        elif now_ms > talk.late_since_ms + _GRACE_MS:
            late_ms = now_ms - talk.heard_from_ms
            self._fail("S32", f"{talk.end.peer_host} is not heard at {host.name}, {late_ms} ms after its time is over")

    # -- connections

    def dials(self, address: str, broker: str) -> Dial:
        """A dialer is about to connect."""
        node = self._hosts[broker].node
        now_ms = self._world.now_ms
        use = _Use("", Metered("", ""), now_ms, now_ms + _ANSWERED_MS, value=1)
        dial = Dial(address, node, -1 if node is None else node.metadata.applied_offset, use)
        self._dials[address].append(dial)
        return dial

    def answered(self, dial: Dial) -> None:
        """Its connection was taken."""
        node, now_ms = dial.node, self._world.now_ms
        dial.use.last_ms = now_ms
        if node is None or self._world.hosts[node.node_id].node is not node:
            return
        bounds = self._bounds(dial)
        dial.use.sure = None not in bounds
        if not dial.use.sure:
            return
        taken = sum(each.use.sure and each.node is node for each in self._dialled(dial.address, now_ms - _KEPT_MS + 1))
        self._world.counts["quotas: connections within a quota"] += 1
        if taken > max(bound for bound in bounds if bound is not None) * _WINDOW_MS[1] / 1_000 + 1:
            self._fail("S31", f"{dial.address} has {taken} connections in {_KEPT_MS} ms: {bounds}")

    def observed(self, host: Host, event: NodeEvent) -> None:
        """Judged when the turn has ended."""
        if isinstance(event, ConnectionRefused):
            self._refused.append((host, event.host))

    def _check_refused(self, host: Host, address: str) -> None:
        if address not in ADDRESSES:
            self._fail("S31", f"{host.name} refuses a connection of {address}, which exceeds no quota")
        now_ms, node = self._world.now_ms, host.node
        dials = list(self._dialled(address, now_ms - _WINDOW_MS[1] - _DIALS_MS))
        self._world.counts["quotas: connections refused"] += 1
        bounds = {bound for dial in dials if dial.node is node for bound in self._bounds(dial) if bound is not None}
        if not bounds or len(dials) <= min(bounds) * _WINDOW_MS[0] / 1_000:
            self._fail("S31", f"{host.name} refuses a connection of {address} after {len(dials)}, by {bounds}")

    def _dialled(self, address: str, from_ms: int) -> Iterator[Dial]:
        """The latest first."""
        for dial in reversed(self._dials[address]):
            if dial.use.first_ms < from_ms:
                return
            yield dial

    def _bounds(self, dial: Dial) -> set[float | None]:
        assert dial.node is not None
        until = dial.node.metadata.applied_offset
        return {state.connections(dial.address) for state in self.oracle.between(dial.since, until)}

    def _fail(self, property_id: str, message: str) -> NoReturn:
        raise Violation(property_id, self._world.now_us, message)


_HEAD_BYTES: Final = 100
"""An answer without records, and the rest of a batch that is longer than what was asked for."""


def _errors(api_key: int, response: Any) -> Iterator[int]:
    if api_key == ApiKey.PRODUCE:
        yield from (each.error_code for topic in response.responses for each in topic.partition_responses)
    elif api_key == ApiKey.FETCH:
        yield response.error_code
        yield from (each.error_code for topic in response.responses for each in topic.partitions)
    else:
        yield from (topic.error_code for topic in response.topics)


def _recent(uses: list[_Use], from_ms: int) -> Iterator[_Use]:
    """Those that have arrived since then, the latest first."""
    for use in reversed(uses):
        if use.first_ms < from_ms:
            return
        yield use


def _owed_at_most(uses: Iterable[_Use], now_ms: int, rate: float) -> float:
    """What a bucket may lack that has filled at this rate: all was counted, as late as it can have been."""
    owed, total = 0.0, 0.0
    for use in sorted(uses, key=lambda each: each.last_ms, reverse=True):
        total += use.value
        owed = max(owed, total - rate * (_SAVED_S + max(0, now_ms - use.last_ms) / 1_000))
    return owed


def _owed_at_least(uses: Iterable[_Use], now_ms: int, rate: float) -> float:
    """What a bucket surely lacks: all was counted as early as it can have been."""
    owed, total = 0.0, 0.0
    for use in sorted(uses, key=lambda each: each.first_ms, reverse=True):
        total += use.value
        owed = max(owed, total - rate * (_SAVED_S + (now_ms - use.first_ms) / 1_000))
    return owed


def _text(limit: Limit) -> str:
    user, client_id = limit.counter
    return f"{limit.bound:g} of user {user}, client {client_id}"


def _ms(seconds: float) -> int:
    return round(seconds * 1_000)
