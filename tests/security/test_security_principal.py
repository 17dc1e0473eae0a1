"""Principals: their text, and the bytes by which brokers pass them on (DefaultPrincipalData)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.security.principal import ANONYMOUS, Principal, decode_principal, encode_principal, parse_principal
from tanist.wire.errors import WireError


def test_the_bytes_are_those_of_apache_kafka() -> None:
    """DefaultKafkaPrincipalBuilder of 4.3.1, for User:ANONYMOUS."""
    assert encode_principal(ANONYMOUS) == b"\0\0\x05User\x0aANONYMOUS\0\0"
    assert encode_principal(Principal("User", "a" * 200), by_token=True)[7:9] == b"\xc9\x01"


@given(
    st.text(st.characters(codec="utf-8"), max_size=300),
    st.text(max_size=20).filter(str.isascii),
    st.booleans(),
)
def test_what_is_written_is_read(name: str, kind: str, by_token: bool) -> None:
    principal = Principal(kind, name)
    assert decode_principal(encode_principal(principal, by_token=by_token)) == (principal, by_token)


@given(st.binary(max_size=60))
def test_other_bytes_are_a_principal_or_an_error(data: bytes) -> None:
    with suppress(WireError):
        decode_principal(data)


def test_each_cut_is_noticed() -> None:
    data = encode_principal(Principal("User", "alice"))[:-1]  # the tagged fields may be left out
    for end in range(len(data)):
        with pytest.raises(WireError):
            decode_principal(data[:end])


def test_the_text_is_kind_and_name() -> None:
    assert parse_principal("User:CN=a:b,O=c") == Principal("User", "CN=a:b,O=c")
    assert str(Principal("User", "alice")) == "User:alice"


@pytest.mark.parametrize("text", ["", "User", "User:", ":alice", "alice"])
def test_a_text_without_kind_or_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="principalType:principalName"):
        parse_principal(text)
