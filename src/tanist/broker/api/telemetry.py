"""GetTelemetrySubscriptions (key 71) and PushTelemetry (key 72), version 0: which metrics a client is to push, and what
it pushes (KIP-714). Nobody needs a permission for them, as with Apache Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.telemetry.client_telemetry import ClientTelemetry
from tanist.wire.compression import Compression
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from tanist.wire.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from tanist.wire.messages.push_telemetry_request import PushTelemetryRequest
from tanist.wire.messages.push_telemetry_response import PushTelemetryResponse

_COMPRESSIONS = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""A client takes the first one that it knows."""


@dataclass(frozen=True, slots=True)
class TelemetryApis:
    """The handlers of both."""

    telemetry: ClientTelemetry
    max_bytes: int

    def get_subscriptions(self, request: GetTelemetrySubscriptionsRequest, call: Call) -> None:
        """Say what to push, and how often."""
        instance = self.telemetry.ask(request.client_instance_id, call)
        if instance is None:
            call.reply(GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED))
            return
        call.reply(
            GetTelemetrySubscriptionsResponse(
                client_instance_id=instance.instance_id,
                subscription_id=instance.wanted.subscription_id,
                accepted_compression_types=_COMPRESSIONS,
                push_interval_ms=instance.wanted.interval_ms,
                telemetry_max_bytes=self.max_bytes,
                delta_temporality=True,
                requested_metrics=instance.wanted.metrics,
            )
        )

    def push(self, request: PushTelemetryRequest, call: Call) -> None:
        """Take it, or say why not."""
        call.reply(PushTelemetryResponse(error_code=self.telemetry.push(request, call)))


def _apis(components: NodeComponents) -> TelemetryApis:
    telemetry = components.telemetry
    if telemetry is None:
        raise AssertionError("it is served where tanist.client.metrics.enable is set")
    return TelemetryApis(telemetry, components.context.config.telemetry_max_bytes)


def build_get_subscriptions(components: NodeComponents) -> Handler:
    return _apis(components).get_subscriptions


def build_push(components: NodeComponents) -> Handler:
    return _apis(components).push
