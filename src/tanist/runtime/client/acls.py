"""The access control entries of any Kafka cluster (DescribeAcls, CreateAcls, DeleteAcls).

Owns the form in which commands have them. What an entry allows is the brokers' decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tanist.runtime.client.changes import ask_once, carry_out, raise_first_error
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.quorum import ask_controller
from tanist.text import counted
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_acls_response import CreateAclsResponse
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.delete_acls_response import DeleteAclsResponse
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


def describe_acls(client: Client, wanted: AclFilter) -> list[AclEntry]:
    """The entries that a filter means, in order. `KafkaError`, SECURITY_DISABLED without an authorizer."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )

    def attempt() -> list[AclEntry]:
        answer = client.ask(request, DescribeAclsResponse)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
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
            for resource in answer.resources
            for acl in resource.acls
        )

    return client.persist(attempt)


def create_acls(client: Client, entries: Iterable[AclEntry]) -> None:
    """Add entries; one that is there already stays as it is, so this is safe to ask for again. `KafkaError`."""
    request = CreateAclsRequest(
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

    def attempt() -> None:
        answer = ask_controller(client, request, CreateAclsResponse, timeout_s=client.timeout_s)
        raise_first_error(answer.results)

    client.persist(attempt)


def delete_acls(client: Client, entries: Collection[AclEntry]) -> list[AclEntry]:
    """Remove entries that are exactly these, and give those that were there. `KafkaError`."""
    request = DeleteAclsRequest(
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
            for each in entries
        )
    )

    wanted = set(entries)
    removed = [each for each in describe_acls(client, AclFilter()) if each in wanted]
    if not removed:
        return []

    def attempt(patience_s: float) -> list[AclEntry]:
        results = ask_once(client, request, DeleteAclsResponse, patience_s).filter_results
        raise_first_error(results)
        raise_first_error(each for result in results for each in result.matching_acls)
        return removed

    def find_result() -> list[AclEntry] | None:
        return removed if wanted.isdisjoint(describe_acls(client, AclFilter())) else None

    return carry_out(client, f"remove {counted(len(removed), 'ACL')}", attempt, find_result)
