"""A small Kafka client that blocks: what the commands, the cluster's readiness check and tests ask brokers with.

It owns connections, the negotiation of versions, the view of who leads what, and patience: what Kafka calls
retriable is tried again, at another broker if need be, until a deadline. That something is not there is never
believed because one broker says so, which may lag behind: others are asked. It speaks to any Kafka, Apache's
included. It is not for throughput: one request is in flight at a time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from tanist.client.metadata import ClusterView, cluster_view, metadata_request
from tanist.client.security import ClientSecurity
from tanist.runtime.client.connection import (
    ANYBODY,
    LONG_WAIT_S,
    Address,
    AuthenticationFailed,
    BrokerConnection,
    KafkaError,
    Unsupported,
)
from tanist.text import host_port
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.messages.metadata_response import MetadataResponse
from tanist.wire.schema import Request

__all__ = [
    "DENIALS",
    "LONG_WAIT_S",
    "Address",
    "AuthenticationFailed",
    "BrokerConnection",
    "Client",
    "KafkaError",
    "OutcomeUnknown",
    "Unanswered",
    "Unreachable",
    "Unsupported",
    "parse_bootstrap",
]

T = TypeVar("T")

_BACKOFF_S = (0.01, 0.02, 0.05, 0.1, 0.2)
_DOUBT_S = 2.0
"""How long another broker may take that is asked whether it knows what one has denied."""
DENIALS: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""What a broker says that does not know a topic."""


class Unreachable(Exception):
    """No broker, or not the one that is needed (`node_id`), could be asked in time."""

    def __init__(self, trouble: str, node_id: int | None = None) -> None:
        super().__init__(trouble)
        self.node_id = node_id

    @property
    def in_words(self) -> str:
        """For people: who does not answer, and why."""
        return f"{'no broker answers' if self.node_id is None else f'broker {self.node_id} does not answer'} ({self})"


class Unanswered(Unreachable):
    """A request was sent and no answer came: whether it was carried out is not known."""


class OutcomeUnknown(Exception):
    """A change was asked for, and whether it was carried out cannot be seen."""

    def __init__(self, what: str, trouble: str) -> None:
        super().__init__(f"it is not known whether this was done: {what} ({trouble}). Check before you repeat it")


