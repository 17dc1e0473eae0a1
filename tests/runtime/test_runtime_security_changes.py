"""Users and ACLs that are removed while the answer is lost: what is said is what became of them."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.client.acls import AclEntry
from tanist.runtime.client import acls, users
from tanist.runtime.client.client import Client, KafkaError, Unanswered
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from tanist.wire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from tanist.wire.messages.delete_acls_request import DeleteAclsRequest
from tanist.wire.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from tanist.wire.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

ENTRY = AclEntry(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermission.ALLOW)
LOST, NEVER_CAME = "lost", "never came"


class Faulty(Client):
    """A cluster with one user and one entry, whose answers to changes are lost as the test says."""

    def __init__(self, *mishaps: str) -> None:
        super().__init__([("nowhere", 1)], timeout_s=5.0)
        self._last = ("nowhere", 1)
        self.mishaps = list(mishaps)
        self.has_user = self.has_entry = True
        self.changes = 0

    def ask(self, request: Any, answer: Any, *, once: bool = False, **_: Any) -> Any:
        match request:
            case DescribeClusterRequest():
                return DescribeClusterResponse(metadata_age_ms=-1)
            case DescribeUserScramCredentialsRequest():
                infos = (CredentialInfo(mechanism=2, iterations=4096),)
                result = DescribeUserScramCredentialsResult(user="a", credential_infos=infos)
                return DescribeUserScramCredentialsResponse(results=(result,) if self.has_user else ())
            case DescribeAclsRequest():
                entry = AclDescription(principal="User:a", host="*", operation=3, permission_type=3)
                resource = DescribeAclsResource(resource_type=2, resource_name="t", pattern_type=3, acls=(entry,))
                return DescribeAclsResponse(resources=(resource,) if self.has_entry else ())
        assert once, "a change that a broken connection repeats"
        self.changes += 1
        mishap = self.mishaps.pop(0) if self.mishaps else None
        done = None if mishap == NEVER_CAME else self._done(request)
        if mishap is not None:
            raise Unanswered("it does not answer")
        return done

    def _done(self, request: Any) -> Any:
        if isinstance(request, AlterUserScramCredentialsRequest):
            code = ErrorCode.NONE if self.has_user else ErrorCode.RESOURCE_NOT_FOUND
            self.has_user = False
            return AlterUserScramCredentialsResponse(results=(AlterUserScramCredentialsResult(error_code=code),))
        assert isinstance(request, DeleteAclsRequest)
        self.has_entry = False
        return DeleteAclsResponse(filter_results=(DeleteAclsFilterResult(),))


@pytest.mark.parametrize(("mishaps", "changes"), [((), 1), ((LOST,), 1), ((NEVER_CAME,), 2)])
def test_a_removed_user_was_there_whatever_became_of_the_answer(mishaps: tuple[str, ...], changes: int) -> None:
    client = Faulty(*mishaps)
    assert users.remove_user(client, "a", "SCRAM-SHA-512")
    assert (client.has_user, client.changes) == (False, changes)
    assert not users.remove_user(client, "a", "SCRAM-SHA-512")


@pytest.mark.parametrize(("mishaps", "changes"), [((), 1), ((LOST,), 1), ((NEVER_CAME,), 2)])
def test_removed_entries_are_named_whatever_became_of_the_answer(mishaps: tuple[str, ...], changes: int) -> None:
    client = Faulty(*mishaps)
    assert acls.delete_acls(client, [ENTRY]) == [ENTRY]
    assert (client.has_entry, client.changes) == (False, changes)
    assert acls.delete_acls(client, [ENTRY]) == []


def test_a_refusal_is_given_in_the_controllers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message="no such pattern")
    client = Faulty()
    monkeypatch.setattr(client, "_done", lambda _: DeleteAclsResponse(filter_results=(refused,)))
    with pytest.raises(KafkaError, match="INVALID_REQUEST: no such pattern"):
        acls.delete_acls(client, [ENTRY])
