"""CreateAcls and DeleteAcls: what is refused, what becomes records, which entries a filter means."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.controller.decision import Decision
from tanist.controller.features import metadata_version_level
from tanist.controller.image.acls import Acl
from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.differences import delta_between
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.snapshot import from_records, to_records
from tanist.controller.security import acls as decisions
from tanist.controller.security.acls import create_acls, delete_acls
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.metadata import FeatureLevelRecord
from tests.controller.controller_double import Dice

READ, ALLOW = AclOperation.READ, AclPermission.ALLOW


class Numbers(Dice):
    """Ids that count."""

    def __init__(self) -> None:
        self._last = 0

    def bytes(self, count: int) -> bytes:
        self._last += 1
        return self._last.to_bytes(count, "big")


RANDOM = Numbers()


def creation(name: str = "t", **other: Any) -> AclCreation:
    values: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "principal": "User:a",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**{**values, **other})


def wanted(**other: Any) -> DeleteAclsFilter:
    values: dict[str, Any] = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": AclOperation.ANY,
        "permission_type": AclPermission.ANY,
    }
    return DeleteAclsFilter(**{**values, **other})


def answer_of(decision: Decision) -> Any:
    return decision.response


def carry_out(image: MetadataImage, decision: Decision) -> ImageDelta:
    delta = ImageDelta()
    for record in decision.records:
        image.replay(record, delta)
    return delta


def image_with(*creations: AclCreation) -> MetadataImage:
    image = MetadataImage()
    carry_out(image, create_acls(image, CreateAclsRequest(creations=creations), RANDOM))
    return image


def _image_at(level: str) -> MetadataImage:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name="metadata.version", feature_level=metadata_version_level(level)))
    return image


@pytest.mark.parametrize(
    ("level", "host", "error", "message"),
    [
        ("4.4-IV1", "10.0.0.0/8", ErrorCode.NONE, ""),
        ("4.4-IV1", "2001:db8::/32", ErrorCode.NONE, ""),
        ("4.4-IV1", "10.0.0.0/33", ErrorCode.INVALID_REQUEST, "Invalid CIDR notation '10.0.0.0/33': Value [33] not in"),
        (
            "4.4-IV0",
            "10.0.0.0/8",
            ErrorCode.UNSUPPORTED_VERSION,
            "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.",
        ),
        ("4.4-IV0", "10.0.0.0", ErrorCode.NONE, ""),
        ("4.3-IV0", "", ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty"),
    ],
)
def test_a_range_of_addresses_needs_a_level_that_all_nodes_know(
    level: str, host: str, error: ErrorCode, message: str
) -> None:
    """A node of an older version would take the range for the name of a host, and never see it."""
    decision = create_acls(_image_at(level), CreateAclsRequest(creations=(creation(host=host),)), RANDOM)
    (result,) = answer_of(decision).results
    assert result.error_code == error
    assert (result.error_message or "").startswith(message)
    assert len(decision.records) == (not error)


def test_new_entries_become_records_and_known_ones_do_not() -> None:
    image = image_with(creation("t"))
    decision = create_acls(image, CreateAclsRequest(creations=(creation("t"), creation("u"), creation("u"))), RANDOM)
    assert [each.error_code for each in answer_of(decision).results] == [0, 0, 0]
    assert len(decision.records) == 1
    assert decision.atomic
    delta = carry_out(image, decision)
    entry = Acl(ResourceType.TOPIC, "u", PatternType.LITERAL, "User:a", "*", READ, ALLOW)
    assert set(image.acls.values()) == {Acl.of(creation_record) for creation_record in _records(image)}
    assert entry in image.acls.values()
    assert [image.acls[acl_id] for acl_id, before in delta.acls.items() if before is None] == [entry]


def _records(image: MetadataImage) -> list[Any]:
    return [acl.record(acl_id) for acl_id, acl in image.acls.items()]


@pytest.mark.parametrize(
    ("illegal", "message"),
    [
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
        ({"resource_pattern_type": 0}, "Invalid patternType UNKNOWN"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"operation": -1}, "Invalid operation UNKNOWN"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from the "
            "principal name)",
        ),
    ],
)
def test_an_illegal_entry_is_refused_and_the_rest_is_added(illegal: dict[str, Any], message: str) -> None:
    request = CreateAclsRequest(creations=(creation(**illegal), creation("u")))
    decision = create_acls(MetadataImage(), request, RANDOM)
    first, second = answer_of(decision).results
    assert (first.error_code, first.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert second.error_code == 0
    assert len(decision.records) == 1


def test_a_request_of_too_many_entries_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "MAX_RECORDS", 1)
    request = CreateAclsRequest(creations=(creation("t"), creation("u")))
    decision = create_acls(MetadataImage(), request, RANDOM)
    assert not decision.records
    assert {each.error_code for each in answer_of(decision).results} == {ErrorCode.POLICY_VIOLATION}
    monkeypatch.undo()
    image = image_with(creation("t"), creation("u"))
    monkeypatch.setattr(decisions, "MAX_RECORDS", 1)
    refused = delete_acls(image, DeleteAclsRequest(filters=(wanted(),)))
    assert not refused.records
    (result,) = answer_of(refused).filter_results
    assert result.error_code == ErrorCode.POLICY_VIOLATION


def test_an_entry_that_two_filters_mean_is_removed_once_and_answered_twice() -> None:
    image = image_with(creation("t"), creation("u"))
    request = DeleteAclsRequest(filters=(wanted(resource_name_filter="t"), wanted(), wanted(operation=99)))
    decision = delete_acls(image, request)
    by_name, both, unknown = answer_of(decision).filter_results
    assert [each.resource_name for each in by_name.matching_acls] == ["t"]
    assert sorted(each.resource_name for each in both.matching_acls) == ["t", "u"]
    assert (unknown.error_code, unknown.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    assert len(decision.records) == 2
    delta = carry_out(image, decision)
    assert not image.acls
    assert sorted(before.resource_name for before in delta.acls.values() if before is not None) == ["t", "u"]


@pytest.mark.parametrize(
    ("filter_of", "names"),
    [
        ({}, "* t tt t+"),
        ({"pattern_type_filter": PatternType.LITERAL}, "* t tt"),
        ({"pattern_type_filter": PatternType.PREFIXED}, "t+"),
        ({"resource_name_filter": "tt"}, "tt"),
        ({"resource_name_filter": "tt", "pattern_type_filter": PatternType.MATCH}, "* tt t+"),
        ({"resource_name_filter": "t", "pattern_type_filter": PatternType.MATCH}, "* t t+"),
        ({"pattern_type_filter": PatternType.MATCH}, "* t tt t+"),
        ({"resource_type_filter": ResourceType.GROUP}, ""),
        ({"principal_filter": "User:b"}, ""),
        ({"host_filter": "*"}, "* t tt t+"),
        ({"host_filter": "10.0.0.1"}, ""),
        ({"operation": AclOperation.DESCRIBE}, ""),
        ({"permission_type": AclPermission.DENY}, ""),
    ],
)
def test_which_entries_a_filter_means(filter_of: dict[str, Any], names: str) -> None:
    prefixed = creation("t", resource_pattern_type=PatternType.PREFIXED)
    image = image_with(creation("*"), creation("t"), creation("tt"), prefixed)
    decision = delete_acls(image, DeleteAclsRequest(filters=(wanted(**filter_of),)))
    (result,) = answer_of(decision).filter_results
    found = [each.resource_name + "+" * (each.pattern_type == PatternType.PREFIXED) for each in result.matching_acls]
    assert found == names.split()


def test_entries_are_in_snapshots_and_in_the_difference_of_images() -> None:
    before = image_with(creation("t"), creation("u"))
    after = before.copy()
    carry_out(after, delete_acls(after, DeleteAclsRequest(filters=(wanted(resource_name_filter="t"),))))
    carry_out(after, create_acls(after, CreateAclsRequest(creations=(creation("v"),)), RANDOM))
    assert from_records(to_records(after)) == after != before
    delta = delta_between(before, after)
    assert delta
    assert sorted(
        (before_it is None, (before_it or after.acls[acl_id]).resource_name) for acl_id, before_it in delta.acls.items()
    ) == [(False, "t"), (True, "v")]