class Client:
    """Connections to a cluster, made when needed."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str = "tanist",
        timeout_s: float = 30.0,
        first_answer_s: float = math.inf,
        security: ClientSecurity = ANYBODY,
    ) -> None:
        if not bootstrap:
            raise ValueError("a client needs at least one address")
        self.timeout_s = timeout_s
        """How long a request and its retries may take altogether, unless the caller says otherwise."""
        self.view = ClusterView()
        """The metadata that was asked for so far."""
        self._doubted: set[str] = set()
        """Topics whose leaders in `view` have proved wrong."""
        self.on_long_wait: Callable[[], bool] | None = None
        """Called each `LONG_WAIT_S` while a change is not answered, or something is tried again, until it says True."""
        self._looked = 0.0
        self._first_answer_s = first_answer_s
        """How long to persist while no broker has ever answered: then the address is wrong, or the cluster is down."""
        self.known_topics: set[str] = set()
        """Topics that were seen, or that the caller knows of. An answer without them is doubted."""
        self.client_id = client_id
        self._bootstrap = list(bootstrap)
        self.security = security
        self._connections: dict[Address, BrokerConnection] = {}
        self._last: Address | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # -- one request

    def ask(
        self,
        request: Request,
        answer: type[T],
        *,
        node_id: int | None = None,
        timeout_s: float | None = None,
        max_version: int | None = None,
        once: bool = False,
    ) -> T:
        """The answer of one broker (any, or `node_id`), without looking at its errors.

        A broken connection is made anew once, for it may have been idle too long; then it is `Unreachable`. With `once`
        what may have been received is not sent again, here or elsewhere: `Unanswered`.
        """
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        trouble: str | None = None
        for address in self._addresses(node_id):
            try:
                found = self._ask_at(address, request, answer, limit_s, max_version, once=once)
            except Unanswered:
                raise
            except Unreachable as error:
                trouble = str(error)
                continue
            self._last = address
            return found
        known = "it is not among those alive" if node_id is not None else "none is known"
        raise Unreachable(known if trouble is None else trouble, node_id)

    def _ask_at(
        self,
        address: Address,
        request: Request,
        answer: type[T],
        limit_s: float,
        max_version: int | None = None,
        *,
        once: bool = False,
    ) -> T:
        while True:
            fresh = address not in self._connections
            sent = False
            try:
                connection = self._connected(address, limit_s)
                sent = True
                found = connection.ask(request, limit_s, max_version, self._wait_is_long if once else None)
            except (OSError, WireError) as error:
                self._drop(address)
                trouble = _placed(error, address)
                if sent and once:
                    raise Unanswered(str(trouble)) from error
                if fresh or isinstance(error, TimeoutError):
                    raise Unreachable(str(trouble)) from error
                continue
            if not isinstance(found, answer):
                raise TypeError(f"{type(found).__name__} is not the {answer.__name__} that was expected")
            return found

    def tell(self, request: Request, node_id: int, *, max_version: int | None = None) -> None:
        """Send what has no answer."""
        for address in self._addresses(node_id):
            try:
                self._connected(address, self.timeout_s).tell(request, self.timeout_s, max_version)
            except OSError as error:
                self._drop(address)
                raise Unreachable(str(_placed(error, address)), node_id) from error
            return
        raise Unreachable("it is not among those alive", node_id)

    def persist(self, attempt: Callable[[], T], *, timeout_s: float | None = None) -> T:
        """Repeat `attempt` while it fails for a reason that may pass, until the time is up; then raise that reason.

        After a denial another broker is asked, where any may be.
        """
        began = time.monotonic()
        deadline = began + (self.timeout_s if timeout_s is None else timeout_s)
        tries = 0
        while True:
            try:
                return attempt()
            except (KafkaError, Unreachable) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    raise
                self.waits_since(began)
                if isinstance(error, KafkaError) and error.code in DENIALS:
                    self._switch_broker()
                pause_s = _BACKOFF_S[min(tries, len(_BACKOFF_S) - 1)]
                if time.monotonic() + pause_s > self.patient_until(began, deadline):
                    raise
            time.sleep(pause_s)
            tries += 1

    def waits_since(self, began: float) -> None:
        """Something is tried again that was first tried then. The wait may be worth a word."""
        if time.monotonic() - max(began, self._looked) > LONG_WAIT_S:
            self._wait_is_long()

    def _wait_is_long(self) -> None:
        if self.on_long_wait is not None and self.on_long_wait():
            self.on_long_wait = None
        self._looked = time.monotonic()

    def apart(self) -> Client:
        """Another client of the same cluster: this one may have a request under way."""
        return Client(
            self._addresses(None),
            client_id=self.client_id,
            timeout_s=self.timeout_s,
            first_answer_s=0.0,
            security=self.security,
        )

    def patient_until(self, began: float, deadline: float) -> float:
        """When to give up what began then and has this deadline: sooner while no broker has ever answered."""
        return deadline if self._last is not None else min(deadline, began + self._first_answer_s)

    # -- who is who

    def metadata(self, topics: Iterable[str] | None = (), *, node_id: int | None = None) -> ClusterView:
        """Ask one broker; `topics` None means all of them. The answer is also added to `view`.

        Unless it is to be this broker's (`node_id`), what it denies is asked of the others that are alive, and a topic
        is there if one of them has it. `Unreachable` if nobody knows of a broker that is alive.
        """
        names = None if topics is None else tuple(topics)
        request = metadata_request(names)
        answer = self.ask(request, MetadataResponse, node_id=node_id, timeout_s=min(self.timeout_s, 10.0))
        if answer.error_code:
            raise KafkaError(answer.error_code)
        view = cluster_view(answer)
        if node_id is None:
            self._doubt(view, names)
            if not view.brokers:
                raise Unreachable("no broker is in the cluster yet")
        self.known_topics |= {name for name, topic in view.topics.items() if not topic.error_code}
        self.view = self.view.merged(view)
        return view

    def _doubt(self, view: ClusterView, names: Sequence[str] | None) -> None:
        """Ask the other brokers for what an answer denies, and put what they know into it."""
        denied = set(self.known_topics if names is None else names) - {
            name for name, topic in view.topics.items() if topic.error_code not in DENIALS
        }
        nothing = names is None and not view.topics
        if not denied and not nothing and view.brokers:
            return
        # What a broker knows that the cluster does not count in is old. Where none is named, all that are known.
        others = view.brokers or self.view.brokers
        addresses = [broker.address for broker in others.values()]
        if nothing or not view.brokers:
            addresses += self._bootstrap
        for address in dict.fromkeys(addresses):
            if address == self._last:
                continue
            request = metadata_request(None if nothing else sorted(denied))
            try:
                answer = self._ask_at(address, request, MetadataResponse, min(self.timeout_s, _DOUBT_S))
            except (Unreachable, Unsupported, KafkaError):
                continue
            other = cluster_view(answer)
            found = {name: topic for name, topic in other.topics.items() if topic.error_code not in DENIALS}
            view.topics.update(found)
            denied -= found.keys()
            nothing = nothing and not found
            for broker_id, broker in other.brokers.items():
                view.brokers.setdefault(broker_id, broker)
            if not denied and not nothing and view.brokers:
                break
        self.known_topics -= denied

    def _switch_broker(self) -> None:
        """Another broker than the one that answered last is to be asked next."""
        around = list(dict.fromkeys([each.address for each in self.view.brokers.values()] + self._bootstrap))
        if self._last in around:
            self._last = around[(around.index(self._last) + 1) % len(around)]

    def leader_of(self, topic: str, partition: int) -> int:
        """The leader's id by the present view, which is refreshed if it does not know. Raises `KafkaError`."""
        found = None if topic in self._doubted else self.view.partition(topic, partition)
        if found is None:
            about = self.metadata([topic]).topics.get(topic)
            if about is not None and about.error_code:
                raise KafkaError(about.error_code, topic)
            self._doubted.discard(topic)
            found = self.view.partition(topic, partition)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition}")
        if found.leader < 0:
            self.forget(topic)
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition}")
        return found.leader

    def forget(self, topic: str) -> None:
        """The view of a topic has proved wrong."""
        self._doubted.add(topic)

    # -- inner

    def _addresses(self, node_id: int | None) -> list[Address]:
        if node_id is not None:
            if node_id not in self.view.brokers:
                self.metadata()
            broker = self.view.brokers.get(node_id)
            return [] if broker is None else [broker.address]
        known = [broker.address for broker in self.view.brokers.values()]
        ordered = ([self._last] if self._last is not None else []) + known + self._bootstrap
        return list(dict.fromkeys(ordered))

    def _connected(self, address: Address, timeout_s: float) -> BrokerConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = BrokerConnection(address, self.client_id, min(timeout_s, 10.0), self.security)
            self._connections[address] = connection
        return connection

    def _drop(self, address: Address) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()


def parse_bootstrap(text: str) -> list[Address]:
    """`host:port,host:port`, Kafka's bootstrap.servers. `ValueError` says what is wrong with it."""
    found: list[Address] = []
    for item in text.split(","):
        host, colon, port = item.strip().rpartition(":")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"{item.strip()!r} is not host:port")
        found.append((host.removeprefix("[").removesuffix("]"), int(port)))
    return found


def format_bootstrap(addresses: Iterable[Address]) -> str:
    """Addresses as clients take them for bootstrap.servers; `parse_bootstrap` reads them back."""
    return ",".join(host_port(*address) for address in addresses)


def _placed(error: Exception, address: Address) -> Exception:
    """The error with the address it is about."""
    where = f"{address[0]}:{address[1]}"
    if isinstance(error, TimeoutError):
        return Unreachable(f"{where} does not answer")
    if isinstance(error, OSError) and error.strerror:
        return Unreachable(f"{where}: {error.strerror}")
    return Unreachable(f"{where}: {error}")
