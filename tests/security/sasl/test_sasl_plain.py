"""PLAIN: who comes in, who does not, and in which words (Apache Kafka's)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.security.principal import Principal
from tanist.security.sasl.outcome import Done, Failed, Outcome, SaslError
from tanist.security.sasl.plain import PlainClient, PlainServer

PASSWORDS = {"alice": "secret", "élise": "à", "empty": ""}
INVALID = "Authentication failed: Invalid username or password"


def answer(token: bytes) -> Outcome:
    return PlainServer(PASSWORDS.get).step(token)


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret"])
def test_who_has_the_password_comes_in(token: bytes) -> None:
    assert answer(token) == Done(Principal("User", "alice"))


def test_both_sides_agree() -> None:
    client = PlainClient("élise", "à")
    assert answer(client.first()) == Done(Principal("User", "élise"))
    assert client.step(b"") is None


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0Secret", INVALID),
        (b"\0alice\0secret2", INVALID),
        (b"\0bob\0secret", INVALID),
        (b"\0empty\0x", INVALID),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"", None),
        (b"\0alice", None),
        (b"\0alice\0secret\0", None),
        (b"\0al\xff\0secret", None),
    ],
)
def test_others_do_not(token: bytes, text: str | None) -> None:
    outcome = answer(token)
    assert isinstance(outcome, Failed)
    assert outcome.text == text
    assert "secret" not in repr(outcome)


@given(st.binary())
def test_no_bytes_raise(token: bytes) -> None:
    assert isinstance(answer(token), Done | Failed)


@given(st.text(), st.text())
def test_only_the_right_password_opens(user: str, password: str) -> None:
    outcome = answer(f"\0{user}\0{password}".encode(errors="replace"))
    assert isinstance(outcome, Done) == (PASSWORDS.get(user) == password != "")


def test_a_nul_is_no_part_of_a_password() -> None:
    with pytest.raises(SaslError):
        PlainClient("alice", "a\0b")
