"""PushTelemetry (key 72), version 0: the metrics of a client (KIP-714). Nobody needs a permission for it."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.telemetry.client_telemetry import ClientTelemetry
from tanist.wire.messages.push_telemetry_request import PushTelemetryRequest
from tanist.wire.messages.push_telemetry_response import PushTelemetryResponse


@dataclass(frozen=True, slots=True)
class PushTelemetry:
    """The handler of PushTelemetry."""

    telemetry: ClientTelemetry

    def handle(self, request: PushTelemetryRequest, call: Call) -> None:
        """Take what is pushed, or say why not."""
        call.reply(PushTelemetryResponse(error_code=self.telemetry.push(request, call)))


def build(components: NodeComponents) -> Handler:
    return PushTelemetry(components.enabled_telemetry).handle
