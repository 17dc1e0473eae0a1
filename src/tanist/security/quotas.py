"""Quotas of clients (KIP-13, 55, 124, 546, 599): whose quota counts, how much was used, how long a client has to pause.

Owns the counters of one quota key (`Throttle`, `MutationThrottle`) and the two ways to count: a rate over samples of
one second, and a bucket of tokens. Counts and rounds as Apache Kafka's `Rate`, `TokenBucket` and `ClientQuotaManager`,
so that clients wait as long. Time is an argument. Must never read a clock, and never decide what is done
with a client: who calls mutes its connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Final, Generic, TypeAlias, TypeVar

from tanist.controller.image.client_quotas import CLIENT_ID, USER, Entity

Client: TypeAlias = tuple[str, str]
"""Name of the principal, client id. Of a counter: "" for what it does not tell apart."""

IDLE_MS: Final = 3_600_000
"""A counter that nobody has used for so long is forgotten."""
COUNTERS_MAX: Final = 100_000
"""Clients choose their ids: of more counters than these, the one that was not used for longest is forgotten."""
THROTTLE_MS_MAX: Final = 2**31 - 1
"""An answer has 32 bits for it."""


@dataclass(frozen=True, slots=True)
class Windows:
    """How a rate is measured: `quota.window.num` samples of `quota.window.size.seconds`."""

    samples: int = 11
    sample_ms: int = 1_000


class Rate:
    """Values of the last seconds. A sample begins with the first value after the end of the one before."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[list[float]] = []
        """A ring of [start, time of its last value, sum]. One more than counts, as the oldest may overlap."""
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples:
            samples.append([now_ms, now_ms, 0.0])
        sample = samples[self._current]
        if now_ms - sample[0] >= self._windows.sample_ms:
            self._current = (self._current + 1) % (self._windows.samples + 1)
            sample = [now_ms, now_ms, 0.0]
            if self._current < len(samples):
                samples[self._current] = sample
            else:
                samples.append(sample)
        sample[1] = now_ms
        sample[2] += value

    def measure(self, now_ms: int) -> tuple[float, int]:
        """The rate a second, and the time in ms over which it is one."""
        windows, samples = self._windows, self._samples
        if not samples:
            samples.append([now_ms, now_ms, 0.0])
        expired_ms = now_ms - windows.samples * windows.sample_ms
        total = 0.0
        oldest_ms: float = now_ms
        for sample in samples:
            if sample[1] <= expired_ms:
                sample[:] = now_ms, now_ms, 0.0
            total += sample[2]
            oldest_ms = min(oldest_ms, sample[0])
        elapsed_ms = now_ms - int(oldest_ms)
        # A first burst counts as if it had taken all samples but one.
        missing = windows.samples - 1 - elapsed_ms // windows.sample_ms
        if missing > 0:
            elapsed_ms += missing * windows.sample_ms
        elapsed_ms = max(elapsed_ms, 1)
        return total / (elapsed_ms / 1_000.0), elapsed_ms

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing has to come until the rate is `bound`; 0 if it is not exceeded."""
        rate, elapsed_ms = self.measure(now_ms)
        if rate <= bound:
            return 0
        return _rounded((rate - bound) / bound * elapsed_ms)


class TokenBucket:
    """Tokens that come at a rate, and are kept for as long as the windows are (KIP-599). It may owe some."""

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def tokens(self, rate: float, now_ms: int) -> float:
        """What is in it. The first look finds it full."""
        burst = self._windows.samples * (self._windows.sample_ms / 1_000.0) * rate
        if self._updated_ms is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + rate * ((now_ms - self._updated_ms) / 1_000.0))
        self._updated_ms = now_ms
        return self._tokens

    def take(self, tokens: float, rate: float, now_ms: int) -> None:
        self._tokens = self.tokens(rate, now_ms) - tokens

    def throttle_ms(self, rate: float, now_ms: int) -> int:
        """How long until it owes nothing; 0 if it does not."""
        tokens = self.tokens(rate, now_ms)
        return 0 if tokens >= 0 else _rounded(-tokens / rate * 1_000.0)


def _rounded(time_ms: float) -> int:
    return min(floor(time_ms + 0.5), THROTTLE_MS_MAX)  # Java's Math.round


@dataclass(frozen=True, slots=True)
class Limit:
    """The quota that counts for a client, and whose counter it uses."""

    bound: float
    counter: Client


class Limits:
    """The quotas of one key for users and client ids. The first that exists counts, of eight."""

    __slots__ = ("_clients", "_pairs", "_users")

    def __init__(self, quotas: Iterable[tuple[Entity, float]] = ()) -> None:
        self._users: dict[str | None, float] = {}
        self._clients: dict[str | None, float] = {}
        self._pairs: dict[tuple[str | None, str | None], float] = {}
        for entity, bound in quotas:
            named = dict(entity)
            if USER in named and CLIENT_ID in named:
                self._pairs[named[USER], named[CLIENT_ID]] = bound
            elif USER in named:
                self._users[named[USER]] = bound
            elif CLIENT_ID in named:
                self._clients[named[CLIENT_ID]] = bound

    def __bool__(self) -> bool:
        return bool(self._pairs or self._users or self._clients)

    def of(self, user: str, client_id: str) -> Limit | None:
        """The quota of a client; None if it has none. A default is a rule for each, not a counter for all.

        No quota that names client ids holds for a client without one, as in Apache Kafka.
        """
        pairs = self._pairs if client_id else {}
        for who in (user, None):
            for pair in ((who, client_id), (who, None)):
                if pair in pairs:
                    return Limit(pairs[pair], (user, client_id))
            if who in self._users:
                return Limit(self._users[who], (user, ""))
        for which in (client_id, None) if client_id else ():
            if which in self._clients:
                return Limit(self._clients[which], ("", client_id))
        return None


def limits_by_key(quotas: Mapping[Entity, Mapping[str, float]], key: str) -> Limits:
    """The limits of one key, out of the quotas of a cluster."""
    return Limits((entity, values[key]) for entity, values in quotas.items() if key in values)


_Counter = TypeVar("_Counter")


class _Counters(Generic[_Counter]):
    """The counters of one key, each with the time of its last use."""

    def __init__(self, make: Callable[[Windows], _Counter], windows: Windows) -> None:
        self._make = make
        self._windows = windows
        self._counters: OrderedDict[Client, tuple[_Counter, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counters)

    def of(self, client: Client, now_ms: int) -> _Counter:
        found = self._counters.get(client)
        if found is None:
            self._make_way(now_ms)
            counter = self._make(self._windows)
        else:
            counter = found[0]
        self._counters[client] = counter, now_ms
        self._counters.move_to_end(client)
        return counter

    def _make_way(self, now_ms: int) -> None:
        counters = self._counters
        while counters:
            client, (_, used_ms) = next(iter(counters.items()))
            if now_ms - used_ms < IDLE_MS and len(counters) < COUNTERS_MAX:
                return
            del counters[client]


class Throttle:
    """The quota of one key that is a rate: what clients have used, and how long they have to pause."""

    def __init__(self, windows: Windows, *, throttle_ms_max: int = THROTTLE_MS_MAX) -> None:
        self._windows = windows
        self._throttle_ms_max = throttle_ms_max
        self._counters = _Counters(Rate, windows)
        self.limits = Limits()
        """May be replaced at any time: the counters go on."""

    @property
    def active(self) -> bool:
        """Whether anybody has such a quota."""
        return bool(self.limits)

    @property
    def counters(self) -> int:
        """How many clients, or groups of them, have one of their own."""
        return len(self._counters)

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """A client has used so much: give the time in ms that it has to pause, 0 for none."""
        limit = self.limits.of(user, client_id)
        if limit is None:
            return 0
        rate = self._counters.of(limit.counter, now_ms)
        rate.record(value, now_ms)
        return min(rate.throttle_ms(limit.bound, now_ms), self._throttle_ms_max)

    def unrecord(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """What was recorded was not given after all."""
        limit = self.limits.of(user, client_id)
        if limit is not None:
            self._counters.of(limit.counter, now_ms).record(-value, now_ms)

    def most_at_once(self, user: str, client_id: str) -> float | None:
        """More than this is throttled even if nothing was used before; None if nothing is too much."""
        limit = self.limits.of(user, client_id)
        if limit is None:
            return None
        return limit.bound * (self._windows.samples - 1) * (self._windows.sample_ms / 1_000.0)


class MutationThrottle:
    """The quota of changes that a controller makes: partitions created and deleted a second."""

    def __init__(self, windows: Windows) -> None:
        self._counters = _Counters(TokenBucket, windows)
        self.limits = Limits()

    @property
    def counters(self) -> int:
        """How many clients, or groups of them, have one of their own."""
        return len(self._counters)

    def request(self, user: str, client_id: str, now_ms: int, *, strict: bool) -> Mutations:
        """The changes of one request. `strict`: its client knows the error of a refused one."""
        limit = self.limits.of(user, client_id)
        if limit is None:
            return Mutations(None, 0.0, now_ms, strict)
        return Mutations(self._counters.of(limit.counter, now_ms), limit.bound, now_ms, strict)


class Mutations:
    """The changes of one request to a controller."""

    __slots__ = ("_bucket", "_now_ms", "_rate", "_strict", "throttle_ms")

    def __init__(self, bucket: TokenBucket | None, rate: float, now_ms: int, strict: bool) -> None:
        self._bucket = bucket
        self._rate = rate
        self._now_ms = now_ms
        self._strict = strict
        self.throttle_ms = 0
        """What the answer says, once the request is decided."""

    def take(self, partitions: int) -> bool:
        """So many partitions are to be created or deleted; False if that has to wait.

        A strict request is refused while the bucket owes tokens, and is not throttled for what it takes itself. Another
        is always carried out, and throttled for what the bucket owes afterwards.
        """
        bucket = self._bucket
        if bucket is None:
            return True
        if self._strict:
            if bucket.tokens(self._rate, self._now_ms) < 0:
                self.throttle_ms = bucket.throttle_ms(self._rate, self._now_ms)
                return False
            bucket.take(partitions, self._rate, self._now_ms)
            return True
        bucket.take(partitions, self._rate, self._now_ms)
        self.throttle_ms = bucket.throttle_ms(self._rate, self._now_ms)
        return True
