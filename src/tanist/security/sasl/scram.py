"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), both sides, and the credential that a server keeps.

A server needs two HMACs and a hash for an authentication (11 us), never the password: PBKDF2 is the work of clients, of
those that set a password too. Must never show a key or a proof.

A name without a credential is refused at the first message, one with a wrong password at the second, in the same words:
as in Apache Kafka, who counts messages learns whether there is such a user.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from hmac import digest as hmac
from typing import Final

from tanist.security.principal import USER, Principal
from tanist.security.sasl.outcome import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    Challenge,
    Done,
    Failed,
    Later,
    Outcome,
    SaslError,
)
from tanist.security.sasl.scram_messages import ClientFinal, ClientFirst, ServerFinal, ServerFirst

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
_CLIENT_MAX_ITERATIONS: Final = 1 << 18
"""A server that asks for more wants to keep the client busy."""

_OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"

Random = Callable[[int], bytes]
"""So many random bytes, which nobody can foresee."""


@dataclass(frozen=True, slots=True)
class ScramHash:
    """One of the two mechanisms."""

    name: str
    algorithm: str
    type: int
    """Its number in requests and records."""

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """PBKDF2: 0.7 us an iteration."""
        return hashlib.pbkdf2_hmac(self.algorithm, password.encode(), salt, iterations)

    def digest(self, data: bytes) -> bytes:
        return hashlib.new(self.algorithm, data).digest()

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac(key, message, self.algorithm)


