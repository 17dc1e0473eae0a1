"""DescribeAcls (key 29), versions 1-3: the access control entries that a filter means, as the metadata log has them.

Without an authorizer none of them has an effect: then a client hears that instead, as from Apache Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.image.acls import Acl
from tanist.controller.security.acls import AclFilter
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse


@dataclass(frozen=True, slots=True)
class DescribeAcls:
    """The handler of DescribeAcls."""

    metadata: MetadataView
    enabled: bool
    """Whether there is an authorizer."""

    def handle(self, request: DescribeAclsRequest, call: Call) -> None:
        """Describe the entries, by the patterns of their resources."""
        if not self.enabled:
            call.reply(
                DescribeAclsResponse(
                    error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
                )
            )
            return
        wanted = AclFilter.of(request)
        complaint = wanted.complaint
        if complaint is not None:
            call.reply(DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=complaint))
            return
        by_pattern: dict[tuple[int, str, int], list[Acl]] = {}
        for acl in self.metadata.image.acls.values():
            if wanted.matches(acl):
                pattern = (acl.resource_type, acl.resource_name, acl.pattern_type)
                by_pattern.setdefault(pattern, []).append(acl)
        call.reply(
            DescribeAclsResponse(
                error_message=None,
                resources=tuple(_resource(pattern, acls) for pattern, acls in sorted(by_pattern.items())),
            )
        )


def build(components: NodeComponents) -> Handler:
    return DescribeAcls(components.metadata, components.access.enabled).handle


def _resource(pattern: tuple[int, str, int], acls: list[Acl]) -> DescribeAclsResource:
    kind, name, pattern_type = pattern
    return DescribeAclsResource(
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern_type,
        acls=tuple(
            AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
            )
            for acl in acls
        ),
    )
