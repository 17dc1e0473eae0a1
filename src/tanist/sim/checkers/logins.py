"""The authentications of a run's subjects, as their frames tell: who was believed, by what, and until when.

Owns the judgement of each success (S29): the credential stood, at some moment of the authentication, in the metadata
that the broker had applied. It checks the proofs by itself (RFC 5802), and shares no machine with the product.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from tanist.sim.access_oracle import AccessOracle
from tanist.sim.secured import PASSWORDS, TOKEN_SECRET
from tanist.wire.metadata import DelegationTokenRecord

_PLAIN: Final = "PLAIN"
_HASH: Final = "sha256"
_SHA_256: Final = 1


class Moment(NamedTuple):
    """A moment of a broker."""

    applied: int
    """The metadata offset."""
    now_ms: int
    wall_ms: int


class Believed(NamedTuple):
    """A client that a broker believes."""

    principal: str
    until_ms: int | None
    """By the broker's clock; None: as long as the connection lasts."""


@dataclass(slots=True)
class Login:
    """One authentication of one connection."""

    mechanism: str
    begun: Moment | None = None
    tokens: list[bytes] = field(default_factory=list)
    """The client's and the broker's, by turns."""

    def shown(self, token: bytes, moment: Moment) -> None:
        if self.begun is None:
            self.begun = moment
        self.tokens.append(token)

    def accepted(self, token: bytes, moment: Moment, oracle: AccessOracle) -> Believed | str | None:
        """The broker takes the client's token and answers with this one. None: the client has more to show. A text:
        why it should not be believed."""
        self.tokens.append(token)
        if self.begun is None:
            return "it has shown nothing"
        if self.mechanism == _PLAIN:
            _, user, password = self.tokens[0].decode().split("\0")
            return Believed(f"User:{user}", None) if PASSWORDS.get(user) == password else f"not the password of {user}"
        return None if len(self.tokens) < 4 else self._scram(self.begun, moment, oracle)

    def _scram(self, begun: Moment, moment: Moment, oracle: AccessOracle) -> Believed | str:
        first, server_first, final = (token.decode() for token in self.tokens[:3])
        bare = first.split(",", 2)[2]
        fields = dict(each.split("=", 1) for each in bare.split(","))
        given = dict(each.split("=", 1) for each in server_first.split(","))
        without_proof, _, proof = final.rpartition(",p=")
        user, salt, rounds = fields["n"], b64decode(given["s"]), int(given["i"])
        signed = f"{bare},{server_first},{without_proof}".encode()
        states = list(oracle.between(begun.applied, moment.applied))
        if fields.get("tokenauth") != "true":
            keys = {record.stored_key for access in states if (record := access.users.get((user, _SHA_256)))}
            if any(_proves(bytes(key), signed, b64decode(proof)) for key in keys):
                return Believed(f"User:{user}", None)
            return f"{user} has shown no password that stood"
        if not _proves(_key_of_token(user, salt, rounds), signed, b64decode(proof)):
            return f"it does not have the token {user}"
        found = [token for access in states if (token := access.tokens.get(user)) is not None]
        ends_ms = max(map(_end_ms, found), default=-1)
        if not found:
            return f"the token {user} did not stand"
        if ends_ms < begun.wall_ms:
            return f"the token {user} had expired {begun.wall_ms - ends_ms} ms before"
        return Believed(found[-1].owner, moment.now_ms + max(0, ends_ms - begun.wall_ms))


def _end_ms(token: DelegationTokenRecord) -> int:
    return int(min(token.expiration_timestamp, token.max_timestamp))


def _proves(stored_key: bytes, signed: bytes, proof: bytes) -> bool:
    """RFC 5802, section 3: ClientProof := ClientKey XOR HMAC(StoredKey, AuthMessage), StoredKey := H(ClientKey)."""
    signature = hmac.digest(stored_key, signed, _HASH)
    client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    return hashlib.new(_HASH, client_key).digest() == stored_key


@lru_cache(maxsize=1_000)
def _key_of_token(token_id: str, salt: bytes, rounds: int) -> bytes:
    password = b64encode(hmac.digest(TOKEN_SECRET.encode(), token_id.encode(), "sha512"))
    salted = hashlib.pbkdf2_hmac(_HASH, password, salt, rounds)
    return hashlib.new(_HASH, hmac.digest(salted, b"Client Key", _HASH)).digest()
