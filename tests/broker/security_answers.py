"""What a broker without an authorizer, SASL and quotas answers about them: Apache Kafka 4.3.1 was asked.

`tests/broker/test_security_answers.py` asks a simulated cluster, `tests/interop/test_interop_security_answers.py` a
node of each kind.
"""

from __future__ import annotations

from typing import Final

from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_response, encode_response
from tanist.wire.messages import create_acls_response, delete_acls_response
from tanist.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from tanist.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tanist.wire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from tanist.wire.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tanist.wire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.describe_acls_response import DescribeAclsResponse
from tanist.wire.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from tanist.wire.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from tanist.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from tanist.wire.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from tanist.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from tanist.wire.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from tanist.wire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tanist.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from tanist.wire.schema import Request, Response

SECURITY_KEYS: Final = (29, 30, 31, 38, 39, 40, 41, 48, 49, 50, 51)
ON_CONTROLLERS: Final = (29, 30, 31, 38, 39, 40)
"""Where both kinds of controllers answer alike. Apache's advertise 41 and 50 too, and answer UNKNOWN_SERVER_ERROR."""

_ACL = AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3)
_ANY_ACL = DeleteAclsFilter(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)
_NO_AUTHORIZER: Final = "No Authorizer is configured."
_NOT_CREATED = create_acls_response.AclCreationResult(
    error_code=ErrorCode.SECURITY_DISABLED, error_message=_NO_AUTHORIZER
)
_NOT_DELETED = delete_acls_response.DeleteAclsFilterResult(
    error_code=ErrorCode.SECURITY_DISABLED, error_message=_NO_AUTHORIZER
)
_NO_TOKENS = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def _quotas(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ),
        strict=strict,
    )


def _refused_quotas(code: int, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


def _users(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=tuple(UserName(name=name) for name in names))


def _no_user(name: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"Attempt to describe a user credential that does not exist: {name}",
    )


ANSWERS: Final[tuple[tuple[Request, Response], ...]] = (
    (
        DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
        DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
        ),
    ),
    (
        CreateAclsRequest(creations=(_ACL, _ACL)),
        create_acls_response.CreateAclsResponse(results=(_NOT_CREATED, _NOT_CREATED)),
    ),
    (CreateAclsRequest(), create_acls_response.CreateAclsResponse()),
    (
        DeleteAclsRequest(filters=(_ANY_ACL, _ANY_ACL)),
        delete_acls_response.DeleteAclsResponse(filter_results=(_NOT_DELETED, _NOT_DELETED)),
    ),
    (
        CreateDelegationTokenRequest(max_lifetime_ms=-1, owner_principal_type=None, owner_principal_name=None),
        CreateDelegationTokenResponse(
            error_code=_NO_TOKENS,
            principal_type="User",
            principal_name="ANONYMOUS",
            token_requester_principal_type="User",
            token_requester_principal_name="ANONYMOUS",
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
        ),
    ),
    (
        RenewDelegationTokenRequest(hmac=b"a", renew_period_ms=-1),
        RenewDelegationTokenResponse(error_code=_NO_TOKENS, expiry_timestamp_ms=-1),
    ),
    (
        ExpireDelegationTokenRequest(hmac=b"a", expiry_time_period_ms=-1),
        ExpireDelegationTokenResponse(error_code=_NO_TOKENS, expiry_timestamp_ms=-1),
    ),
    (DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse(error_code=_NO_TOKENS)),
    (DescribeDelegationTokenRequest(owners=()), DescribeDelegationTokenResponse(error_code=_NO_TOKENS)),
    (_quotas(), DescribeClientQuotasResponse()),
    (_quotas(strict=True), DescribeClientQuotasResponse()),
    (_quotas(("user", 0, "a"), ("client-id", 2, None)), DescribeClientQuotasResponse()),
    (_quotas(("ip", 1, None)), DescribeClientQuotasResponse()),
    (
        _quotas(("nobody", 0, "a")),
        _refused_quotas(ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type nobody"),
    ),
    (_quotas(("", 0, "a")), _refused_quotas(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")),
    (_quotas(("user", 9, "a")), _refused_quotas(ErrorCode.INVALID_REQUEST, "Unknown match type 9")),
    (
        _quotas(("user", 0, "a"), ("user", 2, None)),
        _refused_quotas(ErrorCode.INVALID_REQUEST, "Entity type user cannot appear more than once in the filter."),
    ),
    (
        _quotas(("user", 0, None)),
        _refused_quotas(ErrorCode.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
    ),
    (
        _quotas(("user", 1, "a")),
        _refused_quotas(
            ErrorCode.INVALID_REQUEST, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."
        ),
    ),
    (
        _quotas(("user", 2, "a")),
        _refused_quotas(
            ErrorCode.INVALID_REQUEST, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."
        ),
    ),
    (
        _quotas(("user", 0, "a"), ("ip", 0, "1.1.1.1")),
        _refused_quotas(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        ),
    ),
    (AlterClientQuotasRequest(), AlterClientQuotasResponse()),
    (DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse()),
    (_users(), DescribeUserScramCredentialsResponse()),
    (_users("a", "b"), DescribeUserScramCredentialsResponse(results=(_no_user("a"), _no_user("b")))),
    (
        _users("a", "a"),
        DescribeUserScramCredentialsResponse(
            results=(
                DescribeUserScramCredentialsResult(
                    user="a",
                    error_code=ErrorCode.DUPLICATE_RESOURCE,
                    error_message="Cannot describe SCRAM credentials for the same user twice in a single request: a",
                ),
            )
        ),
    ),
    (AlterUserScramCredentialsRequest(), AlterUserScramCredentialsResponse()),
)
"""Each with what is answered, in every version."""


def as_sent(answer: Response, version: int) -> object:
    """What of an answer a version can say."""
    return decode_response(answer.API_KEY, version, memoryview(encode_response(answer, version, 1)[4:]))


def name_of(pair: tuple[Request, Response]) -> str:
    return f"{ANSWERS.index(pair)}-{ApiKey(pair[0].API_KEY).name.lower()}"
