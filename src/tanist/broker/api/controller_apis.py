"""Requests that the active controller decides, on its listener; and how brokers pass their clients' ones on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tanist.broker.network.client_connection import Call
from tanist.controller.controller import not_controller_response
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

if TYPE_CHECKING:
    from tanist.broker.node import Node


def decide(node: Node, request: Any, call: Call) -> None:
    """Hand a request to the controller of this node."""
    host = node.quorum.controller_host
    if host is None:
        call.reply(not_controller_response(request))
        return
    host.handle(call, request)


def heartbeat(node: Node, request: BrokerHeartbeatRequest, call: Call) -> None:
    """Count the contact before anything is queued (rule 94), and remember whose connection it is."""
    host = node.quorum.controller_host
    if host is not None:
        call.connection.broker_identity = (request.broker_id, request.broker_epoch)
        host.contact(request.broker_id, request.broker_epoch)
    decide(node, request, call)


def forward(node: Node, request: Any, call: Call) -> None:
    """On a broker's listener: have the active controller answer."""
    node.controller_channel.forward(call, request)


def quorum_request(node: Node, request: Any, call: Call) -> None:
    """Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and FetchSnapshot of the metadata log, DescribeQuorum."""
    node.quorum.receive(call, request)
