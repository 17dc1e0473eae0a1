"""The clients that push their metrics, and how their requests are judged (KIP-714), as by Apache Kafka 4.3.1.

Owns what is known of each client instance: it asks which metrics it is to push (GetTelemetrySubscriptions), and pushes
them (PushTelemetry) once an interval, by the subscription that it has heard of. One that the node does not know is made
at its first request, whichever that is. It is there until its connection ends; one that has not been heard of for three
intervals is forgotten, and so is the oldest of more than `MAX_INSTANCES`.

A counter counts for a scrape; none of it is needed to judge a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tanist.broker.assembly import new_uuid
from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, RequestConnection
from tanist.broker.telemetry.received import ReceivedMetrics
from tanist.broker.telemetry.subscriptions import Subscriptions, Wanted
from tanist.wire.compression import Compression, decompress
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.ids import METADATA_TOPIC_ID, ZERO_UUID, id_text
from tanist.wire.messages.push_telemetry_request import PushTelemetryRequest
from tanist.wire.otlp import read_metrics

_NEVER = -(1 << 62)
_LEAST_KNOWN_MS = 60_000
_ASK_AGAIN_AFTER = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""A client that was refused with one of these need not wait for its interval before it asks again."""


@dataclass(slots=True, eq=False)
class Instance:
    """A client, as long as its connection lasts."""

    instance_id: UUID
    attributes: dict[str, str]
    """What subscriptions match."""
    wanted: Wanted
    version: int
    """Of the subscriptions by which that was found."""
    connection: RequestConnection
    heard_ms: int = 0
    asked_ms: int = _NEVER
    pushed_ms: int = _NEVER
    terminating: bool = False
    error: ErrorCode = ErrorCode.NONE

    def may_ask(self, now_ms: int) -> bool:
        if now_ms - max(self.asked_ms, self.pushed_ms) >= self.wanted.interval_ms:
            self.asked_ms = now_ms
            return True
        return self.error in _ASK_AGAIN_AFTER

    def may_push(self, now_ms: int) -> bool:
        """The first push after the question may come at any time: clients spread them over half to one and a half
        intervals.
        """
        in_time = self.asked_ms > self.pushed_ms or now_ms - self.pushed_ms >= self.wanted.interval_ms
        if in_time:
            self.pushed_ms = now_ms
        return in_time

    def is_gone(self, now_ms: int) -> bool:
        return self.connection.closed or now_ms - self.heard_ms >= max(_LEAST_KNOWN_MS, 3 * self.wanted.interval_ms)


class ClientTelemetry:
    """Of one broker."""

    MAX_INSTANCES = 16_384

    def __init__(self, context: NodeContext, metadata: MetadataView) -> None:
        self._context = context
        self.max_bytes = context.config.telemetry_max_bytes
        self._subscriptions = Subscriptions(metadata)
        self._instances: dict[UUID, Instance] = {}
        """The one that was heard last at the end."""
        self.received = ReceivedMetrics()
        self.unknown_subscriptions = 0
        self.throttled = 0
        self.taken = 0
        self.unreadable = 0

    @property
    def instance_count(self) -> int:
        self._forget()
        return len(self._instances)

    def ask(self, instance_id: UUID, call: Call) -> Instance | None:
        """The client that asks what to push; one without an id is given one. None: it asks too early."""
        instance = self._instance(instance_id if instance_id.int else self._new_id(), call)
        if not instance.may_ask(self._context.clock.now_ms()):
            self.throttled += 1
            return None
        instance.error = ErrorCode.NONE
        return instance

    def push(self, request: PushTelemetryRequest, call: Call) -> ErrorCode:
        """Take what a client pushes, or say why not."""
        if request.client_instance_id in (ZERO_UUID, METADATA_TOPIC_ID):
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(request.client_instance_id, call)
        error = self._refusal(request, instance)
        instance.terminating = request.terminating
        if not error and len(request.metrics):
            error = self._take(request, instance)
        instance.error = error
        return error

    def page(self) -> str:
        """What clients have pushed, in Prometheus' text format."""
        return self.received.render(self._context.clock.now_ms())

    def _refusal(self, request: PushTelemetryRequest, instance: Instance) -> ErrorCode:
        if instance.terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(self._context.clock.now_ms()) and not request.terminating:
            self.throttled += 1
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.wanted.subscription_id:
            self.unknown_subscriptions += 1
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in list(Compression):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.TELEMETRY_TOO_LARGE if len(request.metrics) > self.max_bytes else ErrorCode.NONE

    def _take(self, request: PushTelemetryRequest, instance: Instance) -> ErrorCode:
        try:
            numbers = read_metrics(decompress(request.compression_type, request.metrics, self.max_bytes))
            interval_ms, now_ms = instance.wanted.interval_ms, self._context.clock.now_ms()
            self.received.take(instance.instance_id, instance.attributes, numbers, interval_ms, now_ms)
        except WireError:
            self.unreadable += 1
            return ErrorCode.INVALID_RECORD
        self.taken += 1
        return ErrorCode.NONE

    def _instance(self, instance_id: UUID, call: Call) -> Instance:
        now_ms = self._context.clock.now_ms()
        instance = self._instances.pop(instance_id, None)
        if instance is None or instance.is_gone(now_ms):
            instance = self._made(instance_id, _attributes(instance_id, call), call)
        elif instance.version < self._subscriptions.version:
            instance = self._made(instance_id, instance.attributes, call)
        instance.heard_ms = now_ms
        self._instances[instance_id] = instance
        if len(self._instances) > self.MAX_INSTANCES:
            self._forget()
            while len(self._instances) > self.MAX_INSTANCES:
                del self._instances[next(iter(self._instances))]
        return instance

    def _made(self, instance_id: UUID, attributes: dict[str, str], call: Call) -> Instance:
        wanted = self._subscriptions.of_client(instance_id, attributes)
        return Instance(instance_id, attributes, wanted, self._subscriptions.version, call.connection)

    def _new_id(self) -> UUID:
        while (found := new_uuid(self._context.random)) in self._instances:
            pass
        return found

    def _forget(self) -> None:
        now_ms = self._context.clock.now_ms()
        for instance_id in [each.instance_id for each in self._instances.values() if each.is_gone(now_ms)]:
            del self._instances[instance_id]


def _attributes(instance_id: UUID, call: Call) -> dict[str, str]:
    """What is known of a client, by the names that subscriptions match (`CLIENT_ATTRIBUTES`)."""
    connection = call.connection
    name, version = connection.software
    client_id = call.header.client_id
    return {
        "client_instance_id": id_text(instance_id),
        **({} if client_id is None else {"client_id": client_id}),
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": call.session.host,
        "client_source_port": connection.connection.peer.rpartition(":")[2],
    }
