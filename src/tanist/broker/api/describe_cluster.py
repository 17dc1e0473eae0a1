"""DescribeCluster (key 60): the brokers, or on a controller's listener the controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.connection import Call
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

if TYPE_CHECKING:
    from tanist.broker.node import Node

_BROKERS = 1
_CONTROLLERS = 2


def handle(node: Node, request: DescribeClusterRequest, call: Call) -> None:
    """Describe the endpoints of the kind that this listener belongs to (KIP-919)."""
    on_controller = call.listener in node.config.controller_listener_names
    wanted = request.endpoint_type if call.version >= 1 else _BROKERS
    if wanted != (_CONTROLLERS if on_controller else _BROKERS):
        known = wanted in (_BROKERS, _CONTROLLERS)
        call.reply(
            DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message="this endpoint belongs to a " + ("controller" if on_controller else "broker"),
                endpoint_type=wanted,
                cluster_id=node.cluster_id,
            )
        )
        return
    image = node.metadata.image
    found: list[DescribeClusterBroker] = []
    if on_controller:
        for voter_id, (host, port) in node.quorum.voter_endpoints():
            found.append(DescribeClusterBroker(broker_id=voter_id, host=host, port=port))
    else:
        for broker in sorted(image.brokers.values(), key=lambda b: b.id):
            if broker.fenced and not (call.version >= 2 and request.include_fenced_brokers):
                continue
            for endpoint in broker.endpoints:
                if endpoint.name == call.listener:
                    found.append(
                        DescribeClusterBroker(
                            broker_id=broker.id,
                            host=endpoint.host,
                            port=endpoint.port,
                            rack=broker.rack,
                            is_fenced=broker.fenced,
                        )
                    )
    leader_id = node.quorum.leader_id
    if not on_controller and leader_id not in {broker.broker_id for broker in found}:
        leader_id = found[0].broker_id if found else -1
    call.reply(
        DescribeClusterResponse(
            endpoint_type=wanted,
            cluster_id=node.cluster_id,
            controller_id=-1 if leader_id is None else leader_id,
            brokers=tuple(found),
        )
    )
