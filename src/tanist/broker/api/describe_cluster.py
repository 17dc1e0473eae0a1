"""DescribeCluster (key 60), versions 0-2: the brokers, or on a controller's listener the controllers.

A node that hears from no active controller says so, and how old its answer is, in a tag of our own that Kafka's clients
pass over: an operator of a cluster without a quorum must not take its former state for the present one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.api.authorized_operations import NOT_ASKED
from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

_BROKERS = 1
_CONTROLLERS = 2
_NAMES = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}


@dataclass(frozen=True, slots=True)
class DescribeCluster:
    """The handler of DescribeCluster."""

    context: NodeContext
    metadata: MetadataView
    quorum: MetadataQuorum

    def handle(self, request: DescribeClusterRequest, call: Call) -> None:
        """Describe the endpoints of the kind that this listener belongs to (KIP-919)."""
        on_controller = call.listener in self.context.config.controller_listener_names
        wanted = request.endpoint_type if call.version >= 1 else _BROKERS
        if wanted != (_CONTROLLERS if on_controller else _BROKERS):
            call.reply(_mismatch(wanted, "CONTROLLER" if on_controller else "BROKER", call.version))
            return
        image = self.metadata.image
        found: list[DescribeClusterBroker] = []
        if on_controller:
            for voter_id, (host, port) in self.quorum.voter_endpoints():
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
        leader_id = self.quorum.leader_id
        silence_ms = self.quorum.silence_ms
        if not on_controller and leader_id not in {broker.broker_id for broker in found}:
            leader_id = found[0].broker_id if found else -1
        operations = NOT_ASKED
        if request.include_cluster_authorized_operations:
            described = call.may(rows.DESCRIBE_CLUSTER_OPERATIONS)
            operations = call.operations(rows.DESCRIBE_CLUSTER_BITS) if described else 0
        call.reply(
            DescribeClusterResponse(
                endpoint_type=wanted,
                cluster_id=self.context.cluster_id,
                controller_id=-1 if leader_id is None else leader_id,
                brokers=tuple(found),
                cluster_authorized_operations=operations,
                metadata_age_ms=-1 if silence_ms is None else silence_ms,
            )
        )


def build(components: NodeComponents) -> Handler:
    return DescribeCluster(components.context, components.metadata, components.quorum).handle


def _mismatch(wanted: int, here: str, version: int) -> DescribeClusterResponse:
    """Another kind of endpoint is asked for. Version 0 has no kinds, nor clients that know the errors for them."""
    name = _NAMES.get(wanted)
    if name is None:
        error, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {wanted}"
    else:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if version >= 1 else ErrorCode.INVALID_REQUEST
        message = f"The request was sent to an endpoint of type {here}, but we wanted an endpoint of type {name}"
    return DescribeClusterResponse(error_code=error, error_message=message)
