"""The decisions of access control lists, by examples and beside the simulator's oracle, which is nothing but loops."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.controller.image.acls import Acl
from tanist.security.acls import AclImage
from tanist.sim.access_oracle import Need, decision
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tests.security.acl_samples import HOSTS, NAMES, OPERATIONS, PRINCIPALS, TYPES

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
HOST = "10.0.0.1"


def acl(
    name: str,
    operation: int = READ,
    *,
    deny: bool = False,
    prefixed: bool = False,
    principal: str = "User:a",
    host: str = "*",
    kind: int = TOPIC,
) -> Acl:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return Acl(kind, name, pattern, principal, host, operation, AclPermission.DENY if deny else AclPermission.ALLOW)


def may(image: AclImage, name: str, operation: int = READ, *, principal: str = "User:a", host: str = HOST) -> bool:
    return image.decide(principal, host, operation, TOPIC, name)


def test_nobody_may_do_anything_without_an_entry() -> None:
    assert not may(AclImage(), "t")
    assert may(AclImage(allow_everyone=True), "t")


def test_an_entry_is_about_its_pattern_principal_host_and_operation() -> None:
    image = AclImage([acl("t", host=HOST)])
    assert may(image, "t")
    assert not may(image, "u")
    assert not may(image, "t", WRITE)
    assert not may(image, "t", principal="User:b")
    assert not may(image, "t", principal="Group:a")
    assert not may(image, "t", host="10.0.0.2")
    assert not image.decide("User:a", HOST, READ, GROUP, "t")


def test_an_entry_may_be_about_a_range_of_hosts() -> None:
    image = AclImage([acl("t", host="10.0.0.0/30"), acl("t", deny=True, host="10.0.0.2/31")])
    assert may(image, "t")
    assert not may(image, "t", host="10.0.0.2"), "denied wins"
    assert not may(image, "t", host="10.0.0.4")
    assert not may(image, "t", host="0:0:0:0:0:0:0:1")
    assert image.by_type("User:a", HOST, READ, TOPIC)
    assert not image.by_type("User:a", "10.0.0.4", READ, TOPIC)
    assert not may(AclImage([acl("t", host="10.0.0.0/33")]), "t"), "that is no range"


def test_where_an_entry_is_about_the_resource_everyone_is_not_allowed_any_more() -> None:
    image = AclImage([acl("t", principal="User:b")], allow_everyone=True)
    assert not may(image, "t")
    assert may(image, "u")


def test_prefixes_and_wildcards() -> None:
    image = AclImage([acl("ab", prefixed=True), acl("*", WRITE)])
    assert may(image, "abc")
    assert may(image, "ab")
    assert not may(image, "a")
    assert may(image, "zzz", WRITE)


def test_a_literal_asterisk_does_not_stand_for_names_that_begin_with_one() -> None:
    image = AclImage([acl("*")])
    assert may(image, "*")
    assert not may(image, "*t")
    assert may(AclImage([acl("*", prefixed=True)]), "*t")


def test_denied_wins_whatever_comes_first() -> None:
    for entries in (
        [acl("t"), acl("*", deny=True, principal="User:*")],
        [acl("t", deny=True), acl("t", prefixed=True)],
        [acl("t", ALL, deny=True), acl("t")],
    ):
        assert not may(AclImage(entries), "t")
        assert not may(AclImage(reversed(entries)), "t")


def test_implied_operations_are_allowed_and_not_denied() -> None:
    for operation in (READ, WRITE, AclOperation.DELETE, AclOperation.ALTER):
        assert may(AclImage([acl("t", operation)]), "t", DESCRIBE)
        assert may(AclImage([acl("t", operation, deny=True), acl("t", DESCRIBE)]), "t", DESCRIBE)
    altering = AclImage([acl("t", AclOperation.ALTER_CONFIGS)])
    assert may(altering, "t", AclOperation.DESCRIBE_CONFIGS)
    assert not may(altering, "t", DESCRIBE)


def test_super_users_may_do_all() -> None:
    image = AclImage([acl("t", ALL, deny=True, principal="User:*")], super_users=["User:a"])
    assert may(image, "t")
    assert image.by_type("User:a", HOST, WRITE, TOPIC)
    assert not may(image, "t", principal="User:b")


def test_any_resource_of_a_type() -> None:
    def any_topic(*entries: Acl, operation: int = WRITE) -> bool:
        return AclImage(entries).by_type("User:a", HOST, operation, TOPIC)

    assert not any_topic()
    assert any_topic(acl("t", WRITE))
    assert not any_topic(acl("t", WRITE), operation=DESCRIBE)  # no implied operations
    assert any_topic(acl("hardcode", WRITE), operation=DESCRIBE)  # but for this name
    assert not any_topic(acl("t", WRITE), acl("t", WRITE, deny=True))
    assert not any_topic(acl("tt", WRITE, prefixed=True), acl("t", ALL, deny=True, prefixed=True))
    assert any_topic(acl("t", WRITE, prefixed=True), acl("tt", ALL, deny=True, prefixed=True))
    assert any_topic(acl("t", WRITE, prefixed=True), acl("t", WRITE, deny=True))
    assert not any_topic(acl("t", WRITE), acl("*", WRITE, deny=True, principal="User:*"))
    assert any_topic(acl("*", WRITE), acl("t", WRITE, deny=True, prefixed=True))


# -- beside an oracle

acls = st.builds(
    Acl,
    st.sampled_from(TYPES[:3]),
    st.sampled_from(NAMES),
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    st.sampled_from((*PRINCIPALS[:3], "User:*")),
    st.sampled_from((*HOSTS[:2], "*")),
    st.sampled_from((ALL, *OPERATIONS)),
    st.sampled_from((AclPermission.ALLOW, AclPermission.DENY)),
)


@given(st.lists(acls, max_size=20), st.lists(acls, max_size=20), st.booleans())
def test_an_image_decides_as_the_oracle_after_any_changes(kept: list[Acl], gone: list[Acl], everyone: bool) -> None:
    image = AclImage(gone, allow_everyone=everyone)
    before = image.epoch
    image.change(gone, kept)
    assert image.epoch > before
    entries = [each.record(UUID(int=number)) for number, each in enumerate(kept)]
    for kind in TYPES[:3]:
        for name in NAMES:
            for operation in OPERATIONS:
                expected = decision(entries, "User:a", HOSTS[0], Need(operation, kind, name))
                found = image.decide("User:a", HOSTS[0], operation, kind, name)
                assert found == (everyone if expected is None else expected)


@pytest.mark.parametrize("pattern", [PatternType.UNKNOWN, PatternType.ANY, PatternType.MATCH])
def test_a_pattern_of_another_kind_stands_for_nothing(pattern: PatternType) -> None:
    entry = Acl(TOPIC, "t", pattern, "User:a", "*", READ, AclPermission.ALLOW)
    image = AclImage([entry], allow_everyone=True)
    assert may(image, "t", WRITE)
    image.change([entry], ())
    assert may(image, "t", WRITE)
