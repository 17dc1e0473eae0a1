"""DescribeAcls (key 29), versions 1-3: there is no authorizer, and that is what a client hears, as from Apache Kafka.

ACLs that a log of Apache Kafka's holds are kept and not described, as its brokers without an authorizer do.
"""

from __future__ import annotations

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.describe_acls_response import DescribeAclsResponse


def build(components: NodeComponents) -> Handler:
    def handle(request: DescribeAclsRequest, call: Call) -> None:
        call.reply(
            DescribeAclsResponse(
                error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
            )
        )

    return handle
