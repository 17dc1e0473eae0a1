"""Clients that come by a delegation token: SCRAM with its id as the user and itself as the password (KIP-48).

Owns the credentials that are derived from tokens, for a while: each costs 4,096 rounds of a hash, so it is made off the
loop when it is first asked for. A token that has expired lets nobody in, though the log may still have it.
"""

from __future__ import annotations

from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from tanist.controller.image.image import MetadataImage
from tanist.controller.security.tokens import TokenSettings, has_expired
from tanist.security.principal import parse_principal
from tanist.security.sasl.scram import MIN_ITERATIONS, Random, ScramCredential, ScramHash, Token

_KEPT: Final = 1_000
_SALT_BYTES: Final = 16


class TokenCredentials:
    """Of one node."""

    def __init__(
        self,
        settings: TokenSettings,
        image: Callable[[], MetadataImage],
        random: Random,
        wall_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._image = image
        self._random = random
        self._wall_ms = wall_ms
        self._known: OrderedDict[tuple[str, str], ScramCredential] = OrderedDict()

    def find(self, hash_: ScramHash, token_id: str) -> Token | None:
        """Whom a token stands for, and what judges who says to have it; None if there is no such token."""
        record = self._image().tokens.get(token_id)
        if self._settings.secret is None or record is None or has_expired(record, self._wall_ms()):
            return None
        try:
            owner = parse_principal(record.owner)
        except ValueError:
            return None
        key = (token_id, hash_.name)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return Token(owner, record.expiration_timestamp, known)
        salt = self._random(_SALT_BYTES)
        password = b64encode(self._settings.hmac_of(token_id)).decode()

        def derive() -> ScramCredential:
            return ScramCredential.of_password(hash_, password, salt, MIN_ITERATIONS)

        def keep(derived: ScramCredential) -> None:
            self._known[key] = derived
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)

        return Token(owner, record.expiration_timestamp, derive, keep)
