"""Access control lists as the controller decides them: CreateAcls, DeleteAcls, and which entries a filter means.

An entry that is there already is not added again, and is no error. A request takes effect as a whole: what of it is
refused has no record, and all records are one batch. What the entries then allow is decided in `tanist.security.acls`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from uuid import UUID

from tanist.controller.decision import Decision
from tanist.controller.features import CIDR_ACLS_FROM, metadata_version_name
from tanist.controller.image.acls import Acl
from tanist.controller.image.image import MetadataImage
from tanist.controller.refusals import too_large_response
from tanist.ports import Random
from tanist.wire.acls import CLUSTER_NAME, WILDCARD, AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.address_ranges import AddressRange
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.metadata import RemoveAccessControlEntryRecord

MAX_RECORDS: Final = 10_000
"""Of one request, as Apache Kafka's limit."""


class AclFilter(NamedTuple):
    """Which entries are meant. None, and ANY, leave the field open."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @classmethod
    def of(cls, asked: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
        """The filter in a request."""
        return cls(
            asked.resource_type_filter,
            asked.resource_name_filter,
            asked.pattern_type_filter,
            asked.principal_filter,
            asked.host_filter,
            asked.operation,
            asked.permission_type,
        )

    @property
    def complaint(self) -> str | None:
        """What of it is not known here."""
        if not (_known(ResourceType, self.resource_type) and _known(PatternType, self.pattern_type)):
            return "Unknown patternFilter."
        if not (_known(AclOperation, self.operation) and _known(AclPermission, self.permission)):
            return "Unknown entryFilter."
        return None

    def matches(self, acl: Acl) -> bool:
        """Whether the entry is meant."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermission.ANY, acl.permission)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        name = self.resource_name
        if self.pattern_type in (PatternType.ANY, acl.pattern_type):
            return name in (None, acl.resource_name)
        if self.pattern_type != PatternType.MATCH:
            return False
        if name is None or name == acl.resource_name:
            return True
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name == WILDCARD


def create_acls(image: MetadataImage, request: CreateAclsRequest, random: Random) -> Decision:
    """Add the entries that are legal and new."""
    known = set(image.acls.values())
    results: list[AclCreationResult] = []
    added: dict[UUID, Acl] = {}
    for creation in request.creations:
        error, complaint = _refusal(creation, image.metadata_version)
        if error:
            results.append(AclCreationResult(error_code=error, error_message=complaint))
            continue
        acl = Acl(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
        if acl not in known:
            known.add(acl)
            added[_new_id(image, random)] = acl
        results.append(AclCreationResult())
    if len(added) > MAX_RECORDS:
        return Decision(response=too_large_response(request))
    records = tuple(acl.record(acl_id) for acl_id, acl in added.items())
    return Decision(records, CreateAclsResponse(results=tuple(results)))


def delete_acls(image: MetadataImage, request: DeleteAclsRequest) -> Decision:
    """Remove what the filters mean; an entry that several mean is in the answer to each."""
    results: list[DeleteAclsFilterResult] = []
    removed: dict[UUID, None] = {}
    for asked in request.filters:
        wanted = AclFilter.of(asked)
        complaint = wanted.complaint
        if complaint is not None:
            results.append(DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=complaint))
            continue
        found = {acl_id: acl for acl_id, acl in image.acls.items() if wanted.matches(acl)}
        removed.update(dict.fromkeys(found))
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=tuple(_deleted(found))))
    if len(removed) > MAX_RECORDS:
        return Decision(response=too_large_response(request))
    records = tuple(RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed)
    return Decision(records, DeleteAclsResponse(filter_results=tuple(results)))


def _deleted(found: dict[UUID, Acl]) -> Iterator[DeleteAclsMatchingAcl]:
    for acl in found.values():
        yield DeleteAclsMatchingAcl(
            error_message=None,
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )


def _complaint(creation: AclCreation) -> str | None:
    """Why the entry cannot be added; in Apache Kafka's words and order."""
    kind = creation.resource_type
    if kind == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not creation.resource_name:
        return "Invalid empty resource name"
    if not _known(ResourceType, kind) or kind == ResourceType.ANY:
        return f"Invalid resourceType {_name(ResourceType, kind)}"
    pattern = creation.resource_pattern_type
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {_name(PatternType, pattern)}"
    operation = creation.operation
    if not _known(AclOperation, operation) or operation == AclOperation.ANY:
        return f"Invalid operation {_name(AclOperation, operation)}"
    permission = creation.permission_type
    if permission not in (AclPermission.DENY, AclPermission.ALLOW):
        return f"Invalid permissionType {_name(AclPermission, permission)}"
    if ":" not in creation.principal:
        return (
            f"Could not parse principal from `{creation.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    return None


def _refusal(creation: AclCreation, metadata_version: int) -> tuple[ErrorCode, str | None]:
    """Why the entry cannot be added. A range of addresses is none to a node that knows no `metadata.version` for it."""
    complaint, host = _complaint(creation), creation.host
    if complaint is None and not host:
        complaint = "Host pattern cannot be null or empty"
    if complaint is None and "/" in host:
        if metadata_version < CIDR_ACLS_FROM:
            least = metadata_version_name(CIDR_ACLS_FROM)
            message = f"CIDR-based ACL host patterns require metadata version {least} or higher."
            return ErrorCode.UNSUPPORTED_VERSION, message
        try:
            AddressRange.parse(host)
        except ValueError as error:
            complaint = f"Invalid CIDR notation '{host}': {error}"
    return (ErrorCode.NONE, None) if complaint is None else (ErrorCode.INVALID_REQUEST, complaint)


_Numbers = type[ResourceType] | type[PatternType] | type[AclOperation] | type[AclPermission]


def _known(kind: _Numbers, number: int) -> bool:
    return 0 < number < len(kind)


def _name(kind: _Numbers, number: int) -> str:
    """Its name; that of another version is not known."""
    return kind(number if _known(kind, number) else 0).name


def _new_id(image: MetadataImage, random: Random) -> UUID:
    while True:
        acl_id = UUID(bytes=random.bytes(16), version=4)
        if acl_id not in image.acls:
            return acl_id
