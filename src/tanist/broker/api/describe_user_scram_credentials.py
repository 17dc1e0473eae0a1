"""DescribeUserScramCredentials (key 50), version 0: which users have credentials, never what those are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from tanist.wire.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


@dataclass(frozen=True, slots=True)
class DescribeUserScramCredentials:
    """The handler of DescribeUserScramCredentials."""

    metadata: MetadataView

    def handle(self, request: DescribeUserScramCredentialsRequest, call: Call) -> None:
        """Tell which mechanisms users have credentials for; no users asks for all."""
        known: dict[str, list[CredentialInfo]] = {}
        for (name, mechanism), record in self.metadata.image.scram.items():
            info = CredentialInfo(mechanism=mechanism, iterations=record.iterations)
            known.setdefault(name, []).append(info)
        asked = Counter(user.name for user in request.users) if request.users else dict.fromkeys(known, 1)
        results = tuple(_result(name, times, known.get(name)) for name, times in asked.items())
        call.reply(DescribeUserScramCredentialsResponse(results=results))


def _result(name: str, times: int, infos: list[CredentialInfo] | None) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
        )
    if infos is None:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(user=name, credential_infos=tuple(infos))


def build(components: NodeComponents) -> Handler:
    return DescribeUserScramCredentials(components.metadata).handle
