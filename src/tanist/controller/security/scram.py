"""SCRAM credentials (KIP-554, KIP-900): AlterUserScramCredentials as records.

Owns what may be set, and the making of a credential from the salted password that an administrator's client has sent:
two HMACs and a hash. The salted password is as good as the password, so it must never come into a record or a message.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

from tanist.controller.decision import Decision
from tanist.controller.image.image import MetadataImage
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tanist.wire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from tanist.wire.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from tanist.wire.schema import MetadataRecord

ALGORITHMS: Final = {1: "sha256", 2: "sha512"}
"""By type of mechanism."""
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
SCRAM_FROM: Final = 11
"""The metadata.version (3.5-IV2) from which the log may have such records."""

Fault = tuple[ErrorCode, str]
_Change = ScramCredentialDeletion | ScramCredentialUpsertion


def credential_record(
    name: str, mechanism: int, salted_password: bytes, salt: bytes, iterations: int
) -> UserScramCredentialRecord:
    """The record of a credential. KeyError for a mechanism that is not known."""
    algorithm = ALGORITHMS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", algorithm)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", algorithm),
        iterations=iterations,
    )


def alter_credentials(image: MetadataImage, request: AlterUserScramCredentialsRequest) -> Decision:
    """Delete and set credentials: each user once in a request, whatever the mechanism."""
    faults: dict[str, Fault] = {}
    changes: dict[str, MetadataRecord] = {}
    seen: set[str] = set()
    asked: list[_Change] = [*request.deletions, *request.upsertions]
    for each in asked:
        name = each.name
        if name in faults:
            continue
        if name in seen:
            faults[name] = (
                ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
            )  # fmt: skip
            changes.pop(name, None)
            continue
        seen.add(name)
        fault = _fault(image, each)
        if fault is not None:
            faults[name] = fault
        else:
            changes[name] = _record(each)
    answered: Iterable[str] = (*changes, *faults)
    results = tuple(
        AlterUserScramCredentialsResult(
            user=name,
            error_code=faults[name][0] if name in faults else ErrorCode.NONE,
            error_message=faults[name][1] if name in faults else None,
        )
        for name in answered
    )
    return Decision(tuple(changes.values()), AlterUserScramCredentialsResponse(results=results))


def _fault(image: MetadataImage, change: _Change) -> Fault | None:
    if image.metadata_version < SCRAM_FROM:
        return ErrorCode.UNSUPPORTED_VERSION, "The current metadata version does not support SCRAM"
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if change.mechanism not in ALGORITHMS:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(change, ScramCredentialDeletion):
        if (change.name, change.mechanism) in image.scram:
            return None
        return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    if change.iterations < MIN_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    if change.iterations > MAX_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    return None


def _record(change: _Change) -> MetadataRecord:
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    return credential_record(
        change.name, change.mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations
    )
