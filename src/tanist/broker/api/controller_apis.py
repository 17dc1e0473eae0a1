"""Requests that the active controller decides, on its listener; and how brokers pass their clients' ones on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.network.call import Call, Handler
from tanist.controller.controller import not_controller_response
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest


@dataclass(frozen=True, slots=True)
class ControllerApis:
    """The APIs that the controller of this node decides, if it is the active one."""

    quorum: MetadataQuorum

    def decide(self, request: Any, call: Call) -> None:
        """Hand a request to the controller of this node."""
        host = self.quorum.controller_service
        if host is None:
            call.reply(not_controller_response(request))
            return
        if call.session.access.enabled and host.active:
            from tanist.broker.controller_guard import narrowed

            request = narrowed(request, call, host.controller.image)
        host.handle(call, request)

    def heartbeat(self, request: BrokerHeartbeatRequest, call: Call) -> None:
        """Count the contact before anything is queued (rule 94), and remember whose connection it is."""
        host = self.quorum.controller_service
        if host is not None:
            call.connection.broker_identity = (request.broker_id, request.broker_epoch)
            host.contact(request.broker_id, request.broker_epoch)
        self.decide(request, call)


def build_decide(components: NodeComponents) -> Handler:
    return ControllerApis(components.quorum).decide


def build_heartbeat(components: NodeComponents) -> Handler:
    return ControllerApis(components.quorum).heartbeat


def build_forward(components: NodeComponents) -> Handler:
    """On a broker's listener: have the active controller answer."""
    forward = components.controller_channel.forward
    return lambda request, call: forward(call, request)


def build_quorum(components: NodeComponents) -> Handler:
    """Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and FetchSnapshot of the metadata log, DescribeQuorum, and
    the changes of its voters."""
    receive = components.quorum.receive
    return lambda request, call: receive(call, request)
