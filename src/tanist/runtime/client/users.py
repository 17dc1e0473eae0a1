"""The users of any Kafka cluster who authenticate by SCRAM (KIP-554).

Owns how a password becomes what the brokers keep: they never see it. Must never show one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tanist.runtime.client.changes import ask_once, carry_out, raise_first_error
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.quorum import ask_controller
from tanist.security.sasl.scram import HASHES, MIN_ITERATIONS
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tanist.wire.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from tanist.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from tanist.wire.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse

_SALT_BYTES = 16
_NAMES = {each.type: name for name, each in HASHES.items()}


@dataclass(frozen=True, slots=True, order=True)
class ScramUser:
    """A user, and one mechanism by which it may authenticate."""

    name: str
    mechanism: str
    iterations: int


def describe_users(client: Client) -> list[ScramUser]:
    """All of them, in order. `KafkaError`."""

    def attempt() -> list[ScramUser]:
        answer = client.ask(DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
        return sorted(
            ScramUser(result.user, _NAMES.get(info.mechanism, str(info.mechanism)), info.iterations)
            for result in answer.results
            for info in result.credential_infos
        )

    return client.persist(attempt)


def set_password(client: Client, name: str, mechanism: str, password: str, iterations: int = MIN_ITERATIONS) -> None:
    """Make a user, or give one another password. `KafkaError`; ValueError for a password that SCRAM does not take."""
    hash_ = HASHES[mechanism]
    salt = os.urandom(_SALT_BYTES)
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=hash_.type,
        iterations=iterations,
        salt=salt,
        salted_password=hash_.salted_password(password, salt, iterations),
    )
    request = AlterUserScramCredentialsRequest(upsertions=(upsertion,))

    def attempt() -> None:
        answer = ask_controller(client, request, AlterUserScramCredentialsResponse, timeout_s=client.timeout_s)
        raise_first_error(answer.results)

    client.persist(attempt)


def remove_user(client: Client, name: str, mechanism: str) -> bool:
    """Whether there was one. Connections that it has stay open until they authenticate again. `KafkaError`."""
    deletion = ScramCredentialDeletion(name=name, mechanism=HASHES[mechanism].type)
    request = AlterUserScramCredentialsRequest(deletions=(deletion,))

    def attempt(patience_s: float) -> bool:
        raise_first_error(ask_once(client, request, AlterUserScramCredentialsResponse, patience_s).results)
        return True

    def find_result() -> bool | None:
        return (
            None if any((each.name, each.mechanism) == (name, mechanism) for each in describe_users(client)) else True
        )

    missing = ErrorCode.RESOURCE_NOT_FOUND
    try:
        return carry_out(client, f"remove user {name} with {mechanism}", attempt, find_result, already=(missing,))
    except KafkaError as error:
        if error.code == missing:
            return False
        raise
