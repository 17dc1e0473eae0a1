"""AlterUserScramCredentials: what is set, what is refused, and in which words (Apache Kafka's)."""

from __future__ import annotations

import pytest

from tanist.controller.image.image import METADATA_VERSION, MetadataImage
from tanist.controller.security.scram import SCRAM_FROM, alter_credentials
from tanist.security.sasl.scram import ScramCredential
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tanist.wire.metadata import FeatureLevelRecord, RemoveUserScramCredentialRecord, UserScramCredentialRecord
from tests.security.tokens import BY_TYPE


def image_of(*names: str, level: int = SCRAM_FROM) -> MetadataImage:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))
    for name in names:
        image.replay(UserScramCredentialRecord(name=name, mechanism=1, iterations=4096))
    return image


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    salted = BY_TYPE.get(mechanism, BY_TYPE[1]).salted_password("secret", b"salt", 4096)
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def deletion(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


Change = ScramCredentialUpsertion | ScramCredentialDeletion


def answers(image: MetadataImage, *changes: Change) -> dict[str, tuple[int, str | None]]:
    decision = alter_credentials(image, request_of(*changes))
    for record in decision.records:
        image.replay(record)
    response: object = decision.response
    return {each.user: (each.error_code, each.error_message) for each in response.results}  # type: ignore[attr-defined]


def request_of(*changes: Change) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=tuple(each for each in changes if isinstance(each, ScramCredentialDeletion)),
        upsertions=tuple(each for each in changes if isinstance(each, ScramCredentialUpsertion)),
    )


@pytest.mark.parametrize("mechanism", [1, 2])
def test_a_credential_is_that_of_the_password_and_never_the_password(mechanism: int) -> None:
    image, change = image_of(), upsertion("u", mechanism)
    assert answers(image, change) == {"u": (0, None)}
    record = image.scram["u", mechanism]
    hash_ = BY_TYPE[mechanism]
    expected = ScramCredential.of_password(hash_, "secret", b"salt", 4096)
    assert (record.stored_key, record.server_key) == (expected.stored_key, expected.server_key)
    assert (record.salt, record.iterations) == (b"salt", 4096)
    assert bytes(change.salted_password) not in (record.stored_key, record.server_key)
    assert "salted_password=..." in repr(change)
    assert repr(record.stored_key) not in repr(record)


def test_a_credential_is_changed_and_deleted() -> None:
    image = image_of("u")
    assert answers(image, upsertion("u", iterations=8192)) == {"u": (0, None)}
    assert image.scram["u", 1].iterations == 8192
    decision = alter_credentials(image, request_of(deletion("u")))
    assert decision.records == (RemoveUserScramCredentialRecord(name="u", mechanism=1),)
    assert decision.atomic


TWICE = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
REFUSALS: list[tuple[tuple[Change, ...], dict[str, tuple[int, str]]]] = [
    ((upsertion(""),), {"": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")}),
    ((deletion(""),), {"": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")}),
    ((upsertion("u", 0),), {"u": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")}),
    ((deletion("u", 3),), {"u": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")}),
    ((upsertion("u", iterations=4095),), {"u": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")}),
    ((upsertion("u", iterations=16385),), {"u": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")}),
    (
        (deletion("u", 2),),
        {"u": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")},
    ),
    ((upsertion("u"), upsertion("u", 2)), {"u": TWICE}),
    ((deletion("u"), upsertion("u", 2)), {"u": TWICE}),
    ((deletion("u"), deletion("u"), upsertion("u", 2)), {"u": TWICE}),
    (
        (deletion("u", 2), deletion("u")),
        {"u": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")},
    ),
]


@pytest.mark.parametrize(("changes", "expected"), REFUSALS)
def test_a_refused_change_changes_nothing(changes: tuple[Change, ...], expected: dict[str, tuple[int, str]]) -> None:
    image = image_of("u")
    before = image.copy()
    assert answers(image, *changes) == expected
    assert image == before


def test_what_is_refused_of_one_user_is_done_for_another() -> None:
    image = image_of("u")
    found = answers(image, upsertion("v"), upsertion("u", iterations=1))
    assert {name: code for name, (code, _) in found.items()} == {"v": 0, "u": ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert set(image.scram) == {("u", 1), ("v", 1)}


def test_the_log_has_none_before_its_version() -> None:
    refused = (ErrorCode.UNSUPPORTED_VERSION, "The current metadata version does not support SCRAM")
    assert answers(image_of(level=SCRAM_FROM - 1), upsertion("u")) == {"u": refused}
