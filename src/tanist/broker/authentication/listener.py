"""The mechanisms of one listener: what a new authentication starts with, and how long one is good.

Owns nothing but what the configuration says; users of SCRAM are looked up in the metadata, as it is now. Must never
remember a password that was shown.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.authentication.delegation_tokens import TokenCredentials
from tanist.broker.authentication.token_keys import TokenKeys
from tanist.broker.context import NodeContext
from tanist.broker.sasl_properties import SaslListener
from tanist.controller.image.image import MetadataImage
from tanist.security.sasl.oauthbearer import OAuthBearerServer, Verify, unsecured_claims
from tanist.security.sasl.outcome import OAUTHBEARER, PLAIN, Done, ServerMachine
from tanist.security.sasl.plain import PlainServer
from tanist.security.sasl.scram import HASHES, ScramCredential, ScramHash, ScramServer


class Mechanisms:
    """Of one listener."""

    def __init__(
        self,
        context: NodeContext,
        config: SaslListener,
        image: Callable[[], MetadataImage],
        tokens: TokenCredentials,
    ) -> None:
        self.names = config.mechanisms
        self.max_receive_bytes = config.max_receive_bytes
        self._config = config
        self._image = image
        self._tokens = tokens
        self._random = context.random
        self._wall_ms = context.clock.wall_ms
        self._verify: Verify = unsecured_claims
        if config.bearer is not None and config.bearer.keys is not None:
            self._verify = TokenKeys(context, config.bearer.keys).claims_of

    def begin(self, mechanism: str) -> ServerMachine:
        """The server's side of a new authentication. KeyError if the listener does not have the mechanism."""
        entry, bearer = self._config.entries[mechanism], self._config.bearer
        if mechanism == PLAIN:
            return PlainServer(entry.passwords.get)
        if mechanism == OAUTHBEARER and bearer is not None:
            return OAuthBearerServer(self._verify, bearer.rules, self._wall_ms)
        hash_ = HASHES[mechanism]
        return ScramServer(
            hash_,
            self._random.bytes,
            lambda user: self._credential(hash_, user),
            lambda token_id: self._tokens.find(hash_, token_id),
        )

    def lifetime_ms(self, mechanism: str, done: Done, wall_ms: int) -> int | None:
        """For how long a client is believed that has authenticated just now; None: for ever."""
        lifetimes = []
        if (max_reauth_ms := self._config.max_reauth_ms[mechanism]) > 0:
            lifetimes.append(max_reauth_ms)
        if done.expires_ms is not None:
            lifetimes.append(max(0, done.expires_ms - wall_ms))
        return min(lifetimes, default=None)

    def _credential(self, hash_: ScramHash, user: str) -> ScramCredential | None:
        record = self._image().scram.get((user, hash_.type))
        if record is None:
            return None
        return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
