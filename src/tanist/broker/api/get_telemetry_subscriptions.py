"""GetTelemetrySubscriptions (key 71), version 0: which metrics a client is to push, and how often (KIP-714).

Nobody needs a permission for it, as with Apache Kafka.
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

_COMPRESSIONS = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""A client takes the first one that it knows."""


@dataclass(frozen=True, slots=True)
class GetTelemetrySubscriptions:
    """The handler of GetTelemetrySubscriptions."""

    telemetry: ClientTelemetry

    def handle(self, request: GetTelemetrySubscriptionsRequest, call: Call) -> None:
        """Say what to push, unless the client asks too early."""
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
                telemetry_max_bytes=self.telemetry.max_bytes,
                delta_temporality=True,
                requested_metrics=instance.wanted.metrics,
            )
        )


def build(components: NodeComponents) -> Handler:
    return GetTelemetrySubscriptions(components.enabled_telemetry).handle
