"""OAUTHBEARER: the messages, what a token must say, and tokens without a signature."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.security.principal import Principal
from tanist.security.sasl.oauthbearer import (
    InvalidToken,
    OAuthBearerClient,
    OAuthBearerServer,
    TokenRules,
    unsecured_claims,
)
from tanist.security.sasl.outcome import Challenge, Done, Failed, SaslError
from tests.security.tokens import unsecured_token

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000
CLAIMS = {"sub": "alice", "iat": NOW - 100, "exp": NOW + 60}
REFUSED = b'{"status":"invalid_token"}'


def server(rules: TokenRules | None = None) -> OAuthBearerServer:
    return OAuthBearerServer(unsecured_claims, rules or TokenRules(), lambda: NOW_MS)


def token(**changes: Any) -> bytes:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    return OAuthBearerClient(unsecured_token(claims)).first()


def test_who_a_token_names_comes_in_until_it_expires() -> None:
    assert server().step(token()) == Done(Principal("User", "alice"), expires_ms=(NOW + 60) * 1000)


def test_a_refusal_comes_in_json_and_ends_after_one_byte() -> None:
    refusing = server()
    challenge = refusing.step(token(exp=NOW - 31))
    assert challenge == Challenge(REFUSED)
    client = OAuthBearerClient("a.b.")
    answer = client.step(challenge.token)
    assert answer == b"\x01"
    outcome = refusing.step(answer)
    assert isinstance(outcome, Failed)
    assert outcome.text == REFUSED.decode()
    assert outcome.reason == "the token is refused: it has expired"


def test_no_second_token_is_taken() -> None:
    refusing = server()
    refusing.step(token(exp=NOW - 31))
    assert isinstance(refusing.step(token()), Failed)


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"exp": NOW - 29}, TokenRules()),
        ({"exp": NOW + 0.5}, TokenRules(clock_skew_ms=0)),
        ({"nbf": NOW + 29}, TokenRules()),
        ({"iat": None}, TokenRules(needs_issue_time=False)),
        ({"iss": "me"}, TokenRules(issuer="me")),
        ({"aud": "a"}, TokenRules(audiences=frozenset({"a", "b"}))),
        ({"aud": ["x", "b"]}, TokenRules(audiences=frozenset({"a", "b"}))),
        ({"aud": "any", "iss": "any"}, TokenRules()),
        ({"scope": "a b"}, TokenRules()),
        ({"scope": ["a", "b"]}, TokenRules()),
        ({"sub": None, "user": "alice"}, TokenRules(subject_claim="user")),
        ({"scope": ["c", " a", "b"]}, TokenRules(required_scope=("a", "b"))),
        ({"scope": "a"}, TokenRules(required_scope=("a",))),
        ({"scp": ["a"]}, TokenRules(scope_claim="scp", required_scope=("a",))),
        ({"iat": NOW + 30}, TokenRules()),
        ({"iat": NOW + 30}, TokenRules(issued_by_now=True)),
        ({"iat": NOW + 60}, TokenRules()),
    ],
)
def test_tokens_that_are_good(changes: dict[str, Any], rules: TokenRules) -> None:
    assert isinstance(server(rules).step(token(**changes)), Done)


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"exp": NOW - 30}, TokenRules()),
        ({"exp": NOW}, TokenRules(clock_skew_ms=0)),
        ({"exp": None}, TokenRules()),
        ({"exp": "soon"}, TokenRules()),
        ({"exp": True}, TokenRules()),
        ({"exp": -1}, TokenRules()),
        ({"exp": 1e300}, TokenRules()),
        ({"exp": float("nan")}, TokenRules()),
        ({"iat": None}, TokenRules()),
        ({"iat": NOW + 61}, TokenRules()),
        ({"nbf": NOW + 31}, TokenRules()),
        ({"iss": "you"}, TokenRules(issuer="me")),
        ({}, TokenRules(issuer="me")),
        ({"aud": "c"}, TokenRules(audiences=frozenset({"a", "b"}))),
        ({"aud": []}, TokenRules(audiences=frozenset({"a"}))),
        ({}, TokenRules(audiences=frozenset({"a"}))),
        ({"aud": {"a": 1}}, TokenRules(audiences=frozenset({"a"}))),
        ({"scope": [1]}, TokenRules()),
        ({"scope": 1}, TokenRules()),
        ({"sub": ""}, TokenRules()),
        ({"sub": " "}, TokenRules()),
        ({"sub": 7}, TokenRules()),
        ({"sub": None}, TokenRules()),
        ({"iat": NOW + 31}, TokenRules(issued_by_now=True)),
        ({"iat": NOW + 60, "exp": NOW + 60}, TokenRules(clock_skew_ms=60_000, issued_by_now=True)),
    ],
)
def test_tokens_that_are_not(changes: dict[str, Any], rules: TokenRules) -> None:
    assert server(rules).step(token(**changes)) == Challenge(REFUSED)


@pytest.mark.parametrize("scope", [None, [], "", "b", "a b", ["a", "c"]])
def test_a_token_without_a_scope_that_is_required_hears_which_are(scope: str | list[str] | None) -> None:
    refusing = server(TokenRules(required_scope=("a", "b")))
    challenge = refusing.step(token(scope=scope))
    assert challenge == Challenge(b'{"status":"insufficient_scope", "scope":"[a, b]"}')
    outcome = refusing.step(b"\x01")
    assert isinstance(outcome, Failed)
    assert outcome.text == challenge.token.decode()


def test_an_authorization_id_has_to_be_the_tokens() -> None:
    own = token().replace(b"n,,", b"n,a=alice,")
    assert isinstance(server().step(own), Done)
    other = server().step(token().replace(b"n,,", b"n,a=bob,"))
    assert isinstance(other, Failed)
    assert other.text is not None
    assert "(bob) that is different from the token's principal name (alice)" in other.text


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a\x01",
        b"y,,\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
    ],
)
def test_messages_that_make_no_sense(message: bytes) -> None:
    assert isinstance(server().step(message), Failed)


def test_extensions_are_read_over() -> None:
    message = token().replace(b"\x01\x01", b"\x01logicalCluster=lc-1\x01identityPoolId=p\x01\x01")
    assert isinstance(server().step(message), Done)


@given(st.binary())
def test_no_bytes_raise(message: bytes) -> None:
    assert isinstance(server().step(message), Failed)
    assert isinstance(server().step(b"n,,\x01auth=Bearer " + message + b"\x01\x01"), Failed | Challenge)


@given(st.text())
def test_no_text_is_a_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        unsecured_claims(text)


@pytest.mark.parametrize("text", ["eyJhbGciOiJSUzI1NiJ9.e30.", "eyJhbGciOiJub25lIn0.e30.AAAA", "e30.e30."])
def test_a_token_that_says_it_is_signed_is_none_without_a_signature(text: str) -> None:
    with pytest.raises(InvalidToken):
        unsecured_claims(text)


def test_what_is_no_token_is_not_sent() -> None:
    with pytest.raises(SaslError):
        OAuthBearerClient("a\x01b")
