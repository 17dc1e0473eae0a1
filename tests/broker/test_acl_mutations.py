"""Rules of authorization, broken one at a time: a test of the nodes or of the lists notices each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tanist.broker import guard
from tanist.broker.api.fetch import Fetch
from tanist.broker.replication.fetch_sessions import LEAST_PARTITIONS
from tanist.lab.mutations.rules_of_access import ACCESS_MUTANTS
from tanist.security import acls
from tanist.security.acls import AclImage
from tanist.security.authorizer import Authorizer
from tanist.security.session import Session
from tanist.wire.acls import AclOperation, AclPermission
from tests.broker import test_acl_changes, test_node_acls, test_node_acls_lists
from tests.broker.acl_rig import SecuredCluster
from tests.broker.test_node_requirements import ALONE
from tests.security import test_security_acls, test_security_authorizer

Patch = Callable[[pytest.MonkeyPatch], None]


def three() -> SecuredCluster:
    return SecuredCluster(nodes=3)


def alone() -> SecuredCluster:
    cluster = SecuredCluster(nodes=1)
    cluster.create_topic("t", partitions=LEAST_PARTITIONS, factor=1)
    return cluster


def colours() -> SecuredCluster:
    cluster = SecuredCluster(nodes=1, config=ALONE)
    for name in ("red", "green", "blue"):
        cluster.create_topic(name, factor=1)
    return cluster


def of_the_lab(name: str) -> Patch:
    """A rule that the simulator's runs break as well (`tanist lab mutants`)."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for each in ACCESS_MUTANTS[name].patches():
            monkeypatch.setattr(each.owner, each.name, each.replacement)

    patch.__name__ = f"_{name}"
    return patch


# -- the lists


def _entries_kept(patch: pytest.MonkeyPatch) -> None:
    """What is revoked is allowed still."""
    change = AclImage.change
    patch.setattr(AclImage, "change", lambda image, removed, added: change(image, (), added))


def _prefixes_anywhere(patch: pytest.MonkeyPatch) -> None:
    """A prefix stands for each name that has it somewhere."""
    patch.setattr(
        acls._Resources,
        "matching",
        lambda resources, name: iter(
            [
                *(pattern for literal, pattern in resources.literal.items() if literal in (name, "*")),
                *(pattern for prefix, pattern in resources.prefixed.items() if prefix in name),
            ]
        ),
    )


def _implied_when_denied(patch: pytest.MonkeyPatch) -> None:
    """To deny READ denies DESCRIBE."""
    decide = AclImage.decide

    def wider(image: AclImage, principal: str, host: str, operation: int, kind: int, name: str) -> bool:
        resources = image._types.get(kind)
        for pattern in () if resources is None else resources.matching(name):
            for acl in pattern.about(principal, host):
                if acl.permission == AclPermission.DENY and operation == AclOperation.DESCRIBE:
                    return False
        return decide(image, principal, host, operation, kind, name)

    patch.setattr(AclImage, "decide", wider)


# -- the nodes


def _no_guard(patch: pytest.MonkeyPatch) -> None:
    """Whole requests are not checked."""
    patch.setattr(guard, "rows_before", lambda api_key, *, controller: ())


def _shared_views(patch: pytest.MonkeyPatch) -> None:
    """What was decided for one principal at a host is the next one's."""
    view = Authorizer._view

    def shared(authorizer: Authorizer, session: Session) -> Any:
        for (_, host), known in authorizer._views.items():
            if host == session.host:
                session.view = known
                return known
        return view(authorizer, session)

    patch.setattr(Authorizer, "_view", shared)


def _waiting_unasked(patch: pytest.MonkeyPatch) -> None:
    """A fetch that has waited is answered without asking again."""
    answer = Fetch.answer

    def unasked(fetch: Fetch, *arguments: Any) -> Any:
        asked, fetch._access = fetch._access, None
        try:
            return answer(fetch, *arguments)
        finally:
            fetch._access = asked

    patch.setattr(Fetch, "answer", unasked)


class Mutation(NamedTuple):
    patch: Patch
    noticed_by: Callable[..., None]
    arguments: Callable[[], tuple[Any, ...]] = tuple


MUTATIONS = [
    Mutation(_entries_kept, test_security_acls.test_an_image_decides_as_the_oracle_after_any_changes),
    Mutation(of_the_lab("access-deny"), test_security_acls.test_denied_wins_whatever_comes_first),
    Mutation(_prefixes_anywhere, test_security_acls.test_an_image_decides_as_the_oracle_after_any_changes),
    Mutation(_implied_when_denied, test_security_acls.test_implied_operations_are_allowed_and_not_denied),
    Mutation(of_the_lab("access-implied"), test_security_acls.test_implied_operations_are_allowed_and_not_denied),
    Mutation(_no_guard, test_node_acls.test_a_whole_request_is_denied_then_allowed_then_denied, lambda: (three(),)),
    Mutation(
        _no_guard,
        test_node_acls.test_a_forged_envelope_is_refused_and_its_request_is_not_carried_out,
        lambda: (three(),),
    ),
    Mutation(
        of_the_lab("access-decisions"),
        test_node_acls.test_a_whole_request_is_denied_then_allowed_then_denied,
        lambda: (three(),),
    ),
    Mutation(
        of_the_lab("access-decisions"),
        test_acl_changes.test_each_answer_is_that_of_a_moment_of_its_request,
        lambda: (0,),
    ),
    Mutation(_entries_kept, test_acl_changes.test_each_answer_is_that_of_a_moment_of_its_request, lambda: (0,)),
    Mutation(
        of_the_lab("access-lists"),
        test_node_acls_lists.test_each_sees_the_topics_that_it_may_describe_and_no_other,
        lambda: (colours(), 9),
    ),
    Mutation(_shared_views, test_security_authorizer.test_what_was_decided_for_one_is_nobody_elses, lambda: (made(),)),
    Mutation(of_the_lab("access-inner"), test_node_acls.test_each_broker_passes_on_who_asks, lambda: (three(),)),
    Mutation(
        of_the_lab("access-plan"),
        test_node_acls.test_a_consumer_that_asks_the_same_again_is_asked_about_again,
        lambda: (alone(), 12),
    ),
    Mutation(
        _waiting_unasked, test_node_acls.test_a_fetch_that_waits_is_denied_when_it_is_answered, lambda: (alone(),)
    ),
]


def made() -> Authorizer:
    def on_denied(session: Session, row: object, name: str) -> None: ...

    authorizer = Authorizer({"User:root"}, allow_everyone=False, on_denied=on_denied)
    authorizer.load()
    return authorizer


@pytest.mark.parametrize(
    "mutation", MUTATIONS, ids=lambda each: f"{each.patch.__name__[1:]}-{each.noticed_by.__name__}"
)
def test_a_broken_rule_is_noticed(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.patch(monkeypatch)
    with pytest.raises(AssertionError):
        mutation.noticed_by(*mutation.arguments())
