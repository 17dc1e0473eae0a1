"""Faults by request: which requests a rule is about, and what becomes of them or of their answers.

The words are those of Apache Kafka's own test proxy (KAFKA-21074): an error is injected, a response is delayed, the
connection ends instead of a response, a client is blackholed; once, on the nth call, n times, every time, or with a
probability. This module knows names and numbers; it never touches a socket or a message.

An error either refuses a request, which then has no effect, or takes the place of the answer to one that was carried
out. `error_fault` knows which of the two Kafka does with which error.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode

RequestFaultKind: TypeAlias = Literal["error", "delay", "disconnect", "blackhole"]

_OWN_CLIENTS = re.compile(r"broker-\d+-[a-z-]+|raft-\d+|controller-\d+-to-broker-\d+|tanist")
"""Client ids of nodes, and of the tools that look at a cluster while it has faults."""

_READING: frozenset[int] = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.FIND_COORDINATOR,
        ApiKey.GET_REPLICA_LOG_INFO,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.LIST_GROUPS,
        ApiKey.LIST_OFFSETS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
    }
)
"""Requests that change nothing: they are carried out, for the rest of their answer."""

_AFTER_THE_EFFECT: frozenset[tuple[int, int]] = frozenset(
    {
        (ApiKey.PRODUCE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (ApiKey.WRITE_TXN_MARKERS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (ApiKey.HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS),  # the session goes on
        (ApiKey.JOIN_GROUP, ErrorCode.MEMBER_ID_REQUIRED),  # the answer has the id, and the group expects it
    }
)
"""Errors that Kafka gives when it has done what was asked. REQUEST_TIMED_OUT is one of every API: what was asked is
done, and its replicas (of records), or the brokers (of topics, leaders, reassignments), are late."""


class UnknownName(ValueError):
    """There is no API, or no error, of this name; the text suggests one."""


@dataclass(frozen=True, slots=True)
class RequestFault:
    """One rule. Calls are counted from 1, over all nodes of the cluster."""

    kind: RequestFaultKind
    api_key: int = -1
    """-1: all requests."""
    error_code: int = 0
    after: bool = False
    """An error: whether the request is carried out all the same."""
    delay_ms: int = 0
    client_id: str = ""
    """Only requests of clients whose id has this in it."""
    first: int = 1
    last: int | None = 1
    """The calls that are hit; None: all from `first` on."""
    probability: float = 1.0
    nodes: bool = False
    """Whether requests of nodes and of tanist's tools are meant as well."""
    rule_id: int = 0
    """The number of the order that set it."""

    def __str__(self) -> str:
        api = "all requests" if self.api_key < 0 else ApiKey(self.api_key).name
        of = f" of clients like {self.client_id!r}" if self.client_id and self.kind != "blackhole" else ""
        match self.kind:
            case "error":
                done = "refused" if not self.after else "answered" if self.reads else "carried out and answered"
                what = f"{api}{of} is {done} with {ErrorCode.name_of(self.error_code)}"
            case "delay":
                what = f"the answer to {api}{of} is held back for {self.delay_ms} ms"
            case "disconnect":
                what = f"the connection ends in place of the answer to {api}{of}"
            case _:
                what = f"requests of clients like {self.client_id!r} are dropped"
        return f"rule {self.rule_id}: {what}, {self.when}"

    @property
    def reads(self) -> bool:
        """Whether requests of its API change nothing."""
        return self.api_key in _READING

    @property
    def refuses(self) -> bool:
        """Whether the node does not see the requests that it hits, and they are answered."""
        return self.kind == "error" and not self.after

    @property
    def when(self) -> str:
        """The trigger in words."""
        if self.probability < 1:
            return f"with probability {self.probability:g}"
        if self.last is None:
            return "every time"
        if self.first == self.last:
            return "once" if self.first == 1 else f"on call {self.first}"
        return f"{self.last} times"

    def once(self) -> RequestFault:
        return self.on_call(1)

    def on_call(self, number: int) -> RequestFault:
        if number < 1:
            raise ValueError(f"calls are counted from 1: there is no call {number}")
        return replace(self, first=number, last=number, probability=1.0)

    def times(self, number: int) -> RequestFault:
        if number < 1:
            raise ValueError(f"a fault that happens {number} times is none: give 1 or more")
        return replace(self, first=1, last=number, probability=1.0)

    def every_time(self) -> RequestFault:
        return replace(self, first=1, last=None, probability=1.0)

    def with_probability(self, probability: float) -> RequestFault:
        if not 0 < probability <= 1:
            raise ValueError(f"a probability is above 0 and at most 1, not {probability:g}")
        return replace(self, first=1, last=None, probability=probability)

    def concerns(self, api_key: int, client_id: str) -> bool:
        """Whether a request counts as a call."""
        if self.api_key not in (-1, api_key) or self.client_id not in client_id:
            return False
        return self.nodes or _OWN_CLIENTS.fullmatch(client_id) is None

    def hits_call(self, number: int, rng: float) -> bool:
        """Whether it happens to the nth call; `rng` is drawn from [0, 1)."""
        in_range = number >= self.first and (self.last is None or number <= self.last)
        return in_range and (self.probability >= 1 or rng < self.probability)

    def as_json(self, calls: int, hits: int) -> dict[str, Any]:
        """For programs."""
        found: dict[str, Any] = {"kind": self.kind, "rule": self.rule_id, "trigger": self.when}
        if self.api_key >= 0:
            found["api"] = ApiKey(self.api_key).name
        if self.kind == "error":
            found["error"] = ErrorCode.name_of(self.error_code)
            found["after"] = self.after
        if self.kind == "delay":
            found["delay_ms"] = self.delay_ms
        if self.client_id:
            found["client_id"] = self.client_id
        return found | {"nodes": self.nodes, "calls": calls, "hits": hits}

    def saved(self) -> dict[str, Any]:
        """For the file of faults."""
        return asdict(self)


def error_fault(api_key: int, error_code: int, after: bool | None = None) -> RequestFault:
    """An error in the answers of an API; `after` the request's effect or in its place, by default as Kafka has it.

    A request that changes nothing is carried out in either case.
    """
    if after is None:
        after = error_code == ErrorCode.REQUEST_TIMED_OUT or (api_key, error_code) in _AFTER_THE_EFFECT
    return RequestFault("error", api_key, error_code=error_code, after=after or api_key in _READING)


def api_key_of(name: str) -> int:
    """`PRODUCE`, `produce`, `Produce` or `CreateTopics` -> its key. `UnknownName`."""
    plain = {_plain(each.name): each for each in ApiKey}
    found = plain.get(_plain(name))
    if found is None:
        raise UnknownName(f"there is no API {name!r}{_meant(name, [each.name for each in ApiKey], 'API_VERSIONS')}")
    return int(found)


def error_code_of(name: str) -> int:
    """`NOT_ENOUGH_REPLICAS` -> its code. `UnknownName`."""
    plain = {_plain(each.name): each for each in ErrorCode if each != ErrorCode.NONE}
    found = plain.get(_plain(name))
    if found is None:
        names = [each.name for each in plain.values()]
        raise UnknownName(f"there is no error {name!r}{_meant(name, names, 'NOT_LEADER_OR_FOLLOWER')}")
    return int(found)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _meant(name: str, names: list[str], example: str) -> str:
    near = get_close_matches(name.upper().replace("-", "_"), names, n=2)
    return f"; did you mean {' or '.join(near)}?" if near else f": names are Kafka's, such as {example}"
