"""The security properties of clients: Kafka's, librdkafka's, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.client.security import ClientConfigError, client_security
from tanist.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from tanist.security.sasl.client import Authenticated
from tanist.security.sasl.outcome import SaslError
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tanist.wire.messages.sasl_handshake_response import SaslHandshakeResponse

PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN_MODULE} required username="alice" password="hidden";',
}


def zeros(count: int) -> bytes:
    return bytes(count)


@pytest.mark.parametrize("properties", [{}, {"security.protocol": "plaintext"}, {"bootstrap.servers": "h:1"}])
def test_without_security(properties: dict[str, str]) -> None:
    assert client_security(properties, zeros).credentials is None


def test_tls() -> None:
    stores = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}
    assert client_security({"security.protocol": "SSL", **stores}, zeros).tls == stores
    assert client_security({"security.protocol": "SSL", "ssl.ca.location": "/ca.pem"}, zeros).tls == stores
    both = client_security({**PLAIN, "security.protocol": "SASL_SSL", **stores, "ssl.key.password": "hidden"}, zeros)
    assert both.credentials is not None
    assert both.tls == {**stores, "ssl.key.password": "hidden"}
    assert "hidden" not in repr(both)
    assert client_security({**PLAIN, **stores}, zeros).tls is None
    for refused in ({"enable.ssl.certificate.verification": "false"}, {"ssl.key.location": "/key.pem"}):
        with pytest.raises(ClientConfigError):
            client_security({"security.protocol": "SSL", **refused}, zeros)


@pytest.mark.parametrize(
    "properties",
    [
        PLAIN,
        {**PLAIN, "security.protocol": "sasl_plaintext"},
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "hidden",
        },
    ],
)
def test_a_user_of_plain(properties: dict[str, str]) -> None:
    security = client_security(properties, zeros)
    assert security.credentials is not None
    dialogue = security.credentials.begin()
    assert dialogue.first() == SaslHandshakeRequest(mechanism="PLAIN")
    token = dialogue.handle_response(SaslHandshakeResponse(mechanisms=("PLAIN",)))
    assert token == SaslAuthenticateRequest(auth_bytes=b"\0alice\0hidden")
    assert dialogue.handle_response(SaslAuthenticateResponse()) == Authenticated(None)
    assert "hidden" not in repr((security, security.credentials, token))


def test_a_session_is_renewed_before_its_end() -> None:
    credentials = client_security(PLAIN, zeros).credentials
    assert credentials is not None
    dialogue = credentials.begin()
    dialogue.handle_response(SaslHandshakeResponse())
    assert dialogue.handle_response(SaslAuthenticateResponse(session_lifetime_ms=1000)) == Authenticated(850)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (
            SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("A", "B")),
            "the server does not take the mechanism PLAIN (UNSUPPORTED_SASL_MECHANISM); it has A, B",
        ),
        (
            SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="no"),
            "no",
        ),
        (SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=None), "ILLEGAL_SASL_STATE"),
        (SaslAuthenticateRequest(), "the server answers with a SaslAuthenticateRequest"),
    ],
)
def test_a_server_that_refuses(response: object, why: str) -> None:
    credentials = client_security(PLAIN, zeros).credentials
    assert credentials is not None
    with pytest.raises(SaslError) as raised:
        credentials.begin().handle_response(response)  # type: ignore[arg-type]
    assert str(raised.value) == why


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"security.protocol": "QUIC"}, "security.protocol is QUIC"),
        ({"sasl.mechanism": ""}, "sasl.mechanism is GSSAPI (the default), which tanist's clients do not have"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism is GSSAPI, which"),
        ({"sasl.jaas.config": "hidden"}, "sasl.jaas.config: the login module's control flag is missing"),
        ({"sasl.jaas.config": f"{SCRAM_MODULE} required;"}, "the login module of PLAIN is"),
        ({"sasl.jaas.config": f'{PLAIN_MODULE} required username="a";'}, "PLAIN needs a user name and a password"),
        ({"sasl.jaas.config": f'{PLAIN_MODULE} required username="a" password="hid\\0den";'}, "NUL"),
    ],
)
def test_what_nobody_can_connect_by(changes: dict[str, str], why: str) -> None:
    with pytest.raises(ClientConfigError) as raised:
        client_security({**PLAIN, **changes}, zeros)
    assert why in str(raised.value)
    assert "hid" not in str(raised.value)


def test_a_missing_login_is_shown_with_the_line_to_add() -> None:
    properties = {name: value for name, value in PLAIN.items() if name != "sasl.jaas.config"}
    with pytest.raises(ClientConfigError, match=r"add sasl\.jaas\.config=org\.apache\.kafka"):
        client_security(properties, zeros)


# -- OAUTHBEARER

BEARER = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "file:///run/token",
}


def test_a_token_is_read_from_its_file_each_time() -> None:
    files = {"/run/token": b"aa.bb.cc\n"}
    credentials = client_security(BEARER, zeros, files.__getitem__).credentials
    assert credentials is not None
    for token in (b"aa.bb.cc", b"dd.ee.ff"):
        files["/run/token"] = token
        dialogue = credentials.begin()
        assert dialogue.first() == SaslHandshakeRequest(mechanism="OAUTHBEARER")
        request = dialogue.handle_response(SaslHandshakeResponse())
        assert request == SaslAuthenticateRequest(auth_bytes=b"n,,\x01auth=Bearer " + token + b"\x01\x01")
        refused = SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
        assert dialogue.handle_response(refused) == SaslAuthenticateRequest(auth_bytes=b"\x01")


def _no_file(path: str) -> bytes:
    raise FileNotFoundError(2, "No such file or directory", path)


@pytest.mark.parametrize(
    ("changes", "read_file", "why"),
    [
        ({"sasl.oauthbearer.token.endpoint.url": ""}, _no_file, "add sasl.oauthbearer.token.endpoint.url=file:///PATH"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://h/token"}, _no_file, "take a token from a file"),
        ({}, None, "take a token from a file"),
        ({}, _no_file, "no token in /run/token: No such file or directory"),
        ({}, lambda path: b"\xff", "no token in /run/token: it is no text"),
        ({}, lambda path: b"hid den", "that is no token"),
    ],
)
def test_a_token_that_cannot_be_had(changes: dict[str, str], read_file: Any, why: str) -> None:
    with pytest.raises(ClientConfigError) as raised:
        client_security({**BEARER, **changes}, zeros, read_file)
    assert why in str(raised.value)
    assert "hid" not in str(raised.value)


@pytest.mark.parametrize(
    ("properties", "meant"),
    [({"sasl.password": "hidden"}, "SASL_SSL"), ({"ssl.ca.location": "/ca.pem"}, "SSL")],
)
def test_security_without_a_protocol_is_refused_where_it_would_have_no_effect(
    properties: dict[str, str], meant: str
) -> None:
    (name,) = properties
    with pytest.raises(ClientConfigError, match=f"security.protocol is missing, so that {name} .*={meant}") as raised:
        client_security({"bootstrap.servers": "h:1", **properties}, zeros)
    assert "hidden" not in str(raised.value)
