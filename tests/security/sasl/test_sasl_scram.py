"""SCRAM, both sides, by the examples of RFC 5802 and RFC 7677, and against each other."""

from __future__ import annotations

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.security.principal import Principal
from tanist.security.sasl import scram
from tanist.security.sasl.outcome import Challenge, Done, Failed, Later, SaslError
from tanist.security.sasl.scram import (
    SHA_256,
    SHA_512,
    SaltedPasswords,
    ScramClient,
    ScramCredential,
    ScramHash,
    ScramServer,
    Token,
)
from tanist.security.sasl.scram_messages import ClientFirst, escape, unescape

SHA_1 = ScramHash("SCRAM-SHA-1", "sha1", 0)
SALT = b"0123456789abcdef"
ALICE = Principal("User", "alice")

RFC = [
    (
        SHA_1,
        "fyko+d2lbbFgONRv9qkxdawL",
        "3rfcNHYJY1ZVvWVs7j",
        "QSXCR+Q6sek8bf92",
        "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
    (
        SHA_256,
        "rOprNGfwEbeRWgbNEkqO",
        "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        "W22ZaJ0SNY7soEsUEjb6gQ==",
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
]
"""Hash, the client's nonce, what the server adds, salt, and both proofs. User and password are "user" and "pencil"."""


def zeros(count: int) -> bytes:
    return bytes(count)


@pytest.mark.parametrize("example", RFC, ids=lambda each: each[0].name)
def test_the_examples_of_the_rfcs(
    example: tuple[ScramHash, str, str, str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hash_, client_nonce, server_nonce, salt, proof, signature = example
    monkeypatch.setattr(scram, "_nonce", lambda random: client_nonce)
    client = ScramClient(hash_, "user", SaltedPasswords(hash_, "pencil").of, zeros)
    assert client.first() == f"n,,n=user,r={client_nonce}".encode()
    monkeypatch.setattr(scram, "_nonce", lambda random: server_nonce)
    credential = ScramCredential.of_password(hash_, "pencil", b64decode(salt), 4096)
    server = ScramServer(hash_, zeros, {"user": credential}.get)
    first = server.step(client.first())
    assert first == Challenge(f"r={client_nonce}{server_nonce},s={salt},i=4096".encode())
    final = client.step(first.token)
    assert final == f"c=biws,r={client_nonce}{server_nonce},p={proof}".encode()
    done = server.step(final)
    assert done == Done(Principal("User", "user"), f"v={signature}".encode())
    assert client.step(done.token) is None


def server_of(hash_: ScramHash, password: str = "secret", iterations: int = 4096, **tokens: Token) -> ScramServer:
    credential = ScramCredential.of_password(hash_, password, SALT, iterations)
    return ScramServer(hash_, zeros, {"alice": credential}.get, tokens.get)


def client_of(hash_: ScramHash, user: str = "alice", password: str = "secret", *, token: bool = False) -> ScramClient:
    return ScramClient(hash_, user, SaltedPasswords(hash_, password).of, zeros, token=token)


def converse(client: ScramClient, server: ScramServer) -> object:
    """The last outcome of the server."""
    outcome = server.step(client.first())
    if isinstance(outcome, Later):
        outcome = outcome.then(outcome.job())
    if not isinstance(outcome, Challenge):
        return outcome
    answer = client.step(outcome.token)
    assert answer is not None
    outcome = server.step(answer)
    if isinstance(outcome, Done):
        assert client.step(outcome.token) is None
    return outcome


@pytest.mark.parametrize("hash_", [SHA_256, SHA_512])
def test_the_right_password_opens_and_no_other(hash_: ScramHash) -> None:
    outcome = converse(client_of(hash_), server_of(hash_))
    assert isinstance(outcome, Done)
    assert (outcome.principal, outcome.expires_ms, outcome.by_token) == (ALICE, None, False)
    for client in (client_of(hash_, password="Secret"), client_of(hash_, "bob")):
        refused = converse(client, server_of(hash_))
        assert isinstance(refused, Failed)
        assert refused.text is None, "the words do not tell whether there is such a user"


def test_a_password_of_the_other_hash_does_not_open() -> None:
    server = server_of(SHA_512)
    outcome = server.step(client_of(SHA_256).first())
    assert isinstance(outcome, Challenge)
    final = client_of(SHA_256).step(outcome.token)
    assert final is not None
    assert isinstance(server.step(final), Failed)


def test_a_proof_is_for_one_conversation() -> None:
    server, client = server_of(SHA_256), client_of(SHA_256)
    outcome = server.step(client.first())
    assert isinstance(outcome, Challenge)
    final = client.step(outcome.token)
    assert final is not None
    assert isinstance(server.step(final), Done)
    assert isinstance(server.step(final), Failed)
    other = ScramServer(
        SHA_256, lambda count: b"\1" * count, {"alice": ScramCredential.of_password(SHA_256, "secret", SALT, 4096)}.get
    )
    other.step(client.first())
    assert isinstance(other.step(final), Failed), "the nonce is another"


def test_a_credential_with_few_iterations_opens_to_nobody() -> None:
    assert isinstance(converse(client_of(SHA_256), server_of(SHA_256, iterations=4095)), Failed)


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"n,,n=alice",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=a=b,r=abc",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=a\x7fb",
        b"n,,n=al\xffice,r=abc",
        b"n,a=bob,n=alice,r=abc",
    ],
)
def test_bad_first_messages_are_refused(token: bytes) -> None:
    assert isinstance(server_of(SHA_256).step(token), Failed)


def test_an_authorization_id_has_to_be_the_user() -> None:
    assert isinstance(server_of(SHA_256).step(b"n,a=alice,n=alice,r=abc"), Challenge)
    refused = server_of(SHA_256).step(b"n,a=bob,n=alice,r=abc")
    assert refused == Failed(
        "Authentication failed: Client requested an authorization id that is different from username"
    )


@pytest.mark.parametrize(
    "final", [b"c=biws,r=abc,p=AAAA", b"c=eSws,r={nonce},p=AAAA", b"c=biws,r={nonce},p=AAAA", b"c=biws,r={nonce}"]
)
def test_bad_last_messages_are_refused(final: bytes) -> None:
    server = server_of(SHA_256)
    first = server.step(b"n,,n=alice,r=abc")
    assert isinstance(first, Challenge)
    nonce = first.token.split(b",")[0][2:]
    assert isinstance(server.step(final.replace(b"{nonce}", nonce)), Failed)


@given(st.lists(st.binary(), min_size=1, max_size=3))
def test_no_bytes_raise_at_the_server(tokens: list[bytes]) -> None:
    server = server_of(SHA_256)
    for token in tokens:
        assert isinstance(server.step(token), Failed | Challenge)
    server = server_of(SHA_256)
    server.step(b"n,,n=alice,r=abc")
    for token in tokens:
        assert isinstance(server.step(token), Failed)


@given(st.binary())
def test_bytes_of_a_server_raise_one_error(token: bytes) -> None:
    with pytest.raises(SaslError):
        client_of(SHA_256).step(token)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_any_name_comes_through(name: str) -> None:
    assert unescape(escape(name)) == name
    first = ClientFirst.parse(ClientFirst.of(name, "abc", {"tokenauth": "true"}).encode())
    assert (first.user, first.nonce, first.extensions) == (name, "abc", {"tokenauth": "true"})


# -- a client's own safety


def test_a_server_has_to_know_the_password_too() -> None:
    client = client_of(SHA_256)
    first = server_of(SHA_256).step(client.first())
    client.step(first.token)
    with pytest.raises(SaslError, match="Invalid server signature"):
        client.step(b"v=AAAA")


@pytest.mark.parametrize("text", ["r=abc,s=AAAA,i=4096", "r={nonce},s=AAAA,i=4096"])
def test_a_server_has_to_add_to_the_nonce(text: str) -> None:
    client = client_of(SHA_256)
    nonce = client.first().decode().partition("r=")[2]
    with pytest.raises(SaslError, match="nonce"):
        client.step(text.replace("{nonce}", nonce).encode())


@pytest.mark.parametrize("iterations", [1, 4095, 1_000_000, 999_999_999])
def test_a_server_cannot_ask_for_too_little_or_too_much_work(iterations: int) -> None:
    client = client_of(SHA_256)
    nonce = client.first().decode().partition("r=")[2]
    with pytest.raises(SaslError):
        client.step(f"r={nonce}x,s=AAAA,i={iterations}".encode())


def test_a_salted_password_is_computed_once() -> None:
    calls: list[int] = []

    class Counting(ScramHash):
        def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
            calls.append(iterations)
            return b"salted"

    passwords = SaltedPasswords(Counting("x", "sha256", 1), "secret")
    assert [passwords.of(b"a", 4096), passwords.of(b"a", 4096)] == [b"salted"] * 2
    passwords.of(b"b", 4096)
    assert len(calls) == 2


# -- delegation tokens


def test_a_token_stands_for_its_owner() -> None:
    def derive() -> ScramCredential:
        return ScramCredential.of_password(SHA_256, "hmac", SALT, 4096)

    for credential in (derive, derive()):
        server = server_of(SHA_256, tid=Token(ALICE, 99, credential))
        outcome = converse(client_of(SHA_256, "tid", "hmac", token=True), server)
        assert isinstance(outcome, Done)
        assert (outcome.principal, outcome.expires_ms, outcome.by_token) == (ALICE, 99, True)


def test_a_token_and_a_user_of_the_same_name_are_two_things() -> None:
    assert isinstance(converse(client_of(SHA_256, token=True), server_of(SHA_256)), Failed)
    token = Token(ALICE, 99, ScramCredential.of_password(SHA_256, "hmac", SALT, 4096))
    assert isinstance(converse(client_of(SHA_256, "tid", "hmac"), server_of(SHA_256, tid=token)), Failed)


def test_nothing_secret_is_shown() -> None:
    credential = ScramCredential(b"pepper", b"stored", b"server", 4096)
    shown = repr((credential, Token(ALICE, 1, credential), Challenge(b"pepper"), Done(ALICE, b"server")))
    assert not any(word in shown for word in ("pepper", "stored", "b'server'"))
