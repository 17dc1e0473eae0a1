"""Access control entries as clients have them, and the requests about them.

Owns the form that commands, tests and the simulator's operators share. What an entry allows is the brokers' affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.describe_acls_response import DescribeAclsResponse


@dataclass(frozen=True, slots=True, order=True)
class AclEntry:
    """Whom an operation on the resources of a pattern is allowed to, or denied."""

    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    @property
    def alone(self) -> AclFilter:
        """The filter that means this entry and no other."""
        return AclFilter(
            self.resource_type, self.name, self.pattern, self.principal, self.host, self.operation, self.permission
        )


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which entries are meant; None and ANY: all. MATCH as the pattern: all that stand for the name."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY


def describe_request(wanted: AclFilter = AclFilter()) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )


def described(response: DescribeAclsResponse) -> list[AclEntry]:
    """The entries of an answer without an error, in order."""
    return sorted(
        AclEntry(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            acl.principal,
            acl.host,
            AclOperation(acl.operation),
            AclPermission(acl.permission_type),
        )
        for resource in response.resources
        for acl in resource.acls
    )


def create_request(entries: Iterable[AclEntry]) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=tuple(
            AclCreation(
                resource_type=each.resource_type,
                resource_name=each.name,
                resource_pattern_type=each.pattern,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in entries
        )
    )


def delete_request(filters: Iterable[AclFilter]) -> DeleteAclsRequest:
    """Each filter removes all entries that it means."""
    return DeleteAclsRequest(
        filters=tuple(
            DeleteAclsFilter(
                resource_type_filter=each.resource_type,
                resource_name_filter=each.name,
                pattern_type_filter=each.pattern,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in filters
        )
    )
