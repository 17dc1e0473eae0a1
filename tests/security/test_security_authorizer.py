"""The authorizer of a node: what it keeps of its decisions, and for how long."""

from __future__ import annotations

import pytest

from tanist.controller.image.acls import Acl
from tanist.security import authorizer as module
from tanist.security import requirements as rows
from tanist.security.authorizer import Authorizer
from tanist.security.principal import Principal
from tanist.security.requirements import Need, Row
from tanist.security.session import OPEN, Session
from tanist.wire.acls import SUPPORTED_OPERATIONS, AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.apis import ApiKey

TOPIC = ResourceType.TOPIC
Denied = list[tuple[str, str, str]]


def acl(name: str, operation: int = AclOperation.WRITE, *, deny: bool = False, user: str = "User:a") -> Acl:
    permission = AclPermission.DENY if deny else AclPermission.ALLOW
    return Acl(TOPIC, name, PatternType.LITERAL, user, "*", operation, permission)


@pytest.fixture
def denied() -> Denied:
    return []


@pytest.fixture
def authorizer(denied: Denied) -> Authorizer:
    def on_denied(session: Session, row: Row, name: str) -> None:
        denied.append((str(session.principal), row.needs[-1].operation.name, name))

    made = Authorizer({"User:root"}, allow_everyone=False, on_denied=on_denied)
    made.load()
    return made


def session(authorizer: Authorizer, user: str = "a", host: str = "10.0.0.1") -> Session:
    return Session("L", "SASL_SSL", host, Principal("User", user), access=authorizer)


def test_without_an_authorizer_all_is_allowed_and_each_operation_is_the_clients() -> None:
    anybody = Session("L", "PLAINTEXT", "10.0.0.1")
    assert anybody.access is OPEN
    assert OPEN.may(anybody, rows.PRODUCE_TOPIC, "t")
    expected = sum(1 << each for each in SUPPORTED_OPERATIONS[TOPIC])
    assert OPEN.operations(anybody, rows.METADATA_TOPIC_BITS, "t") == expected
    assert OPEN.visible(anybody) is None


def test_a_decision_holds_until_an_entry_changes(authorizer: Authorizer) -> None:
    asking = session(authorizer)
    assert not authorizer.may(asking, rows.PRODUCE_TOPIC, "t")
    authorizer.change((), [acl("t")])
    assert authorizer.may(asking, rows.PRODUCE_TOPIC, "t")
    before = authorizer.visible(asking)
    authorizer.change([acl("t")], ())
    assert not authorizer.may(asking, rows.PRODUCE_TOPIC, "t")
    assert authorizer.visible(asking) != before


def test_what_was_decided_for_one_is_nobody_elses(authorizer: Authorizer) -> None:
    authorizer.change((), [acl("t")])
    a, b, elsewhere = session(authorizer), session(authorizer, "b"), session(authorizer, host="10.0.0.2")
    assert [authorizer.may(each, rows.PRODUCE_TOPIC, "t") for each in (a, b, elsewhere)] == [True, False, True]
    assert len({authorizer.visible(each) for each in (a, b, elsewhere)}) == 3
    assert authorizer.visible(session(authorizer, "root")) is None


def test_who_authenticates_again_as_another_is_another(authorizer: Authorizer) -> None:
    authorizer.change((), [acl("t")])
    asking = session(authorizer)
    assert authorizer.may(asking, rows.PRODUCE_TOPIC, "t")
    asking.principal = Principal("User", "b")
    assert not authorizer.may(asking, rows.PRODUCE_TOPIC, "t")
    asking.principal = Principal("User", "a")
    assert authorizer.may(asking, rows.PRODUCE_TOPIC, "t")


def test_connections_of_one_client_share_what_was_decided(authorizer: Authorizer) -> None:
    first, second = session(authorizer), session(authorizer)
    authorizer.may(first, rows.PRODUCE_TOPIC, "t")
    authorizer.may(second, rows.PRODUCE_TOPIC, "t")
    assert first.view is second.view is not None


def test_rows_are_kept_apart(authorizer: Authorizer) -> None:
    authorizer.change((), [acl("t")])
    asking = session(authorizer)
    assert authorizer.may(asking, rows.PRODUCE_TOPIC, "t")
    assert not authorizer.may(asking, rows.FETCH_TOPIC, "t")
    assert authorizer.may(asking, rows.LIST_OFFSETS_TOPIC, "t")  # DESCRIBE is implied


def test_each_denial_is_reported_and_what_is_left_out_of_a_list_is_none(authorizer: Authorizer, denied: Denied) -> None:
    asking = session(authorizer)
    for _ in range(2):
        assert not authorizer.may(asking, rows.PRODUCE_TOPIC, "t")
        assert not authorizer.allows(asking, rows.PRODUCE_TOPIC, "t")
        assert not authorizer.may(asking, rows.METADATA_ALL, "t")
        assert authorizer.operations(asking, rows.METADATA_TOPIC_BITS, "t") == 0
    assert denied == [("User:a", "WRITE", "t")] * 2


def test_one_need_of_several_is_enough(authorizer: Authorizer) -> None:
    cluster = Acl(
        ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:a", "*", AclOperation.CLUSTER_ACTION,
        AclPermission.ALLOW,
    )  # fmt: skip
    asking = session(authorizer)
    row = rows.OFFSET_FOR_LEADER_EPOCH_TOPIC
    assert not authorizer.may(asking, row, "t")
    authorizer.change((), [cluster])
    assert authorizer.may(asking, row, "t")
    authorizer.change([cluster], [acl("t")])
    assert authorizer.may(asking, row, "t")
    assert not authorizer.may(asking, row, "u")


def test_nobodys_resource_is_denied(authorizer: Authorizer) -> None:
    assert not authorizer.may(session(authorizer), rows.PRODUCE_TRANSACTION, None)


def test_before_the_entries_are_known_only_super_users_come_through() -> None:
    def on_denied(session: Session, row: Row, name: str) -> None: ...

    made = Authorizer({"User:root"}, allow_everyone=True, on_denied=on_denied)
    producer_id = Row(ApiKey.INIT_PRODUCER_ID, (Need(AclOperation.WRITE, TOPIC, any_name=True),), "any", "response")
    asking = session(made)
    assert not made.may(asking, rows.PRODUCE_TOPIC, "t")
    assert not made.may(asking, producer_id)
    assert made.operations(asking, rows.METADATA_TOPIC_BITS, "t") == 0
    assert made.may(session(made, "root"), rows.PRODUCE_TOPIC, "t")
    made.load()
    assert made.may(asking, rows.PRODUCE_TOPIC, "t")
    assert made.may(asking, producer_id)


def test_so_many_decisions_are_kept(authorizer: Authorizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DECISIONS", 100)
    for user in range(40):
        for topic in range(10):
            authorizer.may(session(authorizer, f"u{user}"), rows.PRODUCE_TOPIC, f"t{topic}")
            kept = sum(len(names) for view in authorizer._views.values() for names in view.allowed.values())
            assert kept + len(authorizer._views) <= 101
    authorizer.change((), [acl("t1", user="User:u1")])
    assert authorizer.may(session(authorizer, "u1"), rows.PRODUCE_TOPIC, "t1")