SHA_256: Final = ScramHash(SCRAM_SHA_256, "sha256", 1)
SHA_512: Final = ScramHash(SCRAM_SHA_512, "sha512", 2)
HASHES: Final = {hash_.name: hash_ for hash_ in (SHA_256, SHA_512)}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server keeps of a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def of_salted(cls, hash_: ScramHash, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
        client_key = hash_.hmac(salted_password, b"Client Key")
        return cls(salt, hash_.digest(client_key), hash_.hmac(salted_password, b"Server Key"), iterations)

    @classmethod
    def of_password(cls, hash_: ScramHash, password: str, salt: bytes, iterations: int) -> ScramCredential:
        return cls.of_salted(hash_, hash_.salted_password(password, salt, iterations), salt, iterations)


@dataclass(frozen=True, slots=True)
class Token:
    """A delegation token that stands for its owner: its id is the user, its HMAC in base64 the password."""

    owner: Principal
    expires_ms: int
    credential: ScramCredential | Callable[[], ScramCredential] = field(repr=False)
    """Or what derives it, which takes milliseconds."""
    keep: Callable[[ScramCredential], None] = lambda credential: None
    """Gets what was derived."""


def _nonce(random: Random) -> str:
    return b64encode(random(18)).decode()


class ScramServer:
    """The server's side."""

    __slots__ = ("_credential", "_credential_of", "_done", "_first", "_hash", "_random", "_server_first", "_token_of")

    def __init__(
        self,
        hash_: ScramHash,
        random: Random,
        credential_of: Callable[[str], ScramCredential | None],
        token_of: Callable[[str], Token | None] = lambda token_id: None,
    ) -> None:
        self._hash = hash_
        self._random = random
        self._credential_of = credential_of
        self._token_of = token_of
        self._first: ClientFirst | None = None
        self._server_first: ServerFirst | None = None
        self._credential: ScramCredential | None = None
        self._done: Done | None = None

    def step(self, token: bytes) -> Outcome:
        """Take the client's first message, then its last."""
        try:
            return self._client_first(ClientFirst.parse(token)) if self._first is None else self._client_final(token)
        except SaslError as error:
            return Failed(reason=str(error))

    def _client_first(self, first: ClientFirst) -> Outcome:
        self._first = first
        if first.authorization_id not in ("", first.user):
            return Failed(_OTHER_ID)
        if first.extensions.get("tokenauth", "").lower() == "true":
            token = self._token_of(first.user)
            if token is None:
                return Failed(reason=f"Token Authentication failed: Invalid tokenId : {first.user}")
            self._done = Done(token.owner, expires_ms=token.expires_ms, by_token=True)
            if isinstance(token.credential, ScramCredential):
                return self._challenge(token.credential)
            return Later(token.credential, lambda derived: self._derived(token, derived))
        credential = self._credential_of(first.user)
        if credential is None:
            return Failed(reason="Authentication failed: Invalid user credentials")
        self._done = Done(Principal(USER, first.user))
        return self._challenge(credential)

    def _derived(self, token: Token, credential: ScramCredential) -> Outcome:
        token.keep(credential)
        return self._challenge(credential)

    def _challenge(self, credential: ScramCredential) -> Outcome:
        if self._first is None:
            raise SaslError("a challenge before the client's first message")
        if credential.iterations < MIN_ITERATIONS:
            return Failed(reason=f"Iterations {credential.iterations} is less than the minimum {MIN_ITERATIONS}")
        self._credential = credential
        nonce = self._first.nonce + _nonce(self._random)
        self._server_first = ServerFirst.of(nonce, credential.salt, credential.iterations)
        return Challenge(self._server_first.encode())

    def _client_final(self, token: bytes) -> Outcome:
        final = ClientFinal.parse(token)
        first, server_first, credential, done = self._first, self._server_first, self._credential, self._done
        if first is None or server_first is None or credential is None or done is None:
            raise SaslError("a message out of its order")
        self._credential = None  # one attempt
        if final.nonce != server_first.nonce:
            raise SaslError("Invalid client nonce in the final client message.")
        if final.binding != first.header.encode():
            raise SaslError("Invalid channel binding in the final client message.")
        hash_ = self._hash
        signed = ",".join((first.bare, server_first.text, final.without_proof)).encode()
        signature = hash_.hmac(credential.stored_key, signed)
        if len(final.proof) != len(signature):
            raise SaslError("Invalid client credentials")
        client_key = bytes(a ^ b for a, b in zip(final.proof, signature, strict=True))
        if not compare_digest(hash_.digest(client_key), credential.stored_key):
            raise SaslError("Invalid client credentials")
        proof = ServerFinal.encode(hash_.hmac(credential.server_key, signed))
        return Done(done.principal, proof, done.expires_ms, done.by_token)


class ScramClient:
    """The client's side."""

    __slots__ = ("_first", "_hash", "_salted_password", "_server_signature")

    def __init__(
        self,
        hash_: ScramHash,
        user: str,
        salted_password: Callable[[bytes, int], bytes],
        random: Random,
        *,
        token: bool = False,
    ) -> None:
        """`salted_password` is given salt and iterations: `SaltedPasswords.of`. `token`: it is a delegation token."""
        if not user:
            raise SaslError("a user name is needed")
        self._hash = hash_
        self._salted_password = salted_password
        self._first = ClientFirst.of(user, _nonce(random), {"tokenauth": "true"} if token else {})
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        return self._first.encode()

    def step(self, token: bytes) -> bytes | None:
        """Take the server's first message, then its last."""
        if self._server_signature is not None:
            final = ServerFinal.parse(token)
            if final.error is not None:
                raise SaslError(f"the server refuses: {final.error}")
            if not compare_digest(final.signature, self._server_signature):
                raise SaslError("Invalid server signature in server final message")
            return None
        server = ServerFirst.parse(token)
        if not server.nonce.startswith(self._first.nonce) or server.nonce == self._first.nonce:
            raise SaslError("Invalid server nonce: does not start with client nonce")
        if not MIN_ITERATIONS <= server.iterations <= _CLIENT_MAX_ITERATIONS:
            raise SaslError(f"Requested iterations {server.iterations} are less than 4096 or too many")
        hash_ = self._hash
        salted = self._salted_password(server.salt, server.iterations)
        unproved = ClientFinal.unproved(server.nonce)
        signed = ",".join((self._first.bare, server.text, unproved)).encode()
        client_key = hash_.hmac(salted, b"Client Key")
        signature = hash_.hmac(hash_.digest(client_key), signed)
        self._server_signature = hash_.hmac(hash_.hmac(salted, b"Server Key"), signed)
        return ClientFinal.encode(unproved, bytes(a ^ b for a, b in zip(client_key, signature, strict=True)))


class SaltedPasswords:
    """A password, salted: the last answer is kept, because a client meets the same salt again."""

    __slots__ = ("_hash", "_last", "_password")

    def __init__(self, hash_: ScramHash, password: str) -> None:
        self._hash = hash_
        self._password = password
        self._last: tuple[bytes, int, bytes] = (b"", 0, b"")

    def of(self, salt: bytes, iterations: int) -> bytes:
        if self._last[:2] != (salt, iterations):
            self._last = (salt, iterations, self._hash.salted_password(self._password, salt, iterations))
        return self._last[2]
