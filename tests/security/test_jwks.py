"""Signed tokens: genuine by a key of the set and an algorithm of that key's kind, or refused."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from tanist.security.jwks import KeyRing, UnknownKey
from tanist.security.sasl.oauthbearer import InvalidToken
from tests.security.tokens import unsecured_token

RSA = RSAKey.generate_key(2048, parameters={"kid": "rsa"})
EC = ECKey.generate_key("P-256", parameters={"kid": "ec"})
ED = OKPKey.generate_key("Ed25519", parameters={"kid": "ed"})
OTHER = RSAKey.generate_key(2048, parameters={"kid": "rsa"})
CLAIMS = {"sub": "alice"}
ROOT = b'{"sub":"root"}'


def part(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def key_set(*keys: Any) -> bytes:
    return json.dumps(KeySet(list(keys)).as_dict(private=False)).encode()


RING = KeyRing(key_set(RSA, EC, ED))


def signed(key: Any, algorithm: str, kid: str | None = "", payload: bytes | None = None) -> str:
    header = {"alg": algorithm, "kid": key.kid if kid == "" else kid}
    body = json.dumps(CLAIMS).encode() if payload is None else payload
    return jws.serialize_compact(
        {name: value for name, value in header.items() if value is not None}, body, key, algorithms=[algorithm]
    )


@pytest.mark.parametrize(
    ("key", "algorithm"), [(RSA, "RS256"), (RSA, "RS512"), (RSA, "PS256"), (EC, "ES256"), (ED, "Ed25519")]
)
@pytest.mark.parametrize("with_kid", [True, False])
def test_a_genuine_token(key: Any, algorithm: str, with_kid: bool) -> None:
    assert RING.claims_of(signed(key, algorithm, "" if with_kid else None)) == CLAIMS


def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(InvalidToken, match="signature is wrong"):
        RING.claims_of(signed(OTHER, "RS256"))
    with pytest.raises(UnknownKey) as raised:
        RING.claims_of(signed(OTHER, "RS256", "new"))
    assert raised.value.key_id == "new"


def test_a_key_is_for_algorithms_of_its_kind() -> None:
    with pytest.raises(InvalidToken, match="algorithm is not that of its key"):
        RING.claims_of(signed(RSA, "RS256", "ec"))


def test_a_public_key_is_no_secret() -> None:
    """The oldest attack: sign by HMAC with what everybody knows."""
    for secret in (RSA.as_pem(private=False), RSA.as_pem(private=False).strip(), RSA.as_der(private=False)):
        for kid in ("rsa", None):
            header = {"alg": "HS256"} | ({} if kid is None else {"kid": kid})
            body = f"{part(json.dumps(header).encode())}.{part(ROOT)}"
            forged = f"{body}.{part(hmac.digest(secret, body.encode(), 'sha256'))}"
            with pytest.raises(InvalidToken):
                RING.claims_of(forged)


@pytest.mark.parametrize("header", [{"alg": "none"}, {"alg": "none", "kid": "rsa"}, {"alg": "NONE"}, {}, {"alg": 7}])
def test_a_token_without_a_signature_is_none(header: dict[str, object]) -> None:
    parts = [part(json.dumps(each).encode()) for each in (header, CLAIMS)]
    for token in (".".join((*parts, "")), ".".join((*parts, "AAAA")), unsecured_token(CLAIMS)):
        with pytest.raises(InvalidToken):
            RING.claims_of(token)


@pytest.mark.parametrize("payload", [b"", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_claims_that_are_no_object(payload: bytes) -> None:
    with pytest.raises(InvalidToken):
        RING.claims_of(signed(EC, "ES256", payload=payload))


@settings(max_examples=200)
@given(st.integers(0, 1000), st.integers(1, 255))
def test_no_changed_byte_is_overlooked(place: int, change: int) -> None:
    token = signed(EC, "ES256").encode()
    place %= len(token)
    forged = token[:place] + bytes([token[place] ^ change]) + token[place + 1 :]
    try:
        text = forged.decode("ascii")
    except UnicodeDecodeError:
        return
    try:
        claims = RING.claims_of(text)
    except InvalidToken:
        return
    assert claims == CLAIMS, "the last character of base64 has bits that say nothing"


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    with pytest.raises(InvalidToken):
        RING.claims_of(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys":7}',
        b'{"keys":[]}',
        b'{"keys":[{"kty":"oct","k":"AAAA"}]}',
        b'{"keys":[{"kty":"RSA","n":"?","e":"AQAB"}]}',
        b'{"keys":[{"kty":["RSA"]}]}',
        b"[" * 100_000,
    ],
)
def test_texts_that_are_no_key_set(text: bytes) -> None:
    with pytest.raises(ValueError):
        KeyRing(text)


def test_keys_that_are_not_for_signatures_are_passed_over() -> None:
    listed = json.loads(key_set(RSA, EC))["keys"]
    listed[0]["use"] = "enc"
    listed += [{"kty": "oct", "k": "AAAA", "kid": "rsa"}, "nothing", {"kty": "EC", "crv": "P-0", "x": "", "y": ""}]
    ring = KeyRing(json.dumps({"keys": listed}).encode())
    assert len(ring) == 1
    with pytest.raises(UnknownKey):
        ring.claims_of(signed(RSA, "RS256"))
