"""The keys by which signed tokens are judged (RFC 7517): who has signed a token, and whether it is genuine.

Owns the choice of key and algorithm: a key is used with the algorithms of its own kind only, so a public key can never
be taken for a secret, and a token without a signature is none. Takes the text of a key set; where it comes from, and
when it is fetched again, is the caller's matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from tanist.security.sasl.oauthbearer import Claims, InvalidToken, json_object

_ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA", "Ed25519"),
}
"""By kind of key. Keys of other kinds (secrets) are passed over."""
_KEYS_MAX: Final = 1000

Key = RSAKey | ECKey | OKPKey


class UnknownKey(InvalidToken):
    """A token is signed by a key that is not in the set; it may have come since."""

    def __init__(self, key_id: str) -> None:
        super().__init__("its key is not in the key set")
        self.key_id = key_id


class KeyRing:
    """A set of public keys."""

    def __init__(self, text: bytes) -> None:
        """`ValueError` where the text is no key set."""
        try:
            listed = json.loads(text)["keys"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ValueError("it is no JSON object with `keys`") from None
        if not isinstance(listed, list) or len(listed) > _KEYS_MAX:
            raise ValueError("its `keys` are no list, or too long a one")
        self._keys: list[Key] = []
        for each in listed:
            key = _key(each)
            if key is not None:
                self._keys.append(key)
        if not self._keys:
            raise ValueError("it has no key of RSA, EC or OKP")

    def __len__(self) -> int:
        return len(self._keys)

    def claims_of(self, token: str) -> Claims:
        """The claims of a genuine token. `InvalidToken`, `UnknownKey`."""
        header, _, rest = token.partition(".")
        fields = json_object(header)
        algorithm, key_id = fields.get("alg"), fields.get("kid")
        if not rest or not isinstance(algorithm, str):
            raise InvalidToken("it is no signed token")
        found = self._candidates(algorithm, key_id)
        for key in found:
            try:
                payload = jws.deserialize_compact(token, key, algorithms=[algorithm]).payload
            except (JoseError, ValueError, TypeError):
                continue
            try:
                claims = json.loads(payload)
            except (ValueError, RecursionError):
                raise InvalidToken("its claims are no JSON") from None
            if not isinstance(claims, dict):
                raise InvalidToken("its claims are no JSON object")
            return claims
        raise InvalidToken("its signature is wrong")

    def _candidates(self, algorithm: str, key_id: object) -> Sequence[Key]:
        of_kind = [key for key in self._keys if algorithm in _ALGORITHMS[key.key_type]]
        if key_id is None:
            if not of_kind:
                raise InvalidToken("there is no key for its algorithm")
            return of_kind
        named = [key for key in self._keys if key.kid == key_id]
        if not named:
            raise UnknownKey(str(key_id)[:256])
        found = [key for key in named if key in of_kind]
        if not found:
            raise InvalidToken("its algorithm is not that of its key")
        return found


def _key(value: object) -> Key | None:
    """A public key of a set; None for one that is not to be used here."""
    if not isinstance(value, dict) or value.get("use", "sig") != "sig":
        return None
    kind = value.get("kty")
    if not isinstance(kind, str) or kind not in _ALGORITHMS:
        return None
    try:
        (key,) = KeySet.import_key_set({"keys": [value]}).keys
        key.public_key  # noqa: B018  a key that cannot be read shows itself here
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return key if isinstance(key, RSAKey | ECKey | OKPKey) else None
